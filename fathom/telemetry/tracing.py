"""The current activity as spans: for the ids in log lines and, if the environment asks for it, for traces.

A span is the run itself, a step, a call or a request. It shares its id with the event in the audit log, so that a line
of the log, a span of a trace and an event of the audit can be found from each other. Without OTEL variables nothing of
OpenTelemetry is imported. Spans go to a provider of our own: with a global one, Prefect would send a span for each of
its task runs too, and Prefect's spans hide ours from those inside (`use_span` around every task), so the parent of a
span is kept here.

The spans of a run, named and described by OpenTelemetry's conventions for generative AI.

    invoke_workflow deep-research      the run
      step                             a step of the plan
        ask researcher                 a role and its answer, with or without a model
          chat gpt-5-mini              one request to a model, each attempt its own
        execute_tool web_search        one call to a tool

https://opentelemetry.io/docs/specs/semconv/gen-ai/ (in development). Attributes that the conventions do not name are
`fathom.*`. No span holds text of questions, prompts, pages or answers.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fathom.config.environment import Environment, installing
from fathom.errors import FathomError
from fathom.models import Metrics, ToolResult, Usage
from fathom.network import may_send

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OTelSpan
    from opentelemetry.trace import Tracer

FLUSH_SECONDS = 2.0  # seconds at the end of the process; an endpoint that is down takes no longer
_NOT_INSTALLED = "Traces are configured (OTEL_...), but OpenTelemetry is not installed: {how}"

Attribute = str | int | float | bool | list[str] | None


class Span:
    """One activity of a run, while it lasts. `ids`: of the run, the step and the call to which it belongs."""

    def __init__(self, id: str, ids: Mapping[str, str], otel: OTelSpan | None) -> None:
        self.id = id
        self.ids = ids
        self.otel = otel

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes; None is skipped."""
        if self.otel:
            self.otel.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def failed(self, kind: str, code: str = "") -> None:
        """Mark it as failed, with the name and the code of the error; messages may quote a page."""
        if self.otel:
            from opentelemetry.trace import StatusCode

            self.note({"error.type": kind, "fathom.error.code": code or None})
            self.otel.set_status(StatusCode.ERROR, code)

    @property
    def trace_id(self) -> str:
        """The id of its trace, 32 hex digits; empty where none is made."""
        return format(self.otel.get_span_context().trace_id, "032x") if self.otel else ""


_current: ContextVar[Span | None] = ContextVar("fathom_span", default=None)
_wanted_id: ContextVar[str] = ContextVar("fathom_span_id", default="")
_tracer: Tracer | None = None
_address = ""
_started = False


def new_id() -> str:
    """Return an id for a span or an event of the audit log: 16 hex digits."""
    return uuid4().hex[:16]


def current() -> Span | None:
    """Return the innermost span; None outside a run."""
    return _current.get()


@contextmanager
def span(
    name: str,
    attributes: Mapping[str, Attribute],
    *,
    id: str = "",
    ids: Mapping[str, str] | None = None,
    root: bool = False,
    client: bool = False,
) -> Iterator[Span]:
    """Open a span inside the current one.

    Args:
        name: the kind of work, the same in every run.
        attributes: attributes that are known from the start.
        id: 16 hex digits; a new one by default.
        ids: ids that it adds to its parent's ids.
        root: it is a run. Outside a run nothing is traced: a replay does no work.
        client: it is a request to another service.
    """
    parent = _current.get()
    own_id = id or new_id()
    otel = _open(name, attributes, own_id, parent, client=client) if root or (parent and parent.otel) else None
    opened = Span(own_id, {**(parent.ids if parent else {}), **(ids or {})}, otel)
    token = _current.set(opened)
    try:
        yield opened
    except BaseException as error:
        opened.failed(type(error).__name__, error.code if isinstance(error, FathomError) else "")
        raise
    finally:
        _current.reset(token)
        if otel:
            otel.end()


def _open(
    name: str, attributes: Mapping[str, Attribute], id: str, parent: Span | None, *, client: bool
) -> OTelSpan | None:
    if _tracer is None or not may_send("traces", _address):
        return None
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind, set_span_in_context

    context = set_span_in_context(parent.otel, Context()) if parent and parent.otel else Context()
    kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
    known = {name: value for name, value in attributes.items() if value is not None}
    token = _wanted_id.set(id)
    try:
        return _tracer.start_span(name, context, kind, known)
    finally:
        _wanted_id.reset(token)


