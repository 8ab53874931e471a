"""The plan as a checklist: its order in every wave, and the steps that found nothing and come back."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fathom.config.groups import Execution
from fathom.interfaces.page.rendering import templates
from fathom.models import Ending, Plan, PlanStep, Priority, Reflection, Remark, StepStatus
from fathom.run.checklist import next_steps, waves, within
from fathom.storage.names import artifact_name
from tests.conftest import FathomCLI
from tests.inprocess import investigated
from tests.stubs import Stubs

QUERY = "How much water do the lakes of the north hold?"
REMARK = Remark(text="look at the 2025 figures too", author="ann", at="2026-11-23T08:00:00+00:00")


def step(
    step_id: str | int, priority: str = "medium", depends_on: list[str | int] | None = None, **more: Any
) -> PlanStep:
    title = str(more.pop("title", f"Step {step_id}"))
    return PlanStep(
        step_id=step_id,
        title=title,
        description="Find it.",
        priority=Priority(priority),
        depends_on=depends_on or [],
        **more,
    )


def ids(groups: list[list[PlanStep]]) -> list[list[str | int]]:
    return [[step.step_id for step in group] for group in groups]


def test_important_steps_come_first_and_after_what_they_need() -> None:
    steps = [step(1, "low"), step(2), step(3, "high", [1]), step(4, "high")]
    assert ids(waves(steps, Execution.sequential, 8)) == [[1], [3], [4], [2]]
    assert ids(waves(steps, Execution.parallel, 8)) == [[1, 4, 2], [3]]
    assert ids(waves(steps, Execution.parallel, 2)) == [[1, 4], [3, 2]]
    assert [s.step_id for s in within(Plan(plan_title="P", steps=steps), 3).steps] == [1, 3, 4]


@given(
    st.lists(st.tuples(st.sampled_from([*Priority]), st.sets(st.integers(1, 7), max_size=3)), min_size=1, max_size=7)
)
def test_every_step_is_taken_once_and_none_before_what_it_needs(drawn: list[tuple[Priority, set[int]]]) -> None:
    steps = [
        step(number, priority.value, [needed for needed in sorted(before) if needed < number])
        for number, (priority, before) in enumerate(drawn, 1)
    ]
    for execution in Execution:
        order = [s for group in waves(steps, execution, 8) for s in group]
        assert sorted(s.step_id for s in order) == [s.step_id for s in steps]
        place = {s.step_id: n for n, s in enumerate(order)}
        assert all(place[needed] < place[s.step_id] for s in steps for needed in s.depends_on)
    for first, second in pairwise(
        waves([s.model_copy(update={"depends_on": []}) for s in steps], Execution.sequential, 8)
    ):
        assert [*Priority].index(first[0].priority) <= [*Priority].index(second[0].priority)


def following(
    plan: Plan, proposed: list[PlanStep], remarks: list[Remark] | None = None, most: int = 5
) -> list[PlanStep]:
    reflection = Reflection(sufficiency_score=4, follow_up_steps=proposed)
    evident = {str(s.step_id) for s in plan.steps if s.status is StepStatus.done}
    return next_steps(plan, reflection, remarks or [], evident=evident, query=QUERY, round_number=1, most=most)


def test_a_blocked_step_comes_back_once_with_broader_queries() -> None:
    blocked = step(
        2,
        title="Water volume of northern glacier lakes",
        status="blocked",
        queries=["northern glacier lakes volume 1997"],
    )
    plan = Plan(plan_title="P", steps=[step(1, status="done"), blocked])
    (again,) = following(plan, [])
    assert (again.step_id, again.retries, again.title) == ("R2_1", 2, "Water volume of northern glacier lakes (again)")
    assert again.queries
    assert all(1 < len(query.split()) <= 3 for query in again.queries)
    assert artifact_name("p", again.step_id, again.title, "documents", 1, "json").startswith("p__stepr2_1_")
    after = plan.model_copy(update={"steps": [*plan.steps, again.model_copy(update={"status": StepStatus.blocked})]})
    assert after.state_of(blocked) == "blocked, tried again below"
    assert following(after, []) == []


def test_a_proposal_of_the_critic_stands_for_the_blocked_step() -> None:
    plan = Plan(plan_title="P", steps=[step(1, title="Causes of the flood", status="blocked"), step(2, status="done")])
    named = step("R2_1", title="Why the water rose", retries=1)
    told = step("R2_1", title="What caused floods", queries=["flood causes"])
    assert [s.retries for s in following(plan, [named])] == [1]
    assert [s.retries for s in following(plan, [told])] == [1]
    lakes = Plan(plan_title="P", steps=[step(1, title="Effects on the lakes of the north", status="blocked")])
    near = step("R2_1", title="Critics on the lakes of the north")  # of which only the subject is the same
    assert [s.retries for s in following(lakes, [near])] == ["", 1]
    other = step("R2_1", title="Prices of houses", retries=2)  # which is not blocked
    assert [(s.title, s.retries) for s in following(plan, [other])] == [
        ("Prices of houses", ""),
        ("Causes of the flood (again)", 1),
    ]
    assert [s.step_id for s in following(plan, [step("R2_1", "high"), step("R2_2", "low")], most=2)] == ["R2_1", "R2_2"]


def test_a_remark_has_a_step_even_if_the_critic_proposes_none() -> None:
    plan = Plan(plan_title="P", steps=[step(1, status="done")])
    (asked,) = following(plan, [], [REMARK])
    assert (asked.queries, asked.priority) == ([REMARK.text], Priority.high)


async def test_a_step_that_found_nothing_is_tried_again_with_a_model(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.noise = "causes (figures|evidence)"
    providers.settings.score, providers.settings.follow_ups = 5, 0
    result = await investigated(tmp_path)
    steps = json.loads(Path(result.artifacts, "plan.json").read_text())["steps"]
    assert [(s["step_id"], s["status"]) for s in steps] == [(1, "blocked"), (2, "done"), (3, "done"), ("R2_1", "done")]
    assert steps[-1]["retries"] == 1
    assert result.status is Ending.complete, result.reason
    report = Path(str(result.report)).read_text()
    assert "Not found" not in report
    assert any("__stepr2_1_" in path.name for path in Path(result.artifacts).iterdir())


async def test_a_step_that_is_answered_in_part_is_shown_as_done_nowhere(
    providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    providers.settings.partly, providers.settings.follow_ups = ("2",), 0
    result = await investigated(tmp_path)
    plan = Plan.model_validate_json(Path(result.artifacts, "plan.json").read_bytes())
    assert [step.status.value for step in plan.steps] == ["done", "in_progress", "done"]
    rows = json.loads(Path(result.artifacts, "report.json").read_bytes())["coverage"]
    assert [row["status"] for row in rows] == ["done", "in_progress", "done"]
    page = str(templates().get_template("parts.html.j2").module.checklist(plan))  # type: ignore[attr-defined]
    shown = fathom_cli(["show", result.run_id[:8], "--artifacts", str(tmp_path)]).stdout.partition("\n\n")[2]
    for text in (page, shown, Path(str(result.report)).read_text()):
        assert text.count("answered in part") == 1
        assert "in progress" not in text
    page = str(templates().get_template("parts.html.j2").module.checklist(plan, {"3"}))  # type: ignore[attr-defined]
    assert re.findall('class="facts">(.*?)<', page) == ["done", "answered in part", "in progress"]


async def test_a_step_that_found_nothing_is_tried_again_without_a_model(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "lakes.md").write_text(
        "# Lakes of the north\n\nThe lakes of the north hold 40 cubic kilometres of water.\n"
    )
    result = await investigated(
        tmp_path / "store", "Compare the lakes of the north with zorgonian basins", model=None, docs=[str(docs)]
    )
    steps = json.loads(Path(result.artifacts, "plan.json").read_text())["steps"]
    blocked = [s for s in steps if s["status"] == "blocked" and not s.get("retries")]
    assert blocked
    assert {s["retries"] for s in steps if s.get("retries")} == {s["step_id"] for s in blocked}
