"""Prompt files and how a request becomes messages.

A prompt is `fathom/prompts/{role}.md` with Jinja2 blocks: `system`, `user`, and `after` for roles with working memory.
Each useful note comes between `user` and `after` as one assistant message of exactly four fields. Text that tools
read is in the user message only, delimited, and cannot close its own delimiter.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fathom.llm.base import ModelCall
from fathom.models import Note
from fathom.roles import SPECS

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

    rendered: list[Message] = [
        {"role": "system", "content": block("system")},
        {"role": "user", "content": block("user")},
        *(Message(role="assistant", content=note.message().model_dump_json()) for note in notes),
    ]
    if "after" in template.blocks:
        rendered.append({"role": "user", "content": block("after")})
    if call.invalid:
        problems = "\n".join(f"- {complaint}" for complaint in call.invalid.complaints)
        rendered.append({"role": "assistant", "content": call.invalid.text or "(nothing)"})
        rendered.append({"role": "user", "content": f"That answer cannot be used:\n{problems}\nAnswer again, whole."})
    return rendered
