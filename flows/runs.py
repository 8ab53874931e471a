"""Runs as the artifact store knows them: found and shown without any server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from fathom.errors import InvalidInput, RunNotFound, StoreError
from fathom.models import Plan, RunResult
from fathom.storage.lease import RESULTS, read_lease
from fathom.storage.store import ArtifactStore, RunFolder, runs

ID_DIGITS = 4  # shorter beginnings of an id are taken for a name


class StoredRun(BaseModel):
    """What the artifact store holds of a run. `result` is None until the run has finished."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    query: str
    started: str
    artifacts: str
    plan: Plan | None
    result: RunResult | None
    report: str | None  # its Markdown


def matching(name: str, manifests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the manifests that a run's id, beginning of an id, folder, plan title or run key stands for."""
    exact = [found for found in manifests if name in _names(found)]
    ids = ("run_id", "run_key")  # of a run that was started again from its store, the key is the id it had
    return exact or [found for found in manifests if any(is_prefix(name, str(found.get(key, ""))) for key in ids)]


def is_prefix(name: str, run_id: str) -> bool:
    """Whether a name is the beginning of a run's id, with or without its hyphens."""
    plain = name.replace("-", "").lower()
    return len(plain) >= ID_DIGITS and run_id.replace("-", "").startswith(plain)


def locate(name: str, root: str) -> tuple[str, str]:
    """Return the root and the name to look for: a run's folder, given with its path, knows its own root."""
    address = name if "://" in name else str(Path(name).resolve())
    own_root, marker, folder = address.rstrip("/").rpartition("/research_artifacts/")
    return (own_root, folder) if marker and "/" in name else (root, name)


def reference(result: RunResult, root: str) -> str:
    """Return what `fathom show` takes for a run: the beginning of its id, or its folder outside the usual root."""
    return result.run_id[:8] if result.artifacts.startswith(f"{root}/") else result.artifacts


async def known(store: ArtifactStore) -> list[dict[str, Any]]:
    """Return the manifest of every run in a store; of a run that got no folder yet, what is known, `folder` empty."""
    found = await runs(store)
    keys = {str(manifest.get("run_key")) for manifest in found}
    for key in await store.list(RESULTS):
        if key not in keys and (lease := await read_lease(store, key)):
            query = str(lease.parameters.get("query", ""))
            of_lease = lease.model_dump(include={"run_id", "layout", "started"})
            found.append({**of_lease, "run_key": key, "query": query, "folder": ""})
    return found


async def find(store: ArtifactStore, name: str) -> dict[str, Any]:
    """Return the manifest of the one run that a name stands for.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """
    found = matching(name.strip(), await known(store))
    if not found:
        raise RunNotFound(f"No run {name!r} is known in {store.address()}.", next_step="fathom runs lists them")
    if len(found) > 1:
        ids = ", ".join(str(run.get("run_id", "")) for run in found)
        raise InvalidInput(f"{name!r} stands for {len(found)} runs.", next_step=f"choose one by its id: {ids}")
    return found[0]


async def load(store: ArtifactStore, manifest: dict[str, Any]) -> StoredRun:
    """Return what the store holds of a run."""
    folder = RunFolder(store, manifest["folder"] or f"{RESULTS}/{manifest['run_key']}")
    plan, result = await read_json(folder, "plan.json"), await read_json(folder, "result.json")
    try:
        return StoredRun(
            run_id=manifest.get("run_id", ""),
            query=manifest.get("query", ""),
            started=manifest.get("started", ""),
            artifacts=folder.url,
            plan=plan and Plan.model_validate(plan),
            result=result and RunResult.model_validate(result),
            report=await read_report(store, folder.url),
        )
    except ValidationError as error:
        raise StoreError(f"{folder.url} holds no run of this version: {error.errors()[0]['msg']}.") from None


async def read_report(store: ArtifactStore, artifacts: str) -> str | None:
    """Return the report in a run's folder, given as `RunResult.artifacts` has it; None when there is none."""
    folder = artifacts.removeprefix(store.address()).strip("/")
    try:
        return (await store.read(f"{folder}/report.md")).decode()
    except FileNotFoundError:
        return None
    except UnicodeError as error:
        raise StoreError(f"{artifacts}/report.md is damaged: {error}.", next_step="restore it, or run again") from error


async def read_json(folder: RunFolder, name: str) -> Any:
    """Return the data of one of a run's files; None when the run has not come to it."""
    try:
        return await folder.load_json(name)
    except FileNotFoundError:
        return None


def _names(manifest: dict[str, Any]) -> set[str]:
    folder = str(manifest["folder"])
    keys = ("run_id", "run_key", "plan_title")
    return {folder, folder.rpartition("/")[2], *(str(manifest.get(key) or "") for key in keys)} - {""}
