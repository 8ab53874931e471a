"""The judge says whether quotations support a sentence; its opinion is shown beside the lexical verdict."""

from __future__ import annotations

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
    """Some claims of a report."""

    claims: list[Judged]


class Opinion(Answer):
    """The judge's opinion of one claim."""

    number: int = Field(description="Number of the claim.")
    verdict: Verdict = Field(
        description="supported: the quotations say it; weak: they say it in part; unsupported: they do not."
    )
    reason: str = Field(description="Why, in a few words.")


class JudgeAnswer(Answer):
    """An opinion on each claim."""

    opinions: list[Opinion]


def _normalize(request: JudgeRequest, answer: JudgeAnswer) -> JudgeAnswer:
    asked = {claim.number for claim in request.claims}
    return JudgeAnswer(opinions=[opinion for opinion in answer.opinions if opinion.number in asked])


JUDGE = RoleSpec("judge", Role.critic, JudgeRequest, JudgeAnswer, _normalize)
