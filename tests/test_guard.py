"""The guard against regressions: which change of a count fails, and how commits are compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import checkouts
from benchmarks.compare import Series, differences, table
from benchmarks.guard import __main__ as guard
from benchmarks.guard.measurements import MEASUREMENTS
from benchmarks.guard.rules import BYTES, changes, verdict
from benchmarks.history import HISTORY
from fathom.errors import InvalidInput

COUNTS = {"survey": {"model calls": 30, "prompt tokens": 80_000, "claims": 16, "bytes stored": 400_000}}
AMOUNT = st.integers(0, 10**6)


@given(AMOUNT, AMOUNT)
def test_more_calls_and_fewer_claims_are_worse(accepted: int, now: int) -> None:
    wanted = "same" if now == accepted else "worse" if now > accepted else "better"
    assert verdict("model calls", accepted, now) == wanted
    assert verdict("claims", now, accepted) == wanted


@given(AMOUNT, AMOUNT)
def test_bytes_may_differ_by_a_little(accepted: int, now: int) -> None:
    found = verdict("bytes stored", accepted, now)
    assert (found == "same") is (abs(now - accepted) <= BYTES * accepted)
    assert found != "worse" or now > accepted


def test_every_accepted_count_is_measured_and_the_other_way_round() -> None:
    accepted = json.loads(guard.ACCEPTED.read_text())
    assert accepted.keys() == MEASUREMENTS.keys()
    lacking = {name: dict(list(counts.items())[1:]) for name, counts in accepted.items()}
    assert [change.verdict for change in changes(accepted, lacking) if change.verdict != "same"] == ["gone"] * len(
        accepted
    )
    assert [change.verdict for change in changes(lacking, accepted) if change.verdict != "same"] == ["new"] * len(
        accepted
    )


@pytest.mark.parametrize(
    ("name", "now", "said"),
    [
        ("model calls", 31, "worse"),
        ("claims", 15, "worse"),
        ("prompt tokens", 79_999, "better"),
        ("bytes stored", 404_000, "as accepted"),
    ],
)
def test_what_is_worse_ends_with_exit_code_1(
    name: str,
    now: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(guard, "ACCEPTED", tmp_path / "counts.json")
    monkeypatch.setattr(guard, "measured", lambda: {"survey": COUNTS["survey"] | {name: now}})
    (tmp_path / "counts.json").write_text(json.dumps(COUNTS))
    monkeypatch.setattr(sys, "argv", ["guard"])
    if said == "worse":
        with pytest.raises(SystemExit) as ended:
            guard.main()
        assert ended.value.code == 1
    else:
        guard.main()
    assert said in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["guard", "--accept"])
    guard.main()
    assert json.loads((tmp_path / "counts.json").read_text())["survey"][name] == now


def test_a_commit_is_checked_out_with_its_own_code_and_removed() -> None:
    with checkouts.checked_out(checkouts.find("HEAD")) as side:
        assert side.root != checkouts.ROOT
        assert (side.root / "fathom" / "__init__.py").exists()
    assert not side.root.exists()
    assert str(side.root) not in checkouts.git("worktree", "list")


def test_ranges_that_touch_are_noise() -> None:
    a: Series = {"overhead": [1.0, 1.2, 1.1], "memory_mb": [200, 210, 205], "calls": [0, 0, 0], "only_a": [1]}
    b: Series = {"overhead": [1.2, 1.5, 1.4], "memory_mb": [150, 160, 199], "calls": [2, 2, 2]}
    found = {each.number: each for each in differences(a, b)}
    assert {name: each.beyond for name, each in found.items()} == {"overhead": False, "memory_mb": True, "calls": True}
    assert found["overhead"].ratio == pytest.approx(1.4 / 1.1)
    assert found["calls"].ratio is None
    assert table([*found.values()]).splitlines() == [
        "number     A                    B                    B / A",
        "overhead   1.10 (1.00 to 1.20)  1.40 (1.20 to 1.50)  1.27",
        "memory_mb  205 (200 to 210)     160 (150 to 199)     0.78   beyond the noise",
        "calls      0 (0 to 0)           2 (2 to 2)           -      beyond the noise",
    ]


def test_a_time_needs_rounds_to_differ_and_a_count_of_the_guard_does_not() -> None:
    a: Series = {"overhead": [1.0, 1.1], "fact: claims": [4], "fact: sources": [2]}
    b: Series = {"overhead": [9.0, 9.1], "fact: claims": [3], "fact: sources": [2]}
    assert {each.number for each in differences(a, b) if each.beyond} == {"fact: claims"}


@pytest.mark.parametrize("name", ["no-such-commit", "--all", ""])
def test_an_unknown_commit_is_named(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checkouts.find(name)
    assert f"There is no commit {name!r} in this repository." in str(refused.value)


def test_modules_from_elsewhere_are_not_measured(tmp_path: Path) -> None:
    (tmp_path / "fathom").mkdir()
    (tmp_path / "fathom" / "__init__.py").touch()
    with pytest.raises(SystemExit, match="not from the checkout"):
        checkouts.verify(tmp_path, Path(sys.executable))
    checkouts.verify(checkouts.ROOT, Path(sys.executable))


def test_the_history_is_of_commits_and_names_no_machine() -> None:
    lines = HISTORY.read_text(encoding="utf-8").splitlines()
    assert lines
    for line in map(json.loads, lines):
        assert set(line) == {"commit", "measured", "machine", "load", "versions", "counts", "runs", "medians"}
        assert set(line["machine"]) == {"cores", "memory_gb", "processor"}
        assert len(line["commit"]) == 40