def start_tracing(environment: Environment) -> str:
    """Begin to send traces, if the environment says where; the first call of a process decides.

    Returns why they cannot be sent, once, or nothing.
    """
    global _tracer, _started, _address  # noqa: PLW0603 - one provider a process, as its exporter is one thread
    if _started or not environment.traces:
        return ""
    _started = True
    if environment.traces != "otlp":
        return f"No traces: {environment.traces}"
    try:
        provider = _provider()
    except ImportError:
        return _NOT_INSTALLED.format(how=installing("otel"))
    _address = environment.traced_to
    _tracer = provider.get_tracer("fathom", version("fathom-research"))
    return ""


def _provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        def generate_span_id(self) -> int:
            return int(_wanted_id.get(), 16) or super().generate_span_id()

    resource = Resource.create({SERVICE_VERSION: version("fathom-research")})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "fathom"}))
    logging.getLogger("opentelemetry").addFilter(_Once())
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").addFilter(_Once())
    provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    closing = Event()

    def close() -> None:
        closing.wait()
        provider.shutdown()

    # A thread can no longer be started while the interpreter ends (Python 3.12), so it waits from now on.
    closer = Thread(target=close, name="traces", daemon=True)
    closer.start()

    def flush() -> None:
        closing.set()
        closer.join(FLUSH_SECONDS)

    atexit.register(flush)
    return provider


class _Once(logging.Filter):
    """Lets each kind of message through once: an endpoint that is down would fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._said = set[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        new = str(record.msg) not in self._said
        self._said.add(str(record.msg))
        return new


_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that litellm names differently."""


def run_span(event: str, run_id: str, run_key: str) -> AbstractContextManager[Span]:
    """Open the span of a run, or of its continuation; `event` is the id of its first event."""
    attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "deep-research",
        "fathom.run.id": run_id,
        "fathom.run.key": run_key,
    }
    return span("invoke_workflow deep-research", attributes, id=event, ids={"run_id": run_id}, root=True)


def describe_run(run: Span, ending: str, metrics: Metrics) -> None:
    """Add how a run ended and what it used to its span."""
    run.note(
        {
            "fathom.run.ending": ending,
            "fathom.cost_usd": metrics.cost_usd,
            "fathom.model_calls": metrics.llm_calls,
            "fathom.tool_calls": metrics.tool_calls,
            "gen_ai.usage.input_tokens": metrics.prompt_tokens,
            "gen_ai.usage.cache_read.input_tokens": metrics.cached_tokens or None,
            "gen_ai.usage.output_tokens": metrics.completion_tokens,
        }
    )


def step_span(event: str, step_id: str) -> AbstractContextManager[Span]:
    """Open the span of a step of the plan."""
    return span("step", {"fathom.step.id": step_id}, id=event, ids={"step_id": step_id})


def role_span(role: str) -> AbstractContextManager[Span]:
    """Open the span of a role's answer."""
    return _call(f"ask {role}", {"fathom.role": role})


def tool_span(tool: str) -> AbstractContextManager[Span]:
    """Open the span of a tool call."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
    return _call(f"execute_tool {tool}", attributes)


def describe_tool(call: Span, result: ToolResult) -> None:
    """Add a tool's output to the span of its call; a call that stored nothing has failed."""
    codes = [failure.code for failure in result.failures]
    call.note({"fathom.cached": result.cached, "fathom.sources": len(result.sources), "fathom.failures": codes or None})
    if codes and not result.artifact_file:
        call.failed("ToolError", codes[0])


def _call(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[Span]:
    call_id = new_id()
    return span(name, attributes, id=call_id, ids={"call_id": call_id})


def request_span(
    provider: str, model: str, role: str, options: Mapping[str, Any], most: int
) -> AbstractContextManager[Span]:
    """Open the span of one request to a model, given by its litellm name; `options` are chat completion options."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": most,
        "gen_ai.request.temperature": options.get("temperature"),
        "gen_ai.request.frequency_penalty": options.get("frequency_penalty"),
        "gen_ai.output.type": "json" if options.keys() & {"response_format", "tools"} else "text",
        "fathom.role": role,
    }
    return span(f"chat {model}", attributes, client=True)


def describe_reply(request: Span, model: str, finish: str | None, usage: Usage, wait: float | None) -> None:
    """Add the answer's figures to the span of its request; `model` and `finish` are the provider's words."""
    request.note(
        {
            "gen_ai.response.model": model or None,
            "gen_ai.response.finish_reasons": [finish] if finish else None,
            "gen_ai.response.time_to_first_chunk": wait,
            "gen_ai.usage.input_tokens": usage.prompt_tokens or None,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens or None,
            "gen_ai.usage.output_tokens": usage.completion_tokens or None,
            "fathom.cost_usd": usage.cost_usd,
        }
    )
