"""The spans of a run, named and described by OpenTelemetry's conventions for generative AI.

    invoke_workflow deep-research      the run
      step                             a step of the plan
        ask researcher                 a role and its answer, with or without a model
          chat gpt-5-mini              one request to a model, each attempt its own
        execute_tool web_search        one call to a tool

https://opentelemetry.io/docs/specs/semconv/gen-ai/ (in development). What those do not name is `fathom.*`. No span
holds text of questions, prompts, pages or answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from fathom.models import Metrics, ToolResult, Usage
from fathom.telemetry.tracing import Span, new_id, span

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
"""What the conventions call providers that litellm calls otherwise."""


def run_span(event: str, run_id: str, run_key: str) -> AbstractContextManager[Span]:
    """Do a run, or continue it; `event` is the id of its first event."""
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
    """Do a step of the plan."""
    return span("step", {"fathom.step.id": step_id}, id=event, ids={"step_id": step_id})


def role_span(role: str) -> AbstractContextManager[Span]:
    """Let a role answer."""
    return _call(f"ask {role}", {"fathom.role": role})


def tool_span(tool: str) -> AbstractContextManager[Span]:
    """Call a tool."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
    return _call(f"execute_tool {tool}", attributes)


def describe_tool(call: Span, result: ToolResult) -> None:
    """Add what a tool returned to the span of its call; one that stored nothing has failed."""
    codes = [failure.code for failure in result.failures]
    call.note(
        {
            "fathom.cached": result.cached,
            "fathom.sources": len(result.sources),
            "fathom.failures": codes or None,
        }
    )
    if codes and not result.artifact_file:
        call.failed("ToolError", codes[0])


def _call(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[Span]:
    call_id = new_id()
    return span(name, attributes, id=call_id, ids={"call_id": call_id})


def request_span(
    provider: str, model: str, role: str, options: Mapping[str, Any], most: int
) -> AbstractContextManager[Span]:
    """Send one request to a model, the provider's name in litellm; `options` are those of a chat completion."""
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
