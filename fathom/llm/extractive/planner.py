"""Planning without a model: the parts of the question, and what the local documents' headings offer on it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from fathom.llm.extractive.aspects import Part
from fathom.llm.extractive.grammar import agent_terms, nominal
from fathom.llm.extractive.questions import parts_of
from fathom.llm.extractive.wording import (
    capitalized,
    decapitalized,
    key_terms,
    keywords,
    shorten,
    topic_terms,
    with_related,
)
from fathom.models import Document, Priority
from fathom.roles import PlanAnswer, PlanRequest
from fathom.roles.planner import PlannedStep
from fathom.text import terms

__all__ = ["plan"]

TITLE_WORDS = 8
STEP_WORDS = 12
QUERY_WORDS = 8
QUERIES = 3
FEW = 4  # terms in a query, up to which one of them makes a short heading relevant
SAME = 0.85  # share of common terms from which two titles name the same thing
LEAST_STEPS = 3
UNDER = 0.3  # weight of a question's term in the document's title above a heading
TITLE_BONUS = 1.3  # a whole document on the matter goes before a heading in another
INSIDE = 0.9  # share of a document's score that its best section gets
HEADING_STEPS = 3  # most steps that follow a heading of the local documents
_ASKING = ("How ", "Why ", "When ", "Where ", "Which ", "Who ")
_APPARATUS = frozenset(("references", "notes", "see also", "external links", "further reading", "bibliography"))
_NUMBERING = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?[\dIVXA-Z]{0,3}(?:\.\d+)*\.?\s+(?=\S)", re.IGNORECASE
)


class _Heading(NamedTuple):
    text: str
    document: str


def plan(request: PlanRequest) -> PlanAnswer:
    """Return a plan: the question itself, its parts, then the documents and aspects that come closest to it."""
    parts = parts_of(request.query)
    core, others = [p for p in parts if p.essential], [p for p in parts if not p.essential]
    steps = [_step(part, request.query) for part in core]
    room = request.max_steps - len(steps)
    about = decapitalized(_plan_title(request.query), request.query)
    about = f"the {about}" if about.startswith(("difference ", "interaction ")) else about
    headings = [_heading_step(h, request.query, about) for h in _headings(request)][: min(HEADING_STEPS, max(0, room))]
    steps = _distinct([*steps, *headings])
    for part in others:
        if len(steps) < (2 if request.documents else LEAST_STEPS):
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
    if len(title.split()) > TITLE_WORDS and (title.endswith("?") or title.startswith(_ASKING)):  # cut, it says nothing
        title = " ".join(keywords(query))
    title = re.sub(r"^(?:an?|the)\s+(?=\S)", "", title, flags=re.IGNORECASE)
    return capitalized(shorten(title.rstrip("?"), TITLE_WORDS)) or "Research"


def _step(part: Part, query: str) -> PlannedStep:
    return PlannedStep(
        step_id=0,
        title=part.title or query.strip(),
        description=part.description,
        queries=_queries([*part.queries, part.title, query]),
        priority=Priority.high if part.essential else Priority.medium,
    )


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
    rated: list[tuple[float, int]] = []
    close: dict[str, float] = {}  # documents that are about the query as a whole, with their scores
    for order, heading in enumerate(found):
        held = {term for term in terms(heading.text) if weights.get(term)}
        under = {term for term in terms(heading.document) if weights.get(term)} - held
        score = sum(weights[term] / (1 + math.log(1 + frequency[term])) for term in sorted(held)) + UNDER * len(under)
        own = set(key_terms(heading.text))
        if own <= set(wanted):
            continue  # it repeats the question
        if held and (len(held | under) >= 2 or (len(wanted) <= FEW and len(held) * 2 >= len(own))):
            whole = heading.text == heading.document
            rated.append((-score * (TITLE_BONUS if whole else 1.0), order))
            if whole:
                close[heading.document] = score
        elif heading.document in close:  # its best heading comes first, whatever its words
            rated.append((-INSIDE * close.pop(heading.document), order))
    return [found[order] for score, order in sorted(rated) if score <= min(rated)[0] / 2]


def _headings_of(document: Document) -> Iterator[_Heading]:
    for text in [document.title, *document.headings]:
        plain = _NUMBERING.sub("", " ".join(text.split())).strip(" #*=.:")
        if len(plain.split()) <= STEP_WORDS and key_terms(plain) and plain.lower() not in _APPARATUS:
            yield _Heading(plain, " ".join(document.title.split()))


def _heading_step(heading: _Heading, query: str, about: str) -> PlannedStep:
    inside = f" in “{heading.document}”" if heading.document != heading.text else ""
    rest = [word for word in keywords(query) if not set(terms(word)) <= set(terms(heading.text))]
    return PlannedStep(
        step_id=0,
        title=capitalized(heading.text),
        description=f"Read what “{heading.text}”{inside} says about {about}.",
        queries=_queries([f"{heading.text} {' '.join(rest[:3])}", f"{heading.document} {heading.text}", query]),
    )


def _distinct(steps: list[PlannedStep]) -> list[PlannedStep]:
    """Return the steps without those that repeat an earlier one's title or name nothing to search for."""
    kept: list[PlannedStep] = []
    for step in steps:
        if not any(_same(step.title, other.title) for other in kept):
            kept.append(step)
    return kept


def _same(a: str, b: str) -> bool:
    first, second = set(key_terms(a)), set(key_terms(b))
    return len(first & second) >= SAME * len(first | second)
