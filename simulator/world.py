"""A world of simulated processes: a scheduler with a time of its own decides which thread goes on next.

Every thread of every process is a greenlet, and one of them runs at a time. At each wait and at each operation on a
disk, the seed decides who goes on. So a run of the world is repeated exactly by its seed. Time passes only while all
threads wait.

A process can be killed or suspended wherever one of its threads waits: none of its code runs after that, not even a
`finally`, as with SIGKILL.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import base_events
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from greenlet import greenlet

from fathom import clock

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMIT_SECONDS = 3 * 24 * 3600.0
"""After which a world in which nothing ends is given up."""
STEPS = 400_000
_DELAYS = (0.0, 0.0, 0.0, 0.001, 0.004, 0.03)


class Killed(BaseException):
    """Ends a thread whose process is dead; nothing may catch it."""


class Stuck(AssertionError):
    """All threads wait for each other, or nothing ends."""


class Process:
    """A process on a machine: its threads, and whether it lives."""

    def __init__(self, world: World, host: str, pid: int) -> None:
        self.world = world
        self.host = host
        self.pid = pid
        self.alive = True
        self.asleep_until = 0.0
        self.wants_sleep = 0.0  # seconds, from the next moment on at which nothing was just confirmed
        self.ended = False  # by itself
        self.cancel: Callable[[], object] = lambda: None
        self.result: object = None

    def kill(self) -> None:
        """Let none of its threads go on."""
        self.alive = False


class Thread:
    """One thread of a process: what it does, and what it waits for."""

    def __init__(self, process: Process, work: Callable[[], object]) -> None:
        self.process = process
        self.at = 0.0  # from when on it may go on; infinite: when `ready` says so
        self.ready: Callable[[], bool] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.fiber = greenlet(work)
        self.done = False


class World(clock.Clock):
    """The scheduler, and the clocks of the simulated machines."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.time = 0.0
        self.jumps: dict[str, float] = {}  # seconds by which the time of day of a machine is wrong
        self.processes: list[Process] = []
        self.current: Thread | None = None
        self.log: list[str] = []
        self._threads: list[Thread] = []
        self._hub = greenlet.getcurrent()

    def say(self, what: str) -> None:
        """Note what happened, for whoever reads a failure."""
        who = f"{self.current.process.pid}" if self.current else "-"
        self.log.append(f"{self.time:10.3f} {who:>4} {what}")

    # clocks

    def now(self) -> datetime:
        host = self.current.process.host if self.current else ""
        return BEGIN + timedelta(seconds=self.time + self.jumps.get(host, 0.0))

    def monotonic(self) -> float:
        return self.time

    def uptime(self) -> float:
        return self.time

    # threads

    def start(self, host: str, work: Callable[[Process], object]) -> Process:
        """Start a process."""
        process = Process(self, host, 100 + len(self.processes))
        self.processes.append(process)

        def main() -> None:
            process.result = work(process)
            process.ended = True
            process.kill()

        self.spawn(process, main)
        return process

    def spawn(self, process: Process, work: Callable[[], object]) -> None:
        """Start a thread of a process."""

        def body() -> None:
            try:
                if process.alive:
                    work()
            except Killed:
                pass
            thread.done = True

        thread = Thread(process, body)
        thread.fiber.parent = self._hub
        thread.at = self.time + self.delay()
        self._threads.append(thread)

    def delay(self) -> float:
        """Return a small random delay."""
        return self.random.choice(_DELAYS) * self.random.random()

    def sleep(self, seconds: float) -> None:
        """Let the current thread wait."""
        if self.current and self.current.process.wants_sleep:
            process = self.current.process
            process.asleep_until, process.wants_sleep = self.time + process.wants_sleep, 0.0
        self._wait(None, self.time + seconds)

    def wait(self, ready: Callable[[], bool], timeout: float | None) -> None:
        """Let the current thread wait until something holds, at most for some seconds."""
        self._wait(ready, float("inf") if timeout is None else self.time + timeout)

    def _wait(self, ready: Callable[[], bool] | None, at: float) -> None:
        thread = self.current
        assert thread, "a thread of the world waits"
        thread.ready, thread.at = ready, at
        loop, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()  # which belong to a thread of the system
        asyncio._set_running_loop(None)
        sys.set_asyncgen_hooks(None, None)
        self._hub.switch()
        asyncio._set_running_loop(loop)
        sys.set_asyncgen_hooks(*hooks)
        if not thread.process.alive:
            raise Killed

    def run(self, until: Callable[[], bool]) -> None:
        """Let the threads go on until something holds."""
        for _ in range(STEPS):
            if until():
                return
            self._threads = [one for one in self._threads if not one.done and one.process.alive]
            able = [one for one in self._threads if one.process.asleep_until <= self.time and self._able(one)]
            if not able:
                self._pass_time()
                continue
            self._go_on(able[self.random.randrange(len(able))] if len(able) > 1 else able[0])
        raise Stuck("too many steps: something spins")

    def _able(self, thread: Thread) -> bool:
        return thread.at <= self.time or (thread.ready is not None and thread.ready())

    def _pass_time(self) -> None:
        coming = [max(one.at, one.process.asleep_until) for one in self._threads]
        coming += [one.process.asleep_until for one in self._threads if one.process.asleep_until > self.time]
        following = min(coming, default=float("inf"))
        if following == float("inf") or following > LIMIT_SECONDS:
            raise Stuck("all threads wait, and nobody will wake them")
        self.time = following

    def _go_on(self, thread: Thread) -> None:
        self.current = thread
        try:
            thread.fiber.switch()
        finally:
            self.current = None

    def close(self) -> None:
        """Let go of all threads. What is thrown into them ends their code, whose process is dead by now."""
        for process in self.processes:
            process.kill()
        self._threads = []


class Loop(base_events.BaseEventLoop):
    """The event loop of a thread: it waits in the world, and takes its ready callbacks in any order."""

    def __init__(self, world: World, process: Process) -> None:
        super().__init__()
        self._world = world
        self._process = process
        self._woken = False
        self._selector = self
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._world.time

    def select(self, timeout: float | None) -> list[Any]:
        """Wait, as the selector of a loop does, until there is something to do."""
        if timeout is None or timeout > 0:
            self._world.wait(lambda: self._woken, timeout)
        else:
            self._world.random.shuffle(self._ready)  # type: ignore[attr-defined]
            if self._world.random.random() < 0.1:
                self._world.sleep(0)
        self._woken = False
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        self._woken = True

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Run a function in another thread of the process."""
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - handed to whoever waits, as executors do
                self.call_soon_threadsafe(_settle, future, error, None)
            else:
                self.call_soon_threadsafe(_settle, future, None, result)

        self._world.spawn(self._process, work)
        return future


def _settle(future: asyncio.Future[Any], error: Exception | None, result: Any) -> None:
    if not future.done():
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


@contextmanager
def inside(world: World) -> Iterator[None]:
    """Let the engine read the clocks of a world."""
    clock.use(world)
    try:
        yield
    finally:
        clock.use(None)
        world.close()
