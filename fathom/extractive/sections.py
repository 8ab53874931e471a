"""Writing a section without a model: the quotations that answer the question or the section's own matter best."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fathom.extractive.citing import quoted
from fathom.extractive.questions import questions_of
from fathom.extractive.statements import ANSWERED, Quotations, quotations_for
from fathom.retrieval.relevance import Chosen, Found
from fathom.roles import SectionRequest, Text
from fathom.text.sentences import split_sentences
from fathom.text.terms import terms

ANSWER_TOKENS = 200
SECTION_TOKENS = 900
LEAST_SCORE = 0.2  # of the best excerpt's; what says less stays out
NOTHING_NEW = "This section has nothing to add to what the others quote."

CITED = re.compile(r"\s*(?:\[S[0-9a-f]{6,64}\])+\s*")


def write_section(request: SectionRequest) -> Text:
    """Return a section of quotations that no earlier section has; the first one answers each part of the question."""
    if request.position == 0:
        body = _answer(quotations_for(request.notes, request.passages), questions_of(request.query))
    else:
        body = _section(Quotations.of_notes(request.notes), request)
    return Text(text=body or NOTHING_NEW)


def _answer(quotations: Quotations, questions: Sequence[str]) -> str:
    """Return the best quotations for each question, and what of them was not found."""
    ranked = [(question, quotations.rank(question)) for question in questions]
    room = ANSWER_TOKENS // len(questions)
    chosen: list[Chosen] = []
    missing: list[str] = []
    for question, found in ranked:
        chosen += quotations.choose(_telling(found), question, room)
        if len(questions) > 1 and max((each.share for each in found), default=0.0) < ANSWERED:
            missing.append(question)
    lines = [f"Not found in the sources: {question.rstrip('?')}?" for question in missing]
    return "\n\n".join(filter(None, [_quoted(quotations, dict.fromkeys(chosen)), *lines]))


def _section(quotations: Quotations, request: SectionRequest) -> str:
    said = _said(request.written)
    questions = questions_of(request.query)
    heading = request.section.heading
    wording = heading if heading.rstrip("?") in map(_plain, questions) else f"{heading} {request.query}"
    new = [each for each in _telling(quotations.rank(wording)) if not _is_said(quotations.says(each), said)]
    return _quoted(quotations, quotations.choose(new, wording, SECTION_TOKENS))


def _plain(question: str) -> str:
    return question.rstrip("?")


def _telling(found: Sequence[Found]) -> list[Found]:
    return [each for each in found if each.score >= LEAST_SCORE * found[0].score]


def _said(written: Iterable[str]) -> set[tuple[str, ...]]:
    """Return the sentences, rows and items of earlier sections, as their terms."""
    parts = (part for section in written for part in CITED.split(section))
    return {found for part in parts for s in split_sentences(part) if (found := tuple(terms(s.text)))}


def _is_said(text: str, said: set[tuple[str, ...]]) -> bool:
    """Whether earlier sections have a sentence, row or item of an excerpt."""
    return any(tuple(terms(sentence.text)) in said for sentence in split_sentences(text))


def _quoted(quotations: Quotations, chosen: Iterable[Chosen]) -> str:
    return quoted((quotations.sources[each.text], each.markdown) for each in chosen)
