"""Claims of a report and the quotes that support them; how good a source is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from fathom.models.base import Model

Share = Annotated[float, Field(ge=0, le=1)]


class Verdict(StrEnum):
    """Whether the cited sources support a claim.

    Words alone say `supported` of what a source says word for word or cell by cell, and `not_stated` of a number, date,
    name or code that no cited source has anywhere. All else a model judges; where none does, it is `not_checked`.
    """

    supported = "supported"
    contradicted = "contradicted"  # a cited source says otherwise: only a model says so
    not_stated = "not_stated"  # no cited source says it, and none rules it out
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
        # Runs stored before 0.3 were checked by words alone, which are no reason to doubt a sentence.
        return cls.not_checked if value in ("weak", "unsupported") else None


class Corroboration(StrEnum):
    """How many independent sources support a claim, of all that were read."""

    verified = "verified"  # by two independent, credible sources
    single_source = "single_source"
    contradicted = "contradicted"
    unverified = "unverified"  # by no source


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
    """What a model said of a claim; `searches` is 2 where it was asked again, with what a second search found."""

    verdict: Verdict
    model: str
    reason: str
    searches: int = 1


class Claim(Model):
    """One sentence of the report, checked.

    `quotes` begins with the passages by which a model judged it, or that have it word for word; else they come nearest
    to it. `complaints` are numbers, dates, names and code that no cited source has anywhere, by words alone.
    """

    number: int  # in the report, from 1
    section: int  # position of its section, from 0
    sentence: str  # without its citations
    source_ids: list[str]
    verdict: Verdict
    score: Share  # share of its words that the nearest passages have
    quotes: list[Quote] = []
    complaints: list[str] = []
    corroboration: Corroboration = Field(
        Corroboration.unverified, validation_alias=AliasChoices("corroboration", "standing")
    )  # `standing` in runs stored before 0.2
    corroborating: list[Quote] = []  # one of each source that supports it alone
    contradicting: list[Quote] = []  # of sources that say the same with another number or date, or deny it
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
SourceFlag = Literal["outdated", "single_source", "low_authority", "paywalled", "possibly_machine_made", "gives_orders"]


class SourceQuality(Model):
    """How far a source can be trusted and how relevant it is; every score is 0 to 1."""

    source_id: str
    type: SourceType
    credibility: Share
    relevance: Share
    recency: Share
    corroboration: Share
    overall: Share
    published: str = ""  # ISO 8601 date, where one was found
    flags: list[SourceFlag] = []


class Problem(Model):
    """Something that is not as the record says. `claim` is its number; 0 where it concerns a file as a whole."""

    file: str
    message: str
    claim: int = 0
