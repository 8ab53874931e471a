"""Pages that several steps find: each is read once, and its note serves all of them, also steps of a follow-up.

A text that was read whole for a step and had nothing for it is not read for it again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import not_
from typing import NamedTuple

from pydantic import Field

from fathom.evidence.grounding import ground
from fathom.models import Call, Model, Note, PlanStep, Source, SourceText, ToolResult
from fathom.text.citations import cited_ids
from fathom.text.parsed import ParsedText, parse
from fathom.text.sentences import split_sentences
from fathom.text.terms import query_terms, terms

TOGETHER = 2  # words of a step in one sentence by which a text may have something for it after all
BEARS = 0.6  # share of the step's words on a page that a note of the page must have to serve the step
BEARS_NEW = 0.8  # of those that only this step asks for: they tell its matter from the matter of the note


class OtherSteps(NamedTuple):
    """The steps that texts are read for, beside the step that reads them.

    `found` have found them too, and do not read them; `later` have not begun, and may find them.
    """

    found: Sequence[PlanStep] = ()
    later: Sequence[PlanStep] = ()


class Reading:
    """The first findings of steps that run together: the first of the steps that find a page reads it for the others.

    A step that has only an excerpt of a page, while another has it whole, has found it, too. The order of the steps
    decides which one is first, not their speed: a replay does the same. `later` are the steps that run after these.
    """

    def __init__(self, steps: Sequence[PlanStep], later: Sequence[PlanStep] = ()) -> None:
        self.later = later
        self._steps = {str(step.step_id): step for step in steps}
        self._found: dict[str, dict[str, Source]] = {}  # of each step, by the key of the text
        self._all_found = asyncio.Event()
        self._notes: dict[str, Mapping[str, Note | None]] = {}
        self._noted = {step_id: asyncio.Event() for step_id in self._steps}

    async def found(self, step: PlanStep, texts: Iterable[Source]) -> None:
        """Tell which texts a step has found, and wait until every step has; later ones do not count."""
        self._has_found(step, texts)
        await self._all_found.wait()

    def reads(self, step: PlanStep, texts: Iterable[Source]) -> list[str]:
        """Return the keys of the texts that a step reads itself: those that no step before it, and none whole, has."""
        return [text.key for text in texts if self._reader(text) == (str(step.step_id), text.key)]

    def others(self, step: PlanStep, keys: Collection[str]) -> OtherSteps:
        """Return the steps for which a step reads some texts too."""
        read = {(str(step.step_id), key) for key in keys}
        found = [
            other
            for step_id, other in self._steps.items()
            if step_id != str(step.step_id) and not read.isdisjoint(map(self._reader, self._found[step_id].values()))
        ]
        return OtherSteps(found, self.later)

    def noted(self, step: PlanStep, notes: Mapping[str, Note | None]) -> None:
        """Record the notes of a step on its first findings, by the keys of the texts; None: the text had nothing."""
        self._notes.setdefault(str(step.step_id), notes)
        self._noted[str(step.step_id)].set()

    async def others_noted(self, step: PlanStep) -> dict[str, Note | None]:
        """Wait for the steps that read what this step has found, and return their notes, by the keys of its texts."""
        found: dict[str, Note | None] = {}
        for key, text in self._found[str(step.step_id)].items():
            other, read = self._reader(text)
            await self._noted[other].wait()
            if other != str(step.step_id) and read in self._notes[other]:
                found[key] = self._notes[other][read]
        return found

    def served(self, step: PlanStep, others: Mapping[str, Note | None]) -> NotedBefore:
        """Return the notes of other steps, by the keys of texts that this step has found too: they are for it too.

        `others` is what `others_noted` returned.
        """
        return NotedBefore(
            notes={key: [note] for key, note in others.items() if note},
            steps=[other for step_id, other in self._steps.items() if step_id != str(step.step_id)],
            read_for={note.artifact_file: [str(step.step_id)] for note in others.values() if note},
            together=True,
        )

    def leave(self, step: PlanStep) -> None:
        """Let nobody wait for a step that has ended, whatever it has found."""
        self._has_found(step, ())
        self.noted(step, {})

    def _has_found(self, step: PlanStep, texts: Iterable[Source]) -> None:
        self._found.setdefault(str(step.step_id), {text.key: text for text in texts})
        if len(self._found) == len(self._steps):
            self._all_found.set()

    def _reader(self, text: Source) -> tuple[str, str]:
        """Return the step that reads a text, and the key of what it reads: the whole text of an excerpt, if found."""
        first, whole = self._first
        return first[text.key] if text.full else whole.get(text.source_id, first[text.key])

    @cached_property
    def _first(self) -> tuple[Mapping[str, tuple[str, str]], Mapping[str, tuple[str, str]]]:
        """The first step that has found each text, by its key, and each source's whole text, by the source's id.

        Known once every step has told what it has found.
        """
        first, whole = dict[str, tuple[str, str]](), dict[str, tuple[str, str]]()
        for step_id in self._steps:
            for key, text in self._found[step_id].items():
                first.setdefault(key, (step_id, key))
                if text.full:
                    whole.setdefault(text.source_id, (step_id, key))
        return first, whole


class Useless(NamedTuple):
    """A text that was read whole for a step and had nothing for it."""

    source: Source
    step: PlanStep

    def has(self, source: Source) -> bool:
        """Whether a text is this one, or a part of it."""
        return source.key == self.source.key or (self.source.full and source.source_id == self.source.source_id)


def useless_of(steps: Iterable[PlanStep], calls: Mapping[str, Iterable[Call]]) -> list[Useless]:
    """Return the texts that had nothing for the steps for which they were read; `calls` are by step id."""
    known = {str(step.step_id): step for step in steps}
    return [
        Useless(source, known[step_id])
        for own in known
        for call in calls.get(own, ())
        for source in call.result.sources
        if source.key in call.useless
        for step_id in (own, *call.read_for)
        if step_id in known
    ]


def worth_reading(source: Source, text: str, step: PlanStep, useless: Iterable[Useless]) -> bool:
    """Whether a text may have something for a step, given the texts known to be useless.

    For a step that tries again what the text had nothing for, it has nothing. For another step it may, if it has a word
    that this step asks for and no step before it did, and, in that sentence or beside it, another word that it asks
    for: any long text has some of the words by themselves.
    """
    before = [each.step for each in useless if each.has(source)]
    same = {str(step.step_id), str(step.retries)} - {""}
    if not before or any(str(other.step_id) in same for other in before):
        return not before
    return _has_more(text, step, before)


def _has_more(text: str, step: PlanStep, before: Iterable[PlanStep]) -> bool:
    """Whether a text has a word that a step asks for and no step before did, close to another word that it asks for."""
    asked, read = _asked(step), parse(text)
    together = min(len(asked), TOGETHER)
    new = asked.difference(*map(_asked, before))
    return any(len(asked & _beside(read, n)) >= together for term in new for n in read.occurrences.get(term, ()))


def _beside(read: ParsedText, number: int) -> set[str]:
    """Return the terms of a sentence and those beside it."""
    return {term for n in range(max(0, number - 1), min(number + 2, len(read))) for term in read.terms(n)}


def _asked(step: PlanStep) -> set[str]:
    return set(query_terms(" ".join([step.title, *step.queries])))


def noted_whole(made: Iterable[Call], notes: Iterable[Note]) -> dict[str, list[Note]]:
    """Return the notes by the keys of the texts that were shown whole for them, in the order of the calls."""
    by_file = {note.artifact_file: note for note in notes}
    found: dict[str, list[Note]] = {}
    for call in made:
        note = by_file.get(call.result.artifact_file)
        if note and not call.narrowed_tokens:
            for source in call.result.sources:
                if source.source_id in note.source_ids:
                    found.setdefault(source.key, []).append(note)
    return found


def about(note: Note, ids: Collection[str]) -> Note:
    """Return the part of a note about some of its sources.

    Of the summary, it has only sentences that cite no other source.
    """
    if set(note.source_ids) <= set(ids):
        return note
    sentences = [sentence.text for sentence in split_sentences(note.summary)]
    own = [sentence for sentence in sentences if (cited := cited_ids(sentence)) and set(cited) <= set(ids)]
    bullets = [bullet for bullet in note.extraction if not set(ids).isdisjoint(cited_ids(bullet))]
    return note.model_copy(update={"summary": " ".join(own) or f"{note.summary_title}.", "extraction": bullets})


def bears_on(note: Note, source_id: str, text: str, step: PlanStep) -> bool:
    """Whether a note, made for another step, covers what a source's text has for this step.

    It quotes the source, and has most of those words of the step that the text has at all.
    """
    if source_id not in note.cited:
        return False
    wanted = _asked(step) & parse(text).occurrences.keys()
    return bool(wanted) and _has(note, BEARS, wanted)


def _has(note: Note, share: float, wanted: Collection[str]) -> bool:
    held = set(terms(" ".join([note.summary_title, note.summary, *note.extraction])))
    return len(held.intersection(wanted)) >= share * len(wanted)


class NotedBefore(Model):
    """The notes that steps before have made, by the keys of the texts that they read whole, and these steps.

    `useless` are texts that had nothing for some of the steps. Of an earlier run, these have no id there: it could be
    the id of a step of the later run. `read_for` has the ids of the later steps for which a note was made too, by its
    file. `together`: the steps run together, so that a page is not read again for one whose words are those of others.
    """

    notes: dict[str, list[Note]] = {}
    steps: list[PlanStep] = []
    useless: list[Useless] = []
    read_for: dict[str, list[str]] = Field({}, exclude_if=not_)
    together: bool = Field(False, exclude_if=not_)

    @classmethod
    def of(cls, steps: Iterable[PlanStep], calls: Mapping[str, Sequence[Call]], notes: Iterable[Note]) -> NotedBefore:
        """Return what has been noted, given the steps, their calls by step id, and the notes."""
        asked = [step for step in steps if str(step.step_id) in calls]
        made = list(itertools.chain.from_iterable(calls.values()))
        return cls(
            notes=noted_whole(made, notes),
            steps=asked,
            useless=useless_of(steps, calls),
            read_for={call.result.artifact_file: call.read_for for call in made if call.read_for},
        )

    def by_another_run(self) -> NotedBefore:
        """Return it for the steps of a later run."""
        useless = [Useless(source, step.model_copy(update={"step_id": ""})) for source, step in self.useless]
        return self.model_copy(update={"useless": useless, "read_for": {}})

    def covering(self, texts: Mapping[str, SourceText], steps: Sequence[PlanStep]) -> dict[str, Note]:
        """Return for each text, by its key, the first note that says what the text has for some steps."""
        return {key: note for key, text in texts.items() if (note := self.bearing(text, steps))}

    def bearing(self, text: SourceText, steps: Sequence[PlanStep]) -> Note | None:
        """Return the first note on a text that says what the text has for some steps."""
        notes = self.notes.get(text.source().key, [])
        return next((note for note in notes if all(self._bears_on(note, text, step) for step in steps)), None)

    def _bears_on(self, note: Note, text: SourceText, step: PlanStep) -> bool:
        """Whether a note says what a text has for a step.

        A later step asks for something else about the same thing, so the words that are new in it count by themselves.
        If the note was made for it too, one line that has something for it is enough.
        """
        own = about(note, [text.source_id])
        own = ground(own, [text]).note if text.full or not self.together else own  # it may be of the whole page
        before = [other for other in self.steps if str(other.step_id) in note.steps]
        if str(step.step_id) in self.read_for.get(note.artifact_file, ()):
            said = "\n\n".join([own.summary, *own.extraction])
            has_more = text.source_id in own.cited and _has_more(said, step, before)
            if has_more or not self.together:
                return has_more
        new = _asked(step).difference(*map(_asked, before)) & parse(text.text).occurrences.keys()
        return bears_on(own, text.source_id, text.text, step) and _has(own, BEARS_NEW, new)

    def left_out(self, text: SourceText, step: PlanStep) -> list[Useless]:
        """Return a text as one that had nothing for earlier steps, if a note on it was made for this step too.

        It is read again if it has more for this step than for those.
        """
        made_for = {
            note_step
            for note in self.notes.get(text.source().key, ())
            if str(step.step_id) in self.read_for.get(note.artifact_file, ())
            for note_step in note.steps
        }
        return [Useless(text.source(), other) for other in self.steps if str(other.step_id) in made_for]


class EarlierReading(NamedTuple):
    """What is known of texts that were read before: by earlier steps, or by the earlier run of a follow-up.

    `results` are those of the same step that are read before: parts of a source that they have are not read again.
    """

    noted: NotedBefore
    earlier_run: NotedBefore
    results: Sequence[ToolResult] = ()

    def worth_reading(self, texts: Iterable[SourceText], steps: Sequence[PlanStep]) -> list[SourceText]:
        """Return the texts that may have something for one of some steps."""
        useless = [*self.noted.useless, *self.earlier_run.useless]
        return [
            text
            for text in texts
            if any(
                worth_reading(text.source(), text.text, step, [*useless, *self.noted.left_out(text, step)])
                for step in steps
            )
        ]
