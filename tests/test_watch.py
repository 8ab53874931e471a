"""What a person sees of a run while it works: names for all that takes time, in the lines that there are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from fathom.config.groups import Budget
from fathom.interfaces.cli.progress import RunWatcher
from fathom.models import Account, Plan, PlanStep, StepStatus
from fathom.telemetry.progress import Event, doing, listen, publish
from tests.inprocess import QUERY, investigated
from tests.stubs import Stubs


def drawn(events: list[Event], width: int = 80, height: int = 24) -> list[str]:
    """Return the lines of the live view after some events."""
    watch = RunWatcher()
    for event in events:
        watch(event)
    screen = io.StringIO()
    watch.console = Console(file=screen, width=width, height=height, force_terminal=True, no_color=True)
    watch.console.print(watch)
    return [line.rstrip() for line in Text.from_ansi(screen.getvalue()).plain.splitlines()]


def planned(steps: int, done: int) -> Event:
    statuses = [StepStatus.done] * done + [StepStatus.todo] * (steps - done)
    plan = [
        PlanStep(step_id=n, title=f"A rather long title of step {n}, " * 4, description="d", status=status)
        for n, status in enumerate(statuses, 1)
    ]
    return Event("plan", plan=Plan(plan_title="P", steps=plan))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 9), (40, 12), (120, 50)])
def test_the_live_view_fits_into_the_terminal(width: int, height: int) -> None:
    spent = Account(usd=1.25, tokens=1_234_567, calls=123, seconds=75)
    events = [
        Event("phase", "researching, round 1 of at most 3"),
        planned(30, 11),
        Event("step", "12. x", step_id="12", status=StepStatus.in_progress),
        *(Event("begin", f"web_search: a long query {n} " * 5, key=n) for n in range(9)),
        *(Event("begin", "asking openai/stub (compressor)", key=n) for n in range(20, 23)),
        Event("tool", "web_search: q", sources=("Sa", "Sb")),
        Event("spent", spent=spent, caps=Budget(max_usd=5, max_seconds=600)),
    ]
    lines = drawn(events, width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert any("researching, round 1" in line for line in lines)
    if height > 12:
        assert any(line.startswith("  ◐ 12. ") for line in lines)
        assert any(line.startswith("  ○ 13. ") for line in lines)  # of the same wave, and not begun
        assert any("more steps" in line for line in lines)
        assert any("and 7 more" in line for line in lines)
    used = " ".join(lines)
    assert "1 tool call · 2 sources" in used
    assert "123 of 500 model calls" in used
    assert "$1.2500 of $5.00" in used
    assert "1:15 of 10:00" in used


def test_what_is_done_at_once_is_shown_until_it_ends() -> None:
    events: list[Event] = []
    with listen(events.append):
        with doing("fetch: a"), doing("asking openai/stub (critic)"), doing("asking openai/stub (critic)"):
            shown = drawn(events)
        publish(Event("phase", "judging"))
    assert shown[1:3] == ["    fetch: a", "    asking openai/stub (critic) × 2"]
    assert len(drawn(events)) == 2


async def test_every_phase_of_a_run_is_named_with_its_counts(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.section = "Tides rise and fall twice a day. [ID]"
    providers.settings.verdicts = {"Tides": "supported"}
    events: list[Event] = []
    with listen(events.append):
        result = await investigated(tmp_path, QUERY, profile="quick", report={"judge": "always"})
    phases = [event.message for event in events if event.kind == "phase"]
    assert phases[:2] == ["planning", "researching, round 1 of at most 1"]
    sources = len({source for event in events for source in event.sources})
    assert phases[2:4] == [f"rating the quality of {sources} sources", "choosing the sections of the report"]
    assert [phase.split(":")[0] for phase in phases[4:-1]] == [
        *(f"writing section {n} of 4" for n in (1, 2, 3)),
        "asking the model whether the sources support 3 claims",
        "writing section 4 of 4",
        "checking 4 claims against the sources",
    ], "the summary is written when the other sections were judged, and what it says as they do is judged once"
    assert phases[-1] == "saving the report"
    began, ended = ([event.key for event in events if event.kind == kind] for kind in ("begin", "end"))
    assert sorted(began) == sorted(ended)
    assert sum(event.kind == "tool" for event in events) == result.metrics.tool_calls
    assert result.metrics.account
    assert [e.spent.calls for e in events if e.spent][-1] == result.metrics.account.calls


def test_a_pipe_gets_lines_and_quiet_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    events = [planned(3, 1), Event("phase", "checking 27 claims"), Event("warning", "look \x1b[31mout")]
    for quiet in (False, True):
        with RunWatcher(quiet=quiet) as watch:
            for event in events:
                watch(event)
        lines = capsys.readouterr().err.splitlines()
        assert [line[10:] for line in lines] == ([] if quiet else ["checking 27 claims", "warning: look  [31mout"])
