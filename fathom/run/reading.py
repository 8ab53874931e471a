"""Pages that several steps find: each is read once, and its note serves all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from fathom.models import Note, PlanStep
from fathom.text.terms import query_terms, terms

BEARS = 0.6  # of what a page has of a step's words, the share that a note of the page must have to serve the step


class Reading:
    """What steps that run together find at first: the first step of those that find a page reads it for the others.

    Which step that is follows from the order of the steps, not from which is faster: a replay does the same.
    """

    def __init__(self, steps: Sequence[PlanStep]) -> None:
        self._steps = {str(step.step_id): step for step in steps}
        self._found: dict[str, frozenset[str]] = {}
        self._all_found = asyncio.Event()
        self._notes: dict[str, Mapping[str, Note]] = {}
        self._noted = {step_id: asyncio.Event() for step_id in self._steps}

    async def found(self, step: PlanStep, keys: Iterable[str]) -> None:
        """Tell which texts a step has found, by their keys, and wait until every step has; later ones do not count."""
        self._has_found(step, keys)
        await self._all_found.wait()

    def reads(self, step: PlanStep, keys: Iterable[str]) -> list[str]:
        """Return which texts a step reads itself: those that no step before it has found."""
        before = self._before(step)
        return [key for key in keys if not any(key in self._found[other] for other in before)]

    def others(self, step: PlanStep, keys: Collection[str]) -> list[PlanStep]:
        """Return the later steps for which a step reads some texts too."""
        own = [*self._before(step), str(step.step_id)]
        return [
            other
            for step_id, other in self._steps.items()
            if step_id not in own and not self._found[step_id].isdisjoint(keys)
        ]

    def noted(self, step: PlanStep, notes: Mapping[str, Note]) -> None:
        """Tell what a step has noted of what it found at first, by the keys of the texts."""
        self._notes.setdefault(str(step.step_id), notes)
        self._noted[str(step.step_id)].set()

    async def others_noted(self, step: PlanStep) -> dict[str, Note]:
        """Wait for the steps before, and return what they noted, by the keys of texts that this step has found too."""
        found: dict[str, Note] = {}
        for other in self._before(step):
            await self._noted[other].wait()
            found |= {key: note for key, note in self._notes[other].items() if key in self._found[str(step.step_id)]}
        return found

    def leave(self, step: PlanStep) -> None:
        """Let nobody wait for a step that has ended, whatever it has found."""
        self._has_found(step, ())
        self.noted(step, {})

    def _has_found(self, step: PlanStep, keys: Iterable[str]) -> None:
        self._found.setdefault(str(step.step_id), frozenset(keys))
        if len(self._found) == len(self._steps):
            self._all_found.set()

    def _before(self, step: PlanStep) -> list[str]:
        ids = list(self._steps)
        return ids[: ids.index(str(step.step_id))]


def bears_on(note: Note, source_id: str, text: str, step: PlanStep) -> bool:
    """Whether a note, made for another step, says of a source what its text has for this one.

    It quotes the source, and has most of those words of the step that the text has at all.
    """
    if source_id not in note.cited:
        return False
    wanted = set(query_terms(" ".join([step.title, *step.queries]))) & set(terms(text))
    held = set(terms(" ".join([note.summary_title, note.summary, *note.extraction])))
    return bool(wanted) and len(wanted & held) >= BEARS * len(wanted)
