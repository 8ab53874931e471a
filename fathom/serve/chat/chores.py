"""What chat programs ask a model beside the conversation: a title, tags, next questions. Answered without research.

Their prompts are those of Open WebUI (0.6 to 0.9) and LibreChat (its package of agents); both can be changed by their
administrators, so the form of the answer is read from the prompt, and what is not recognised is a question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import shorten

from fathom.extractive.questions import keywords
from fathom.serve.chat.shapes import Message
from fathom.text.plain import clean_line

TITLE_CHARS, MOST_TAGS, MOST_QUESTIONS = 60, 3, 4
_HISTORY = re.compile(r"<chat_history>(.*?)(?:</chat_history>|\Z)", re.DOTALL)
_FIRST = re.compile(r"^\s*user:\s*(.*?)(?=^\s*(?:assistant|ai):|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_LEFT_OPEN = re.compile(r"^## (?:Not found|Next steps)\s+((?:- .+\n?)+)", re.MULTILINE)
_TITLE_ALONE = re.compile(
    r"5-word-or-less title for the conversation|^\s*Write a concise title for this conversation"
    r"|generate a concise title \(max 40 characters\) for a conversation",
    re.IGNORECASE,
)
_TITLE_AND_LANGUAGE = re.compile(r"\A\s*Analyze this conversation and provide", re.IGNORECASE)
_FACE = re.compile(r"\AYour task is to reflect the speaker's likely facial expression")
_CHAT_TASK = re.compile(r"\A\s*### Task:")


def answer(messages: Sequence[Message]) -> str | None:
    """Return the answer to a request that is not a question to research; None to one that is."""
    last = next((message.text() for message in reversed(messages) if message.role == "user"), "")
    prompts = [message.text() for message in messages if message.role in ("system", "user")]
    if _CHAT_TASK.match(last) and (history := _HISTORY.search(last)):
        head, said = last[: history.start()], history[1]
        for key, make in _FORMS.items():
            if f'"{key}"' in head:
                return json.dumps({key: make(said)}, ensure_ascii=False)
        return None
    if _FACE.match(last):
        return "🔎"
    for prompt in prompts:
        if _TITLE_AND_LANGUAGE.match(prompt):
            return json.dumps({"language": "English", "title": _title(prompt)}, ensure_ascii=False)
        if _TITLE_ALONE.search(prompt[:2_000]):
            return _title(prompt)
    return None


def _asked(said: str) -> str:
    found = _FIRST.search(said)
    return clean_line(found[1] if found else said)


def _title(said: str) -> str:
    return shorten(_asked(said).rstrip("?!. "), TITLE_CHARS, placeholder=" …") or "Research"


def _tags(said: str) -> list[str]:
    return ["Research", *(word[:1].upper() + word[1:] for word in keywords(_asked(said)))][:MOST_TAGS]


def _next_questions(said: str) -> list[str]:
    """Return what the report in a conversation says that it left open."""
    lines = [line for part in _LEFT_OPEN.findall(said) for line in part.splitlines()]
    return [clean_line(line.removeprefix("- ")) for line in lines][:MOST_QUESTIONS]


_FORMS: Mapping[str, Callable[[str], object]] = {
    "follow_ups": _next_questions,
    "queries": lambda _: [],  # Fathom searches by itself
    "tags": _tags,
    "title": _title,
    "prompt": _asked,  # of a picture
    "text": lambda _: "",  # the rest of what the user types
}
