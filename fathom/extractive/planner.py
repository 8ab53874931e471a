"""Planning without a model: the questions as they are asked, their parts, and headings of the local documents."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from fathom.extractive.judging import judge
from fathom.extractive.questions import Part, is_question, parts_of, questions_of, subject_of
from fathom.extractive.wording import (
    ANY_OF,
    capitalized,
    clip,
    families,
    key_terms,
    keywords,
    strip_lead,
    topic_terms,
    with_related,
)
from fathom.models import Document, Plan, Priority
from fathom.retrieval.ranking import Passage, rank_passages
from fathom.roles import PlanAnswer, PlanRequest
from fathom.roles.planner import PlannedStep
from fathom.text.terms import query_terms, terms

TITLE_WORDS = 20
HEADING_WORDS = 12
QUERY_CHARS = 380
QUERIES = 3
HEADING_STEPS = 2
HEADING_SHARE = 0.5  # of the question's terms, that a heading and its document's title hold together
NEAR_BEST = 0.5  # of the best heading's score
ALIKE = 0.85  # share of common terms from which two titles name the same thing
_APPARATUS = frozenset(("references", "notes", "see also", "external links", "further reading", "bibliography"))
_NUMBERING = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?[\dIVXA-Z]{0,3}(?:\.\d+)*\.?\s+(?=\S)", re.IGNORECASE
)


def plan(request: PlanRequest) -> PlanAnswer:
    """Return a step for each question, its parts, what a template asks, and the closest headings of the documents.

    What a person said in words becomes a step of its own, since no model could take it into the others.
    """
    if request.draft:
        return _with_remark(request.draft, request)
    questions = questions_of(request.query)
    clarified = _clarified(request)
    room = max(1, request.max_steps - len(clarified) - bool(request.questions))
    steps = [_question_step(question, request.query) for question in questions]
    if len(steps) > room:
        steps = [*steps[: room - 1], _joined(steps[room - 1 :])]
    steps = [*clarified, *steps]
    steps += [_part_step(part, question) for question in questions for part in parts_of(question)]
    if request.questions:
        del steps[len(clarified) + room :]
        steps += _template_steps(request, max(1, request.max_steps - len(steps)))
    steps += [_heading_step(heading, request.query) for heading in _headings(request)]
    judged = judge(request.query)
    return PlanAnswer(
        kind=judged.kind,
        width=judged.width,
        plan_title=_title(questions[0], request.query),
        steps=[
            step.model_copy(update={"step_id": number})
            for number, step in enumerate(_distinct(steps)[: request.max_steps], 1)
        ],
    )


def _with_remark(draft: Plan, request: PlanRequest) -> PlanAnswer:
    """Return a plan with a step for a remark, its last one by id, in place of the last where there is no room."""
    steps = [PlannedStep(**s.model_dump(include=set(PlannedStep.model_fields))) for s in draft.steps]
    kept = steps[: request.max_steps - 1]
    number = 1 + max((int(s.step_id) for s in kept if str(s.step_id).isdecimal()), default=len(kept))
    remark = _said_step(strip_lead(request.remark), request.query).model_copy(update={"step_id": number})
    return PlanAnswer(plan_title=draft.plan_title, steps=[*kept, remark])


def _clarified(request: PlanRequest) -> list[PlannedStep]:
    """Return a step for what a person answered; an assumption says no more than the question."""
    answers = [said.answer for said in request.clarifications if not said.assumed and key_terms(said.answer)]
    return [_said_step(", ".join(answers), request.query)] if answers else []


def _said_step(said: str, query: str) -> PlannedStep:
    matter = " ".join(keywords(query)[:3])
    return _part_step(Part(capitalized(clip(said, TITLE_WORDS)), [f"{said} {matter}"]), query)


def _title(question: str, query: str) -> str:
    """Return a question as it is asked, cut where it is long."""
    title = capitalized(_cut(question, TITLE_WORDS)) or "Research"
    asked = is_question(question) or f"{question}?" in " ".join(query.split())
    return f"{title}?" if asked and not title.endswith("…") else title


def _cut(text: str, words: int) -> str:
    clipped = clip(text, words)
    return f"{clipped} …" if clipped and clipped != text else text


def _question_step(question: str, query: str) -> PlannedStep:
    title = _title(question, query)
    return _step(title, f"Find the passages that answer: {title}", [question], Priority.high)


def _part_step(part: Part, question: str) -> PlannedStep:
    description = f"Find what is said about this part of the question: {question}"
    return _step(part.title, description, [*part.queries, f"{part.title} {question}"], Priority.high)


def _template_steps(request: PlanRequest, room: int) -> Iterator[PlannedStep]:
    """Yield a step for each question of the template; where there is no room for that, for several in a row."""
    subject = subject_of(strip_lead(request.query))
    together = -(-len(request.questions) // room)
    for start in range(0, len(request.questions), together or 1):
        asked = request.questions[start : start + together]
        queries = [*(f"{question} {subject}" for question in asked), *asked]
        title = clip(" ".join(asked), 2 * TITLE_WORDS)
        yield _step(title, f"{ANY_OF} {' '.join(asked)}", queries, Priority.medium)


def _heading_step(heading: Passage, query: str) -> PlannedStep:
    inside = f" in “{heading.title}”" if heading.title != heading.text else ""
    description = f"Read what “{heading.text}”{inside} says on the question: {clip(query, 3 * TITLE_WORDS)}"
    queries = [f"{heading.text} {' '.join(keywords(query)[:3])}", f"{heading.title} {heading.text}", query]
    return _step(capitalized(heading.text), description, queries, Priority.medium)


def _step(title: str, description: str, queries: list[str], priority: Priority) -> PlannedStep:
    return PlannedStep(step_id=0, title=title, description=description, queries=_queries(queries), priority=priority)


def _joined(steps: list[PlannedStep]) -> PlannedStep:
    """Merge several steps that the plan has no room for into one."""
    return _step(
        clip("; ".join(step.title for step in steps), 2 * TITLE_WORDS),
        " ".join(step.description for step in steps),
        [query for step in steps for query in step.queries],
        Priority.high,
    )


def _queries(texts: list[str]) -> list[str]:
    """Return at most three of the texts as queries: each has two words or more, no two have the same terms."""
    queries: dict[frozenset[str], str] = {}
    for text in texts:
        query = textwrap.shorten(text, QUERY_CHARS, placeholder="") or text[:QUERY_CHARS]
        if len(query.split()) >= 2 or (len(query) >= 4 and not query.isascii()):
            queries.setdefault(frozenset(query_terms(query)), query)
    return list(queries.values())[:QUERIES]


def _headings(request: PlanRequest) -> list[Passage]:
    """Return the documents' titles and headings, each with its document's title, that are on the question."""
    wanted = topic_terms(request.query)
    found = list(dict.fromkeys(h for document in request.documents for h in _headings_of(document)))
    # A heading without words of its own only repeats the question.
    found = [heading for heading in found if not set(key_terms(heading.text)) <= set(wanted)]
    scores = rank_passages(with_related(dict.fromkeys(wanted, 1.0)), found)
    best = max(scores, default=0.0)
    order = sorted(range(len(found)), key=lambda i: (-scores[i], i))
    near = [found[i] for i in order if scores[i] >= NEAR_BEST * best and _is_on(wanted, found[i])]
    return near[:HEADING_STEPS]


def _is_on(wanted: list[str], heading: Passage) -> bool:
    found = set(terms(f"{heading.text} {heading.title}"))
    held = sum(bool(found & family) for family in families(wanted))
    return held >= max(2, HEADING_SHARE * len(wanted))


def _headings_of(document: Document) -> Iterator[Passage]:
    for text in [document.title, *document.headings]:
        plain = _NUMBERING.sub("", " ".join(text.split())).strip(" #*=.:")
        if len(plain.split()) <= HEADING_WORDS and key_terms(plain) and plain.lower() not in _APPARATUS:
            yield Passage(plain, " ".join(document.title.split()))


def _distinct(steps: list[PlannedStep]) -> list[PlannedStep]:
    """Return the steps without those that nearly repeat an earlier one's title."""
    kept: list[PlannedStep] = []
    for step in steps:
        if all(_likeness(step.title, other.title) < ALIKE for other in kept):
            kept.append(step)
    return kept


def _likeness(a: str, b: str) -> float:
    if a.casefold() == b.casefold():
        return 1.0  # it may have no key terms
    first, second = set(key_terms(a)), set(key_terms(b))
    return len(first & second) / (len(first | second) or 1)
