"""Watches over a run from inside its own process, because nothing else watches an ad-hoc run.

It renews the run's lease, and stops the work when the run is cancelled, another process takes it over, the server is
gone, or the process is terminated. Requests in flight are dropped; everything that has finished is stored already.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from threading import current_thread, main_thread
from time import monotonic
from typing import Any, Self

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, ObjectNotFound, PrefectHTTPStatusError, TerminationSignal
from prefect.logging import get_logger
from prefect.states import Cancelled, Crashed
from pydantic_core import to_jsonable_python

from fathom.config.secrets import Scrubber, each_text
from fathom.errors import FathomError, RunBusy, RunCancelled, RunTerminated, ServerLost, StoreError
from fathom.storage.lease import LEASE_SECONDS, LeaseFile, read_lease
from fathom.storage.store import ArtifactStore
from tasks.durable import current_run_key, run_logger

CANCELLED = "Cancelled; finished work is kept."
"""Beginning of a cancelled run's message, until a worker replaces it by its own."""
RENEW_SECONDS = 10.0
POLL_SECONDS = 0.3
SERVER_SECONDS = 15.0  # a server that restarts within this time counts as never gone
ANSWER_SECONDS = 5.0
ENDING_SECONDS = 5.0


class Supervision:
    """An async context manager around the body of a flow, on the store of the run's results.

    The lease records the run's parameters, without the secrets that the scrubber knows.

    A run that must stop ends with Prefect's `Abort`, caused by the FathomError that says why. Prefect then proposes no
    state, so that the one set here remains.

    Raises:
        RunBusy: another flow run with the same run key is being worked on.
        StoreError: the lease cannot be kept.
    """

    def __init__(self, store: ArtifactStore, scrubber: Scrubber) -> None:
        context = FlowRunContext.get()
        assert context and context.flow_run, "runs inside a flow"
        self._store = store
        self._flow_run = context.flow_run
        self._parameters = each_text(to_jsonable_python(context.parameters or {}), scrubber.message)
        body = asyncio.current_task()
        assert body is not None
        self._body = body
        self._duties: list[asyncio.Task[None]] = []
        self._reason: FathomError | None = None
        self._sigterm: Any = None

    async def __aenter__(self) -> Self:
        run_id, run_key = str(self._flow_run.id), current_run_key()
        try:
            self._lease = await LeaseFile.take(self._store, run_id, run_key, self._parameters)
        except RunBusy as busy:
            holder = await read_lease(self._store, run_key)
            if holder and holder.run_id == run_id:  # only the other process may set the states of this run
                raise Abort(str(busy)) from busy
            raise
        self._duties = [asyncio.create_task(duty) for duty in (self._keep_lease(), self._watch())]
        # Prefect's handler raises inside whatever runs at that moment. It stays in a worker's process, which the worker
        # ends in its own way.
        if self._flow_run.deployment_id is None and current_thread() is main_thread():
            self._sigterm = signal.getsignal(signal.SIGTERM)
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGTERM, self._stop, RunTerminated("The run's process was terminated.")
            )
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._sigterm is not None:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, self._sigterm)
        for duty in self._duties:
            duty.cancel()
            await _settled(duty)
        if self._reason is None and isinstance(error, (asyncio.CancelledError, TerminationSignal)):
            await _settled(self._ask_why())  # the worker may have been quicker than the watch
        if not isinstance(self._reason, RunBusy):
            await _settled(self._lease.release())
        if self._reason is not None:
            await self._end(self._reason)

    def taken_over(self) -> bool:
        """Whether another process works on the run now."""
        return isinstance(self._reason, RunBusy)

    def _stop(self, reason: FathomError) -> None:
        """Cancel the body of the flow, once."""
        if self._reason is None:
            self._reason = reason
            self._body.cancel()

    async def _end(self, reason: FathomError) -> None:
        """Leave the flow, in the state that the reason asks for."""
        how = f"To continue: fathom resume {str(self._flow_run.id)[:8]}"
        run_logger().warning("%s %s", reason.message, how)
        if isinstance(reason, RunCancelled):
            await _settled(self._set(Cancelled(message=f"{CANCELLED} {how}")))
        elif isinstance(reason, RunTerminated):
            await _settled(self._set(Crashed(message=f"{reason.message} {how}")))
        while self._body.cancelling():
            self._body.uncancel()
        if isinstance(reason, StoreError):
            raise reason
        raise Abort(str(reason)) from reason

    async def _set(self, state: State[Any]) -> None:
        async with _new_client() as client:
            await client.set_flow_run_state(self._flow_run.id, state, force=True)

    # -- duties ---------------------------------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        renewed = monotonic()
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                owned = await self._lease.renew()
            except StoreError as error:
                if monotonic() - renewed > LEASE_SECONDS:
                    self._stop(error)
                continue
            renewed = monotonic()
            if not owned:
                self._stop(RunBusy("Another process has taken over the run.", next_step="see fathom runs"))

    async def _watch(self) -> None:
        answered = monotonic()
        while True:
            try:
                async with _new_client() as client:
                    while True:
                        if await self._is_cancelled(client):
                            self._stop(RunCancelled("The run was cancelled."))
                        answered = monotonic()
                        await asyncio.sleep(POLL_SECONDS)
            except httpx.ConnectError:  # nothing listens there; slow answers are not the same
                if monotonic() - answered > SERVER_SECONDS:
                    self._stop(ServerLost("The Prefect server is gone.", next_step="start it again"))
            except (httpx.TransportError, PrefectHTTPStatusError, ObjectNotFound, TimeoutError):
                pass
            await asyncio.sleep(POLL_SECONDS)

    async def _is_cancelled(self, client: PrefectClient) -> bool:
        async with asyncio.timeout(ANSWER_SECONDS):
            state = (await client.read_flow_run(self._flow_run.id)).state
        return state is not None and (state.is_cancelling() or state.is_cancelled())

    async def _ask_why(self) -> None:
        async with _new_client() as client:
            if await self._is_cancelled(client):
                self._reason = RunCancelled("The run was cancelled.")


def _new_client() -> PrefectClient:
    """Return a new client: the run's own waits a minute for a server that it reached before and that is gone."""
    return get_client(httpx_settings={"timeout": ANSWER_SECONDS})


async def _settled(work: Coroutine[Any, Any, None] | asyncio.Task[None]) -> None:
    """Wait briefly for work whose failure changes nothing, even while this task is being cancelled."""
    task = asyncio.ensure_future(work)
    deadline = monotonic() + ENDING_SECONDS
    while not task.done() and monotonic() < deadline:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task}, timeout=deadline - monotonic())
    if not task.done():
        task.cancel()
    elif not task.cancelled() and (error := task.exception()):
        get_logger("fathom").warning("%s", error)
