"""Evidence: sources, tool calls, the notes made from them, and the claims that they support."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import reduce
from operator import not_
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from fathom.models.plan import Model, Remark, StepStatus

_ID = re.compile(r"S[0-9a-f]{6,64}")
_QUOTED = re.compile(rf"(?P<text>\S.*?)\s*(?P<ids>(?:\[{_ID.pattern}\]\s*)+)", re.DOTALL)


SourceKind = Literal["web", "document", "mcp"]
"""A page; a text of the user's own, or one that Fathom has stored; what a tool of an MCP server returned."""


class Bibliographic(Model):
    """A catalogue's entry of a work, for the reference to it; unknown fields are empty."""

    authors: list[str] = []  # in their order, as the catalogue writes them: "Ada Lovelace" or "Lovelace, Ada"
    doi: str = ""  # without a prefix, in lower case: 10.1234/abc
    venue: str = ""  # the journal, proceedings, repository or site
    licence: str = ""
    full_text: str = ""  # the address of an open copy of the whole text
    archived: str = ""  # the day of an archived copy, in ISO 8601, if the page itself is gone
    retracted: bool = False

    def completed(self, other: Bibliographic) -> Bibliographic:
        """Return this entry with its empty fields filled from another one: catalogues differ in their fields."""
        return Bibliographic.model_validate({**other.model_dump(), **self.model_dump(exclude_defaults=True)})


class Referenced(Model):
    """A cited work, with its catalogue entry if there is one."""

    reference: Bibliographic | None = Field(None, exclude_if=not_)


class ReadBefore(Model):
    """The earlier run whose stored text of a source is used, and the day on which that run read it, in ISO 8601."""

    run_id: str
    on: str


class Source(Referenced):
    """The origin of a text. `source_id` is `S` and at least six hex digits of the canonical URL's SHA-256."""

    source_id: str
    url: str
    title: str
    kind: SourceKind
    location: str = ""  # a heading or page inside the document
    published: str = ""  # in the vendor's format
    score: float = 0.0  # the vendor's relevance, comparable within one query only
    full: bool = True  # False: only an excerpt was read so far
    digest: str = ""  # first digits of the SHA-256 of its text
    fields: dict[str, str] = Field({}, exclude_if=not_)  # fields of its header, in order: Status, Author
    file_sha256: str = Field("", exclude_if=not_)  # of the user's file, which is not copied
    before: ReadBefore | None = Field(None, exclude_if=not_)  # for a text from the library of earlier runs
    gone: str = Field("", exclude_if=not_)  # the day on which its address led to no page any more, in ISO 8601

    @property
    def key(self) -> str:
        """An id of the text, not only of its source: a document may be read in several parts."""
        return f"{self.source_id}:{self.digest}"

    def with_text(self, text: str) -> SourceText:
        """Return the source with a text that was read from it."""
        return SourceText(**self.model_dump(include=set(Source.model_fields)), text=text)


def described(sources: Iterable[Source]) -> Bibliographic | None:
    """Return the source with the merged entries of the catalogues that found it."""
    known = [source.reference for source in sources if source.reference]
    return reduce(Bibliographic.completed, known) if known else None


class SourceText(Source):
    """A source with the text that a tool read from it. `snippet` is the vendor's excerpt, if it gave one."""

    text: str
    snippet: str = ""

    def source(self) -> Source:
        """Return the source with the digest of its text instead of the text."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()[:12]
        return Source(**{**self.model_dump(include=set(Source.model_fields)), "digest": digest})


class CheckedLink(Model):
    """Whether the address of a source still leads to a page.

    It is `unknown` if its host refuses or cannot be reached: that says nothing about readers. Of a page that is gone,
    `copy_url` is the archived copy and `copied` its day, if there is one.
    """

    state: Literal["works", "gone", "unknown"]
    copy_url: str = ""
    copied: str = ""  # ISO 8601


class Document(Model):
    """A local document as the planner sees it: its title and headings, never its text."""

    title: str
    headings: list[str] = []


class UnreadFile(Model):
    """A user's file that was not read, or only in part; `path` has the form of citations, `docs:notes/a.pdf`."""

    path: str
    reason: str


