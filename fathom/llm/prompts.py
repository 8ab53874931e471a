"""How a request becomes what a model is sent: messages from a prompt file, and the schema of its answer.

A prompt is `fathom/prompts/{role}.md` with Jinja2 blocks: `system`, `user`, and `after` for roles with working memory.
Each useful note comes between `user` and `after` as one assistant message of exactly four fields. Text that tools
read is in the user message only, delimited, and cannot close its own delimiter.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fathom.config.models import StructuredOutput
from fathom.llm.base import ModelCall
from fathom.models import Note
from fathom.roles import SPECS, Text

FOLDER = Path(__file__).parent.parent / "prompts"


class Message(TypedDict):
    """A chat message as every provider takes it."""

    role: str
    content: str


def _data(text: str) -> str:
    """Keep a text from closing the element around it."""
    return re.sub(r"<(?=/?\s*source\b)", "&lt;", text, flags=re.IGNORECASE)


def _attribute(text: str) -> str:
    """Keep a text inside its attribute: one line, no quotes, no angle brackets."""
    return re.sub(r"\s+", " ", text.translate(str.maketrans('"<>', "'()"))).strip()


@cache
def _environment() -> Environment:
    # Prompts are plain text: nothing renders them as HTML, and escaping would change what the model reads.
    environment = Environment(loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=False)  # noqa: S701
    environment.filters.update(data=_data, attribute=_attribute)
    return environment


@cache
def prompt_hashes() -> dict[str, str]:
    """Return the SHA-256 of each role's prompt file."""
    return {name: hashlib.sha256((FOLDER / f"{name}.md").read_bytes()).hexdigest() for name in SPECS}


def messages(call: ModelCall) -> list[Message]:
    """Return the messages of a call."""
    template = _environment().get_template(f"{call.spec.name}.md")
    fields = dict(call.request)
    notes: list[Note] = fields.get("notes", [])

    def block(name: str) -> str:
        return "".join(template.blocks[name](template.new_context(fields))).strip()

    said = [("system", block("system")), ("user", block("user"))]
    said += [("assistant", note.message().model_dump_json()) for note in notes]
    if "after" in template.blocks:
        said.append(("user", block("after")))
    if call.invalid:
        problems = "\n".join(f"- {complaint}" for complaint in call.invalid.complaints)
        said.append(("assistant", call.invalid.text or "(nothing)"))
        said.append(("user", f"That answer cannot be used:\n{problems}\nAnswer again, whole."))
    return [Message(role=role, content=content) for role, content in said]


def request_options(call: ModelCall, prompt: list[Message]) -> dict[str, Any]:
    """Return the litellm options of a call: its messages and, for a typed answer, how its schema is asked for."""
    if call.spec.answer is Text:
        return {"messages": prompt}
    schema = strict_schema(call.spec.schema(call.request) if call.spec.schema else call.spec.answer.model_json_schema())
    if call.model.structured_output is StructuredOutput.json_schema:
        wrapped = {"name": f"{call.spec.name}_answer", "schema": schema, "strict": True}
        return {"messages": prompt, "response_format": {"type": "json_schema", "json_schema": wrapped}}
    system, *rest = prompt
    wanted = "Answer with one JSON object of this schema and nothing else:"
    content = f"{system['content']}\n\n{wanted}\n{json.dumps(schema, ensure_ascii=False)}"
    options: dict[str, Any] = {"messages": [Message(role="system", content=content), *rest]}
    if call.model.structured_output is StructuredOutput.json_object:
        options["response_format"] = {"type": "json_object"}
    return options


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON schema in the subset that providers enforce while decoding.

    Every property is required, nothing else is allowed, and a reference has no siblings: the rules of OpenAI's strict
    structured outputs (https://platform.openai.com/docs/guides/structured-outputs), which others share.
    """
    definitions = schema.get("$defs", {})

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
            elif keyword not in ("default", "minLength", "title"):
                kept[keyword] = strict(value)
        if "properties" in kept:
            kept |= {"required": list(kept["properties"]), "additionalProperties": False}
        return kept

    converted: dict[str, Any] = strict(schema)
    return converted
