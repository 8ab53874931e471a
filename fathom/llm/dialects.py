"""The features that providers accept and refuse, as data: one line each, with its source.

`TABLE` holds the knowledge before the first request. `CONCESSIONS` reads a refusal: the refused part is left out or
requested in another form, and the request is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from fathom.budget.prices import model_entry
from fathom.config.groups import StructuredOutput


@dataclass(frozen=True)
class Dialect:
    """How one model is asked."""

    structured: StructuredOutput = StructuredOutput.json_schema
    bounds: bool = False
    """Schemas carry `maxLength` and `maxItems`. A small model that decodes under a schema repeats itself without."""
    system: bool = True  # whether there is a system role; else the first user message begins with its text
    alternates: bool = False  # whether roles take turns: neighbours of one role would become one message
    temperature: bool = True
    penalty: bool = True  # frequency_penalty
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True  # stream_options.include_usage
    num_ctx: int | None = None  # tokens of the window that each request asks for
    marked_from: int | None = None  # tokens from which a beginning is marked for the provider's cache; None: never
    thinks: bool = False  # whether it reasons before it answers; its thoughts count as tokens of the answer


@dataclass(frozen=True)
class Line:
    """A line of the table: the models that it covers, the differences, and the source.

    Attributes:
        providers: the part of a litellm name before the first slash; empty: every provider.
        name: a regular expression that the rest of the name contains.
        own_server: whether the address is the user's own; None: either.
        flags: entries that the model must have in litellm's table.
        differs: the fields of `Dialect`.
        source: where it is documented.
    """

    differs: Mapping[str, Any]
    source: str
    providers: frozenset[str] = frozenset()
    name: str = ""
    own_server: bool | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)

    def covers(self, provider: str, name: str, own_server: bool, entry: Mapping[str, object]) -> bool:
        """Return whether the line is about a model."""
        return (
            (not self.providers or provider in self.providers)
            and (self.own_server is None or self.own_server is own_server)
            and re.search(self.name, name, re.IGNORECASE) is not None
            and all(entry.get(flag) == value for flag, value in self.flags.items())
        )


LOCAL = frozenset({"hosted_vllm", "vllm", "lm_studio", "llamafile", "ollama", "ollama_chat"})
"""Providers of litellm that are servers of the user's own."""
OLLAMA = frozenset({"ollama", "ollama_chat"})
OLLAMA_WINDOW = 16_384  # tokens asked for; the memory that Ollama reserves grows with them

TABLE = (
    Line(
        {"limit": "max_completion_tokens"},
        "https://platform.openai.com/docs/api-reference/chat/create: max_tokens is deprecated",
        providers=frozenset({"openai"}),
        own_server=False,
    ),
    Line(
        {"limit": "max_completion_tokens", "temperature": False, "penalty": False, "thinks": True},
        "https://platform.openai.com/docs/guides/reasoning: sampling parameters and max_tokens are refused",
        providers=frozenset({"openai"}),
        flags={"litellm_provider": "openai", "supports_reasoning": True},
    ),
    Line(
        {"bounds": True},
        "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md and "
        "https://docs.vllm.ai/en/latest/features/structured_outputs.html: the schema becomes a grammar, bounds and all",
        providers=frozenset({"openai"}),
        own_server=True,
    ),
    Line(
        {"bounds": True}, "https://docs.ollama.com/capabilities/structured-outputs and the two above", providers=LOCAL
    ),
    Line(
        {"num_ctx": OLLAMA_WINDOW},
        "https://docs.ollama.com/context-length: 4,096 tokens unless asked for more; the start of a longer prompt is "
        "left out without a word",
        providers=OLLAMA,
    ),
    Line(
        {"structured": StructuredOutput.tool, "penalty": False},
        "https://docs.anthropic.com/en/api/messages: no response_format and no penalties; a forced tool has a schema",
        providers=frozenset({"anthropic"}),
    ),
    Line(
        {"alternates": True},
        "https://docs.claude.com/en/api/messages: consecutive turns of one role are combined into one; "
        "https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference.html and "
        "https://ai.google.dev/gemini-api/docs/text-generation: turns of user and model",
        name=r"\b(?:claude|gemini|nova)\b",
    ),
    Line(
        {"marked_from": 1_024},
        "https://docs.claude.com/en/docs/build-with-claude/prompt-caching, "
        "https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html, "
        "https://openrouter.ai/docs/features/prompt-caching: the cache has what is marked, up to four beginnings, each "
        "of a least length (litellm's table knows the model's)",
        providers=frozenset({"anthropic", "azure_ai", "bedrock", "databricks", "openrouter", "vertex_ai"}),
        name="claude",
    ),
    Line(
        {"structured": StructuredOutput.json_object},
        "https://api-docs.deepseek.com/guides/json_mode: only json_object",
        providers=frozenset({"deepseek"}),
    ),
    Line(
        {"system": False},
        "https://ai.google.dev/gemma/docs/core/prompt-structure: only the roles user and model",
        name=r"\bgemma(?!-?[4-9](?!b))",  # up to version 3; 7b is a size
    ),
    Line(
        {"thinks": True},
        "https://api-docs.deepseek.com/guides/reasoning_model, https://qwenlm.github.io/blog/qwen3, "
        "https://docs.mistral.ai/capabilities/reasoning, https://cookbook.openai.com/articles/openai-harmony",
        name=r"deepseek-(?:r1|reasoner)|\bqwq\b|\bqwen-?3(?!.*instruct)|magistral|gpt-oss|thinking|reasoning",
    ),
    Line(
        {"thinks": True},
        "https://ai.google.dev/gemini-api/docs/thinking: on unless it is turned off",
        providers=frozenset({"gemini", "vertex_ai", "xai"}),
        flags={"supports_reasoning": True},
    ),
)
"""Later lines add to earlier ones."""