class Survey(Model):
    """The local documents closest to a question, and the files that no search can find."""

    documents: list[Document] = []
    unread: list[UnreadFile] = []


class ToolCall(Model):
    """A request to a tool. `input` is a query, a pattern or a file, as the tool's description says."""

    tool: str
    input: str


class ToolFailure(Model):
    """Why a tool call, or a part of it, failed: shown in the report, never used as evidence."""

    code: str
    message: str
    replaced_by: str = ""  # what answered instead, such as a vendor; the run lacks nothing then
    source: str = Field("", exclude_if=not_)  # address of the page that could not be read, if it is about one

    @property
    def line(self) -> str:
        """The failure as a reader sees it."""
        return f"{self.code} {self.message}" + (f" {self.replaced_by} took over." if self.replaced_by else "")


class Charge(Model):
    """What one request to a paid service cost; `usd` is None when its price is not known."""

    service: str  # such as `search:brave`
    usd: float | None


class ToolOutput(Model):
    """The output of a tool: the whole texts that it read. Structured output is stored as JSON, else as text."""

    results: list[SourceText]
    failures: list[ToolFailure] = []  # parts of the call that failed while others succeeded
    structured: bool = True
    cached: bool = False  # all of it comes from the cache of earlier calls
    retrieved: str = ""  # ISO 8601, UTC: when the oldest part was retrieved, if that was before the call
    found_by: dict[str, list[str]] = {}  # the vendors that found each source, by id, if several were asked together
    charges: list[Charge] = []


class ToolResult(Model):
    """A finished tool call: the request, the file of the raw output, and the sources in it.

    `files` are stored besides, by name with their SHA-256: the responses as they arrived, and why a failed call failed.
    """

    call: ToolCall
    artifact_file: str = ""
    sha256: str = ""
    files: dict[str, str] = Field({}, exclude_if=not_)
    raw_bytes: int = 0
    raw_tokens: int = 0
    sources: list[Source] = []
    failures: list[ToolFailure] = []
    retrieved: str = ""  # when the tool returned, ISO 8601, UTC
    cached: bool = False
    found_by: dict[str, list[str]] = {}
    charges: list[Charge] = []

    @property
    def failed(self) -> bool:
        """Whether the whole call failed."""
        return bool(self.failures) and not self.artifact_file

    def taken_over(self, by: str) -> ToolResult:
        """Return the result of a call that failed and that another tool answered instead."""
        replaced = [failure.model_copy(update={"replaced_by": by}) for failure in self.failures]
        return self.model_copy(update={"failures": replaced})


class NoteMessage(Model):
    """The assistant message that a useful note adds to the context: these four fields and no others."""

    summary_title: str
    summary: str
    extraction: list[str]
    artifact_file: str


Confidence = Literal["high", "medium", "low"]
"""How sure the findings of notes are, by their sources: see `fathom.sources.scoring.confidence`."""


