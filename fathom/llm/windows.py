"""The context windows of models: looking them up, learning them during a run, and shortening requests that are too
long.

Servers state the window in the list of their models, each under its own field name. Ollama's list does not: it has a
window of 4,096 tokens unless it is asked for another, and leaves out the start of what is longer.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fathom.budget.prices import model_entry
from fathom.config.groups import RoleModel, StructuredOutput
from fathom.errors import ContextOverflow
from fathom.llm.base import ModelCall
from fathom.llm.dialects import Dialect, conceded
from fathom.llm.prompts import request_options
from fathom.models import SourceText, told_by
from fathom.network import BodyTooLarge, limit_body
from fathom.retrieval.narrowing import narrow, within_budget
from fathom.roles import (
    CompressRequest,
    OutlineRequest,
    PlanRequest,
    ReflectRequest,
    Request,
    ResearchRequest,
    SectionRequest,
    ShortAnswerRequest,
)
from fathom.roles.base import AnswerT, Remembering, RequestT, RoleSpec
from fathom.text.tokens import count_tokens

if TYPE_CHECKING:
    import httpx

SECONDS = 5.0  # seconds for a question to the server about itself
MOST_BYTES = 2**24  # of its answer: gateways list thousands of models
LEAST_WINDOW = 1_024  # a smaller number in a refusal is not a window
_TELLS_NOTHING = (
    TimeoutError, BodyTooLarge, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError
)  # fmt: skip
OLLAMA_DEFAULT = 4_096  # https://docs.ollama.com/context-length
# By server: llama.cpp (within `meta`), vLLM and SGLang, LM Studio, OpenRouter and Together, Groq.
_NAMES = ("n_ctx", "max_model_len", "loaded_context_length", "max_context_length", "context_length", "context_window")
# How servers say that a prompt does not fit: OpenAI, vLLM, llama.cpp, LM Studio, gateways.
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|context (?:window|size|length)|exceed_context_size|"
    r"too many tokens|(?:prompt|input|string) (?:is )?too long",
    re.IGNORECASE,
)
_SAID = re.compile(
    r'"n_ctx"\s*:\s*(?P<n_ctx>\d+)|context (?:window|size|length)[^\d]{0,30}(?P<tokens>\d[\d,]*)(?P<thousands>k\b)?',
    re.IGNORECASE,
)


def table_window(model: str) -> int | None:
    """Return the window that litellm's table has for a model."""
    tokens = model_entry(model).get("max_input_tokens")
    return tokens if isinstance(tokens, int) else None


def table_answer(model: str) -> int | None:
    """Return the longest answer that litellm's table has for a model, in tokens."""
    tokens = model_entry(model).get("max_output_tokens")
    return tokens if isinstance(tokens, int) else None


async def served_window(http: httpx.AsyncClient, name: str) -> int | None:
    """Return the window that an OpenAI-compatible server gives for a model in the list of its models."""
    import httpx

    try:
        listed = (await _asked(http, "GET", "models"))["data"]
        entries = [entry for entry in listed if isinstance(entry, dict)]
        named = [entry for entry in entries if entry.get("id") == name or name in (entry.get("aliases") or ())]
    except (httpx.HTTPError, httpx.InvalidURL, *_TELLS_NOTHING):
        return None
    chosen = named or (entries if len(entries) == 1 else [])  # a server of one model answers to any name
    return next(filter(None, map(_window, chosen)), None)


def _window(entry: Mapping[str, Any]) -> int | None:
    meta = entry.get("meta")
    places = [meta if isinstance(meta, dict) else {}, entry]
    found = [place.get(name) for name in _NAMES for place in places]
    told = next((tokens for tokens in found if isinstance(tokens, int) and tokens > 0), None)
    return told or (OLLAMA_DEFAULT if entry.get("owned_by") == "library" else None)


