"""Tracing one claim of a report back, from its section to the tool call, with the text around its quote."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from fathom.errors import InvalidInput
from fathom.evidence.passages import SourcePassage
from fathom.evidence.provenance import CallRecord, Provenance, SourceRecord, results_of
from fathom.evidence.stored import StoredText, read_quote, stored_texts
from fathom.models import Claim, Model, Note, Quote, Report, Verdict
from fathom.storage.store import NOTES, REPORT
from fathom.text.citations import without_addresses
from fathom.text.parsed import ParsedText, Unit, parse, units_of

CONTEXT = 300  # characters of a quote's line on each side of it
Part = Literal["cited", "corroborating", "contradicting"]


class Link(Model):
    """One quote of a claim, with its call, artifact and notes."""

    part: Part
    quote: Quote
    line: int  # of its source's text, from 1
    before: str  # the quote on its line
    after: str
    source: SourceRecord | None
    call: CallRecord | None
    step: str  # title
    notes: list[str]  # titles of the notes that were made from the artifact, and their confidence


class Trace(Model):
    """A claim and its quotes."""

    claim: Claim
    heading: str  # of its section
    links: list[Link]


def trace(record: Provenance, files: Mapping[str, bytes], number: int) -> Trace:
    """Return a claim with the way to each of its quotes.

    Raises:
        InvalidInput: the report has no claim of that number.
    """
    if not 1 <= number <= len(record.claims):
        raise InvalidInput(f"There is no claim {number}.", next_step=f"claims are numbered 1 to {len(record.claims)}")
    claim = record.claims[number - 1]
    texts, notes = stored_texts(files, results_of(record)), _notes(files)
    calls = {call.artifact_file: call for call in reversed(record.calls)}
    sources = {source.source_id: source for source in record.sources}
    steps = {str(step.step_id): step.title for step in record.plan.steps}

    def link(part: Part, quote: Quote) -> Link:
        line, before, after = _around(quote, files.get(quote.artifact_file, b""), texts)
        call = calls.get(quote.artifact_file)
        return Link(
            part=part,
            quote=quote,
            line=line,
            before=before,
            after=after,
            source=sources.get(quote.source_id),
            call=call,
            step=steps.get(call.step_id, call.step_id) if call else "",
            notes=[_told(note) for note in notes if note.artifact_file == quote.artifact_file],
        )

    links = [
        *(link("cited", quote) for quote in claim.quotes),
        *(link("corroborating", quote) for quote in others(claim)),
        *(link("contradicting", quote) for quote in claim.contradicting),
    ]
    return Trace(claim=claim, heading=_heading(files, claim), links=links)


def others(claim: Claim) -> list[Quote]:
    """Return the quotes of further sources that support a claim."""
    known = {quote.source_id for quote in claim.quotes if claim.verdict is Verdict.supported}
    return [quote for quote in claim.corroborating if quote.source_id not in known]


def _around(quote: Quote, data: bytes, texts: Sequence[StoredText]) -> tuple[int, str, str]:
    """Return the line of a quote in its source's text, with the text before and after it."""
    own = [t for t in texts if t.artifact_file == quote.artifact_file and t.first_byte <= quote.start]
    try:
        text = max(own, key=lambda t: t.first_byte)
        first = len(read_quote(quote.model_copy(update={"start": text.first_byte, "end": quote.start}), data))
    except ValueError:  # there is no such text, or the file was changed; `verify` says so
        return 0, "", ""
    last = first + len(quote.text)
    before = text.text[max(0, first - CONTEXT) : first].rpartition("\n")[2]
    after = text.text[last : last + CONTEXT].partition("\n")[0]
    return text.text.count("\n", 0, first) + 1, before, after


def _told(note: Note) -> str:
    return note.summary_title + (f" ({note.confidence} confidence)" if note.confidence else "")


def _notes(files: Mapping[str, bytes]) -> list[Note]:
    try:
        return TypeAdapter(list[Note]).validate_json(files.get(NOTES, b"[]"))
    except ValidationError:  # the file was changed; `verify` says so
        return []


def _heading(files: Mapping[str, bytes], claim: Claim) -> str:
    try:
        return Report.model_validate_json(files[REPORT]).sections[claim.section].heading
    except (KeyError, IndexError, ValidationError):
        return ""


CONTEXT_CHARS = 240  # of the text on each side of a quote
HEADING_CHARS = 120
HEADINGS = 4  # the lowest ones
_EDGE = re.compile(r"\A\s+|\s+\Z")
_CUT_START, _CUT_END = re.compile(r"\A\S{1,30}\s"), re.compile(r"\s\S{1,30}\Z")  # a word that may be cut


class _Read(NamedTuple):
    """A text's sentences and units, with the numbers of the sentences that the units begin with."""

    parsed: ParsedText
    units: Sequence[Unit]
    firsts: Sequence[int]


class Surroundings:
    """Makes quotes of passages; each text is read once."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}

    def quote(self, passage: SourcePassage) -> Quote:
        """Return a passage as a quote, with the text around it below the same heading."""
        text, read = passage.text.text, self._reading(passage.text.text)
        held = read.parsed.holding(passage.start, passage.end)
        around = {
            # A passage that nobody cited gets no link.
            "before": without_addresses(self._before(text, read.parsed, held[0], passage.start)),
            "after": without_addresses(self._after(text, read.parsed, held[-1], passage.end)),
            "headings": _headings(read, held[0]),
        }
        return passage.text.quote(passage.start, passage.end).model_copy(update=around)

    def _reading(self, text: str) -> _Read:
        if text not in self._read:
            parsed = parse(text)
            units = units_of(parsed, text)
            self._read[text] = _Read(parsed, units, [unit.own.start for unit in units])
        return self._read[text]

    @staticmethod
    def _before(text: str, parsed: ParsedText, first: int, start: int) -> str:
        begin = parsed.sentence(first).start
        for number in range(first - 1, -1, -1):
            sentence = parsed.sentence(number)
            if sentence.kind == "heading" or start - sentence.start > CONTEXT_CHARS:
                break
            begin = sentence.start
        part = text[max(begin, start - CONTEXT_CHARS) : start]
        return _EDGE.sub(" ", _CUT_START.sub("", part) if start - begin > CONTEXT_CHARS else part)

    @staticmethod
    def _after(text: str, parsed: ParsedText, last: int, end: int) -> str:
        stop = max(end, parsed.sentence(last).end)
        for number in range(last + 1, len(parsed)):
            sentence = parsed.sentence(number)
            if sentence.kind == "heading" or sentence.end - end > CONTEXT_CHARS:
                break
            stop = sentence.end
        part = text[end : min(stop, end + CONTEXT_CHARS)]
        return _EDGE.sub(" ", _CUT_END.sub("", part) if stop - end > CONTEXT_CHARS else part)


def _headings(read: _Read, sentence: int) -> list[str]:
    if not read.units:
        return []
    unit = read.units[max(0, bisect_right(read.firsts, sentence) - 1)]
    lines = (read.parsed.sentence(number).clean.strip("# ").strip() for number in unit.headings[-HEADINGS:])
    return [line[:HEADING_CHARS] for line in lines if line]
