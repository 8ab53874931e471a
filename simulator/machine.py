"""What a process asks of its machine beside files: threads, waiting for them, its number, its name, random bytes."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import threading
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from simulator.disk import patched
from simulator.world import Loop, Process, World

_CONDITION = ("_waiters", "_release_save", "_acquire_restore")


def missing() -> list[str]:
    """Return the private names of Python that the simulator puts its own in place of, and that this version lacks."""
    condition = threading.Condition()
    names = [f"threading.Condition.{name}" for name in _CONDITION if not hasattr(condition, name)]
    return names if hasattr(threading, "_time") else [*names, "threading._time"]


@contextmanager
def running(world: World) -> Iterator[None]:
    """Let threads, event loops and what a process knows of itself belong to a world."""
    real_start, real_wait, real_time = threading.Thread.start, threading.Condition.wait, threading._time  # type: ignore[attr-defined]
    real_loop, real_random, real_kill = asyncio.events.new_event_loop, os.urandom, os.kill
    real_pid, real_host = os.getpid, socket.gethostname

    def start(thread: threading.Thread) -> None:
        if world.current is None:
            return real_start(thread)
        return world.spawn(world.current.process, thread.run)

    def wait(condition: threading.Condition, timeout: float | None = None) -> bool:
        if world.current is None:
            return real_wait(condition, timeout)
        waiter = allocate_lock()
        waiter.acquire()
        waiters: Any = condition._waiters  # type: ignore[attr-defined]
        waiters.append(waiter)
        saved = condition._release_save()  # type: ignore[attr-defined]
        try:
            world.wait(lambda: not waiter.locked(), timeout)
        finally:
            condition._acquire_restore(saved)  # type: ignore[attr-defined]
            if waiter.locked():
                waiters.remove(waiter)
        return not waiter.locked()

    def process() -> Process:
        assert world.current
        return world.current.process

    def inside(own: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: own() if world.current else other()

    def kill(pid: int, signal: int) -> None:
        if world.current is None:
            return real_kill(pid, signal)
        assert signal == 0, "a simulated process only asks whether another one lives"
        if not any(one.pid == pid and one.alive for one in world.processes):
            raise ProcessLookupError
        return None

    state = random.getstate()
    random.seed(world.random.random())
    with patched(
        [
            (threading.Thread, "start", start),
            (threading.Condition, "wait", wait),
            (threading, "_time", inside(world.monotonic, real_time)),
            (asyncio.events, "new_event_loop", inside(lambda: Loop(world, process()), real_loop)),
            (os, "urandom", lambda size: world.random.randbytes(size) if world.current else real_random(size)),
            (os, "getpid", inside(lambda: process().pid, real_pid)),
            (os, "kill", kill),
            (socket, "gethostname", inside(lambda: process().host, real_host)),
        ]
    ):
        yield
    random.setstate(state)
