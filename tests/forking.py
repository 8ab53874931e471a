"""Runs of the command line without their start-up: a process that has imported everything forks once for each.

The children are processes like any other: they have an environment, files and connections of their own, and are killed
by the operating system. `python -m tests.forking MODULE...` imports the modules, reads one JSON line a run and answers
with the child's number; an empty line waits for the child and answers with its exit code.

Prefect reads its settings when it is imported. So either all children have those of the process that forks, or it must
not import Prefect, which each child then does itself.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

__all__ = ["COMMANDS", "RUNS", "Forks", "forking"]

COMMANDS = (
    "flows.cli.commands",
    "flows.cli.watch",
    "flows.diagnosis",
    "flows.listing",
    "flows.preflight",
    "flows.runs",
    "fathom.evidence.trace",
    "fathom.evidence.verify",
    "fathom.extractive.backend",
    "fathom.report.exporting",
    "fathom.tools.documents.corpus",
    "fathom.tools.registry",
    "httpx",
    "rich.markdown",
    "s3fs",
    "trafilatura",
)
"""What commands import, without Prefect."""

RUNS = ("flows.cli.commands", "flows.cli.watch", "flows.local", "flows.preflight", "flows.resuming", "litellm")
"""What runs import."""


class Forks:
    """The process that forks. One child runs at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, env: Mapping[str, str], output: Path, arguments: Sequence[str], folder: Path = ROOT) -> int:
        """Run the command line with an environment, in a folder, both of its outputs in files; return its number.

        Stdout is `output`, stderr a file beside it that ends in `.err`.
        """
        order = {"env": dict(env), "output": str(output), "arguments": [*arguments], "folder": str(folder)}
        return int(self._ask(json.dumps(order)))

    def wait(self) -> int:
        """Return the exit code of the child, negative for a signal, once it has ended."""
        return int(self._ask(""))

    def _ask(self, line: str) -> str:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


@contextmanager
def forking(env: Mapping[str, str], modules: Sequence[str]) -> Iterator[Forks]:
    """Start a process that imports modules in an environment, and forks; it ends with its children."""
    command = [sys.executable, "-m", "tests.forking", *modules]
    with subprocess.Popen(
        command,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    ) as process:
        try:
            yield Forks(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _serve() -> None:
    """Import the modules, then fork for each line."""
    if "litellm" in sys.argv:
        from fathom.config.environment import Environment
        from fathom.llm.over_litellm import load_litellm

        load_litellm(Environment.read())
    for name in sys.argv[1:]:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a thread would not survive the fork"
    child = 0
    for line in sys.stdin:
        if line.strip():
            child = os.fork()
            if not child:
                _run(json.loads(line))
            print(child, flush=True)
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(order: dict[str, Any]) -> None:
    """Be the command line."""
    from flows.cli.main import main

    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["folder"])
    for number, path in ((1, order["output"]), (2, f"{order['output']}.err")):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["fathom", *order["arguments"]]
    main()
    sys.exit()


if __name__ == "__main__":
    _serve()
