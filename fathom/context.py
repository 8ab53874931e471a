"""Working memory: the useful notes, and only they, within a role's share of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.models import Note, NoteMessage
from fathom.text import Passage, count_tokens, rank_passages

__all__ = ["message_tokens", "within_budget"]


def message_tokens(message: NoteMessage) -> int:
    """Return the estimated tokens of an injected message."""
    return count_tokens(message.model_dump_json())


def within_budget(notes: Sequence[Note], focus: str, max_tokens: int) -> list[Note]:
    """Return the notes that fit, the most relevant to the focus first in line, in their own order.

    At least one note is kept, so that a budget smaller than any note does not blind the role.
    """
    if sum(note.tokens for note in notes) <= max_tokens:
        return list(notes)
    scores = rank_passages(
        focus, [Passage(title=n.summary_title, text="\n".join([n.summary, *n.extraction])) for n in notes]
    )
    kept: set[int] = set()
    left = max_tokens
    for index in sorted(range(len(notes)), key=lambda i: (-scores[i], i)):
        if notes[index].tokens <= left or not kept:
            kept.add(index)
            left -= notes[index].tokens
    return [note for index, note in enumerate(notes) if index in kept]
