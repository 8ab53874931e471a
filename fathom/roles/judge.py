"""The judge says of each claim whether the passages of its sources support it; its verdict decides.

It is shown claims in batches, with the passages of all sources that they cite, each once. A claim that it does not find
is searched for again in the whole sources, with the words that it gives, before its second answer counts.
"""

from __future__ import annotations

from operator import not_
from typing import Annotated, Any, Literal

from pydantic import Field

from fathom.config.groups import Role
from fathom.models import Verdict
from fathom.roles.base import Answer, Complaint, Request, RoleSpec, bounds

REASON_CHARS, WORDS_CHARS, GIVEN_CHARS = 160, 160, 60
MOST_PASSAGES, MOST_GIVEN = 6, 6


class ShownPassage(Request):
    """A passage of a source, numbered through the request, and its place in the run's files."""

    number: int  # from 1
    headings: str  # headings above it, the highest first
    text: str
    artifact_file: str
    start: int  # byte offsets
    end: int
    sha256: str


class ShownSource(Request):
    """A source that claims of the request cite, with the passages that bear on them, in reading order."""

    source_id: str
    title: str
    address: str
    published: str
    fields: dict[str, str]  # fields of its header
    whole: bool  # whether the passages cover everything that was read of it
    passages: list[ShownPassage]


class JudgedClaim(Request):
    """A claim of the report: its text, its context, and its sources."""

    number: int  # from 1 in the request
    sentence: str
    context: str
    kind: str  # "sentence", "row" or "code"
    source_ids: list[str]
    cited: bool  # all of it is; otherwise it may rest on sources that are cited around it, too
    doubted: list[str] = Field([], exclude_if=not_)
    """Values that it took from the question at the first look, while a passage of its sources has another."""
    unfounded: list[str] = Field([], exclude_if=not_)
    """Figures and quotations of it that no passage shown at the first look had, though it was supported then."""
    later: list[int] = Field([], exclude_if=not_)
    """Numbers of passages of newer sources than its own, which may replace what it tells."""

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """The key of the claim: its sentence, and the ids of the sources that have to say it."""
        return self.sentence, tuple(self.source_ids)


class JudgeRequest(Request):
    """Some claims of a report, with the passages that bear on them. `again`: a second search has been made.

    `question` tells the asker's own case, and `today` is the ISO date on which the report is written; both are empty
    for the report of another system.
    """

    claims: list[JudgedClaim]
    sources: list[ShownSource]
    again: bool = False
    question: str = Field("", exclude_if=not_)
    today: str = Field("", exclude_if=not_)

    @property
    def passages(self) -> dict[int, tuple[ShownSource, ShownPassage]]:
        """The passages by number, each with its source."""
        return {passage.number: (source, passage) for source in self.sources for passage in source.passages}


class Opinion(Answer):
    """The verdict on one claim."""

    claim: int = Field(description="Number of the claim.")
    verdict: Literal[Verdict.supported, Verdict.contradicted, Verdict.not_stated]
    passages: list[int] = Field(
        [],
        description="Numbers of the deciding passages, the most telling first; of not_stated, those that say the rest.",
        json_schema_extra=bounds(items=MOST_PASSAGES),
    )
    reason: str = Field(
        "",
        description="Of contradicted and not_stated: why, in at most twelve words. Else empty.",
        json_schema_extra=bounds(REASON_CHARS),
    )
    look_for: str = Field(
        "",
        description="Of not_stated: words that the missing part would have in the source. Else empty.",
        json_schema_extra=bounds(WORDS_CHARS),
    )
    given: list[Annotated[str, Field(json_schema_extra=bounds(GIVEN_CHARS))]] = Field(
        [],
        description="Of supported: values of the asker's own case that it takes from the question, in its words, such "
        "as “12 rooms”. Else empty.",
        json_schema_extra=bounds(items=MOST_GIVEN),
        exclude_if=not_,
    )
    replaced_by: int = Field(
        0,
        description="Number of the later passage by which what the claim tells no longer holds. Else 0.",
        exclude_if=not_,
    )


class JudgeAnswer(Answer):
    """A verdict on each claim."""

    opinions: list[Opinion] = Field(
        description="One for each claim, in their order.", json_schema_extra=bounds(items=60)
    )


def _normalize(request: JudgeRequest, answer: JudgeAnswer) -> JudgeAnswer:
    """Drop verdicts that were not asked for, repetitions, and numbers of passages that were not shown."""
    asked, shown = {claim.number: claim for claim in request.claims}, request.passages
    first = {opinion.claim: opinion for opinion in reversed(answer.opinions) if opinion.claim in asked}
    return JudgeAnswer(
        opinions=[
            opinion.model_copy(
                update={
                    "passages": [number for number in dict.fromkeys(opinion.passages) if number in shown][
                        :MOST_PASSAGES
                    ],
                    "reason": " ".join(opinion.reason.split())[:REASON_CHARS],
                    "look_for": " ".join(opinion.look_for.split())[:WORDS_CHARS],
                    "given": list(dict.fromkeys(one for text in opinion.given if (one := " ".join(text.split()))))[
                        :MOST_GIVEN
                    ],
                    "replaced_by": opinion.replaced_by if opinion.replaced_by in asked[opinion.claim].later else 0,
                }
            )
            for _, opinion in sorted(first.items())
        ]
    )


def _check(request: JudgeRequest, answer: JudgeAnswer) -> list[Complaint]:
    judged = {opinion.claim for opinion in answer.opinions}
    missing = ", ".join(str(claim.number) for claim in request.claims if claim.number not in judged)
    return [Complaint(f"There is no verdict on these claims: {missing}.", fatal=False)] if missing else []


def _schema(request: JudgeRequest) -> dict[str, Any]:
    schema = JudgeAnswer.new_schema()
    fields = schema["$defs"]["Opinion"]["properties"]
    if not request.question:
        del fields["given"]
    if not any(claim.later for claim in request.claims):
        del fields["replaced_by"]
    return schema


JUDGE = RoleSpec("judge", Role.judge, JudgeRequest, JudgeAnswer, _normalize, _check, schema=_schema)
