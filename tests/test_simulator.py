"""The engine in simulated processes: see docs/simulator.md. `make simulate` takes more seeds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from simulator.machine import missing
from tests.conftest import ROOT, base_env

SEEDS = 150
EVERY = max(1, 36 // int(os.environ.get("KILLS", "6")))  # change of a run; each one in `make test-long`

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"this Python has no {', '.join(missing())}")


def simulate(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the simulator, which takes over its process, in one of its own; return what it says without the time."""
    command = [sys.executable, "-m", "simulator", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=base_env())


def test_no_seed_breaks_a_promise() -> None:
    done = simulate("--seeds", str(SEEDS))
    assert (done.returncode, done.stdout.startswith(f"{SEEDS} tried, 0 failed")) == (0, True), done.stdout + done.stderr


def test_a_run_killed_at_any_change_with_or_without_power_comes_to_the_same() -> None:
    done = simulate("--boundaries", "--every", str(EVERY))
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 50


def test_planted_bugs_are_found_and_a_seed_repeats_itself() -> None:
    done = simulate("--planted", "--bug", "a result is used before it is stored", "--seeds", "50")
    assert "found by seed" in done.stdout, done.stdout + done.stderr
    one, same = (simulate("--seed", "19").stdout for _ in range(2))
    assert one and one == same
