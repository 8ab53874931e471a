"""The researcher decides which tool calls come next for a step, or that the step is done."""

from __future__ import annotations

from collections.abc import Sequence
from operator import not_
from typing import Any

from pydantic import Field

from fathom.config.groups import Role
from fathom.models import PlanStep, ToolCall
from fathom.roles.base import Answer, Complaint, Remembering, RoleSpec, bounds
from fathom.text.citations import with_known_ids
from fathom.text.terms import any_holds, query_terms

BRIEF_TOKENS = 1_000
"""Maximum tokens of a step's brief."""
BRIEF_FROM = 3 * BRIEF_TOKENS
"""Tokens of a step's notes from which a brief costs less than it saves, if the notes would be read four times."""
_BRIEF_CHARS = 4 * BRIEF_TOKENS
QUERY_CHARS = 2_000
"""Maximum characters of a query of tables."""


class ResearchRequest(Remembering):
    """A step, the working memory, and the calls already made."""

    query: str
    today: str
    step: PlanStep
    breadth: int  # the maximum number of calls
    tools: dict[str, str]  # name -> description of the tool and its input
    searching: list[str]  # names of the tools that take a search query
    tried: list[ToolCall]  # calls already made for this step
    found_nothing: list[ToolCall] = Field([], exclude_if=not_)  # calls that brought nothing useful
    computing: list[str] = Field([], exclude_if=not_)  # names of the tools that take a query of tables
    refused: dict[str, str] = Field({}, exclude_if=not_)  # why queries of tables failed and how to mend them, by input
    last: bool = False  # whether this is the last decision for this step
    brief_tokens: int = Field(0, exclude_if=not_)  # tokens that the step's brief may have; 0: no brief is wanted
    wanted: list[str] = Field([], exclude_if=not_)  # of a follow-up: words that the earlier question did not have


class ToolCallAnswer(Answer):
    """One tool call."""

    tool: str = Field(description="Name of the tool.")
    input: str = Field(
        min_length=1, description="The tool's input, as its description says.", json_schema_extra=bounds(400)
    )


class ResearchAnswer(Answer):
    """The next tool calls."""

    done: bool = Field(False, description="True when the notes already answer this step; then there are no calls.")
    calls: list[ToolCallAnswer] = Field([], description="New calls to make now, the most promising first.")
    brief: str = Field(
        "", description="The brief of the step, if it is due now.", json_schema_extra=bounds(_BRIEF_CHARS)
    )


def _key(call: ToolCall | ToolCallAnswer) -> tuple[str, str]:
    return call.tool, " ".join(call.input.lower().split())


def _normalize(request: ResearchRequest, answer: ResearchAnswer) -> ResearchAnswer:
    """Drop repeated calls and calls beyond the breadth; the run's first call is the question if no call bears on it."""
    tried = {_key(call) for call in request.tried}
    new: dict[tuple[str, str], ToolCallAnswer] = {}
    for call in answer.calls:
        if call.input.strip() and _key(call) not in tried:
            new.setdefault(_key(call), call)
    calls = [] if answer.done and request.tried else list(new.values())
    begins = not request.tried and not request.notes
    if begins and calls and request.searching and not _on_topic(request, calls):
        calls = [ToolCallAnswer(tool=request.searching[0], input=request.query), *calls]
    calls = calls[: request.breadth]
    brief = with_known_ids(answer.brief.strip(), request.known) if request.last or not calls else ""
    return ResearchAnswer(done=answer.done and not calls, calls=calls, brief=brief)


def _on_topic(request: ResearchRequest, calls: Sequence[ToolCallAnswer]) -> bool:
    """Whether a call has words of the question, or of a step that has some; plans of small models may have none."""
    asked, title = set(query_terms(request.query)), set(query_terms(request.step.title))
    return any_holds(asked | title if asked & title else asked, (call.input for call in calls))


def _check(request: ResearchRequest, answer: ResearchAnswer) -> list[Complaint]:
    unknown = (call.tool for call in answer.calls if call.tool not in request.tools)
    names = ", ".join(request.tools)
    complaints = [Complaint(f"There is no tool {tool!r}; the tools are {names}.") for tool in unknown]
    if not answer.calls and not request.tried:
        complaints.append(Complaint("Nothing has been researched yet: make at least one call."))
    return complaints


def _schema(request: ResearchRequest) -> dict[str, Any]:
    schema = ResearchAnswer.new_schema()
    schema["$defs"]["ToolCallAnswer"]["properties"]["tool"]["enum"] = list(request.tools)
    if request.computing:
        schema["$defs"]["ToolCallAnswer"]["properties"]["input"] |= bounds(QUERY_CHARS)
    schema["properties"]["calls"] |= bounds(items=request.breadth)
    if not request.brief_tokens:
        del schema["properties"]["brief"]
    return schema


RESEARCHER = RoleSpec(
    "researcher", Role.researcher, ResearchRequest, ResearchAnswer, _normalize, _check, addresses=True, schema=_schema
)
