"""Writing a section without a model: the quotations that answer the question or the section's own matter best."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fathom.extractive.citing import quoted
from fathom.extractive.given_sections import write_given_section
from fathom.extractive.questions import questions_of
from fathom.extractive.statements import Quotations, quotations_for
from fathom.extractive.succession import Quoted, Succession
from fathom.models import Answered
from fathom.retrieval.relevance import Found
from fathom.roles import SectionRequest, Text
from fathom.text.sentences import split_sentences
from fathom.text.terms import terms

ANSWER_TOKENS = 200
PART_TOKENS = 60  # at least for each part of a question that has many
SECTION_TOKENS = 450
LEAST_SCORE, LEAST_IN_SECTION = 0.2, 0.3  # of the best excerpt's; what says less stays out
MORE = "More from the sources"
"""Heading of the section with what else bears on the only question."""
NOT_FOUND = "Not found in the sources:"
NOTHING_FOUND = "This section is empty: this research found nothing that belongs here."
NOTHING_NEW = "This section has nothing to add to what the others quote."

CITED = re.compile(r"\s*(?:\[S[0-9a-f]{6,64}\])+\s*")


def write_section(request: SectionRequest) -> Text:
    """Return a section of quotations that no earlier section has; the first one answers each part of the question."""
    if request.position == 0:
        body = _answer(quotations_for(request.notes, request.passages), questions_of(request.query))
    elif request.is_given:
        return Text(text=write_given_section(request) or NOTHING_FOUND)
    else:
        body = _section(Quotations.of_notes(request.notes, request.passages), request)
    return Text(text=body or NOTHING_NEW)


def _answer(quotations: Quotations, questions: Sequence[str]) -> str:
    """Return the best quotations for each question, and what of them was not found."""
    room = max(PART_TOKENS, ANSWER_TOKENS // len(questions))
    shown: list[Quoted] = []
    missing: list[str] = []
    for question in questions:
        succession = Succession(quotations, question)
        shown += succession.shown(quotations.choose(_telling(succession.found), question, room))
        if len(questions) > 1 and quotations.answered_by(succession.found, question) is Answered.no:
            missing.append(question)
    lines = [f"{NOT_FOUND} {question.rstrip('?')}?" for question in missing]
    return "\n\n".join(filter(None, [_quoted(quotations, _once(shown)), *lines]))


def _once(shown: Iterable[Quoted]) -> Iterator[Quoted]:
    """Yield the quotations without the paragraphs that those before them have; texts of one source may overlap."""
    said: set[tuple[str, ...]] = set()
    for each in shown:
        blocks = [each.markdown] if "```" in each.markdown else each.markdown.split("\n\n")
        new = [block for block in blocks if not (own := _said([block])) or own - said]
        said |= _said(new)
        if any(not block.endswith(":") for block in new):
            yield each._replace(markdown="\n\n".join(new))


def _section(quotations: Quotations, request: SectionRequest) -> str:
    said = _said(request.written)
    questions = questions_of(request.query)
    heading = request.section.heading
    if heading == MORE:
        wording = questions[0]
    else:
        wording = heading if heading.rstrip("?") in map(_plain, questions) else f"{heading} {request.query}"
    succession = Succession(quotations, wording)
    new = [each for each in _telling(succession.found, LEAST_IN_SECTION) if not _is_said(quotations.says(each), said)]
    chosen = quotations.choose(new, wording, SECTION_TOKENS)
    # A lead-in that is the section's heading says nothing more.
    bare = (each._replace(markdown=each.markdown.removeprefix(f"{heading}:").lstrip("\n")) for each in chosen)
    return _quoted(quotations, [succession.marked(Quoted(each.text, each.markdown)) for each in bare])


def _plain(question: str) -> str:
    return question.rstrip("?")


def _telling(found: Sequence[Found], least: float = LEAST_SCORE) -> list[Found]:
    return [each for each in found if each.score >= least * found[0].score]


def _said(written: Iterable[str]) -> set[tuple[str, ...]]:
    """Return the sentences, rows and items of earlier sections, as their terms."""
    parts = (part for section in written for part in CITED.split(section))
    sentences = (s for part in parts for s in split_sentences(part) if not s.text.endswith(":"))
    return {found for s in sentences if (found := tuple(terms(s.text)))}


def _is_said(text: str, said: set[tuple[str, ...]]) -> bool:
    """Whether earlier sections have a sentence, row or item of an excerpt."""
    return any(tuple(terms(sentence.text)) in said for sentence in split_sentences(text))


def _quoted(quotations: Quotations, shown: Iterable[Quoted]) -> str:
    return quoted((quotations.sources[each.number], each.markdown) for each in shown)