class Note(Model):
    """One compressed tool result."""

    step_id: str | int
    summary_title: str
    summary: str
    extraction: list[str]
    is_useful: bool
    artifact_file: str
    source_ids: list[str]
    titles: dict[str, str] = {}  # of the sources, by id, with the words of their addresses
    dates: dict[str, str] = {}  # of the local documents that state one, by id: YYYY-MM-DD or YYYY-MM
    tokens: int = 0  # tokens of the injected message
    also: list[str] = Field([], exclude_if=not_)  # ids of other steps that it serves
    confidence: Confidence | None = Field(None, exclude_if=not_)  # once the sources are rated

    @property
    def steps(self) -> set[str]:
        """The ids of the steps that it serves."""
        return {str(self.step_id), *self.also}

    @property
    def cited(self) -> set[str]:
        """The ids of the sources that its summary and its bullets name."""
        return {source_id for text in (self.summary, *self.extraction) for source_id in _ID.findall(text)}

    @property
    def origins(self) -> set[str]:
        """The ids of the sources on which it rests: those that it names, or all that it was made from."""
        return self.cited or set(self.source_ids)

    def quotations(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the quotations of the note, each with the ids of its sources: first from its summary, then its bullets.

        Sentences of the summary without a source are the note's own wording and left out.
        """
        for text in (self.summary, *self.extraction):
            for quoted in _QUOTED.finditer(text):
                yield quoted["text"], tuple(dict.fromkeys(_ID.findall(quoted["ids"])))

    def message(self) -> NoteMessage:
        """Return the note as it is added to the context."""
        return NoteMessage(**self.model_dump(include=set(NoteMessage.model_fields)))


class Brief(Model):
    """A summary of all notes of a step, with the ids of their sources.

    It replaces the notes of these `files` (their `artifact_file`s) wherever a role sees the research as a whole.
    """

    step_id: str | int
    text: str
    files: list[str]


def told_by(briefs: Iterable[Brief]) -> set[str]:
    """Return the files of the notes that some briefs replace."""
    return {file for brief in briefs for file in brief.files}


def untold(notes: Iterable[Note], briefs: Iterable[Brief]) -> list[Note]:
    """Return the notes that no brief replaces."""
    told = told_by(briefs)
    return [note for note in notes if note.artifact_file not in told]


def noted(notes: Iterable[Note]) -> set[str]:
    """Return the ids of the sources of some notes."""
    return {source_id for note in notes for source_id in note.source_ids}


class Usage(Model):
    """The usage of model calls, with the seconds spent waiting.

    `cost_usd` is None when a price is not known. The provider read `cached_tokens` of the prompt from its cache and
    wrote `cache_write_tokens` to it.
    """

    llm_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = Field(0, exclude_if=not_)
    cache_write_tokens: int = Field(0, exclude_if=not_)
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    fallbacks: list[str] = []  # roles that the extractive backend answered for, and why

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            llm_calls=self.llm_calls + other.llm_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
            seconds=round(self.seconds + other.seconds, 3),
            fallbacks=[*self.fallbacks, *other.fallbacks],
        )


class Call(Model):
    """A tool call of a step and its use."""

    result: ToolResult
    useful: bool
    narrowed_tokens: int = 0  # raw tokens that the compressor was not shown
    useless: list[str] = Field([], exclude_if=not_)  # keys of texts that were read whole and had nothing for the step
    read_for: list[str] = Field([], exclude_if=not_)  # ids of steps that had not begun, for which it was read too


class StepOutcome(Model):
    """The outcome of researching one step.

    `cut`: the budget ended it early; `saving`: the budget ran short; `stopped`: who ended it, if a person did.
    """

    step_id: str | int
    notes: list[Note]  # the useful ones
    calls: list[Call]
    usage: dict[str, Usage]  # by role
    brief: Brief | None = None  # of its notes
    reused: list[str] = []  # files of notes of other steps that serve it too
    cut: bool = False
    saving: bool = Field(False, exclude_if=not_)
    stopped: Remark | None = None

    @property
    def status(self) -> StepStatus:
        """The status of the step after this."""
        if self.notes or self.reused:
            return StepStatus.done
        skipped = (self.cut or self.stopped) and not self.calls
        return StepStatus.todo if skipped else StepStatus.blocked


Share = Annotated[float, Field(ge=0, le=1)]


class Verdict(StrEnum):
    """Whether the cited sources support a claim.

    Words alone decide `supported`, if a source says the claim word for word or cell by cell, and `not_stated`, if no
    cited source has a number, date, name or code of it. A model judges all other claims; without a model they are
    `not_checked`.
    """

    supported = "supported"
    contradicted = "contradicted"  # a cited source says otherwise: only a model says so
    not_stated = "not_stated"  # no cited source says it, and none contradicts it
    not_checked = "not_checked"

    @property
    def objects(self) -> bool:
        """Whether the claim should not stand as it is."""
        return self in (Verdict.contradicted, Verdict.not_stated)

    @property
    def words(self) -> str:
        """The verdict as a reader sees it."""
        return self.value.replace("_", " ")

    @classmethod
    def _missing_(cls, value: object) -> Verdict | None:
        # Runs stored before 0.3 were checked by words alone, which give no reason to doubt a sentence.
        return cls.not_checked if value in ("weak", "unsupported") else None


class Corroboration(StrEnum):
    """How many independent sources support a claim, of all that were read."""

    verified = "verified"  # by two independent, credible sources
    single_source = "single_source"
    contradicted = "contradicted"
    unverified = "unverified"  # by no source

    @property
    def words(self) -> str:
        """What a reader is told. A claim may be supported by several passages together and by none alone."""
        return _CORROBORATIONS[self]


_CORROBORATIONS = {
    Corroboration.verified: "supported by two independent sources",
    Corroboration.single_source: "supported by a single source",
    Corroboration.contradicted: "contradicted by another source",
    Corroboration.unverified: "no passage alone supports it",
}


class Quote(Model):
    """Bytes of a stored tool output that support a claim.

    `start` and `end` are byte offsets in the artifact file and `sha256` is the hash of the whole file. `text` is what a
    reader sees: the bytes decoded and, in a JSON file, unescaped.
    """

    source_id: str
    artifact_file: str
    start: int
    end: int
    sha256: str
    text: str
    retrieved: str = ""  # ISO 8601, UTC
    before: str = ""  # the text around the quote, up to 240 characters on each side
    after: str = ""
    headings: list[str] = []  # above the quote in its source, the highest first


class Judgement(Model):
    """A model's verdict on a claim; `searches` is 2 if it was asked again, with passages from a second search."""

    verdict: Verdict
    model: str
    reason: str
    searches: int = 1
    given: list[str] = Field([], exclude_if=not_)  # values of the asker's own case that it takes from the question


class Claim(Model):
    """One sentence of the report, checked.

    `quotes` begins with the passages by which a model judged it, or that have it word for word; otherwise with the
    closest passages. `complaints` are numbers, dates, names and code that no cited source has anywhere, by words alone.
    """

    number: int  # in the report, from 1
    section: int  # position of its section, from 0
    sentence: str  # without its citations
    source_ids: list[str]
    verdict: Verdict
    score: Share  # share of its words that the closest passages have
    quotes: list[Quote] = []
    complaints: list[str] = []
    corroboration: Corroboration = Field(
        Corroboration.unverified, validation_alias=AliasChoices("corroboration", "standing")
    )  # `standing` in runs stored before 0.2
    corroborating: list[Quote] = []  # one of each source that supports it alone
    contradicting: list[Quote] = []  # of sources that give another number or date, or deny it
    judgement: Judgement | None = None


SourceType = Literal[
    "academic",
    "government",
    "standards",
    "documentation",
    "news",
    "encyclopedia",
    "company",
    "code",
    "forum",
    "blog",
    "social",
    "document",
    "unknown",
]
SourceFlag = Literal[
    "outdated", "single_source", "low_authority", "paywalled", "possibly_machine_made", "potential_bias", "gives_orders"
]


class SourceQuality(Model):
    """How far a source can be trusted and how relevant it is; every score is 0 to 1."""

    source_id: str
    type: SourceType
    credibility: Share
    relevance: Share
    recency: Share
    corroboration: Share
    overall: Share
    published: str = ""  # ISO 8601 date, month or year, where one was found
    flags: list[SourceFlag] = []
    peer_reviewed: bool = Field(False, exclude_if=not_)  # as far as its publisher shows


class Discrepancy(Model):
    """A difference from the record. `claim` is the number of its claim; 0 if it concerns a whole file."""

    file: str
    message: str
    claim: int = 0
