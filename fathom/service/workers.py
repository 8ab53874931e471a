"""The worker processes of a server that has no work pool of others, and whether it could do its work.

A worker outlives a server that is killed: what it works on goes on, and it ends once it has nothing to do. So a
server first counts the workers that are there. However many servers and workers a pool has, Prefect hands out at most
`--at-once` of its runs: that is the pool's limit.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolUpdate
from prefect.exceptions import PrefectException

from fathom.errors import NotReady, StoreError
from fathom.flows.execution.deploying import living, process_of
from fathom.service.options import Options
from fathom.service.outages import prefect_is_gone
from fathom.storage.store import ArtifactStore
from fathom.tasks.clients import prefect_client

LOOK_SECONDS = 3.0
WAKING_SECONDS = 0.7
"""In which an idle worker takes a run that was just asked for; then another one is started."""
IDLE_SECONDS = 300
"""After which workers end. One stays, so that a question is begun at once."""
STOP_SECONDS = 25.0
"""In which a worker that is told to stop hands over its run."""
LOST_SECONDS = 3.0
"""The same while Prefect does not answer: nobody can be told of the run, which is found by its lease later."""
FAILED_SECONDS, LONGEST_REST = 15.0, 60.0
"""A worker that fails sooner failed to start: the next one is started after a while, at most so long."""


@dataclass
class _Child:
    process: subprocess.Popen[bytes]
    stays: bool
    started: float

    def wake(self) -> None:
        assert self.process.stdin
        with suppress(BrokenPipeError, BlockingIOError):  # it ends, or has not read the lines before
            os.write(self.process.stdin.fileno(), b"\n")


class Workers:
    """Sees to it that a worker takes each run that waits. `say` is told in one line what fails."""

    def __init__(self, options: Options, say: Callable[[str], object]) -> None:
        self._pool = options.work_pool
        self._at_once = options.at_once
        self._say = say
        self._children: list[_Child] = []
        self._asked = asyncio.Event()
        self._rest, self._until = 0.0, 0.0
        self._ending = False

    def wake(self) -> None:
        """Have the workers look for a run that was just asked for."""
        for child in self._children:
            child.wake()
        self._asked.set()

    async def keep(self) -> None:
        """Start workers as they are needed, until cancelled. The pool must exist."""
        async with prefect_client() as client:
            limited = False
            while True:
                with suppress(httpx.HTTPError, PrefectException):  # looked again
                    if not limited:
                        await client.update_work_pool(self._pool, WorkPoolUpdate(concurrency_limit=self._at_once))
                        limited = True
                    await self._look(client)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._asked.wait()
                        self._asked.clear()
                        await asyncio.sleep(WAKING_SECONDS)

    def terminate(self) -> None:
        """Have the workers end; what they work on is scheduled again, and goes on when a server is started."""
        self._ending = True
        for child in self._children:
            child.process.terminate()

    async def ended(self) -> None:
        """Wait until the workers have ended, and tell what waits."""
        if not self._children:
            return
        lost = await prefect_is_gone()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOST_SECONDS if lost else STOP_SECONDS):
                while any(child.process.poll() is None for child in self._children):  # noqa: ASYNC110 - no event says so
                    await asyncio.sleep(0.05)
        for child in self._children:
            if child.process.poll() is None:
                child.process.kill()  # its run is found by its lease
                child.process.wait()
        if not lost:
            with suppress(httpx.HTTPError, PrefectException):
                async with prefect_client() as client:
                    if left := await waiting_in(client, self._pool):
                        runs = "A run waits and goes" if left == 1 else f"{left} runs wait and go"
                        self._say(f"{runs} on when the server is started again; no finished call is repeated.")

    async def _look(self, client: PrefectClient) -> None:
        self._note_ended()
        known = {process_of(name) for name in await living(client, self._pool)}
        host = socket.gethostname()
        own = {(host, child.process.pid) for child in self._children}
        starting, others = len(own - known), len(known - own)
        wanted = await waiting_in(client, self._pool) - starting
        if not self._children and not others:
            wanted = max(wanted, 1)
        room = self._at_once - len(own) - others
        if not self._ending and asyncio.get_running_loop().time() >= self._until:
            for _ in range(min(wanted, room)):
                self._start()

    def _note_ended(self) -> None:
        now = asyncio.get_running_loop().time()
        for child in [child for child in self._children if child.process.poll() is not None]:
            self._children.remove(child)
            assert child.process.stdin
            child.process.stdin.close()
            if child.process.returncode and now - child.started < FAILED_SECONDS:
                self._rest = min(LONGEST_REST, 2 * self._rest or 2.0)
                self._until = now + self._rest
                code = child.process.returncode
                self._say(f"A worker could not start (exit code {code}); the next one in {self._rest:.0f} s.")
            else:
                self._rest = 0.0

    def _start(self) -> None:
        stays = not any(child.stays for child in self._children)
        command = [sys.executable, "-m", "fathom", "worker", "--pool", self._pool, "--limit", "1", "--attached"]
        command += ["--drain-seconds", "0", "--idle-seconds", "0" if stays else str(IDLE_SECONDS)]
        # In a session of its own: neither Ctrl-C at the terminal nor the end of the server reaches it.
        process = subprocess.Popen(  # noqa: S603 - no part of the command is user input
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
        assert process.stdin
        os.set_blocking(process.stdin.fileno(), False)
        self._children.append(_Child(process, stays, asyncio.get_running_loop().time()))


async def waiting_in(client: PrefectClient, pool: str, before: datetime | None = None) -> int:
    """Return how many runs of a work pool wait for a worker, of all or of those that were due before a time."""
    # Prefect counts what was due at the time as well, which would be the run that asks.
    until = before - timedelta(microseconds=1) if before else datetime.now(UTC)
    due: dict[str, Any] = {"expected_start_time": {"before_": until.isoformat()}}
    wanted = {
        "work_pools": {"name": {"any_": [pool]}},
        "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}, **due},
    }
    answer = await client.request("POST", "/flow_runs/count", json=wanted)
    return int(answer.json())


KEPT_SECONDS = 2.0
"""How long an answer is given again: anybody may ask."""
PREFECT_SECONDS = 5.0


class Readiness:
    """What a balancer asks."""

    def __init__(self, store: ArtifactStore, options: Options) -> None:
        self._store = store
        self._pool = options.pool
        self._work_pool = options.work_pool
        self._asking = asyncio.Lock()
        self._known: tuple[float, list[str]] = (0.0, [])

    async def check(self) -> None:
        """Check that everything is there.

        Raises:
            NotReady: something is not.
        """
        async with self._asking:
            at, missing = self._known
            if time.monotonic() - at > KEPT_SECONDS:
                found = await asyncio.gather(self._workers(), self._writable())
                missing = [problem for problem in found if problem]
                self._known = time.monotonic(), missing
        if missing:
            raise NotReady(" ".join(missing))

    async def _workers(self) -> str:
        try:
            async with asyncio.timeout(PREFECT_SECONDS), prefect_client() as client:
                names = await living(client, self._work_pool)
        except (httpx.HTTPError, PrefectException, TimeoutError) as error:
            return f"Prefect does not answer ({type(error).__name__})."
        return "" if names else f"No worker serves the pool{f' {self._pool!r}' if self._pool else ''}."

    async def _writable(self) -> str:
        path = f".serve/ready/{socket.gethostname()}-{os.getpid()}"
        try:
            await self._store.write(path, b"")
            await self._store.remove(path)
        except StoreError:
            return "The artifact store cannot be written."
        return ""
