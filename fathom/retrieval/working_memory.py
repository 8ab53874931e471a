"""Working memory: the useful notes, and only they, within a role's share of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from fathom.models import Brief, Model, Note, NoteMessage, untold
from fathom.retrieval.ranking import Passage, rank_passages
from fathom.text.terms import terms
from fathom.text.tokens import count_tokens

UNKNOWN_AUTHORITY = 0.5
REPEATED = 0.5  # of a note's worth that is left when earlier ones say all of it


class Memory(Model):
    """Useful notes, and the briefs that stand for some of them."""

    notes: list[Note]
    briefs: list[Brief] = []

    @property
    def shown(self) -> list[Note]:
        """The notes for which no brief stands."""
        return untold(self.notes, self.briefs)

    def of(self, notes: Sequence[Note]) -> Memory:
        """Return the memory with other notes in the place of its own, and the briefs of which no note has changed."""
        same = {note.artifact_file for note in self.notes if note in notes}
        return Memory(notes=list(notes), briefs=[b for b in self.briefs if same.issuperset(b.files)])

    def within(self, max_tokens: int, focus: str, authority: Mapping[str, float] | None = None) -> Memory:
        """Return the memory as a role may see it: briefs first, and whole notes as far as the tokens go."""
        left = max_tokens - sum(count_tokens(brief.text) for brief in self.briefs)
        kept = within_budget(self.shown, focus, max(0, left), authority)
        left_out = {note.artifact_file for note in self.shown} - {note.artifact_file for note in kept}
        return self.model_copy(update={"notes": [n for n in self.notes if n.artifact_file not in left_out]})


def message_tokens(message: NoteMessage) -> int:
    """Return the estimated tokens of an injected message."""
    return count_tokens(message.model_dump_json())


def within_budget(
    notes: Sequence[Note], focus: str, max_tokens: int, authority: Mapping[str, float] | None = None
) -> list[Note]:
    """Return the notes that fit, in their own order: the most relevant ones, that say something new, of good sources.

    Notes are taken one at a time, the one with the greatest relevance to the focus x novelty x authority first. Novelty
    is the share of its terms that no taken note has, and counts for half. At least one note is kept, so that a budget
    smaller than any note does not blind the role. `authority` is the quality of sources by id, 0 to 1; else it is 0.5.
    """
    if not notes or sum(note.tokens for note in notes) <= max_tokens:
        return list(notes)
    texts = ["\n".join([note.summary, *note.extraction]) for note in notes]
    scores = rank_passages(focus, [Passage(title=n.summary_title, text=t) for n, t in zip(notes, texts, strict=True)])
    held = [set(terms(text)) for text in texts]
    known = authority or {}
    trust = [fmean([known.get(i, UNKNOWN_AUTHORITY) for i in n.source_ids] or [UNKNOWN_AUTHORITY]) for n in notes]
    kept: set[int] = set()
    said: set[str] = set()
    left = max_tokens
    waiting = list(range(len(notes)))
    while waiting:
        worth = {i: scores[i] * trust[i] * (1 - REPEATED * len(held[i] & said) / (len(held[i]) or 1)) for i in waiting}
        best = max(waiting, key=lambda i: (worth[i], -i))
        waiting.remove(best)
        if notes[best].tokens <= left or not kept:
            kept.add(best)
            said |= held[best]
            left -= notes[best].tokens
    return [note for index, note in enumerate(notes) if index in kept]
