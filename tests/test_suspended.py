"""A process that is suspended for longer than its lease is good, and wakes up when another one has its run."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fathom.storage.lease import LeaseFile, read_lease
from fathom.storage.store import ArtifactStore
from fathom.telemetry.audit_events import AuditType, check
from fathom.telemetry.audit_log import AUDIT_FILE, AuditLog
from tests.conftest import ROOT, PrefectServer, base_env

KEY, FOLDER, PENDING = "suspended", "research_artifacts/suspended", "pending.jsonl"
LOG = f"{FOLDER}/{AUDIT_FILE}"
WORKING = f"""
import asyncio, sys
from prefect import flow
from fathom.budget.ledger import Cost, Ledger
from fathom.config.groups import Budget
from fathom.config.secrets import Scrubber
from fathom.storage.store import ArtifactStore
from fathom.tasks.supervision import Supervision
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.audit_log import AuditLog

async def events(log):
    while True:
        await log.record(AuditType.tool_called, "system", "search", text="x" * 2_000)

async def files(store, name):
    while True:
        await store.write(f"{FOLDER}/{{name}}", b"the first process")

async def calls(ledger):
    while True:
        async with ledger.attempt(lambda left: Cost(calls=1), research=True):
            pass

@flow
async def work(root, run_key):
    store = ArtifactStore(root)
    async with Supervision(store, Scrubber([]), lease_seconds=2):
        log = AuditLog(store, {PENDING!r})
        await log.settle({FOLDER!r})
        ledger = Ledger(Budget(max_calls=10**6), store, "{FOLDER}/ledger")
        many = (events(log), files(store, "a"), files(store, "b"), calls(ledger))
        await asyncio.gather(*many, *(events(log) for _ in range(20)))

asyncio.run(work(sys.argv[1], {KEY!r}))
"""


def files(root: Path) -> dict[str, bytes]:
    """Return all files of the run but the leases."""
    found = [path for path in (root / "research_artifacts").rglob("*") if path.is_file() and path.suffix != ".tmp"]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def expired(store: ArtifactStore) -> bool:
    lease = asyncio.run(read_lease(store, KEY))
    return lease is not None and not lease.alive


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def taken_over(store: ArtifactStore) -> AuditLog:
    """Do what another process does that goes on with the run."""
    await LeaseFile.take(store, "another", KEY, {})
    log = AuditLog(store, PENDING)
    await log.settle(FOLDER)
    await log.record(AuditType.session_resumed, "user", "go on")
    for name in ("a", "b"):
        await store.write(f"{FOLDER}/{name}", b"the second process")
    return log


def test_who_wakes_up_writes_nothing_into_a_run_that_it_has_lost(prefect_server: PrefectServer, tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    command = [sys.executable, "-c", WORKING, str(tmp_path)]
    env = {**base_env(), **prefect_server.env}
    with subprocess.Popen(command, env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until((tmp_path / LOG).exists)
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: expired(store))
            log = asyncio.run(taken_over(store))
            ours = files(tmp_path)
            process.send_signal(signal.SIGCONT)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert "Another process has taken over the run." in said
    asyncio.run(log.record(AuditType.session_completed, "system", "complete"))
    now = files(tmp_path)
    assert {name for name in now if now[name] != ours.get(name)} == {LOG}
    assert check(now[LOG], log.head) is None
