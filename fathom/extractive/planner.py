"""Planning without a model: the parts of the question, and what the local documents' headings offer on it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from fathom.extractive.aspects import Part
from fathom.extractive.grammar import agent_terms, nominal
from fathom.extractive.prompting import subject_of
from fathom.extractive.questions import parts_of
from fathom.extractive.wording import (
    capitalized,
    clip,
    key_terms,
    keywords,
    shorten,
    strip_lead,
    topic_terms,
    with_related,
)
from fathom.models import Document, Priority
from fathom.roles import PlanAnswer, PlanRequest
from fathom.roles.planner import PlannedStep
from fathom.text.terms import terms

TITLE_WORDS = 8
LEAST_TITLE_WORDS = 3
STEP_WORDS = 12
QUESTION_CHARS = 200
QUERY_WORDS = 14
QUERIES = 3
FEW = 4  # terms in a query, up to which one of them makes a short heading relevant
ON_IT = 0.5  # share of the question that a document's title must hold for its best heading to count unseen
ENOUGH = 0.4  # share that a heading must hold together with the title above it
COMMON = 2  # headings that may hold a term that alone makes one of them a step
SAME = 0.85  # share of common terms from which two titles name the same thing
LEAST_STEPS = 3
UNDER = 0.3  # weight of a question's term in the document's title above a heading
TITLE_BONUS = 1.3  # a whole document on the matter goes before a heading in another
INSIDE = 0.9  # share of a document's score that its best section gets
HEADING_STEPS = 3  # most steps that follow a heading of the local documents
_ASKING = ("How", "Why", "When", "Where", "Which", "Who", "Could", "Can", "Is", "Are", "Does", "Do", "What")
_ASKED = re.compile(
    r"(?:why|when|where|how(?: \w+){0,3}|what(?: \w+){0,2}|which(?: \w+){1,2}) "
    r"(?:is|are|was|were|do|does|did|can|will|should)\b",
    re.I,
)
_APPARATUS = frozenset(("references", "notes", "see also", "external links", "further reading", "bibliography"))
_NUMBERING = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?[\dIVXA-Z]{0,3}(?:\.\d+)*\.?\s+(?=\S)", re.IGNORECASE
)


class _Heading(NamedTuple):
    text: str
    document: str


def plan(request: PlanRequest) -> PlanAnswer:
    """Return a plan: the question itself, its parts, then the documents and aspects that come closest to it."""
    parts = parts_of(request.query, request.max_steps)
    core, others = [p for p in parts if p.essential], [p for p in parts if not p.essential]
    steps = _fitting([_step(part, request.query) for part in core], request.max_steps)
    room = request.max_steps - len(steps)
    headings = [_heading_step(h, request.query) for h in _headings(request)][: min(HEADING_STEPS, max(0, room))]
    steps = _distinct([*steps, *headings])
    for part in others:
        if len(steps) < LEAST_STEPS:
            steps = _distinct([*steps, _step(part, request.query)])
    steps = steps[: request.max_steps]
    return PlanAnswer(
        plan_title=_plan_title(request.query),
        steps=[step.model_copy(update={"step_id": number}) for number, step in enumerate(steps, 1)],
    )


def _plan_title(query: str) -> str:
    """Return three to eight words that name the research."""
    parts = parts_of(query)
    only = [part for part in parts if part.essential] == parts[:1]
    title = nominal(query) if only and parts[0].title.startswith("How ") else parts[0].topic
    title = re.sub(r"^(?:an?|the)\s+(?=\S)", "", title.rstrip("?"), flags=re.IGNORECASE)
    if len(title.split()) > TITLE_WORDS or _ASKED.match(title):
        title = _compact(title)
    return capitalized(shorten(title, TITLE_WORDS, least=LEAST_TITLE_WORDS)) or "Research"


def _compact(title: str) -> str:
    """Return a long title without its small words where that makes it fit, and without the word that asks."""
    words = title.split()
    if words[0].capitalize() in _ASKING:
        subject = subject_of(title)
        words = subject.split() if len(key_terms(subject)) > 1 else keywords(title)
    if len(words) > TITLE_WORDS:
        words = [word for word in words if word.lower() not in ("a", "an", "the")]
    return " ".join(words)


def _step(part: Part, query: str) -> PlannedStep:
    return PlannedStep(
        step_id=0,
        title=part.title or query.strip(),
        description=part.description,
        queries=_queries([*part.queries, part.title, *([query] if len(keywords(query)) <= QUERY_WORDS else [])]),
        priority=Priority.high if part.essential else Priority.medium,
    )


def _fitting(steps: list[PlannedStep], room: int) -> list[PlannedStep]:
    """Return the steps, those that there is no room for put together in the last one."""
    if len(steps) <= room:
        return steps
    last = steps[room - 1 :]
    joined = last[0].model_copy(
        update={
            "title": clip("; ".join(step.title for step in last), TITLE_WORDS * 3),
            "description": " ".join(step.description for step in last),
            "queries": _queries([step.queries[0] for step in last if step.queries]),
        }
    )
    return [*steps[: room - 1], joined]


def _queries(texts: list[str]) -> list[str]:
    """Return two or three queries of two words or more, each different from the others as a set of terms."""
    queries: list[str] = []
    seen: set[frozenset[str]] = set()
    for text in texts:
        words = keywords(text)[:QUERY_WORDS]
        query = " ".join(words)
        found = frozenset(terms(query))
        if found not in seen and (len(words) >= 2 or (len(query) >= 4 and not query.isascii())):
            seen.add(found)
            queries.append(query[:380])
    return queries[:QUERIES]


def _headings(request: PlanRequest) -> list[_Heading]:
    """Return the documents' titles and headings that share the question's terms, the closest first."""
    found = list(dict.fromkeys(h for document in request.documents for h in _headings_of(document)))
    wanted = topic_terms(request.query)
    weights = with_related(dict.fromkeys(wanted, 1.0))
    for term in agent_terms(request.query):
        weights[term] = 0.0  # "Python" in "How does Python ..." is where to look, not what for
    frequency = Counter(term for heading in found for term in set(terms(heading.text)))
    total = sum(weights[term] for term in wanted)
    rated: list[tuple[float, int]] = []
    close: dict[str, float] = {}  # documents that are about the query as a whole, with their scores
    for order, heading in enumerate(found):
        held = {term for term in terms(heading.text) if weights.get(term)}
        under = {term for term in terms(heading.document) if weights.get(term)} - held
        score = sum(weights[term] / (1 + math.log(1 + frequency[term])) for term in sorted(held)) + UNDER * len(under)
        own = set(key_terms(heading.text))
        if own <= set(wanted):
            continue  # it repeats the question
        weight = sum(weights[term] for term in sorted(held | under))
        if not any(frequency[term] <= COMMON for term in held) or weight < ENOUGH * total:
            held = set()  # what many headings share tells none of them from the others
        if held and (len(held | under) >= 2 or (len(wanted) <= FEW and len(held) * 2 >= len(own))):
            whole = heading.text == heading.document
            rated.append((-score * (TITLE_BONUS if whole else 1.0), order))
            if whole and sum(weights[term] for term in sorted(held)) >= ON_IT * total:
                close[heading.document] = score
        elif heading.document in close:  # its best heading comes first, whatever its words
            rated.append((-INSIDE * close.pop(heading.document), order))
    return [found[order] for score, order in sorted(rated) if score <= min(rated)[0] / 2]


def _headings_of(document: Document) -> Iterator[_Heading]:
    for text in [document.title, *document.headings]:
        plain = _NUMBERING.sub("", " ".join(text.split())).strip(" #*=.:")
        if len(plain.split()) <= STEP_WORDS and key_terms(plain) and plain.lower() not in _APPARATUS:
            yield _Heading(plain, " ".join(document.title.split()))


def _heading_step(heading: _Heading, query: str) -> PlannedStep:
    inside = f" in “{heading.document}”" if heading.document != heading.text else ""
    rest = [word for word in keywords(query) if not set(terms(word)) <= set(terms(heading.text))]
    return PlannedStep(
        step_id=0,
        title=capitalized(heading.text),
        description=f"Read what “{heading.text}”{inside} says on the question: {strip_lead(query)[:QUESTION_CHARS]}?",
        queries=_queries([f"{heading.text} {' '.join(rest[:3])}", f"{heading.document} {heading.text}", query]),
    )


def _distinct(steps: list[PlannedStep]) -> list[PlannedStep]:
    """Return the steps without those that repeat an earlier one's title or name nothing to search for."""
    kept: list[PlannedStep] = []
    for step in steps:
        # What the question itself names is left out less easily.
        alike = 1.0 if step.priority is Priority.high else SAME
        if not any(_likeness(step.title, other.title) >= alike for other in kept):
            kept.append(step)
    return kept


def _likeness(a: str, b: str) -> float:
    first, second = set(key_terms(a)), set(key_terms(b))
    return len(first & second) / (len(first | second) or 1)
