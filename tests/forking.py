"""Runs of the command line without their start-up: a process that has imported everything forks once for each.

The children are processes like any other: they have an environment, files and connections of their own, and are killed
by the operating system. `python -m tests.forking` reads one JSON line a run and answers with the child's number; an
empty line waits for the child and answers with its exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

__all__ = ["Forks", "forking"]


class Forks:
    """The process that forks. One child runs at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, env: Mapping[str, str], output: Path, *arguments: str) -> int:
        """Run the command line with additions to the environment, both of its outputs in files; return its number.

        Stdout is `output`, stderr a file beside it that ends in `.err`.
        """
        return int(self._ask(json.dumps({"env": dict(env), "output": str(output), "arguments": arguments})))

    def wait(self) -> int:
        """Return the exit code of the child, negative for a signal, once it has ended."""
        return int(self._ask(""))

    def _ask(self, line: str) -> str:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


@contextmanager
def forking(env: Mapping[str, str]) -> Iterator[Forks]:
    """Start a process that forks, with the environment that its children share."""
    command = [sys.executable, "-m", "tests.forking"]
    with subprocess.Popen(
        command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            yield Forks(process)
        finally:
            process.kill()


def _serve() -> None:
    """Import everything a run needs, then fork for each line."""
    from fathom.config.environment import Environment
    from fathom.llm.over_litellm import load_litellm
    from flows import local, preflight, resuming
    from flows.cli import commands, watch

    load_litellm(Environment.read())
    assert commands and watch and local and preflight and resuming
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

    os.environ.update(order["env"])
    for number, path in ((1, order["output"]), (2, f"{order['output']}.err")):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["fathom", *order["arguments"]]
    main()


if __name__ == "__main__":
    _serve()
