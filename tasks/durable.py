"""What makes a run durable: the results of its calls, stored beside the artifacts as soon as each call has finished.

A run consists of two kinds of tasks. Recorded tasks call the outside - models, tools, the clock, the ledger - and their
results are stored. Computed tasks follow from these and from the run's settings; they are computed again when a run is
resumed, which repeats no call. So a call depends only on its arguments, and a setting that it does not read cannot make
a finished call run again.

By default, a nested task's result is committed with its parent's transaction, so a killed step would repeat all of its
finished calls. Each task here therefore makes its transaction eager, which the tasks inside inherit: however deep and
in whatever process, each commits when it finishes. Results are stored under the artifact root, so that a process on any
machine can resume the run.

The distinction serves twice: inside `outside_prefect`, computed tasks run as plain functions, and the caller decides
how recorded tasks get their results. A replay reads the recorded results of its run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from prefect import task
from prefect.cache_policies import NO_CACHE, CachePolicy
from prefect.context import FlowRunContext, TaskRunContext
from prefect.filesystems import WritableFileSystem
from prefect.logging import get_logger, get_run_logger
from prefect.results import ResultStore, get_result_store
from prefect.runtime import flow_run
from prefect.serializers import JSONSerializer
from prefect.tasks import Task
from prefect.transactions import CommitMode, get_transaction
from prefect.utilities.annotations import opaque
from prefect.utilities.callables import get_call_parameters
from pydantic import PrivateAttr
from pydantic_core import from_json, to_jsonable_python

from fathom.errors import RecordMissing, StoreError
from fathom.run.engine import RunStart
from fathom.storage.atomic import OUTAGE_SECONDS
from fathom.storage.lease import RESULTS, as_restored, result_key
from fathom.storage.names import slug
from fathom.storage.store import ArtifactStore
from fathom.telemetry.progress import Event, publish

P = ParamSpec("P")
R = TypeVar("R")


_ASKING_NOBODY = set[str]()
"""The names of recorded tasks, as in the paths of their results, that cost nothing to do again."""


class StoredResults(WritableFileSystem):
    """Task results on the artifact store; a Prefect result storage that needs no saved block."""

    _block_type_name = "Fathom results"
    _block_type_slug = "fathom-results"
    root: str  # the address of the store: the only value that is sent with a task to another process
    _store: ArtifactStore | None = PrivateAttr(None)

    @classmethod
    def on(cls, store: ArtifactStore) -> StoredResults:
        """Return the result storage of a store."""
        results = cls(root=store.address())
        results._store = store
        return results

    @property
    def store(self) -> ArtifactStore:
        """The store, opened at its first use in this process."""
        if self._store is None:
            self._store = run_store(self.root)
        return self._store

    def _resolve_path(self, _path: str) -> None:
        """Tell Prefect that keys are paths in the store."""
        return

    async def read_path(self, path: str) -> bytes:
        """Read a result; FileNotFoundError means that the call has not finished yet.

        Raises:
            StoreError: it is damaged: the disk has lost what it had confirmed.
        """
        data = await self.store.read(_place(path))
        try:
            from_json(data)
        except ValueError as error:
            raise StoreError(
                f"The stored result {self.store.address(_place(path))} is damaged: {error}.",
                next_step="remove the file, and its call is made again; then fathom resume RUN",
            ) from error
        return data

    async def write_path(self, path: str, content: bytes) -> None:
        """Write a result, completely or not at all; the answer of somebody is on the disk soon."""
        await self.store.write(_place(path), content)
        if path.rpartition("/")[2].rpartition("-")[0] not in _ASKING_NOBODY:
            self.store.hasten()


def _place(key: str) -> str:
    """Return the path of a result: Prefect gives the error of a failed task a random key, which is no path."""
    return key if "/" in key else f"{RESULTS}/{current_run_key()}/error-{key}"


@dataclass
class RunKeyPolicy(CachePolicy):
    """A call is the same if its run key, task and inputs are.

    Inputs whose names start with an underscore are live objects and do not count. A run key given by the user spans
    flow runs; without one, it is the flow run's id, which a retry keeps.
    """

    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **_kwargs: Any
    ) -> str:
        """Return the path of the call's result on the artifact store."""
        return _result_path(current_run_key(), task_ctx.task.name, inputs)


