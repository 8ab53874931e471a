"""The guard against regressions: which change of a count fails, and how commits are compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.compare import timings
from benchmarks.guard import __main__ as guard
from benchmarks.guard.measurements import MEASUREMENTS
from benchmarks.guard.rules import BYTES, changes, verdict
from benchmarks.trees import ROOT, checked_out

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
    with checked_out("HEAD") as tree:
        assert tree.path != ROOT
        assert (tree.path / "fathom" / "__init__.py").exists()
    assert not tree.path.exists()
    listed = subprocess.run(["git", "-C", ROOT, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert str(tree.path) not in listed
    with pytest.raises(SystemExit, match="There is no commit 'no-such'"), checked_out("no-such"):
        pass


def test_only_ranges_apart_are_beyond_the_noise() -> None:
    one = {"cpu": [3.0, 3.2, 3.1], "overhead": [1.0, 1.4, 1.1]}
    other = {"cpu": [2.0, 2.1, 2.9], "overhead": [0.9, 1.05, 1.0]}
    printed = timings(["a", "b"], [one, other])
    assert "| cpu | 3.10 (3.00 to 3.20) | 2.10 (2.00 to 2.90) | 0.68 | lower |" in printed
    assert "| overhead | 1.10 (1.00 to 1.40) | 1.00 (0.90 to 1.05) | 0.91 | no |" in printed
