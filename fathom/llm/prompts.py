"""Turning a request into messages for a model, from a prompt file and the schema of the answer.

A prompt is `fathom/prompts/{role}.md` with Jinja2 blocks: `system`, `user`, and `after` for roles with working memory.
Each useful note comes between `user` and `after` as one assistant message of exactly four fields; where roles take
turns, a short message of the user stands between two. The task stands last, so that requests begin alike. Text that
tools read is in the user message only, delimited, and cannot close its own delimiter. `fathom.llm.dialects` holds the
differences between providers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from fathom.config.groups import StructuredOutput
from fathom.llm.base import CutOff, ModelCall, SentMessage
from fathom.llm.dialects import Dialect
from fathom.roles import SPECS, Text
from fathom.roles.base import Remembering, RoleSpec
from fathom.sources.corroboration import query_of
from fathom.text.tokens import count_tokens
from fathom.text.urls import file_of, host_of

FOLDER = Path(__file__).parent.parent / "prompts"
_IMPORT = re.compile(r'\{%-? *from "([^"]+)" import ')  # Jinja would take 50 ms to parse all prompts
WARMER = 0.3  # added to the temperature for each unusable answer to a call
REPETITIONS = 2  # answers in which the model repeats itself, before the call has failed
MARK = {"type": "ephemeral"}
GO_ON = "Next note."
SAME_NOTES = frozenset({"researcher", "critic", "section"})  # roles that are asked again with the notes of before
PENALTY = 0.6  # for tokens that the answer already has, after one that was cut off


class PromptMessage(TypedDict):
    """A chat message as every provider takes it. `cache_control` marks it as the end of a beginning to be cached."""

    role: str
    content: str
    cache_control: NotRequired[Mapping[str, str]]


def _data(text: str) -> str:
    """Keep a text from closing the element around it."""
    return re.sub(r"<(?=/?\s*source\b)", "&lt;", text, flags=re.IGNORECASE)


def _attribute(text: str) -> str:
    """Keep a text inside its attribute: one line, no quotes, no angle brackets."""
    return re.sub(r"\s+", " ", text.translate(str.maketrans('"<>', "'()"))).strip()


def _place(url: str) -> str:
    """Return the site of an address, or the name of the file to which it leads; of a computed source, its query."""
    return query_of(url) or host_of(url) or file_of(url)[1].rpartition(":")[2]


@cache
def _environment() -> Environment:
    # Prompts are plain text: nothing renders them as HTML, and escaping would change what the model reads.
    loader = FileSystemLoader(FOLDER)
    environment = Environment(loader=loader, undefined=StrictUndefined, autoescape=False, auto_reload=False)  # noqa: S701 - no HTML
    environment.filters.update(data=_data, attribute=_attribute, place=_place)
    return environment


@cache
def prompt_hashes() -> dict[str, str]:
    """Return the SHA-256 of each role's prompt file, computed with the files that it imports."""
    return {name: hashlib.sha256(b"".join(_files(f"{name}.md"))).hexdigest() for name in SPECS}


def _files(name: str) -> Iterator[bytes]:
    """Yield the bytes of a prompt file and of the files that it imports."""
    data = (FOLDER / name).read_bytes()
    yield data
    for other in sorted(set(_IMPORT.findall(data.decode()))):
        yield from _files(other)


def prepare(spec: RoleSpec[Any, Any]) -> None:
    """Parse a role's prompt and make the schema of its answer, once for this process: 5 ms."""
    _template(spec)
    spec.answer.new_schema()


def instructions(call: ModelCall) -> str:
    """Return the words of a model's instructions, in lowercase and one space apart, without its material."""
    schema = _schema(call)
    told = [_block(call, "system"), *_descriptions(schema), *(call.invalid.complaints if call.invalid else ())]
    return " | ".join(" ".join(re.findall(r"\w+", text.lower())) for text in told)


def _schema(call: ModelCall) -> dict[str, Any]:
    return call.spec.schema(call.request) if call.spec.schema else call.spec.answer.new_schema()