async def ollama_window(http: httpx.AsyncClient, name: str) -> int | None:
    """Return the window that a model was trained for, as Ollama gives it."""
    import httpx

    try:
        known = (await _asked(http, "POST", "api/show", json={"model": name}))["model_info"]
        return next((int(value) for key, value in known.items() if key.endswith(".context_length")), None)
    except (httpx.HTTPError, httpx.InvalidURL, *_TELLS_NOTHING):
        return None


async def _asked(http: httpx.AsyncClient, method: str, path: str, **options: Any) -> Any:
    """Return what a server says about itself, within `SECONDS` and `MOST_BYTES`."""
    async with asyncio.timeout(SECONDS), http.stream(method, path, **options) as response:
        limit_body(response, MOST_BYTES)
        response.raise_for_status()
        return json.loads(await response.aread())


def overflow(status: int, text: str, message: str) -> ContextOverflow | None:
    """Return the error of a refusal that says that the prompt is too long; None if it says something else."""
    if status != 413 and not (status in (400, 500) and _TOO_LONG.search(text)):
        return None
    error = ContextOverflow(message)
    error.window = _told_window(text)
    return error


def _told_window(text: str) -> int | None:
    if not (found := _SAID.search(text)):
        return None
    tokens = int((found["n_ctx"] or found["tokens"]).replace(",", "")) * (1_000 if found["thousands"] else 1)
    return tokens if tokens >= LEAST_WINDOW else None


def shrunk(request: Request, share: float = 0.5) -> Request | None:
    """Return a request of the same kind with a share of its material, or None when nothing more can be left out."""
    match request:
        case PlanRequest():
            return _with(request, documents=request.documents[: int(len(request.documents) * share)])
        case CompressRequest():
            focus = f"{request.step_title} {request.step_description}"
            texts = _part_of_texts(request.texts, focus, share, fill=True)
            return _with(request, texts=texts) if texts else None
        case SectionRequest():
            return _with(
                request,
                **_part_of_memory(request, f"{request.section.heading} {request.section.focus}", share),
                written=request.written[len(request.written) - int(len(request.written) * share) :],
                passages=_part_of_texts(request.passages, request.section.heading, share),
            )
        case ResearchRequest():
            focus = f"{request.step.title} {request.step.description}"
            return _with(request, **_part_of_memory(request, focus, share))
        case ReflectRequest() | OutlineRequest() | ShortAnswerRequest():
            return _with(request, **_part_of_memory(request, request.query, share))
    return None


def _with(request: Request, **smaller: Sequence[object]) -> Request | None:
    """Return the request with smaller lists; None when they are the ones it has."""
    changed = any(items != getattr(request, name) for name, items in smaller.items())
    return request.model_copy(update=smaller) if changed else None


def _part_of_memory(request: Remembering, focus: str, share: float) -> dict[str, Sequence[object]]:
    """Return a share of the notes that are shown whole or, if none can be left out, of the briefs."""
    shown = request.shown
    kept = within_budget(shown, focus, int(sum(note.tokens for note in shown) * share))
    briefs = request.briefs if kept != shown else request.briefs[: int(len(request.briefs) * share)]
    told = told_by(briefs)
    notes = [note for note in request.notes if note in kept or note.artifact_file in told]
    left = {source_id for note in notes for source_id in note.origins}
    return {"notes": notes, "briefs": briefs, "sources": [one for one in request.sources if one.source_id in left]}


def _part_of_texts(texts: list[SourceText], focus: str, share: float, *, fill: bool = False) -> list[SourceText]:
    return narrow(texts, focus, int(sum(count_tokens(text.text) for text in texts) * share), fill=fill).texts


MARGIN = 1.25  # tokens of a model for one of our estimate: small vocabularies cut words into more pieces
MESSAGE_TOKENS = 8  # that a chat template puts around a message
ANSWER_SHARE = 1 / 3  # maximum share of the window that is kept for the answer
LEAST_SHARE = 0.1  # share of the material that is left when it is cut to fit
CUTS = 8  # shares of the material, tried in turn until the request fits


