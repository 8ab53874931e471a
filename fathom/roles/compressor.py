"""The compressor turns one raw tool output into a note. It is the only role that sees raw output."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fathom.config.models import Role
from fathom.models import SourceText
from fathom.roles.base import Answer, Complaint, Request, RoleSpec
from fathom.text.citations import cited_ids, with_known_ids
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words

TITLE_WORDS = (5, 12)
SUMMARY_SENTENCES = (3, 10)


class CompressRequest(Request):
    """Exactly what the compressor may know: where it stands in the plan, the tool, and the raw output."""

    plan_title: str
    step_title: str
    step_description: str
    tool_name: str
    texts: list[SourceText]  # the raw output, or its best passages in reading order where it is too long
    max_note_tokens: int


class CompressAnswer(Answer):
    """A compressed tool result."""

    summary_title: Annotated[str, Field(description="5 to 12 words that say what the result is about.")]
    summary: Annotated[
        str, Field(description="3 to 10 sentences, strictly about the current step, no speculation, no filler.")
    ]
    extraction: Annotated[
        list[str],
        Field(
            description="Key facts, one each, useful on their own, in the source's own words, numbers and names kept; "
            "each ends with the ids of its sources in square brackets. May be empty."
        ),
    ]
    is_useful: Annotated[
        bool,
        Field(description="True if the output holds anything relevant to the step; false if irrelevant, empty, noise."),
    ]


def _normalize(request: CompressRequest, answer: CompressAnswer) -> CompressAnswer:
    """Cut what is too long and drop ids that were never given; a sole source is credited for every bullet."""
    known = [text.source_id for text in request.texts]
    bullets = [with_known_ids(bullet, known) for bullet in answer.extraction]
    if len(set(known)) == 1:
        bullets = [b if cited_ids(b) else f"{b} [{known[0]}]" for b in bullets]
    words = answer.summary_title.split()
    sentences = [s.text for s in split_sentences(answer.summary)]
    summary = answer.summary if len(sentences) <= SUMMARY_SENTENCES[1] else " ".join(sentences[: SUMMARY_SENTENCES[1]])
    return CompressAnswer(
        summary_title=" ".join(words[: TITLE_WORDS[1]]),
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
        complaints.append(Complaint(f"summary_title has {words} words; 5 to 12 are asked for.", fatal=False))
    if (sentences := len(split_sentences(answer.summary))) < SUMMARY_SENTENCES[0]:
        complaints.append(Complaint(f"summary has {sentences} sentences; 3 to 10 are asked for.", fatal=False))
    if missing := sum(not cited_ids(bullet) for bullet in answer.extraction):
        complaints.append(Complaint(f"{missing} bullets end without the id of a given source.", fatal=False))
    return complaints


COMPRESSOR = RoleSpec(
    name="compressor",
    role=Role.compressor,
    request=CompressRequest,
    answer=CompressAnswer,
    normalize=_normalize,
    check=_check,
)
