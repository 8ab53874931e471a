"""What a conversation asks: its last question, what was said before, and the run that an earlier answer came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten

from fathom.config.inputs import MAX_QUERY_CHARS
from fathom.errors import InvalidInput
from fathom.serve.chat.shapes import Message

ASKS = "#answer"
"""At the end of the link to a run: the message was a question of the run, and not its report."""
MOST_CHARS, TURN_CHARS = 6_000, 1_200
"""Of what was said before; of one message of it."""
_LINK = re.compile(rf"/runs/([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})({ASKS})?(?![\w-])")
# Open WebUI puts documents of the user before the question, and older versions the question in a tag.
_WITH_DOCUMENTS = re.compile(r"\A### Task:\s+Respond to the user query using the provided context")
_QUERY = re.compile(r"<user_query>(.*?)</user_query>", re.DOTALL)


@dataclass(frozen=True)
class Earlier:
    """A run that the conversation had before; `asks`: it asked something and was not answered yet."""

    run_id: str
    asks: bool


@dataclass(frozen=True)
class Conversation:
    """What a conversation asks."""

    question: str
    context: str  # what was said before it
    earlier: Earlier | None

    @property
    def whole(self) -> str:
        """The question with what was said before, for a run that follows up on none."""
        head = f"{self.question}\n\nEarlier in the conversation:\n\n"
        return (
            head + self.context if self.context and len(head) + len(self.context) <= MAX_QUERY_CHARS else self.question
        )


def read(messages: Sequence[Message]) -> Conversation:
    """Return what a conversation asks: its last user message.

    Raises:
        InvalidInput: there is none, or a message is not text.
    """
    said = [(message.role, message.text()) for message in messages if message.role and message.type == "message"]
    asked = [position for position, (role, _) in enumerate(said) if role == "user"]
    if not asked or not said[asked[-1]][1].strip():
        raise InvalidInput("There is no user message.", next_step='add {"role": "user", "content": "..."}')
    before = said[: asked[-1]]
    return Conversation(_question_in(said[asked[-1]][1]), _context(before), _earlier(before))


def _earlier(before: Sequence[tuple[str, str]]) -> Earlier | None:
    answers = [text for role, text in reversed(before) if role == "assistant"]
    for position, text in enumerate(answers):
        if links := _LINK.findall(text):
            run_id, asks = links[-1]
            return Earlier(run_id, bool(asks) and not position)
    return None


def _context(before: Sequence[tuple[str, str]]) -> str:
    """Return the latest messages, as many as fit; not those of the system, which would be taken for the question."""
    told = ("user", "assistant")
    lines = [f"{role}: {shorten(text, TURN_CHARS)}" for role, text in before if role in told and text.strip()]
    kept, left = list[str](), MOST_CHARS
    for line in reversed(lines):
        left -= len(line)
        if left < 0:
            break
        kept.insert(0, line)
    return "\n\n".join(kept)


def _question_in(text: str) -> str:
    if not _WITH_DOCUMENTS.match(text):
        return text.strip()
    named = _QUERY.findall(text)
    asked = named[-1] if named else text.rpartition("</context>")[2]
    return asked.strip() or text.strip()
