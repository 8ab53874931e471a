"""One run of a checkout's `benchmarks.pipeline` in a fresh process: what `benchmarks.history` and `.compare` measure.

A checkout is measured by its own benchmark against its own stubs, since a stub reads the prompts of its commit.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

TIMED = ("overhead", "ms_per_task", "first_call", "cpu_imports", "memory_mb")
"""Numbers that depend on the machine and on what else it does, see `benchmarks.pipeline`; less is better."""

COUNTED = ("llm_calls", "tool_calls", "task_runs", "prompt_tokens", "largest_prompt")
"""Numbers of the same runs that depend on neither."""

PAGE_BYTES = "20000"
_KEPT = ("PATH", "LANG", "TMPDIR", "PYTHONDONTWRITEBYTECODE")
_PATIENCE = 30  # seconds in which an interrupted command ends its own processes


def pipeline(root: Path, python: Path, runs: int = 1) -> list[dict[str, float]]:
    """Measure so many runs of a checkout, with the installation of `python`.

    Raises:
        SystemExit: the benchmark failed, or prints no such numbers.
    """
    command = [str(python), "-m", "benchmarks.pipeline", "--runs", str(runs), "--page-bytes", PAGE_BYTES, "--json"]
    printed = output(root, [*command, "--port", str(free_port())])
    names = (*TIMED, *COUNTED)
    try:
        lines = [json.loads(line) for line in printed.splitlines()]
        return [{name: line[name] for name in names} for line in lines]
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"benchmarks.pipeline of {root.name} does not print what is compared.") from None


def output(root: Path, command: Sequence[str]) -> str:
    """Return what a command prints that runs in a checkout, imports from there and sees nothing of this environment.

    Raises:
        SystemExit: the command failed.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return run(root, command, {**kept, "PYTHONPATH": str(root), "LITELLM_LOCAL_MODEL_COST_MAP": "True"})


def run(root: Path, command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return what a command prints. Interrupted, it ends the command with all its processes before it goes on.

    Raises:
        SystemExit: the command failed.
    """
    process = subprocess.Popen(
        command, cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        printed, complaints = process.communicate()
    except BaseException:
        _end(process)
        raise
    if process.returncode:
        said = complaints[-2_000:].strip()
        raise SystemExit(f"{' '.join(command[1:3])} failed in the checkout of {root.name}:\n{said}")
    return printed


def _end(process: subprocess.Popen[str]) -> None:
    """End the processes of a session: at first as Ctrl-C in a terminal does."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def counts(root: Path, python: Path) -> dict[str, dict[str, int]]:
    """Return the counts of a checkout's guard, by measurement; empty if the commit has no guard.

    Raises:
        SystemExit: the guard's runs failed.
    """
    if not (root / "benchmarks/guard").is_dir():
        return {}
    found: dict[str, dict[str, int]] = json.loads(output(root, [str(python), "-m", "benchmarks.guard", "--json"]))
    return found


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