def dialect_of(model: str, *, own_server: bool) -> Dialect:
    """Return what is known of a model before it is asked."""
    entry = model_entry(model)
    provider, slash, name = model.partition("/")
    if not slash:
        provider, name = str(entry.get("litellm_provider", "")), model
    differs: dict[str, Any] = {}
    for line in TABLE:
        if line.covers(provider, name, own_server, entry):
            differs |= line.differs
    if "marked_from" in differs and isinstance(least := entry.get("prompt_cache_min_tokens"), int):
        differs["marked_from"] = least
    return Dialect(**differs)


class Concession(NamedTuple):
    """The change to a request that a refusal matching the pattern asks for."""

    pattern: str
    differs: Mapping[str, Any]


CONCESSIONS = (
    Concession(r"cache_?(?:control|point)|prompt caching", {"marked_from": None}),
    Concession(r"stream_options|include_usage", {"stream_usage": False}),
    Concession(r"frequency_?penalty", {"penalty": False}),
    Concession(r"max_completion_tokens.{0,40}instead", {"limit": "max_completion_tokens"}),
    Concession(r"max_completion_tokens", {"limit": "max_tokens"}),
    Concession(r"max_tokens.{0,60}(?:not supported|unsupported|not permitted)", {"limit": "max_completion_tokens"}),
    Concession(r"temperature", {"temperature": False}),
    Concession(r"roles must alternate", {"alternates": True}),
    Concession(
        r"system (?:role|message|prompt|instruction)|developer instruction|role.{0,20}system|roles must alternate",
        {"system": False},
    ),
    Concession(r"m(?:ax|in)(?:Length|Items|imum)|not supported by xgrammar|too many states", {"bounds": False}),
)
"""The first concession that matches and would change something is made."""

_NO_FORM = re.compile(
    r"response_?format|json_?schema|json_?object|structured|schema|grammar|\btools?\b|tool_choice", re.IGNORECASE
)
_NEXT_FORM = {
    StructuredOutput.json_schema: StructuredOutput.json_object,
    StructuredOutput.tool: StructuredOutput.json_object,
    StructuredOutput.json_object: StructuredOutput.prompt,
}


def conceded(dialect: Dialect, refusal: str) -> Dialect | None:
    """Return the dialect without the feature that a refusal names; None if it names no feature of it."""
    for pattern, differs in CONCESSIONS:
        if re.search(pattern, refusal, re.IGNORECASE | re.DOTALL) and (other := replace(dialect, **differs)) != dialect:
            return other
    if _NO_FORM.search(refusal) and (form := _NEXT_FORM.get(dialect.structured)):
        return replace(dialect, structured=form)
    return None
