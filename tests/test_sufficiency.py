"""A run whose evidence a critic found too thin says so: in its ending, in the answer, and to whoever shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fathom.interfaces.cli.printing import show_summary
from fathom.models import Ending, Note, Report, StepOutcome, Usage, insufficiency
from fathom.models.plan import REASON_CHARS, Plan, PlanStep, Reflection
from fathom.report.answer import answer_of
from fathom.run.checklist import Reason
from fathom.run.state import ResearchState
from tests.inprocess import investigated
from tests.stubs import Stubs

NOTE = Note(
    step_id=1,
    summary_title="T",
    summary="S",
    extraction=[],
    is_useful=True,
    artifact_file="a",
    source_ids=[],
)

pytestmark = pytest.mark.usefixtures("home")


def report_in(folder: str) -> Report:
    return Report.model_validate_json(Path(folder, "report.json").read_bytes())


async def test_a_run_that_ends_on_thin_evidence_is_degraded_and_says_why(
    providers: Stubs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    providers.settings.page_bytes = 2_000
    providers.settings.score, providers.settings.follow_ups = 3, 0
    result = await investigated(tmp_path)
    thin = "the evidence was judged 3 of 10, where 8 suffices: "
    assert (result.status, result.status.exit_code) == (Ending.degraded, 0)
    assert result.reason.startswith(thin)
    assert result.stop == Reason.no_follow_up.value
    report = report_in(result.artifacts)
    assert (report.sufficiency, report.wanted_sufficiency, report.stop) == (3, 8, result.stop)
    answer = answer_of(report)
    assert answer
    assert answer.sure == "low"
    assert thin + report.sufficiency_reason.rstrip(".") in answer.why
    said = Path(result.artifacts, "report.md").read_text(encoding="utf-8")
    assert said.index("judged 3 of 10") < said.index("\n## ", said.index("## Answer") + 1)
    assert f"Research ended because {result.stop}." in said
    assert "- The run is degraded: the evidence was judged 3 of 10" in said
    assert f"Research ended because {result.stop}." in Path(result.artifacts, "report.html").read_text(encoding="utf-8")
    show_summary(result)
    shown = capsys.readouterr().out
    assert "degraded: the evidence was judged 3 of 10" in shown
    assert f"research ended because {result.stop}" in shown


@pytest.mark.parametrize(
    ("chosen", "score", "stop"),
    [
        ({}, 9, Reason.sufficient),
        ({"sufficiency": 3}, 3, Reason.sufficient),
        ({"profile": "quick"}, 3, Reason.depth),  # which asks no critic
        ({"role_models": {"critic": {"model": "extractive"}}, "depth": 2}, 3, None),  # whose score is a rule of thumb
    ],
)
async def test_a_run_that_no_model_found_too_thin_is_complete(
    providers: Stubs, tmp_path: Path, chosen: dict[str, Any], score: int, stop: Reason | None
) -> None:
    providers.settings.page_bytes = 2_000
    providers.settings.score, providers.settings.follow_ups = score, 0
    result = await investigated(tmp_path, **chosen)
    assert (result.status, result.reason) == (Ending.complete, "")
    assert result.stop in ([stop.value] if stop else [reason.value for reason in Reason])
    report = report_in(result.artifacts)
    assert report.sufficiency == (score if stop is Reason.sufficient else 0)


def test_only_a_model_s_judgement_of_all_notes_counts() -> None:
    step = PlanStep(step_id=1, title="Tides", description="Look.")
    run = ResearchState(Plan(plan_title="Tides", steps=[step]), Usage(), sufficiency=8)
    run.reflect(Reflection(sufficiency_score=3, reasoning="No figures."), Usage(llm_calls=1))
    assert "judged 3 of 10, where 8 suffices: No figures" in run.ending()[1]
    run.reflect(Reflection(sufficiency_score=3), Usage(llm_calls=1, fallbacks=["critic: answered without the model"]))
    assert "judged" not in run.ending()[1]
    run.reflect(Reflection(sufficiency_score=8), Usage(llm_calls=1))
    assert "judged" not in run.ending()[1]
    run.reflect(Reflection(sufficiency_score=3), Usage(llm_calls=1))
    run.learn(StepOutcome(step_id=1, notes=[], calls=[], usage={}))
    assert "judged 3 of 10" in run.ending()[1]
    run.learn(StepOutcome(step_id=1, notes=[NOTE], calls=[], usage={}, cut=True))
    status, reason = run.ending()
    assert (status, "judged" in reason) == (Ending.degraded, False), "what was found then was not judged"
    assert reason.startswith("E1001 the budget ended the research early")


def test_a_critic_s_reason_is_kept_short_and_on_one_line() -> None:
    said = insufficiency(3, 8, "None of it\nis dated. " * 100)
    assert "\n" not in said
    assert len(said) < REASON_CHARS + 60
    assert said.endswith("…")
    assert insufficiency(7, 8, "") == "the evidence was judged 7 of 10, where 8 suffices"
    assert insufficiency(8, 8, "All is there.") == insufficiency(0, 8, "") == ""


async def test_what_the_evidence_covers_stands_in_the_report(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.page_bytes, providers.settings.score, providers.settings.follow_ups = 2_000, 9, 0
    gap = {
        "description": "The height at night.",
        "severity": "minor",
        "suggested_query": "tides at night",
        "step_id": 2,
    }
    providers.settings.critique = {
        "coverage": {
            "perspectives": ["probe builders", "astronomers [S0a0a0a]"],
            "perspectives_missing": ["sailors"],
            "period": "2004-2017",
            "regions": ["Titan"],
        },
        "gaps": [gap, {**gap, "description": "The name of the largest sea.", "step_id": 77}],
        "contradictions": [
            {"claim_a": "It is 4 m.", "claim_b": "It is 5 m.", "resolution": "one is from 2004, the other from 2017"}
        ],
    }
    result = await investigated(tmp_path)
    report = report_in(result.artifacts)
    assert [step.missing for step in report.coverage] == [[], ["The height at night"], []], "no step has the id 77"
    assert {step.confidence for step in report.coverage} == {"low"}, "its pages are on unknown sites, without authors"
    notes = json.loads(Path(result.artifacts, "notes.json").read_bytes())
    assert {note["confidence"] for note in notes} == {"low"}
    covers = "The evidence covers the view of probe builders and astronomers; the time 2004-2017; the"
    for name in ("report.md", "report.html"):
        said = Path(result.artifacts, name).read_text(encoding="utf-8")
        for part in (
            f"{covers} places Titan.",
            "done, with gaps",
            "No source was found for the view of: sailors.",
            "One is from 2004, the other from 2017.",
        ):
            assert part in said, (name, part)
    (event,) = (
        json.loads(line)
        for line in Path(result.artifacts, "audit.jsonl").read_text(encoding="utf-8").splitlines()
        if '"reflection_completed"' in line
    )
    assert (event["details"]["recommendation"], event["details"]["coverage"]["regions"]) == ("proceed", ["Titan"])
    (outline,) = providers.calls("outline")
    assert (
        "- It is 4 m. / It is 5 m. (one is from 2004, the other from 2017)" in outline.body["messages"][-1]["content"]
    )


def test_a_reflection_recommends_to_write_to_look_again_or_to_stop() -> None:
    step = PlanStep(step_id="R2_1", title="Tides", description="Look.")
    advice = [
        Reflection(sufficiency_score=score, follow_up_steps=steps).recommendation(8)
        for score, steps in ((8, [step]), (7, [step]), (7, []))
    ]
    assert advice == ["proceed", "iterate", "stop"]
