"""The compressor turns one raw tool output into a note. It is the only role that sees raw output."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fathom.config.models import Role
from fathom.models import SourceText
from fathom.roles.base import Answer, Complaint, Request, RoleSpec, bounds
from fathom.text.citations import cited_ids, with_known_ids
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words

TITLE_WORDS = (5, 12)
SUMMARY_SENTENCES = (3, 10)


class CompressRequest(Request):
    """All that the compressor may know: its place in the plan, the tool, and the raw output."""

    plan_title: str
    step_title: str
    step_description: str
    tool_name: str
    texts: list[SourceText]  # the raw output, or its best passages in reading order where it is too long
    max_note_tokens: int


class CompressAnswer(Answer):
    """A compressed tool result."""

    summary_title: str = Field(
        description="5 to 12 words that say what the result is about.", json_schema_extra=bounds(100)
    )
    summary: str = Field(
        description="3 to 10 sentences, strictly about the current step, no speculation, no filler.",
        json_schema_extra=bounds(1_500),
    )
    extraction: list[Annotated[str, Field(json_schema_extra=bounds(600))]] = Field(
        description="Key facts, one each, useful on their own, in the source's own words, numbers and names kept; "
        "each ends with the ids of its sources in square brackets. May be empty.",
        json_schema_extra=bounds(items=12),
    )
    is_useful: bool = Field(
        description="True if the output holds anything relevant to the step; false if irrelevant, empty, noise."
    )


def _normalize(request: CompressRequest, answer: CompressAnswer) -> CompressAnswer:
    """Cut what is too long and drop ids that were never given; if there is one source only, every bullet cites it."""
    known = [text.source_id for text in request.texts]
    bullets = [with_known_ids(bullet, known) for bullet in answer.extraction]
    if len(set(known)) == 1:
        bullets = [b if cited_ids(b) else f"{b} [{known[0]}]" for b in bullets]
    sentences = [s.text for s in split_sentences(answer.summary)]
    summary = answer.summary if len(sentences) <= SUMMARY_SENTENCES[1] else " ".join(sentences[: SUMMARY_SENTENCES[1]])
    return CompressAnswer(
        summary_title=" ".join(answer.summary_title.split()[: TITLE_WORDS[1]]),
        summary=with_known_ids(summary, known),
        extraction=[bullet for bullet in bullets if bullet.strip()],
        is_useful=answer.is_useful,
    )


def _check(request: CompressRequest, answer: CompressAnswer) -> list[Complaint]:
    if not answer.is_useful:
        return []
    complaints: list[Complaint] = []
    if not answer.summary.strip():
        complaints.append(Complaint("The summary is empty."))
    if (words := count_words(answer.summary_title)) < TITLE_WORDS[0]:
        complaints.append(Complaint(f"summary_title has {words} words; it must have 5 to 12.", fatal=False))
    if (sentences := len(split_sentences(answer.summary))) < SUMMARY_SENTENCES[0]:
        complaints.append(Complaint(f"summary has {sentences} sentences; it must have 3 to 10.", fatal=False))
    if missing := sum(not cited_ids(bullet) for bullet in answer.extraction):
        complaints.append(Complaint(f"{missing} bullets do not end with the id of a given source.", fatal=False))
    return complaints


COMPRESSOR = RoleSpec("compressor", Role.compressor, CompressRequest, CompressAnswer, _normalize, _check)
