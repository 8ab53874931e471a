"""Runs of the command line without their start-up: a process that has loaded everything forks once for each.

The children are processes like any other: they have an environment, files and connections of their own, and are killed
by the operating system. `python -m tests.forking MODULE...` imports the modules, reads one JSON line a request and
answers each with a line of JSON: an order starts a child, which it names by its number; a child's number asks for its
exit code, which is null while it runs.

Prefect reads its settings when it is imported, and here again in each child. All children have the hash seed of the
process that forks: where one run is compared with another, start one of the two afresh.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from tests.boundaries import BOUNDARIES, DIES_AT, arm

ROOT = Path(__file__).parent.parent

__all__ = ["COMMANDS", "RUNS", "Fork", "Forks", "forking"]

COMMANDS = (
    "fathom.interfaces.cli.commands",
    "fathom.interfaces.cli.progress",
    "fathom.flows.operations.diagnosis",
    "fathom.flows.runs.listing",
    "fathom.flows.preflight",
    "fathom.flows.runs.stored",
    "fathom.evidence.trace",
    "fathom.evidence.verify",
    "fathom.extractive.backend",
    "fathom.report.exporting",
    "fathom.report.html",
    "fathom.tools.documents.corpus",
    "fathom.tools.registry",
    "anyio._backends._asyncio",
    "httpx",
    "nh3",
    "rich.markdown",
    "s3fs",
    "trafilatura",
)
"""What commands import, without Prefect."""

RUNS = (
    *COMMANDS,
    "fathom.flows.batch",
    "fathom.interfaces.cli.dialogue",
    "fathom.flows.execution.local",
    "fathom.flows.execution.resuming",
    "fathom.flows.execution.worker",
    # What Prefect imports when it is first used.
    "fastapi",
    "prefect.concurrency._sync",
    "prefect.task_engine",
    "prefect.utilities.visualization",
)
"""What runs import too."""


class Fork:
    """A child that runs the command line; its methods are those of `subprocess.Popen`."""

    def __init__(self, forks: Forks, pid: int, output: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forks = forks
        self._output = output

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self._forks.ended(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended."""
        deadline = time.monotonic() + (timeout or float("inf"))
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0, *self.said())
            time.sleep(0.02)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return stdout and stderr once it has ended."""
        self.wait(timeout)
        return self.said()

    def send_signal(self, number: int) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def tell(self) -> None:
        """Print how it ended and what it said; where it stands, if it runs: pytest shows it if the test failed."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(0.2)
        print(f"process {self.pid}: exit code {self.returncode}", *self.said(), sep="\n")

    def said(self) -> tuple[str, str]:
        """Return stdout and stderr as far as they were written."""
        return self._output.read_text(encoding="utf-8"), _errors(self._output).read_text(encoding="utf-8")


class Forks:
    """The process that forks, any number of children at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lock = threading.Lock()

    def start(self, env: Mapping[str, str], output: Path, arguments: Sequence[str], folder: Path = ROOT) -> Fork:
        """Run the command line with an environment, in a folder, both of its outputs in files.

        Stdout is `output`, stderr a file beside it that ends in `.err`.
        """
        order = {"env": dict(env), "output": str(output), "arguments": [*arguments], "folder": str(folder)}
        return Fork(self, self._ask(order), output)

    def ended(self, child: int) -> int | None:
        """Return the exit code of a child, which must not have been told before; None while it runs."""
        code: int | None = self._ask(child)
        return code

    def _ask(self, request: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())


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


def _errors(output: Path) -> Path:
    return output.with_name(f"{output.name}.err")


def _serve() -> None:
    """Import the modules, then do what each line asks for."""
    from fathom.flows.server import quieten
    from fathom.interfaces.cli import warm

    quieten()  # as every command does before it imports Prefect
    for name in sys.argv[1:]:
        importlib.import_module(name)
    from fathom.tools.registry import TOOLS, VENDORS

    for name in (*TOOLS, *VENDORS):
        pkgutil.resolve_name(name)
    if "prefect" in sys.modules:
        _answer()
    warm.inherited.update(sys.modules)  # no child looks for a process that has imported more
    assert threading.active_count() == 1, "a thread would not survive the fork"
    gc.freeze()  # no collection of a child copies the memory that all share
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            ended, status = os.waitpid(request, os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if ended else None), flush=True)
        else:
            child = os.fork()
            if not child:
                _run(request)
            print(child, flush=True)


def _answer() -> None:
    """Answer a question: what runs read and compile when they first need it, half a second's work, all share then."""
    from tests.inprocess import investigated

    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder  # children have one of their own
        asyncio.run(investigated(folder, "What is a descriptor in Python?", profile="quick", model=""))


def _run(order: dict[str, Any]) -> NoReturn:
    """Be the command line."""
    from fathom.interfaces.cli.main import main
    from fathom.interfaces.cli.waiting import become

    for number, path in ((1, Path(order["output"])), (2, _errors(Path(order["output"])))):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.register(signal.SIGUSR1)  # writes the stacks of all threads to stderr
    become(order["env"], order["folder"], order["arguments"])
    if boundary := os.environ.get(DIES_AT):
        arm(BOUNDARIES[boundary])
    main()


if __name__ == "__main__":
    _serve()
