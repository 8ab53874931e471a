"""What makes a call durable: its key, its result beside the artifacts, and a commit as soon as it has finished.

A nested task's result is committed with its parent's transaction unless told otherwise, so a killed step would repeat
all of its finished calls. `durable_run` therefore runs the whole flow body in one eager transaction: every task inside,
however deep, commits when it finishes. Results lie on the artifact store's own root, so whichever process resumes the
run, on whichever machine, finds them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from prefect import task
from prefect.cache_policies import CachePolicy
from prefect.context import FlowRunContext, TaskRunContext
from prefect.filesystems import WritableFileSystem
from prefect.results import ResultStore
from prefect.serializers import JSONSerializer
from prefect.tasks import Task
from prefect.transactions import CommitMode, transaction
from pydantic import PrivateAttr
from pydantic_core import to_jsonable_python

from fathom.names import slug
from fathom.store import ArtifactStore

__all__ = ["current_run_id", "current_run_key", "durable_run", "durable_task"]

P = ParamSpec("P")
R = TypeVar("R")

RESULTS = ".results"


class StoredResults(WritableFileSystem):
    """Task results on the artifact store; a Prefect result storage that needs no saved block."""

    _block_type_name = "Fathom results"
    _block_type_slug = "fathom-results"
    _store: ArtifactStore = PrivateAttr()

    @classmethod
    def on(cls, store: ArtifactStore) -> StoredResults:
        """Return the result storage of a store."""
        results = cls()
        results._store = store
        return results

    def _resolve_path(self, _path: str) -> None:
        """Tell Prefect that keys are paths of the store as they are."""
        return

    async def read_path(self, path: str) -> bytes:
        """Read a result.

        Raises:
            FileNotFoundError: the call has not finished yet.
        """
        return await self._store.read(path)

    async def write_path(self, path: str, content: bytes) -> None:
        """Write a result; whole or not at all."""
        await self._store.write(path, content)


@dataclass
class RunKeyPolicy(CachePolicy):
    """A call is the same when the run key, the task, its inputs and the run's settings and prompts are.

    Inputs whose names start with an underscore are live objects and take no part. A run key given by the user spans
    flow runs; without one, the flow run's id is the key, which a retry keeps.
    """

    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **_kwargs: Any
    ) -> str:
        """Return the path of the call's result on the artifact store."""
        engine = inputs.get("_engine")
        material = {
            "inputs": {name: value for name, value in inputs.items() if not name.startswith("_")},
            "engine": engine.fingerprint if engine else "",
        }
        text = json.dumps(to_jsonable_python(material), sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        return f"{RESULTS}/{current_run_key()}/{slug(task_ctx.task.name)}-{digest}"


def _flow_context() -> FlowRunContext:
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("durable tasks run inside a flow")
    return context


def current_run_id() -> str:
    """Return the id of the flow run."""
    flow_run = _flow_context().flow_run
    assert flow_run is not None
    return str(flow_run.id)


def current_run_key() -> str:
    """Return what the results of this run are filed under: the `run_key` parameter, else the flow run's id."""
    context = _flow_context()
    key = (context.parameters or {}).get("run_key")
    if not key:
        return current_run_id()
    name = slug(key)[:80]
    return name if name == key else f"{name}_{hashlib.sha256(key.encode()).hexdigest()[:8]}"


@contextmanager
def durable_run(store: ArtifactStore) -> Iterator[None]:
    """Keep the results of all tasks called inside on the store, each committed when it finishes."""
    results = ResultStore(
        result_storage=StoredResults.on(store), serializer=JSONSerializer(), cache_result_in_memory=False
    )
    context = _flow_context().model_copy(update={"result_store": results, "persist_result": True})
    with context, transaction(commit_mode=CommitMode.EAGER):
        yield


def durable_task(
    *, name: str, run_name: str | Callable[[], str]
) -> Callable[[Callable[P, Awaitable[R]]], Task[P, Any]]:
    """Make a coroutine function a task whose finished calls are never repeated.

    Args:
        name: name of the task; part of the result's key.
        run_name: the task run's name in the run graph, a template filled from the task's parameters or a function.

    Task runs carry no tags: for each one, Prefect asks the server for a concurrency limit of every tag, and a local
    server on SQLite answers some of these with 503, which the client repeats only after two seconds (Prefect 3.8.8).
    """
    return task(
        name=name,
        task_run_name=run_name,
        cache_policy=RunKeyPolicy(),
        persist_result=True,
        result_serializer="json",
        cache_result_in_memory=False,
    )
