"""The process that waits, with everything loaded, for the next question of somebody at a terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from fathom.interfaces.cli import warm
from tests.conftest import PrefectServer, base_env
from tests.stubs import Stubs

QUESTION = "How does Python look up an attribute?"
RESEARCH = ("research", QUESTION, "--profile", "quick")


@dataclass
class Terminal:
    """A person's terminal.

    Attributes:
        env: what its commands get, with a home and a folder for sockets of its own.
        started: its commands that have not ended.
        waits: the process that waits, once it was waited for.
    """

    env: dict[str, str]
    folder: Path
    sockets: Path
    started: list[int] = field(default_factory=list)
    waits: int = 0

    def start(self, *arguments: str) -> tuple[int, int]:
        """Start a command; return its process and the terminal's end of its input and output."""
        process, screen = pty.fork()
        if not process:
            os.chdir(self.folder)
            os.execve(sys.executable, [sys.executable, "-m", "fathom", *arguments], self.env)
        self.started.append(process)
        return process, screen

    def run(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code of a command and what it wrote on the screen."""
        return self.ended(*self.start(*arguments))

    def ended(self, process: int, screen: int) -> tuple[int, str]:
        said = b""
        try:
            while piece := os.read(screen, 2**16):
                said += piece
        except OSError:  # how a terminal says that nobody writes to it any more
            pass
        os.close(screen)
        self.started.remove(process)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), said.decode()

    def wait_for_waiting(self) -> None:
        """Wait until a process waits for the next question."""
        until(lambda: any(self.sockets.glob("fathom-*/*")))
        [self.waits] = self._loaded()

    def working(self) -> list[int]:
        """Return the processes that work on what was handed to the waiting one, and those that watch them."""
        return [each for each in self._loaded() if each != self.waits]

    def _loaded(self) -> list[int]:
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            try:
                command = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                alive = (each / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            except OSError:  # it has ended
                continue
            if alive and f"cli.waiting {self.sockets}" in command:
                found.append(int(each.name))
        return found

    def end(self) -> None:
        for process in (*self.started, *self._loaded()):
            os.kill(process, signal.SIGKILL)


def until(true: Callable[[], object]) -> None:
    """Wait until something is so, at most a minute."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.fixture
def terminal(prefect_server: PrefectServer, stubs: Stubs, home: Path, tmp_path: Path) -> Iterator[Terminal]:
    with tempfile.TemporaryDirectory() as sockets:  # short: the path of a socket has at most 107 bytes
        env = {**base_env(), **prefect_server.env, **stubs.env, "HOME": str(home), "XDG_RUNTIME_DIR": sockets}
        # As for most people, the server is one that is found.
        env["PREFECT_SERVER_API_PORT"] = str(httpx.URL(env.pop("PREFECT_API_URL")).port)
        env |= {"FATHOM_WARM_SECONDS": "60", "TERM": "dumb", "FATHOM_ARTIFACTS": str(tmp_path / "store")}
        own = Terminal(env, tmp_path, Path(sockets))
        yield own
        own.end()


def test_the_next_question_is_answered_by_a_process_that_has_everything_loaded(
    terminal: Terminal, stubs: Stubs
) -> None:
    first = terminal.run(*RESEARCH, "-q")
    terminal.wait_for_waiting()
    # Another folder and store, as the next command's environment says.
    terminal.folder = terminal.folder / "elsewhere"
    terminal.folder.mkdir()
    terminal.env["FATHOM_ARTIFACTS"] = "here"
    stubs.settings.held = "search"  # it has not ended before it is seen
    process, screen = terminal.start(*RESEARCH, "-q")
    until(terminal.working)
    stubs.settings.held = ""
    assert terminal.ended(process, screen) == first
    assert first[0] == 0
    assert "Answer" in first[1]
    assert [*terminal.folder.glob("here/**/report.md")]
    # Bad input ends as it does everywhere.
    code, said = terminal.run(*RESEARCH, "--max-results", "none")
    assert (code, "--max-results" in said) == (2, True)
    # What does not read the same code, or has other settings of Prefect, begins alone.
    terminal.env["PREFECT_CLIENT_MAX_RETRIES"] = "3"
    process, screen = terminal.start(*RESEARCH, "-q")
    assert terminal.ended(process, screen) == first
    # A process that does not answer is not waited for.
    del terminal.env["PREFECT_CLIENT_MAX_RETRIES"]
    os.kill(terminal.waits, signal.SIGKILL)
    assert terminal.run(*RESEARCH, "-q") == first


def test_interrupting_and_killing_reach_what_works(
    terminal: Terminal, stubs: Stubs, prefect_server: PrefectServer
) -> None:
    terminal.run(*RESEARCH, "-q")
    terminal.wait_for_waiting()
    stubs.settings.held = "llm"
    terminal.env["FATHOM_MODEL"] = "openai/stub"
    before = len(stubs.requests)
    process, screen = terminal.start(*RESEARCH)
    until(lambda: len(stubs.requests) > before)
    os.write(screen, b"\x03")  # Ctrl-C
    code, said = terminal.ended(process, screen)
    assert code == 130
    assert "fathom resume" in said
    assert f"{prefect_server.api_url.removesuffix('/api')}/runs/flow-run/" in "".join(said.split())
    until(lambda: not terminal.working())
    before = len(stubs.requests)
    process, screen = terminal.start(*RESEARCH)
    until(lambda: len(stubs.requests) > before)
    os.kill(process, signal.SIGKILL)
    terminal.ended(process, screen)
    until(lambda: not terminal.working())


def test_nobody_waits_after_a_script_or_where_it_is_turned_off(terminal: Terminal) -> None:
    command = [sys.executable, "-m", "fathom", *RESEARCH, "--json"]
    script = subprocess.run(command, env=terminal.env, cwd=terminal.folder, capture_output=True, check=True)
    assert json.loads(script.stdout)["status"] == "complete"
    terminal.env["FATHOM_WARM_SECONDS"] = "0"
    assert terminal.run(*RESEARCH, "-q")[0] == 0
    assert not [*terminal.sockets.glob("*/*")]
    terminal.env["FATHOM_WARM_SECONDS"] = "soon"
    code, said = terminal.run(*RESEARCH)
    assert (code, "for example 300" in " ".join(said.split())) == (2, True)


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(warm._VARIABLES, "XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / f"fathom-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"fathom-{os.getuid()}").chmod(0o777)
    warm._address.cache_clear()
    with pytest.raises(PermissionError, match="only yours"):
        warm._address()
    monkeypatch.setenv("FATHOM_WARM_SECONDS", "60")
    assert warm.handed_over(["research", QUESTION]) is None
