"""The pure parts of the loop: when it stops, how a run ends, how citations are numbered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings, resolve
from fathom.evidence.claims import claims_of
from fathom.models import (
    Call,
    Gap,
    Note,
    Plan,
    PlanStep,
    Reflection,
    ReportSection,
    StepOutcome,
    StepStatus,
    ToolCall,
    ToolResult,
    Usage,
)
from fathom.report.assembly import next_steps
from fathom.run.checklist import Reason, decide
from fathom.run.state import ResearchState, Retrieved
from fathom.text.citations import cited_above_code, cited_ids, number_citations, with_known_ids
from fathom.text.plain import counted
from fathom.text.urls import canonical_url, source_ids
from fathom.text.wording import ENGLISH

FOLLOW_UP = [PlanStep(step_id="R2_1", title="More", description="Look for more.")]


@pytest.mark.parametrize(
    ("model", "score", "steps", "round_number", "new", "notes", "reason"),
    [
        ("openai/stub", 9, FOLLOW_UP, 1, 3, 3, Reason.sufficient),
        (None, 9, FOLLOW_UP, 1, 3, 3, Reason.worded),  # no model judged it: "May answer this" may stand above
        ("openai/stub", 9, FOLLOW_UP, 1, 0, 0, Reason.gaps),  # a score over nothing is no evidence
        ("openai/stub", 4, FOLLOW_UP, 1, 3, 3, Reason.gaps),
        ("openai/stub", 4, FOLLOW_UP, 3, 1, 9, Reason.depth),
        ("openai/stub", 4, [], 1, 3, 3, Reason.no_follow_up),
        ("openai/stub", 4, FOLLOW_UP, 2, 0, 3, Reason.nothing_new),
        ("openai/stub", 4, FOLLOW_UP, 2, 0, 0, Reason.no_evidence),
    ],
)
def test_each_stop_has_its_reason(
    model: str | None, score: int, steps: list[PlanStep], round_number: int, new: int, notes: int, reason: Reason
) -> None:
    decision = decide(
        resolve(ResearchSettings(model=model, depth=3, sufficiency=8), Environment.read({}), ["documents"]),
        round_number=round_number,
        reflection=Reflection(sufficiency_score=score),
        steps=steps,
        new_notes=new,
        notes=notes,
    )
    assert decision.reason is reason
    assert decision.go_on is (reason is Reason.gaps)


def test_no_step_is_left_in_progress_once_it_was_researched() -> None:
    steps = [PlanStep(step_id=n, title=f"Step {n}", description="Look.") for n in (1, 2, 3, 4)]
    run = ResearchState(Plan(plan_title="Tides", steps=steps), Usage(), sufficiency=8)
    for step in steps:
        run.mark(step.step_id, StepStatus.in_progress)
        note = Note(
            step_id=step.step_id,
            summary_title="T",
            summary="S",
            extraction=[],
            is_useful=True,
            artifact_file="a",
            source_ids=[],
        )
        run.learn(StepOutcome(step_id=step.step_id, notes=[note] if step.step_id != 4 else [], calls=[], usage={}))
    view = {
        "1": StepStatus.in_progress,  # by a rule of thumb, since no model was asked
        "2": StepStatus.blocked,
        "4": StepStatus.done,  # although nothing was found
    }
    run.reflect(Reflection(sufficiency_score=5, statuses=view), Usage())
    statuses = [step.status.value for step in run.plan.steps]
    assert statuses == ["done", "blocked", "done", "blocked"]


def researched(*, gaps: list[Gap]) -> ResearchState:
    """A run of one step that has searched for "Tides of  TITAN", and that a model has judged."""
    step = PlanStep(step_id=1, title="Tides", description="Look.")
    run = ResearchState(Plan(plan_title="Tides", steps=[step]), Usage(), sufficiency=8)
    note = Note(
        step_id=1, summary_title="T", summary="S", extraction=[], is_useful=True, artifact_file="a", source_ids=[]
    )
    searched = Call(result=ToolResult(call=ToolCall(tool="web_search", input="Tides of  TITAN")), useful=True)
    run.learn(StepOutcome(step_id=1, notes=[note], calls=[searched], usage={}))
    run.reflect(Reflection(sufficiency_score=9, statuses={"1": StepStatus.done}, gaps=gaps), Usage(llm_calls=1))
    return run


def test_no_query_is_proposed_that_was_sent() -> None:
    gaps = [
        Gap(description="Their height is unknown.", suggested_query="titan tides"),
        Gap(description="Their period is unknown.", suggested_query="period of tides on Titan"),
    ]
    assert next_steps(researched(gaps=gaps), ENGLISH) == [
        "Still open: Their height is unknown.",
        "Search for: period of tides on Titan",
    ]


def test_sources_rated_for_the_last_critic_are_rated_again_once_the_notes_are_others() -> None:
    """A remark while the critic judges brings another round, whose sources the report must know."""
    run = researched(gaps=[])
    run.retrieved = rated = Retrieved([], [], [])
    run.reflect(Reflection(sufficiency_score=5), Usage())
    assert run.retrieved is rated
    run.learn(StepOutcome(step_id=2, notes=[], calls=[], usage={}))
    assert run.retrieved is None
    run.retrieved = rated
    run.remember([])
    assert run.retrieved is None


def test_counts_have_their_nouns_in_the_right_number() -> None:
    assert [counted(n, "step") for n in (0, 1, 2, 1_200)] == ["0 steps", "1 step", "2 steps", "1,200 steps"]


@given(st.lists(st.sampled_from(["S0a0a0a", "S0b0b0b", "S0c0c0c0c", "Sffffff"]), max_size=12))
def test_no_citation_points_at_what_was_not_retrieved(ids: list[str]) -> None:
    known = {"S0a0a0a", "S0b0b0b", "S0c0c0c0c"}
    text = " ".join(f"Fact {n} [{i}]." for n, i in enumerate(ids)) + " See [S0a0a0a, Sffffff; S0b0b0b]."
    kept = with_known_ids(text, known)
    assert set(cited_ids(kept)) <= known
    numbered, order = number_citations([kept])
    assert order == cited_ids(kept)
    assert all(f"[{n}]" in numbered[0] for n in range(1, len(order) + 1))
    assert "S0" not in numbered[0]


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ("| a | b | [S0a0a0a]", "| a | b [S0a0a0a] |"),
        ("| a | b |\n[S0a0a0a; Sffffff; S0b0b0b]\n", "| a | b [S0a0a0a][S0b0b0b] |\n"),
        ("| a | | [S0a0a0a]\n| c | d [S0b0b0b] |", "| a | [S0a0a0a] |\n| c | d [S0b0b0b] |"),
        ("| a | b \\| c | [Sffffff]", "| a | b \\| c |"),
        ("a | b [S0a0a0a]", "a | b [S0a0a0a]"),
        ("| a | `b \\| c` |  [S0a0a0a].  ", "| a | `b \\| c` [S0a0a0a] |"),
        ("| a | b\n[S0a0a0a]", "| a | b [S0a0a0a]"),
        ("- | a | b | [S0a0a0a]", "- | a | b [S0a0a0a] |"),
        ("| a | b |\n\n[S0a0a0a] says so.", "| a | b |\n\n[S0a0a0a] says so."),
    ],
)
def test_what_is_cited_behind_or_below_a_row_is_in_its_last_cell(row: str, kept: str) -> None:
    assert with_known_ids(f"| A | B |\n|---|---|\n{row}", {"S0a0a0a", "S0b0b0b"}) == f"| A | B |\n|---|---|\n{kept}"


@pytest.mark.parametrize(
    ("draft", "kept"),
    [
        ("Do it:\n\n```sh\nrun\n```\n[S0a0a0a]\n\nThen", "Do it: [S0a0a0a]\n\n```sh\nrun\n```\n\nThen"),
        ("Do it: [S0a0a0a]\n```\nrun\n``` [S0a0a0a].\nThen", "Do it: [S0a0a0a]\n```\nrun\n```\nThen"),
        ("1. Do it:\n   ~~~\n   run\n   ~~~ [S0a0a0a]\nThen", "1. Do it: [S0a0a0a]\n   ~~~\n   run\n   ~~~\nThen"),
        ("### How\n\n```\nrun\n```[S0a0a0a]\n\nThen", "### How\n\n```\nrun\n```\n\n[S0a0a0a]\n\nThen"),
    ],
)
def test_what_is_cited_behind_code_is_at_the_line_above_and_what_follows_is_no_code(draft: str, kept: str) -> None:
    """A fence with a citation behind it closes nothing: what follows was taken for code, and not checked."""
    text = cited_above_code(with_known_ids(f"{draft} it stops at once. [S0a0a0a]", {"S0a0a0a"}))
    assert text == f"{kept} it stops at once. [S0a0a0a]"
    report = ReportSection(heading="How", markdown=text)
    assert "Then it stops at once." in [claim.sentence for claim in claims_of([report])]


def test_the_same_page_has_the_same_id_however_it_is_addressed() -> None:
    same = ["http://www.Example.org/a/?utm_source=x&b=2&a=1#top", "https://example.org/a?a=1&b=2"]
    assert len({canonical_url(url) for url in same}) == 1
    assert len(set(source_ids(same).values())) == 1
    assert len(set(source_ids(["https://example.org/a", "https://example.org/b"]).values())) == 2
