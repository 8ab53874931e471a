"""Trees of the repository that can be measured: the present one, and other commits, checked out for a while."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TIMED = ("overhead", "first_call", "ms_per_task", "cpu", "cpu_imports", "memory_mb")
"""Numbers of `benchmarks.pipeline` that depend on the machine: seconds, but for milliseconds a task, a multiple, MB."""


class Tree(NamedTuple):
    """A tree of the repository, and the Python that has what it needs."""

    path: Path = ROOT
    python: str = sys.executable

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the counts of `benchmarks.guard`.

        Raises:
            SystemExit: it failed, or the tree has no guard.
        """
        found: dict[str, dict[str, int]] = json.loads(self._run("benchmarks.guard", "--json"))
        return found

    def timed(self, runs: int) -> dict[str, list[float]]:
        """Return the timed numbers of some runs of `benchmarks.pipeline`.

        Raises:
            SystemExit: it failed.
        """
        printed = self._run("benchmarks.pipeline", "--json", "--runs", str(runs), "--page-bytes", "20000")
        rows = [json.loads(line) for line in printed.splitlines()]
        return {name: [round(row[name], 3) for row in rows] for name in TIMED}

    def has(self, module: str) -> bool:
        """Whether the tree has a benchmark."""
        return (self.path / module).exists()

    def _run(self, module: str, *arguments: str) -> str:
        command = [self.python, "-m", module, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(self.path)}
        ended = subprocess.run(command, cwd=self.path, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"python -m {module} ended with exit code {ended.returncode}.")
        return ended.stdout


def git(*arguments: str) -> str:
    """Return what git prints.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def checked_out(name: str) -> Iterator[Tree]:
    """Check a commit out into a folder that is removed afterwards.

    Where it needs other packages than are installed here, it gets an installation of its own, which takes minutes.

    Raises:
        SystemExit: there is no such commit.
    """
    try:
        commit = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError:
        raise SystemExit(f"There is no commit {name!r}: give a hash, a branch or a tag.") from None
    with tempfile.TemporaryDirectory(prefix="fathom-commit-") as folder:
        path = Path(folder, "tree")
        git("worktree", "add", "--detach", str(path), commit)
        try:
            yield Tree(path, _python(path))
        finally:
            git("worktree", "remove", "--force", str(path))


def _python(path: Path) -> str:
    """Return a Python with the packages of a tree, and make sure that it runs the tree's own code."""
    python = sys.executable
    locks = ("requirements.lock", "requirements-dev.lock")
    if any((path / lock).read_bytes() != (ROOT / lock).read_bytes() for lock in locks):
        subprocess.run(["make", "-C", str(path), ".venv/.dev"], stdout=sys.stderr, check=True)
        python = str(path / ".venv" / "bin" / "python")
    command = [python, "-c", "import fathom; print(fathom.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(path)}
    found = subprocess.run(command, cwd=path, env=environment, capture_output=True, text=True, check=True).stdout
    if not Path(found.strip()).resolve().is_relative_to(path.resolve()):
        raise SystemExit(f"{python} imports fathom from {found.strip()}, not from the commit.")
    return python
