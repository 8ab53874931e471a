"""Reporting without a model: an outline from the plan, and sections of quotations, every one with its source."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fathom.citations import cited_ids, without_citations
from fathom.llm.extractive.wording import capitalized, clip, topic_terms, with_related
from fathom.models import Note, PlanStep
from fathom.roles import OutlineAnswer, OutlineRequest, SectionRequest, Text
from fathom.roles.reporter import OutlinedSection
from fathom.text import DuplicateFilter, is_near_duplicate, query_terms, split_sentences, terms

__all__ = ["outline", "write_section"]

MAX_SECTIONS = 7
ANSWER_SENTENCES = (3, 5)
SECTION_SENTENCES = 8
PARAGRAPH_SENTENCES = 5
LEAST_SCORE = 0.45  # of the best statement's; what says less stays out
SENTENCE_TERMS = 20  # beyond about this length a statement must hold more to count as much
OPENING_TERMS = 4
OPENING = 0.5  # added for a wanted term among the first: it is what the statement is about
COVERING = 1.5  # exponent: one statement with two wanted terms is worth more than two with one each
MOST_VOTES = 2
VOTE = 0.15  # added to a statement's score for each further note that quotes it
LEAST_NEW = 2  # sentences a section must have of its own
DEFINITION = 1.5  # factor for "Tuples are ..." where tuples are asked for
_DEFINITION = re.compile(
    r"(?!(?:If|When|Where|Whether|While|Since|As|For|What|There)\b)(?:In general, |Generally, )?"
    r"(?:[Aa]n? |The (?=[\"“*]))?[\"“*]*((?:[\w-]+[\"”*]*\s){1,3}?)(?:is|are|was|were|means?|refers? to)\b"
)
_CITED = re.compile(r"\s*(?:\[S[0-9a-f]{6,64}\])+\s*")
NOTHING_NEW = "The sources read for this step add nothing to what the other sections quote."


class _Statement(NamedTuple):
    """A quotation from a note: one sentence, or a few that belong together, and its sources."""

    text: str
    sources: tuple[str, ...]
    note: int
    order: int


# -- outline ------------------------------------------------------------------------------------------------------


def outline(request: OutlineRequest) -> OutlineAnswer:
    """Return the short answer first, then a section for each step that has something of its own to say.

    Writing is cheap here, so each section is tried: one that has too little left to quote joins its nearest neighbour.
    """
    answer = OutlinedSection(heading="In short", focus=f"Answer the question: {request.query}", step_ids=[])
    written = [_draft(request, answer, 0, [])]
    kept: list[list[PlanStep]] = []
    for steps in _fitting(_groups(request)):
        draft = _draft(request, _section(steps), len(kept) + 1, written)
        if len(_CITED.findall(draft)) >= LEAST_NEW:
            kept.append(steps)
            written.append(draft)
        elif kept:
            _nearest(steps[0], kept).extend(steps)
    return OutlineAnswer(
        title=clip(request.plan.plan_title, 12) or "Report", sections=[answer, *(_section(steps) for steps in kept)]
    )


def _section(steps: list[PlanStep]) -> OutlinedSection:
    return OutlinedSection(
        heading=capitalized(steps[0].title),
        focus=" ".join(step.description for step in steps),
        step_ids=[step.step_id for step in steps],
    )


def _draft(request: OutlineRequest, section: OutlinedSection, position: int, written: list[str]) -> str:
    ids = {str(step_id) for step_id in section.step_ids}
    return write_section(
        SectionRequest(
            query=request.query,
            today=request.today,
            title=request.plan.plan_title,
            headings=[section.heading],
            section=section,
            position=position,
            notes=[note for note in request.notes if not ids or str(note.step_id) in ids],
            written=written,
        )
    ).text


def _groups(request: OutlineRequest) -> list[list[PlanStep]]:
    """Group the steps with notes; steps with near-identical titles go together."""
    groups: list[list[PlanStep]] = []
    answered = {str(note.step_id) for note in request.notes}
    for step in request.plan.steps:
        if str(step.step_id) not in answered:
            continue
        near = next((g for g in groups if any(is_near_duplicate(step.title, s.title) for s in g)), None)
        if near is None:
            groups.append([step])
        else:
            near.append(step)
    return groups


def _fitting(groups: list[list[PlanStep]]) -> list[list[PlanStep]]:
    """Return at most as many groups as the outline has room for; the last ones join those they resemble."""
    kept = [list(group) for group in groups[: MAX_SECTIONS - 1]]
    for group in groups[MAX_SECTIONS - 1 :]:
        _nearest(group[0], kept).extend(group)
    return kept


def _nearest(step: PlanStep, groups: list[list[PlanStep]]) -> list[PlanStep]:
    words = set(terms(step.title))
    return max(groups, key=lambda group: len(words & set(terms(" ".join(s.title for s in group)))))


# -- sections -----------------------------------------------------------------------------------------------------


def write_section(request: SectionRequest) -> Text:
    """Return a section of quotations that no earlier section has, grouped by source in reading order."""
    first = request.position == 0
    seen = DuplicateFilter()
    for section in request.written:
        for quoted in _CITED.split(section):
            for sentence in split_sentences(quoted):
                seen.add(sentence.clean)
    weights = dict.fromkeys(topic_terms(request.query), 1.0 if first else 0.5)
    if not first:
        weights |= dict.fromkeys(topic_terms(request.section.focus, frame=True), 0.5)
        weights |= dict.fromkeys(topic_terms(request.section.heading), 1.0)
    statements = _statements(request.notes)
    room = SECTION_SENTENCES
    if first:  # and something is left for the sections that follow
        least, most = ANSWER_SENTENCES
        room = min(most, max(least, len({s.text for s in statements}) // 2))
    if not first:
        about = with_related(dict.fromkeys(topic_terms(request.section.heading), 1.0))
        statements = [statement for statement in statements if _is_about(statement.text, about)]
    chosen = _choose(statements, with_related(weights), seen, room)
    return Text(text="\n\n".join(_paragraphs(chosen, ranked=first)) or NOTHING_NEW)


def _statements(notes: Sequence[Note]) -> list[_Statement]:
    return [
        _Statement(without_citations(bullet).strip(), tuple(cited_ids(bullet)), number, order)
        for number, note in enumerate(notes)
        for order, bullet in enumerate(note.extraction)
        if cited_ids(bullet)
    ]


def _choose(
    statements: list[_Statement], weights: Mapping[str, float], seen: DuplicateFilter, room: int
) -> list[_Statement]:
    """Return the statements that say most about what is wanted, none of them said before."""
    votes = Counter(statement.text for statement in statements)
    scores = [_score(s.text, weights) * (1 + VOTE * min(MOST_VOTES, votes[s.text] - 1)) for s in statements]
    least = LEAST_SCORE * max(scores, default=0.0)
    chosen: list[_Statement] = []
    for i in sorted(range(len(statements)), key=lambda i: (-scores[i], i)):
        sentences = [s.clean for s in split_sentences(statements[i].text)]
        if scores[i] < least or len(sentences) > room:
            continue
        new = [seen.add(sentence) for sentence in sentences]
        if all(new):
            room -= len(sentences)
            chosen.append(statements[i])
    return chosen


def _is_about(text: str, about: Mapping[str, float]) -> bool:
    """Whether a statement holds a third of the section's terms, or nearly all where there are only one or two."""
    found = set(terms(text))
    total = sum(1 for weight in about.values() if weight == 1.0)
    return sum(w for term, w in about.items() if term in found) >= (total / 3 if total > 2 else 0.75 * total)


