"""Which tools a step is offered, which stand in for one that failed, and which are left alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.secrets import Scrubber
from fathom.extractive.researcher import decide
from fathom.models import PlanStep, ToolCall, ToolFailure, ToolOutput, ToolResult
from fathom.roles import PLANNER, PlanRequest, ResearchRequest
from fathom.roles.planner import PlanAnswer, PlannedStep
from fathom.tools.base import Tool
from fathom.tools.toolbox import MOST_FAILURES, STAND_INS, Toolbox, domains_of, fitting, resting, stand_ins

DOMAINS = ("science", "medicine", "software", "companies", "facts")


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("What do recent studies say about dark matter in dwarf galaxies?", "science"),
        ("Welche Studien gibt es zum Klima der Alpen?", "science"),
        ("Quelles études de physique décrivent la supraconductivité ?", "science"),
        ("Which side effects does the drug have in older patients?", "medicine"),
        ("Nebenwirkungen von Impfstoffen bei Patienten", "medicine"),
        ("糖尿病的治疗方法", "medicine"),
        ("Why does asyncio raise this exception in Python 3.13?", "software"),
        ("Quel dépôt contient le code source du logiciel ?", "software"),
        ("Revenue and earnings of the largest chip companies in fiscal year 2024", "companies"),
        ("What does the 10-K of the firm say?", "companies"),
        ("Umsatz und Gewinn des Konzerns im letzten Quartal", "companies"),
        ("Who founded the town, and how many inhabitants does it have?", "facts"),
        ("Wie viele Einwohner hat die Hauptstadt von Island?", "facts"),
        ("¿Cuál es la capital y la población del país?", "facts"),
    ],
)
def test_words_of_a_domain_lead_to_it_in_several_languages(text: str, domain: str) -> None:
    assert domain in domains_of(text, DOMAINS)


def test_a_domain_of_ones_own_is_a_word_to_look_for() -> None:
    assert domains_of("Which maritime law binds lighthouses?", ["maritime law", "lighthouse", "family law"]) == {
        "maritime law",
        "lighthouse",
    }


declared = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4), st.lists(st.sampled_from(DOMAINS), unique=True), max_size=6
)


@given(declared, st.text(max_size=80))
def test_whatever_is_asked_each_fitting_tool_is_offered_once(tools: dict[str, list[str]], text: str) -> None:
    offered = fitting(tools, text)
    assert offered == fitting(tools, text)
    assert len(set(offered)) == len(offered)
    assert bool(offered) == bool(tools)
    general = [name for name, domains in tools.items() if not domains]
    assert offered[: len(general)] == general
    about = domains_of(text, DOMAINS) & {domain for domains in tools.values() for domain in domains}
    assert {*offered} - {*general} == {name for name, own in tools.items() if own and (not about or about & set(own))}


def test_the_closest_is_offered_first_and_for_anything_else_the_broadest() -> None:
    tools = {"code": ["software"], "all": DOMAINS, "life": ["medicine", "science"], "any": [], "health": ["medicine"]}
    assert fitting(tools, "Which patients need the drug?") == ["any", "health", "life", "all"]
    assert fitting(tools, "The best pasta") == ["any", "all", "life", "code", "health"]


@given(declared, st.lists(st.sampled_from(DOMAINS), unique=True))
def test_only_what_shares_a_domain_or_searches_the_web_stands_in(others: dict[str, list[str]], own: list[str]) -> None:
    found = stand_ins(own, {**others, "web_search": []})
    assert found[-1:] == (["web_search"] if own else [])
    assert len(found) <= STAND_INS
    assert all(set(others[name]) & set(own) for name in found[:-1])


def test_the_closest_stands_in_first() -> None:
    others = {
        "documents": (),
        "web_search": (),
        "broad": ("science", "medicine", "facts"),
        "near": ("science",),
        "far": ("software",),
    }
    assert stand_ins(("science",), others) == ["near", "broad", "web_search"]


def result(tool: str, *, failed: bool) -> ToolResult:
    call = ToolCall(tool=tool, input="x")
    failures = [ToolFailure(code="E3004", message="down")] if failed else []
    return ToolResult(call=call, artifact_file="" if failed else "a.json", failures=failures)


def test_a_tool_rests_after_failures_in_a_row_and_not_after_some_in_all() -> None:
    down, up = result("a", failed=True), result("a", failed=False)
    assert resting([down] * MOST_FAILURES) == {"a"}
    assert resting([down, up] * MOST_FAILURES) == set()
    assert resting([down, result("b", failed=False), down]) == {"a"}


class Named(Tool):
    """A tool of a name and domains, which nothing calls."""

    searches = True

    def __init__(self, name: str, domains: Sequence[str] = (), *, searches: bool = True) -> None:
        self.name, self.domains, self.searches, self.description = name, tuple(domains), searches, f"What {name} is."

    async def run(self, tool_input: str) -> ToolOutput:
        raise NotImplementedError


BOX = Toolbox(
    [
        Named("documents"),
        Named("web_search"),
        Named("papers", ["science"]),
        Named("code", ["software"]),
        Named("grep", searches=False),
    ],
    scrubber=Scrubber([]),
)


def step(description: str, tools: Sequence[str] = ()) -> PlanStep:
    return PlanStep(step_id=1, title="A step", description=description, queries=["some words"], tools=list(tools))


def test_a_step_is_offered_what_the_plan_names_else_what_fits_else_everything() -> None:
    def offered(step: PlanStep, query: str = "What is known?", resting: Sequence[str] = ()) -> list[str]:
        return list(BOX.for_step(step, query, resting))

    assert offered(step("Find studies.")) == ["documents", "web_search", "papers", "grep"]
    assert offered(step("Look around."), "Which repository has it?") == ["documents", "web_search", "code", "grep"]
    assert offered(step("Look around.")) == ["documents", "web_search", "papers", "code", "grep"]
    assert offered(step("Find studies.", ["code", "no_such_tool"])) == ["code", "grep"]
    assert offered(step("Find studies."), resting=["papers", "web_search"]) == ["documents", "grep"]
    everything = ["documents", "web_search", "papers", "code"]
    assert offered(step("Find studies.", ["code"]), resting=["code"]) == ["documents", "web_search", "papers", "grep"]
    assert offered(step("Find studies.", ["code"]), resting=everything) == [*everything, "grep"]
    assert BOX.route(step("Find studies.", ["code"]), "Why?") == (["code"], "the plan names them")
    assert BOX.route(step("Find studies."), "Why?").why == "they fit the words of the step and the question"
    assert BOX.route(step("Find studies."), "Why?", everything).why == "every tool has failed"


@pytest.mark.parametrize("step_id", range(1, 6))
def test_without_a_model_documents_come_first_and_the_others_take_turns(step_id: int) -> None:
    names = ["documents", "web_search", "papers", "code"]
    request = ResearchRequest(
        query="q",
        today="2026-01-01",
        step=step("Find it.").model_copy(update={"step_id": step_id}),
        breadth=2,
        tools=dict.fromkeys(names, ""),
        searching=names,
        notes=[],
        tried=[],
    )
    first, second = decide(request).calls
    assert (first.tool, second.tool) == ("documents", names[1 + (ord(str(step_id)) % 3)])


def test_the_planner_may_name_tools_only_where_there_is_a_choice() -> None:
    planned = PlannedStep(step_id=1, title="A", description="B", tools=["papers", "telescope"])
    answer = PlanAnswer(plan_title="T", steps=[planned])
    without = PlanRequest(query="q", today="2026-01-01", max_steps=3, tools={"web_search": "Searches."})
    choosing = without.model_copy(update={"searching": ["web_search", "papers"]})
    assert PLANNER.schema
    assert "tools" not in PLANNER.schema(without)["$defs"]["PlannedStep"]["properties"]
    named = PLANNER.schema(choosing)["$defs"]["PlannedStep"]["properties"]["tools"]
    assert named["items"]["enum"] == ["web_search", "papers"]
    assert PLANNER.normalize(choosing, answer).plan().steps[0].tools == ["papers"]
    assert PLANNER.normalize(without, answer).plan().steps[0].tools == []
    assert "searching" not in without.model_dump()
