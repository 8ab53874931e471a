"""What Fathom itself says in a report, of its work and beside what it found: none of it is a claim of the report.

It is declared here once: for what writes a report, and for what reads one again from its Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache

from fathom.evidence.claims import MARKS
from fathom.evidence.computed import MARK
from fathom.models import ReportSection
from fathom.text.wording import in_every_language

QUESTION, HOW_SURE, AS_OF = "**Question:**", "**How sure:**", "As of {date}"
"""The beginnings of the paragraphs that repeat the question, rate the answer, and say what made the report."""
BETWEEN = " · "  # what is said of the making
CLOSEST = "What comes closest:"
POSSIBLE = "Read these quotations before you rely on them:"
EXTRACTIVE_NOTICE = (
    "Every sentence of this report is a quotation from the source it cites, selected by its words. No language model "
    "wrote the report or judged whether it answers the question."
)
COMPUTED_NOTICE = (
    f"What begins with “{MARK.strip()}” follows from values that the sources cited state. Every other sentence of this "
    "report is a quotation from the source it cites, selected by its words. No language model wrote the report or "
    "judged whether it answers the question."
)


class Added(StrEnum):
    """The headings of the chapters that Fathom adds to the sections of a report."""

    disagreement = "Where sources disagree"
    warnings = "Before you rely on it"
    not_found = "Not found"
    limitations = "Limitations"
    next_steps = "Next steps"
    method = "How this was researched"


def _in_any(*phrases: str) -> tuple[str, ...]:
    """Return phrases in every language: a report that is stored as text alone does not say its own."""
    return tuple(said for phrase in phrases for said in in_every_language(phrase))


_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")


@cache
def _how_sure() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, _in_any(HOW_SURE))))


def _with_english_marks(markdown: str) -> str:
    for mark in MARKS.values():
        for said in _in_any(mark):
            markdown = markdown.replace(said, mark)
    return markdown


def without_own_words(sections: Sequence[ReportSection]) -> list[ReportSection]:
    """Return the sections of a report as its Markdown has them, without what Fathom itself said in it.

    Only a report of Fathom's says how sure its answer is, so any other report stays as it is.
    """
    rated = [n for n, section in enumerate(sections) if _how_sure().search(section.markdown)]
    if not rated:
        return list(sections)
    sections = [section.model_copy(update={"markdown": _with_english_marks(section.markdown)}) for section in sections]
    answer = sections[rated[0]]
    above = [section for section in sections[: rated[0]] if not section.markdown.startswith(_in_any(QUESTION))]
    below = [section for section in sections[rated[0] + 1 :] if section.heading not in _in_any(*Added)]
    said = [answer.model_copy(update={"markdown": text})] if (text := _answer_alone(answer.markdown)) else []
    return [*above, *said, *below]


def _answer_alone(markdown: str) -> str:
    """Return the answer without the note before it, and without how sure it is and what made the report."""
    *_, rated = _how_sure().finditer(markdown)
    text = markdown[: rated.start()]
    _, *others = _PARAGRAPHS.split(markdown[rated.end() :])
    others = [one for one in others if one.strip() not in _in_any(EXTRACTIVE_NOTICE, COMPUTED_NOTICE)]
    as_of = tuple(said.partition("{")[0] for said in _in_any(AS_OF))
    if others and others[0].startswith(as_of) and BETWEEN in others[0]:
        others = others[1:]
    before = _PARAGRAPHS.search(text)
    if before and text[: before.start()].endswith(_in_any(CLOSEST, POSSIBLE)):
        text = text[before.end() :]
    return "\n\n".join(filter(None, [text.strip(), *others]))
