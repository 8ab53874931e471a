"""Claims of a report and the quotes that support them; how good a source is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from fathom.models.base import Model

Share = Annotated[float, Field(ge=0, le=1)]


class Verdict(StrEnum):
    """Whether the cited sources support a claim, by their words."""

    supported = "supported"
    weak = "weak"
    unsupported = "unsupported"


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
    """A model's opinion of a claim, shown beside the lexical verdict."""

    verdict: Verdict
    model: str
    reason: str


class Claim(Model):
    """One sentence of the report, checked. `complaints` are numbers, dates or names that no quote has."""

    number: int  # in the report, from 1
    section: int  # position of its section, from 0
    sentence: str  # without its citations
    source_ids: list[str]
    verdict: Verdict
    score: Share  # lexical support of the best quote
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
SourceFlag = Literal["outdated", "single_source", "low_authority", "paywalled", "possibly_machine_made"]


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
