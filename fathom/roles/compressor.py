"""The compressor turns one raw tool output into a note. It is the only role that sees raw output."""

from __future__ import annotations

from collections.abc import Sequence
from operator import not_
from typing import Annotated

from pydantic import Field

from fathom.config.groups import Role
from fathom.models import SourceText
from fathom.roles.base import Answer, Complaint, Request, RoleSpec, bounds
from fathom.text.citations import cited_ids, with_known_ids
from fathom.text.plain import shortened
from fathom.text.sentences import split_sentences

TITLE_CHARS = 120
SUMMARY_SENTENCES = 10


class CompressRequest(Request):
    """Everything that the compressor may know: its place in the plan, the tool, and the raw output or a part of it."""

    plan_title: str
    step_title: str
    step_description: str
    also: list[str] = Field([], exclude_if=not_)  # titles and descriptions of other steps that it is read for
    tool_name: str
    texts: list[SourceText]  # whole or in parts, in reading order
    page_tokens: int  # tokens that the note may take for each source


class CompressAnswer(Answer):
    """A compressed tool result."""

    summary_title: str = Field(
        description="5 to 12 words that say what the result is about; empty if the output is not useful.",
        json_schema_extra=bounds(TITLE_CHARS),
    )
    summary: str = Field(
        description="3 to 10 sentences, strictly about the current step, no speculation, no filler; "
        "empty if the output is not useful.",
        json_schema_extra=bounds(1_500),
    )
    extraction: list[Annotated[str, Field(json_schema_extra=bounds(600))]] = Field(
        description="Key facts, one each, useful on their own, in the source's own words, numbers and names kept; "
        "each ends with the ids of its sources in square brackets. May be empty.",
        json_schema_extra=bounds(items=40),
    )
    is_useful: bool = Field(
        description="True if the output holds anything relevant to the step; false if irrelevant, empty, noise."
    )


def _normalize(request: CompressRequest, answer: CompressAnswer) -> CompressAnswer:
    """Cut long texts and drop ids that were never given; if there is only one source, every bullet cites it."""
    known = [text.source_id for text in request.texts]
    bullets = [with_known_ids(bullet, known) for bullet in answer.extraction]
    if len(set(known)) == 1:
        bullets = [b if cited_ids(b) else f"{b} [{known[0]}]" for b in bullets]
    sentences = [s.text for s in split_sentences(answer.summary)]
    summary = answer.summary if len(sentences) <= SUMMARY_SENTENCES else " ".join(sentences[:SUMMARY_SENTENCES])
    return CompressAnswer(
        summary_title=shortened(answer.summary_title, TITLE_CHARS),
        summary=with_known_ids(summary, known),
        extraction=[bullet for bullet in bullets if bullet.strip()],
        is_useful=answer.is_useful,
    )


def _check(_request: CompressRequest, answer: CompressAnswer) -> list[Complaint]:
    return [Complaint("The summary is empty.")] if answer.is_useful and not answer.summary.strip() else []


def merged(answers: Sequence[CompressAnswer]) -> CompressAnswer:
    """Return one note from the answers to several requests about one output: useful if any answer is.

    The note has the title of the first useful answer, up to 10 sentences of the summaries, shared out among the
    answers, and all of the bullets in order, each once.
    """
    useful = [answer for answer in answers if answer.is_useful]
    if len(useful) < 2:
        return (useful or answers)[0]
    summaries = [[sentence.text for sentence in split_sentences(answer.summary)] for answer in useful]
    return CompressAnswer(
        summary_title=useful[0].summary_title,
        summary=" ".join(sentence for kept in _shared_out(summaries, SUMMARY_SENTENCES) for sentence in kept),
        extraction=list(dict.fromkeys(bullet for answer in useful for bullet in answer.extraction)),
        is_useful=True,
    )


def _shared_out(summaries: Sequence[Sequence[str]], most: int) -> list[Sequence[str]]:
    """Return the first sentences of each summary, up to a total, shared out evenly."""
    counts = [0] * len(summaries)
    for turn in range(most):
        for number, summary in enumerate(summaries):
            if turn < len(summary) and sum(counts) < most:
                counts[number] += 1
    return [summary[:count] for summary, count in zip(summaries, counts, strict=True)]


COMPRESSOR = RoleSpec("compressor", Role.compressor, CompressRequest, CompressAnswer, _normalize, _check)