def _descriptions(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(said := schema.get("description"), str):
            yield said
        for value in schema.values():
            yield from _descriptions(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _descriptions(item)


def _template(spec: RoleSpec[Any, Any]) -> Template:
    return _environment().get_template(f"{spec.name}.md")


def _block(call: ModelCall, name: str) -> str:
    template = _template(call.spec)
    if name not in template.blocks:
        return ""
    return "".join(template.blocks[name](template.new_context(dict(call.request)))).strip()


def messages(call: ModelCall, dialect: Dialect) -> list[PromptMessage]:
    """Return the messages of a call, in the roles of chat completions."""
    notes = call.request.shown if isinstance(call.request, Remembering) else []
    said = [("system", _block(call, "system")), ("user", _block(call, "user"))]
    said += [("assistant", note.message().model_dump_json()) for note in notes]
    if after := _block(call, "after"):
        said.append(("user", after))
    # A model that sees its own bad answer writes it again. One that repeated itself repeats the complaint about that,
    # and needs the penalty.
    if call.invalid and not (call.invalid.cut_off is CutOff.repetition and dialect.penalty):
        problems = "\n".join(f"- {complaint}" for complaint in call.invalid.complaints)
        role, content = said.pop()
        said.append((role, f"{content}\n\nAn earlier answer could not be used:\n{problems}\nAvoid this."))
    return [PromptMessage(role=role, content=content) for role, content in said]


def sent_messages(call: ModelCall, dialect: Dialect) -> list[SentMessage]:
    """Return the messages of a call as they are kept."""
    return [SentMessage(role=one["role"], content=one["content"]) for one in messages(call, dialect)]


def request_options(call: ModelCall, dialect: Dialect, repeated: int = 0) -> dict[str, Any]:
    """Return the options of a call for chat completions: messages, sampling, and the form in which its schema is
    requested.

    `repeated`: how often the model has answered this very call by repeating itself.
    """
    prompt = messages(call, dialect)
    options: dict[str, Any] = {}
    if call.spec.answer is not Text:
        schema = strict_schema(_schema(call), bounds=dialect.bounds)
        prompt, options = _typed(f"{call.spec.name}_answer", schema, dialect.structured, prompt)
    if not dialect.system:
        system, user, *rest = prompt
        prompt = [PromptMessage(role="user", content=system["content"]), user, *rest]
    if dialect.marked_from is not None:
        beside = count_tokens(json.dumps(options.get("tools", "")))  # it comes first
        prompt = _marked(prompt, dialect.marked_from - beside, notes=call.spec.name in SAME_NOTES)
    if dialect.alternates or not dialect.system:
        prompt = _in_turns(prompt)
    return {"messages": prompt, **options, **_sampling(call, dialect, repeated)}


def _marked(prompt: list[PromptMessage], least: int, *, notes: bool) -> list[PromptMessage]:
    """Return messages with marks for a cache: behind a role's constant instructions, and behind the notes before its
    task.

    A mark costs something where nobody reads what it keeps, so there is none behind the task, behind notes that are
    sent once, and behind fewer than `least` tokens, which are not kept.
    """
    ends = {0, len(prompt) - 2} if notes else {0}
    length = accumulate(count_tokens(message["content"]) for message in prompt)
    return [
        PromptMessage(**message, cache_control=MARK) if n in ends and tokens >= least else message
        for n, (message, tokens) in enumerate(zip(prompt, length, strict=True))
    ]


def _sampling(call: ModelCall, dialect: Dialect, repeated: int) -> dict[str, float]:
    cut_off = call.invalid.cut_off if call.invalid else None
    before = {None: 0, CutOff.limit: 1, CutOff.repetition: REPETITIONS}[cut_off] + repeated
    sampling = {"frequency_penalty": PENALTY} if dialect.penalty and before else {}
    if dialect.temperature and (temperature := call.model.temperature) is not None:
        in_vain = before or (1 if call.invalid else 0)
        sampling["temperature"] = min(2.0, temperature + WARMER * in_vain)
    return sampling


def varies(call: ModelCall, dialect: Dialect, repeated: int) -> bool:
    """Return whether one more repetitive answer would change the sampling of a call."""
    return _sampling(call, dialect, repeated + 1) != _sampling(call, dialect, repeated)


def _in_turns(prompt: list[PromptMessage]) -> list[PromptMessage]:
    """Return messages whose roles take turns: each note stays a message, and the user speaks between two.

    Neighbours of the user are joined, except behind a mark: a cache has what stands before it.
    """
    turns = prompt[:1]
    for message in prompt[1:]:
        last = turns[-1]
        if last["role"] == message["role"] == "user" and "cache_control" not in last:
            turns[-1] = PromptMessage(role="user", content=f"{last['content']}\n\n{message['content']}")
        elif last["role"] == message["role"] == "assistant":
            turns += [PromptMessage(role="user", content=GO_ON), message]
        else:
            turns.append(message)
    return turns


def _typed(
    name: str, schema: dict[str, Any], form: StructuredOutput, prompt: list[PromptMessage]
) -> tuple[list[PromptMessage], dict[str, Any]]:
    """Return the messages and options that ask for an answer of a schema."""
    match form:
        case StructuredOutput.json_schema:
            wrapped = {"name": name, "schema": schema, "strict": True}
            return prompt, {"response_format": {"type": "json_schema", "json_schema": wrapped}}
        case StructuredOutput.tool:
            tool = {"name": name, "description": "Gives the answer.", "parameters": schema}
            choice = {"type": "function", "function": {"name": name}}
            return prompt, {"tools": [{"type": "function", "function": tool}], "tool_choice": choice}
    system, *rest = prompt
    wanted = "Answer with one JSON object of this schema and nothing else:"
    content = f"{system['content']}\n\n{wanted}\n{json.dumps(schema, ensure_ascii=False)}"
    json_mode = {"response_format": {"type": "json_object"}} if form is StructuredOutput.json_object else {}
    return [PromptMessage(role="system", content=content), *rest], json_mode


_BOUNDS = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum")
MOST_CHARACTERS, MOST_ITEMS = 300, 12  # limits of a string and a list whose field states none


def strict_schema(schema: dict[str, Any], *, bounds: bool) -> dict[str, Any]:
    """Return a JSON schema in the subset that providers enforce while decoding, with or without bounds on lengths.

    Every property is required, nothing else is allowed, and a reference has no siblings: the rules of OpenAI's strict
    structured outputs (https://platform.openai.com/docs/guides/structured-outputs), which others share. Bounds are for
    servers that make a grammar of the schema: OpenAI took none at first, and takes none on strings. A definition to
    which nothing refers is left out.
    """
    definitions = schema.get("$defs", {})
    left_out = ("default", "title", *(() if bounds else _BOUNDS))

    def strict(node: Any) -> Any:
        if isinstance(node, list):
            return [strict(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node and len(node) > 1:
            node = {**definitions[node["$ref"].rsplit("/", 1)[-1]], **node}
            del node["$ref"]
        kept: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in ("properties", "$defs"):  # here the keys are names, not keywords
                kept[keyword] = {name: strict(child) for name, child in value.items()}
            elif keyword not in left_out:
                kept[keyword] = strict(value)
        if bounds and kept.get("type") == "string" and "enum" not in kept:
            kept.setdefault("maxLength", MOST_CHARACTERS)
        if bounds and kept.get("type") == "array":
            kept.setdefault("maxItems", MOST_ITEMS)
        if "properties" in kept:
            kept |= {"required": list(kept["properties"]), "additionalProperties": False}
        return kept

    return _without_unused(strict(schema))


def _without_unused(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON schema without definitions that nothing in it refers to: a model would read them for nothing."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    rest = {name: part for name, part in schema.items() if name != "$defs"}
    waiting: list[Any] = [rest]
    used = set[str]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name in definitions and name not in used:
                used.add(name)
                waiting.append(definitions[name])
    kept = {name: part for name, part in definitions.items() if name in used}
    return {**({"$defs": kept} if kept else {}), **rest}