class Learnt:
    """One model, for the length of a run.

    Attributes:
        dialect: how it is asked; changes when the server refuses something.
        window: tokens that prompt and answer may have together; None: unknown.
    """

    def __init__(self, dialect: Dialect, window: int | None, longest_answer: int | None) -> None:
        self.dialect = dialect
        self.window = window
        self._longest_answer = longest_answer
        self._refused = {dialect}

    def concede(self, asked: Dialect, refusal: str) -> bool:
        """Ask in another way from now on, and return whether there is one that was not refused before.

        Where several calls were refused at once, the first has changed the dialect in which they were `asked`.
        """
        if replace(asked, thinks=self.dialect.thinks) != self.dialect:
            return True
        other = conceded(self.dialect, refusal)
        if other is None or other in self._refused:
            return False
        self._refused.add(other)
        self.dialect = other
        return True

    def thinks(self) -> None:
        """Leave room for thoughts from now on."""
        self.dialect = replace(self.dialect, thinks=True)

    def holds(self, window: int | None) -> None:
        """Take note of the window that a refusal states."""
        if window:
            self.window = min(window, self.window or window)

    def asks(self, call: ModelCall) -> tuple[dict[str, Any], int]:
        """Return the options of a call, and the maximum length of its answer."""
        options = request_options(call, self.dialect)
        return options, self.answer_tokens(call.model, options)

    def answer_tokens(self, model: RoleModel, options: Mapping[str, Any] | None = None) -> int:
        """Return how long an answer may be, thoughts included, alone or beside a request with these options."""
        most = model.max_tokens + (model.thinking_tokens if self.dialect.thinks else 0)
        most = min(most, self._longest_answer or most)
        if self.window is None:
            return most
        sent = sent_tokens(options) if options else 0
        return max(1, min(most, max(self.window - sent, int(self.window * ANSWER_SHARE))))

    def room(self, model: RoleModel) -> float:
        """Return how many tokens a prompt may have beside the answer."""
        if self.window is None:
            return math.inf
        return self.window - min(self.answer_tokens(model), int(self.window * ANSWER_SHARE))

    def fit(self, call: ModelCall) -> ModelCall:
        """Return the call with as much of its material as the window holds beside the answer.

        A call that does not fit without any is returned as it is: the server has the last word.
        """
        if self.window is None:
            return call
        room = self.room(call.model)
        fitting = call
        for _ in range(CUTS):
            sent = sent_tokens(request_options(fitting, self.dialect))
            if sent <= room:
                return fitting
            smaller = shrunk(fitting.request, max(LEAST_SHARE, 0.9 * room / sent))
            if smaller is None:
                break
            fitting = replace(fitting, request=smaller)
        return fitting


def fitting(spec: RoleSpec[RequestT, AnswerT], model: RoleModel, window: int | None) -> Callable[[RequestT], bool]:
    """Return whether a request leaves room for its answer in a window of some tokens; None: any does."""
    return lambda request: spare_tokens(spec, request, model, window) >= 0


def spare_tokens(spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, window: int | None) -> float:
    """Return how many more tokens of material fit a window beside a request and its answer; infinite of None.

    It is negative if these alone do not fit. The result does not change when something is learnt about the model, so
    requests may be built with it: it assumes the schema in the prompt, and room for thoughts.
    """
    if window is None:
        return math.inf
    learnt = Learnt(Dialect(structured=StructuredOutput.prompt, thinks=True), window, None)
    sent = sent_tokens(request_options(ModelCall(spec=spec, request=request, model=model), learnt.dialect))
    return (learnt.room(model) - sent) / MARGIN


def sent_tokens(options: Mapping[str, Any]) -> int:
    """Return the tokens of a request, with a margin. A schema that the server turns into a grammar takes none."""
    messages = options["messages"]
    texts = [message["content"] for message in messages]
    texts.append(json.dumps(options.get("tools", "")))
    return math.ceil(sum(map(count_tokens, texts)) * MARGIN) + MESSAGE_TOKENS * len(messages)