def _result_path(run_key: str, task_name: str, inputs: Mapping[str, Any]) -> str:
    counting = {name: value for name, value in inputs.items() if not name.startswith("_")}
    text = json.dumps(to_jsonable_python(counting), sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    return f"{RESULTS}/{run_key}/{slug(task_name)}-{digest}"


def current_run_id() -> str:
    """Return the id of the flow run."""
    return str(flow_run.id)


def current_parameters() -> Mapping[str, Any]:
    """Return the parameters of the flow run, as Prefect stores them."""
    return to_jsonable_python(flow_run.parameters)  # type: ignore[no-any-return]


def current_run_key() -> str:
    """Return the key under which results are stored: the `run_key` parameter, else the flow run's id."""
    return result_key(current_run_id(), flow_run.parameters.get("run_key"))


def run_store(root: str) -> ArtifactStore:
    """Return the store of a run, which rides out outages and says so in the run's progress.

    Raises:
        InvalidInput: there can be no store there.
    """
    return ArtifactStore(root, OUTAGE_SECONDS, _warn)


def _warn(message: str) -> None:
    get_logger("fathom").warning("%s", message)
    publish(Event("warning", message))


def _results_on(store: ArtifactStore) -> ResultStore:
    return ResultStore(
        result_storage=StoredResults.on(store), serializer=JSONSerializer(), cache_result_in_memory=False
    )


@contextmanager
def durable_run(store: ArtifactStore) -> Iterator[None]:
    """Keep the results of all tasks called inside on the store."""
    flow_context = FlowRunContext.get()
    assert flow_context, "durable tasks run inside a flow"
    context = flow_context.model_copy(update={"result_store": _results_on(store), "persist_result": True})
    with context:
        yield


async def recorded_start(store: ArtifactStore, run_key: str, run_id: str) -> RunStart | None:
    """Return the recorded start of a run; None if there is none."""
    results, folder = _results_on(store), f"{RESULTS}/{run_key}"
    for name in await store.list(folder):
        if name.startswith("begin-"):
            start = (await results.aread(f"{folder}/{name}")).result
            if isinstance(start, RunStart) and start.run_id == run_id:
                return start
    return None


async def recorded_folders(store: ArtifactStore, run_key: str) -> list[str]:
    """Return the folders that the runs of a key have in their store: usually one, and none before it is claimed.

    Raises:
        StoreError: a record of an interrupted run is damaged, and no attempt can restore it.
    """
    store = await as_restored(store, run_key)
    results, place, folders = _results_on(store), f"{RESULTS}/{run_key}", set[str]()
    for name in await store.list(place):
        if name.startswith("claim_folder-"):
            folders.add(str((await results.aread(f"{place}/{name}")).result))
    return sorted(folders)


Recorded = Callable[[Task[Any, Any], Mapping[str, Any]], Awaitable[Any]]
"""How a recorded task gets its result outside Prefect, given the task and all its inputs by name."""

_under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""Calls without a task run that are in progress, by the path of their result."""
_outside: ContextVar[Recorded | None] = ContextVar("fathom_outside_prefect", default=None)


@contextmanager
def outside_prefect(recorded: Recorded) -> Iterator[None]:
    """Run the tasks called inside without Prefect or a server; `recorded` provides the results of recorded ones."""
    token = _outside.set(recorded)
    try:
        yield
    finally:
        _outside.reset(token)


def results_of(store: ArtifactStore, run_key: str) -> Recorded:
    """Return a reader of the results that a run left in its store; it raises RecordMissing if there is none."""
    results = _results_on(store)

    async def read(task: Task[Any, Any], inputs: Mapping[str, Any]) -> Any:
        path = _result_path(run_key, task.name, inputs)
        try:
            return (await results.aread(path)).result
        except (FileNotFoundError, ValueError) as error:
            call = task.task_run_name.format(**inputs) if isinstance(task.task_run_name, str) else task.name
            raise RecordMissing(f"There is no record of a {task.name} ({call}) at {path}.") from error

    return read


def storing(store: ArtifactStore, run_key: str) -> Recorded:
    """Return what gives a recorded task the result that is stored, else makes the call and stores its result."""
    results = _results_on(store)

    async def recorded(task: Task[Any, Any], inputs: Mapping[str, Any]) -> Any:
        return await _kept(results, _result_path(run_key, task.name, inputs), lambda: task.fn(**inputs))

    return recorded


async def _kept(results: ResultStore, path: str, call: Callable[[], Awaitable[R]]) -> R:
    """Return the stored result of a call, or make it and store its result."""
    try:
        result: R = (await results.aread(path)).result
    except FileNotFoundError:
        result = await call()
        await results.awrite(result, key=path)
    return result


def run_logger() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """Return Prefect's logger of the run; outside Prefect, one that prints warnings only, unless it is configured."""
    return get_run_logger() if _outside.get() is None else logging.getLogger("fathom.run")


class RunTask(Generic[P, R]):
    """A Prefect task of a run, which `outside_prefect` runs without Prefect.

    Task runs have no tags: for each one, Prefect asks the server for a concurrency limit of every tag, and a local
    server on SQLite answers some of these with 503, which the client repeats only after two seconds (Prefect 3.8.8).
    """

    def __init__(self, task: Task[P, Any], *, recorded: bool, shown: bool = True, absent: Any = ...) -> None:
        self.task = task
        self._recorded = recorded
        self._shown = shown
        self._absent = absent

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the task."""
        recorded = _outside.get()
        if recorded and self._recorded:
            try:
                result: R = await recorded(self.task, get_call_parameters(self.task.fn, args, kwargs))
            except RecordMissing:
                if self._absent is ...:
                    raise
                result = self._absent
        elif recorded:
            result = await self.task.fn(*args, **kwargs)
        elif self._shown:  # Prefect looks for futures in every value of every input, and here is none
            shown: Any = self.task
            result = await shown(*map(opaque, args), **{name: opaque(value) for name, value in kwargs.items()})
        else:
            result = await self.quietly(*args, **kwargs)
        return result

    async def quietly(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the stored result, or compute and store it: what Prefect does for a task run, without one.

        Parallel steps that need the same result wait for the first, which stores it once.
        """
        if _outside.get():
            return await self(*args, **kwargs)
        path = _result_path(current_run_key(), self.task.name, get_call_parameters(self.task.fn, args, kwargs))
        results = get_result_store()
        only = _under_way.setdefault(path, asyncio.Lock())
        async with only:
            return await _kept(results, path, lambda: self.task.fn(*args, **kwargs))


def _eager(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Let the tasks that a task calls commit when they finish, not when the calling task does."""

    @wraps(function)
    async def body(*args: P.args, **kwargs: P.kwargs) -> R:
        if own := get_transaction():  # none in a replay
            own.commit_mode = CommitMode.EAGER
        return await function(*args, **kwargs)

    return body


def recorded_task(
    *, name: str, run_name: str | Callable[[], str], shown: bool = True, asks: bool = True, absent: Any = ...
) -> Callable[[Callable[P, Awaitable[R]]], RunTask[P, R]]:
    """Make a coroutine function a task whose result is stored; its name and its inputs are the key of the result.

    One that is not `shown` has no task run: each costs the server and the process more than reading a clock does.
    One that `asks` nobody, neither a service nor a person, may be done again after a power cut, if nothing followed.
    `absent` is its result in the replay of a run of a version that did not have the task; without it, there is none.
    """

    if not asks:
        _ASKING_NOBODY.add(slug(name))

    def decorate(function: Callable[P, Awaitable[R]]) -> RunTask[P, R]:
        made = task(
            name=name,
            task_run_name=run_name,
            cache_policy=RunKeyPolicy(),
            persist_result=True,
            result_serializer="json",
            cache_result_in_memory=False,
        )(_eager(function))
        return RunTask(made, recorded=True, shown=shown, absent=absent)

    return decorate


def computed_task(
    *, name: str, run_name: str | Callable[[], str]
) -> Callable[[Callable[P, Awaitable[R]]], RunTask[P, R]]:
    """Make a coroutine function a task that is computed again when its run is resumed."""

    def decorate(function: Callable[P, Awaitable[R]]) -> RunTask[P, R]:
        made = task(name=name, task_run_name=run_name, cache_policy=NO_CACHE, persist_result=False)(_eager(function))
        return RunTask(made, recorded=False)

    return decorate
