"""Deciding without a model: the step's own queries first, one broader query if they brought nothing."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.extractive.questions import families, keywords
from fathom.models import Note
from fathom.roles import ResearchAnswer, ResearchRequest
from fathom.roles.researcher import ToolCallAnswer
from fathom.text.terms import terms
from fathom.text.urls import urls_in


def decide(request: ResearchRequest) -> ResearchAnswer:
    """Return the next calls, or that the step is done."""
    tools = [name for name in request.searching if name in request.step.tools] or request.searching
    if len(tools) > request.breadth:  # steps begin with different tools, so that each tool has its turn
        fixed = tools[:1] if request.breadth > 1 else []  # the first is the closest at hand: the user's documents
        others = tools[len(fixed) :]
        first = sum(str(request.step.step_id).encode()) % len(others)
        tools = [*fixed, *others[first:], *others[:first]]
    tried = {(call.tool, _folded(call.input)) for call in request.tried}
    if not tried:
        return _answer(request, tools, request.step.queries or [_broad(request)], tried)
    own = [note for note in request.notes if str(request.step.step_id) in note.steps]
    if own and _holds(own, request.wanted):
        return ResearchAnswer(done=True)
    return _answer(request, tools, [*request.step.queries, _broad(request)], tried)


def _answer(
    request: ResearchRequest, tools: list[str], queries: list[str], tried: set[tuple[str, str]]
) -> ResearchAnswer:
    named = [("fetch", url) for url in urls_in(request.query)] if "fetch" in request.tools else []
    wanted = [*named, *((tool, query) for query in queries for tool in tools)]
    calls = [(tool, given) for tool, given in wanted if (tool, _folded(given)) not in tried]
    if not calls:
        return ResearchAnswer(done=True)
    return ResearchAnswer(calls=[ToolCallAnswer(tool=tool, input=given) for tool, given in calls[: request.breadth]])


def _holds(notes: Sequence[Note], wanted: Sequence[str]) -> bool:
    """Whether notes have a quotation with every word that is wanted, or one in its place."""
    needed = [family for word in wanted for family in families(terms(word))]
    quoted = (set(terms(text)) for note in notes for text, _ids in note.quotations())
    return not needed or any(all(said & family for family in needed) for said in quoted)


def _broad(request: ResearchRequest) -> str:
    """Return a query of the step's own words, or of the question's where the step has too few."""
    words = keywords(request.step.title)
    if len(words) < 2:
        words = list(dict.fromkeys([*words, *keywords(request.query)]))
    return " ".join(words[:6]) or request.query


def _folded(query: str) -> str:
    return " ".join(query.lower().split())