def _score(text: str, weights: Mapping[str, float]) -> float:
    """Return how much of what is wanted a statement says; among a choice of relevant ones rarity means little."""
    found = terms(text)
    opening = query_terms(text)[:OPENING_TERMS]
    held = sum(w * (1 + OPENING * (term in opening)) for term, w in weights.items() if term in found)
    defined = _DEFINITION.match(text)
    if defined and any(weights.get(term, 0) >= 1 for term in terms(defined[1])):
        held *= DEFINITION
    return float(held**COVERING / math.log(math.e + max(1, len(found) / SENTENCE_TERMS)))


def _paragraphs(chosen: Iterable[_Statement], *, ranked: bool) -> list[str]:
    """Return paragraphs of a source each, the source of the best statement first, every sentence with its citation."""
    by_source: dict[tuple[str, ...], list[_Statement]] = {}
    for statement in chosen:
        by_source.setdefault(statement.sources, []).append(statement)
    paragraphs: list[str] = []
    for sources, group in by_source.items():
        citation = " " + "".join(f"[{source}]" for source in sources)
        lines = [
            _closed(s.clean) + citation
            for st in (group if ranked else sorted(group, key=_place))
            for s in split_sentences(st.text)
        ]
        parts = -(-len(lines) // PARAGRAPH_SENTENCES)
        paragraphs += [" ".join(lines[len(lines) * i // parts : len(lines) * (i + 1) // parts]) for i in range(parts)]
    return paragraphs


def _place(statement: _Statement) -> tuple[int, int]:
    return statement.note, statement.order


def _closed(sentence: str) -> str:
    return f"{sentence}." if sentence[-1].isalnum() else sentence
