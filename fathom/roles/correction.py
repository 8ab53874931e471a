"""The writer corrects the sentences that do not hold: each gets another one in its place, or none."""

from __future__ import annotations

from operator import not_

from pydantic import Field

from fathom.config.groups import Role
from fathom.roles.base import Answer, Request, RoleSpec, bounds
from fathom.roles.judge import ShownSource
from fathom.text.citations import with_known_ids

OUTDATED = "no longer holds"
"""What is said against a sentence that tells what another source corrects or withdraws."""
DISPUTED = "told by one side only"
"""What is said against a sentence that another source disputes, if nothing settles which of them is right."""


class Objection(Request):
    """A sentence of a section that should not stand as it is, and why."""

    number: int  # from 1
    sentence: str  # the sentence in Markdown, with its citations
    context: str
    verdict: str  # "contradicted", "not stated", `OUTDATED` or `DISPUTED`
    reason: str
    passages: list[int]  # numbers of passages of its sources; the deciding ones first
    elsewhere: list[int] = Field([], exclude_if=not_)  # of passages of the run's other sources that bear on it


class CorrectionRequest(Request):
    """The objections to the sentences of one section."""

    query: str
    heading: str
    objections: list[Objection]
    sources: list[ShownSource]  # with the passages of all objections, each once
    source_ids: list[str]  # ids that a correction may cite


class Correction(Answer):
    """What takes the place of a sentence."""

    number: int = Field(description="Number of the objection.")
    replacement: str = Field(
        description="What takes its place, with citations; empty where the sources say nothing of the kind.",
        json_schema_extra=bounds(2_000),
    )


class CorrectionAnswer(Answer):
    """A correction for each objection."""

    corrections: list[Correction] = Field(description="One for each objection.", json_schema_extra=bounds(items=40))


def _normalize(request: CorrectionRequest, answer: CorrectionAnswer) -> CorrectionAnswer:
    asked, known = {objection.number for objection in request.objections}, set(request.source_ids)
    first = {one.number: one for one in reversed(answer.corrections) if one.number in asked}
    return CorrectionAnswer(
        corrections=[
            one.model_copy(update={"replacement": with_known_ids(one.replacement.strip(), known)})
            for _, one in sorted(first.items())
        ]
    )


CORRECTION = RoleSpec("correction", Role.reporter, CorrectionRequest, CorrectionAnswer, _normalize)
