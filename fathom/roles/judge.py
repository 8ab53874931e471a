"""The judge says whether quotations carry a sentence; beside the lexical verdict, never in its place."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fathom.config.models import Role
from fathom.models import Verdict
from fathom.roles.base import Answer, Request, RoleSpec


class Judged(Request):
    """A claim of the report with the quotations found for it."""

    number: int
    sentence: str
    quotes: list[str]


class JudgeRequest(Request):
    """Some claims."""

    claims: list[Judged]


class Opinion(Answer):
    """What the judge says of one claim."""

    number: Annotated[int, Field(description="Number of the claim.")]
    verdict: Annotated[
        Verdict,
        Field(description="supported: the quotations say it; weak: they say it in part; unsupported: they do not."),
    ]
    reason: Annotated[str, Field(description="Why, in a few words.")]


class JudgeAnswer(Answer):
    """An opinion on each claim."""

    opinions: list[Opinion]


def _normalize(request: JudgeRequest, answer: JudgeAnswer) -> JudgeAnswer:
    """Drop opinions on claims that were not asked about."""
    asked = {claim.number for claim in request.claims}
    return JudgeAnswer(opinions=[opinion for opinion in answer.opinions if opinion.number in asked])


JUDGE = RoleSpec(name="judge", role=Role.critic, request=JudgeRequest, answer=JudgeAnswer, normalize=_normalize)
