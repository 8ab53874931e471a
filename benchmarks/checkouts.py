"""Commits checked out beside this checkout for as long as they are measured."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timed import output, run
from fathom.errors import InvalidInput

ROOT = Path(__file__).parent.parent
_BENCHMARK = "benchmarks/pipeline.py"
_LOCK = "requirements.lock"
_ROOMS = ("fathom", "flows", "tasks", "tests", "benchmarks")
_OF_THIS_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH")


@dataclass(frozen=True)
class Commit:
    """A commit of this repository; `name` is what it was called by."""

    name: str
    hash: str

    @property
    def short(self) -> str:
        """The first digits of its hash."""
        return self.hash[:9]


@dataclass(frozen=True)
class Checkout:
    """A commit in a folder of its own, and the interpreter whose packages it runs on."""

    commit: Commit
    root: Path
    python: Path


def git(*arguments: str) -> str:
    """Return what git prints in this checkout, without the last line break.

    Raises:
        SystemExit: git failed.
    """
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.rstrip("\n")


def find(name: str) -> Commit:
    """Return the commit of a hash, branch or tag that can be measured.

    Raises:
        InvalidInput: there is no such commit, or it has no benchmark.
    """
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InvalidInput(f"There is no commit {name!r} in this repository.", next_step="`git log` lists them")
    commit = Commit(name, done.stdout.strip())
    if not git("ls-tree", commit.hash, _BENCHMARK):
        said = f"Commit {commit.short} ({name}) has no {_BENCHMARK}, so it cannot be measured."
        raise InvalidInput(said, next_step="choose a later one")
    return commit


@contextmanager
def checked_out(commit: Commit) -> Iterator[Checkout]:
    """Check a commit out into a temporary worktree, which is removed afterwards whatever happens.

    It runs on this installation, unless its requirements are others: then it gets one of its own, which takes minutes.

    Raises:
        SystemExit: it cannot be checked out or installed, or Python imports another Fathom than the worktree's.
    """
    with tempfile.TemporaryDirectory(prefix="fathom-compare-") as folder:
        root = Path(folder).resolve() / commit.short
        try:
            git("worktree", "add", "--detach", "--force", str(root), commit.hash)
            python = Path(sys.executable)
            if (root / _LOCK).read_bytes() != (ROOT / _LOCK).read_bytes():
                print(f"{commit.short} has other requirements: installing them ...", file=sys.stderr)
                env = {name: value for name, value in os.environ.items() if name not in _OF_THIS_MAKE}
                run(root, ["make", "-s", f"PYTHON={sys.executable}", ".venv/.dev"], env)
                python = root / ".venv/bin/python"
            verify(root, python)
            # As an installation has it; PYTHONDONTWRITEBYTECODE may be set, and every start would compile.
            output(root, [str(python), "-m", "compileall", "-qq", *_ROOMS])
            yield Checkout(commit, root, python)
        finally:
            command = ["git", "worktree", "remove", "--force", str(root)]
            subprocess.run(command, cwd=ROOT, capture_output=True, check=False)


def verify(root: Path, python: Path) -> None:
    """Make sure that a checkout's own modules are measured, and not those that are installed.

    Raises:
        SystemExit: they come from elsewhere.
    """
    code = f"import {', '.join(_ROOMS)}\nfor room in ({', '.join(_ROOMS)}): print(*room.__path__)"
    for place in output(root, [str(python), "-c", code]).splitlines():
        if not Path(place).resolve().is_relative_to(root):
            raise SystemExit(f"Python would import Fathom from {place}, not from the checkout of {root.name}.")
