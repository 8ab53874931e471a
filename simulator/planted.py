"""Bugs to plant in the engine, one at a time: a simulator that does not find them finds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fathom.budget.ledger import Ledger
from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import StoredResults
from simulator.disk import Disk, patched

_tasks = set[asyncio.Task[None]]()
_write, _write_path = ArtifactStore.write, StoredResults.write_path


def _later(work: Any) -> None:
    """Do something at some time."""

    async def wait() -> None:
        await asyncio.sleep(0.5)
        await work

    task = asyncio.get_running_loop().create_task(wait())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _ledger_later(store: ArtifactStore, path: str, data: bytes, *, flush: bool = True) -> None:
    if "/ledger/" in path:
        _later(_write(store, path, data))
    else:
        await _write(store, path, data)


async def _result_later(results: StoredResults, path: str, content: bytes) -> None:
    _later(_write_path(results, path, content))


async def _create_anyway(store: ArtifactStore, path: str, data: bytes) -> bool:
    await _write(store, path, data)
    return True


async def _append_anyway(store: ArtifactStore, path: str, data: bytes, at: int) -> None:
    before = await store.read(path) if await store.exists(path) else b""
    await _write(store, path, before + data)


async def _nothing(*_: object) -> None:
    return


BUGS: dict[str, list[tuple[Any, str, Any]]] = {
    "nothing is confirmed before a write": [(ArtifactStore, "guard", lambda store, keeper: None)],
    "nothing is confirmed before a request": [(Ledger, "confirm", _nothing)],
    "a request is sent before its reservation is stored": [(ArtifactStore, "write", _ledger_later)],
    "a result is used before it is stored": [(StoredResults, "write_path", _result_later)],
    "no file is flushed before it gets its name": [(Disk, "flush_file", lambda *_: None)],
    "no folder is flushed": [(Disk, name, lambda *_: None) for name in ("flush_folder", "flush_all")],
    "two processes may win a lease": [(ArtifactStore, "create", _create_anyway)],
    "the log is continued wherever it ends": [(ArtifactStore, "append", _append_anyway)],
}


@contextmanager
def planted(bug: str) -> Iterator[None]:
    """Have one of the bugs inside the block."""
    with patched(BUGS[bug]):
        yield


def found_by(bug: str, seeds: range, run: Callable[[int], object]) -> int | None:
    """Return the first seed that finds a bug; None if none does."""
    with planted(bug):
        for seed in seeds:
            try:
                run(seed)
            except Exception:  # noqa: BLE001 - however it shows
                return seed
    return None
