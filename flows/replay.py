"""A run once more from its recorded calls: no provider, no server, and the same bytes, or the call that is missing.

The run's calls to the outside - models, tools, the clock, the ledger - are read from its results; everything else is
computed again by the installed code. So a replay shows that a report follows from the recorded calls, and whether a
change of the code would have changed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.errors import RecordMissing, RunNotFound, StoreError
from fathom.evidence.provenance import PROVENANCE, as_left, digest_of, read
from fathom.flows.deep_research import investigate
from fathom.flows.runs.stored import check_evidence
from fathom.llm.prompts import prompt_hashes
from fathom.run.engine import Engine
from fathom.storage.lease import RESULTS, check_layout
from fathom.storage.runs import StoredRun
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.tasks.durable import outside_prefect, recorded_start, results_of
from fathom.tasks.ui import Display
from fathom.telemetry.audit_log import AuditLog
from fathom.tools.mcp.offer import OfferedTools


@dataclass(frozen=True)
class ReplayedFile:
    """A file that the replay wrote, compared with the one that the run left."""

    name: str
    bytes: int
    state: Literal["same", "different", "missing"]


@dataclass(frozen=True)
class _Copy(RunFolder):
    """A run's folder whose files are read as they are; what is written stays in memory."""

    written: dict[str, bytes] = field(default_factory=dict)

    async def save(self, name: str, data: bytes) -> str:
        """Keep the bytes that the store would have received."""
        self.written[name] = data
        return digest_of(data)


class _ReplayEngine(Engine):
    """An engine that leaves the run's folder as it is, and asks no server."""

    async def take_up(self, offers: Sequence[OfferedTools]) -> None:
        """Give the researcher the servers' recorded offers."""
        self.tools.take_up(offers)

    async def enter(self, folder: str) -> None:
        """Work on a copy of the run's folder."""
        self.folder = _Copy(self.store, folder)


async def replay(run: StoredRun) -> list[ReplayedFile]:
    """Replay a run and compare every file it writes.

    Raises:
        NoReport: its records were removed.
        OtherLayout: the run was stored by a version with another layout.
        RecordMissing: the run has not finished, or a call was not recorded; the message says which.
        RunNotFound: the store has no records of the run.
    """
    store, run_key, run_id = run.store, run.run_key, run.run_id
    environment = Environment.read({})
    check_layout(run_id, run.layout)
    await check_evidence(run.files)
    if await run.files.result() is None:
        raise RecordMissing("The run has not finished.", next_step=f"fathom resume {run_id[:8]} finishes it")
    start = await recorded_start(store, run_key, run_id)
    if start is None:
        raise RunNotFound(
            f"{store.address(f'{RESULTS}/{run_key}')} has no record of how the run began.",
            next_step="keep .results beside research_artifacts when a store is copied",
        )
    nowhere = ArtifactStore(f"memory://replay-{run_key}")
    ledger, audit = Ledger(start.settings.budget, nowhere, "ledger"), AuditLog(nowhere, "audit")
    engine = _ReplayEngine(start, store, environment, ledger, audit)
    try:
        with outside_prefect(results_of(store, run_key)):
            await investigate(engine, Display(shown=False))
    except RecordMissing as error:
        manifest = await run.files.manifest()
        now, then = prompt_hashes(), manifest.prompts if manifest else {}
        if changed := sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name)):
            error.next_step = f"these prompts have changed since the run: {', '.join(changed)}"
        elif engine.folder and (changed := await _changed(engine.folder)):
            error.next_step = f"these files are not as the run left them: {', '.join(changed)}"
        raise
    assert isinstance(engine.folder, _Copy)
    files: list[ReplayedFile] = []
    for name, data in sorted(engine.folder.written.items()):
        try:
            same = as_left(name, await engine.folder.load(name)) == data
            files.append(ReplayedFile(name, len(data), "same" if same else "different"))
        except FileNotFoundError:
            files.append(ReplayedFile(name, len(data), "missing"))
    return files


async def _changed(folder: RunFolder) -> list[str]:
    """Return the stored tool outputs that differ from the run's provenance."""
    try:
        recorded = read(await folder.load(PROVENANCE))[0].files
    except (FileNotFoundError, StoreError):
        return []
    return [name for name in await folder.list() if digest_of(await folder.load(name)) != recorded.get(name)]
