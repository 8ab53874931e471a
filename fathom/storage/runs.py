"""The runs of a store, read from their manifests; and the stores that a user has used on this machine.

These are listed in a file, so that a run is found from every folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.errors import StoreError
from fathom.models import RunResult
from fathom.storage.atomic import side_by_side
from fathom.storage.lease import RESULTS, as_restored
from fathom.storage.names import watch_name
from fathom.storage.store import MANIFEST, PARTIAL, RUNS, ArtifactStore, RunFolder


@dataclass(frozen=True)
class StoredRun:
    """A run of a store, read from its `run.json` or, without a folder, from its lease.

    Nothing here is checked: a damaged run is listed, too. Missing values are empty. `files` reads the rest.
    """

    store: ArtifactStore = field(repr=False, compare=False)
    folder: str  # its path in the store; empty before its plan has a title
    run_id: str = ""
    run_key: str = ""
    query: str = ""
    started: str = ""  # ISO 8601, UTC
    plan_title: str = ""
    layout: int = 1
    watch: str = ""
    parent: str = ""  # id of the run that it follows up on
    parent_folder: str = ""  # path of that run in the store
    corpora: tuple[str, ...] = ()  # uploaded corpora that it reads
    mcp: Mapping[str, str] = field(default_factory=dict)  # MCP server -> hash of the tools it offered
    whole: bool = True  # False while it is being removed or imported, or if a process was killed then
    damaged: str = ""  # the reason why its manifest cannot be read

    @classmethod
    def of(cls, store: ArtifactStore, folder: str, manifest: object) -> StoredRun:
        """Return the run in a folder from the data in its manifest."""
        if not isinstance(manifest, dict):
            return cls(store, folder, damaged=f"{store.address(folder)}/{MANIFEST} is not a manifest")
        parent, corpora, mcp, layout = (manifest.get(name) for name in ("parent", "corpora", "mcp", "layout"))
        above = parent if isinstance(parent, dict) else {}
        return cls(
            store,
            folder,
            run_id=_text(manifest, "run_id"),
            run_key=_text(manifest, "run_key") or _text(manifest, PARTIAL),
            query=_text(manifest, "query"),
            started=_text(manifest, "started"),
            plan_title=_text(manifest, "plan_title"),
            layout=layout if isinstance(layout, int) else 1,
            watch=_text(manifest, "watch"),
            parent=_text(above, "run_id"),
            parent_folder=_text(above, "folder"),
            corpora=tuple(map(str, corpora)) if isinstance(corpora, dict) else (),
            mcp={str(server): str(hash_) for server, hash_ in mcp.items()} if isinstance(mcp, dict) else {},
            whole=PARTIAL not in manifest,
        )

    @classmethod
    def of_parameters(
        cls,
        store: ArtifactStore,
        run_id: str,
        run_key: str,
        given: Mapping[str, Any],
        *,
        started: str = "",
        layout: int = 1,
    ) -> StoredRun:
        """Return a run that has no folder yet, from the parameters of its flow run."""
        query, watch, parent = (str(given.get(name) or "") for name in ("query", "watch", "parent"))
        return cls(store, "", run_id, run_key, query, started, layout=layout, watch=watch, parent=parent)

    @property
    def watch_name(self) -> str:
        """Name of the watch that it belongs to; empty if it belongs to none."""
        return watch_name(self.watch)

    @property
    def files(self) -> RunFolder:
        """The folder of its files; before its plan has a title, only its results are stored."""
        return RunFolder(self.store, self.folder or f"{RESULTS}/{self.run_key}")

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.rpartition("/")[2]

    async def result(self) -> RunResult | None:
        """Return its result, as it will be restored if the run was interrupted; None until it has ended.

        Raises:
            StoreError: it is damaged.
        """
        if not self.folder:
            return None
        try:
            return await self.files.result()
        except StoreError:  # perhaps it is only to be restored
            store = await as_restored(self.store, self.run_key)
            return await RunFolder(store, self.folder).result()


async def read_manifest(store: ArtifactStore, folder: str) -> StoredRun | None:
    """Return the run in a folder; None if it is not a run's folder."""
    try:
        return StoredRun.of(store, folder, await RunFolder(store, folder).load_json(MANIFEST))
    except FileNotFoundError:
        return None
    except StoreError as error:  # one damaged run must not hide the others
        return StoredRun(store, folder, damaged=str(error))


async def read_manifests(store: ArtifactStore, folders: Sequence[str]) -> list[StoredRun]:
    """Return the runs in folders, several read at once; other folders are skipped."""
    return [run for run in await side_by_side(folders, lambda folder: read_manifest(store, folder)) if run]


async def runs(store: ArtifactStore, *, partial: bool = False) -> list[StoredRun]:
    """Return every run in a store that has a folder, read afresh; with `partial` also incomplete runs."""
    found = await read_manifests(store, [f"{RUNS}/{name}" for name in await store.list(RUNS)])
    return [run for run in found if partial or run.whole]


def _text(data: dict[str, Any], name: str) -> str:
    return str(data[name]) if data.get(name) else ""


_USED = "stores"
_FAR = "://"


def remember(address: str, environment: Environment) -> None:
    """Add the address of a store to the list, unless it has it; an address with a secret is left out.

    A run needs no list: where it cannot be written, as in a container, its stores are not remembered.
    """
    if "\n" in address or Scrubber(environment.secrets).message(address) != address:
        return
    with suppress(OSError):
        path = environment.state / _USED
        if address not in _listed(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
                file.write(f"{address}\n")


def other_stores(root: str, environment: Environment) -> list[str]:
    """Return the addresses in the list but `root`: the stores on this machine that still exist, then the others.

    The last one added comes first.
    """
    try:
        addresses = [address for address in _listed(environment.state / _USED)[::-1] if address != root]
    except OSError:  # such as a folder in its place
        return []
    here = [address for address in addresses if _FAR not in address and Path(address).is_dir()]
    return [*here, *(address for address in addresses if _FAR in address)]


def _listed(path: Path) -> list[str]:
    if not path.exists():
        return []
    return list(dict.fromkeys(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()))
