"""Runs made of checked requests: their deployment, their owner, what they may spend, and how they are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterIdempotencyKey
from prefect.states import Cancelled, Cancelling

from fathom.config.settings import ResearchSettings
from fathom.errors import Conflict, TooManyRequests
from fathom.flows.deep_research import deep_research
from fathom.flows.execution.deploying import create_run, deploy
from fathom.flows.runs.states import FLOW
from fathom.service.activity import Action, ActivityLog
from fathom.service.caller import Caller
from fathom.service.limits import Spending, capped, check_most, most_usd
from fathom.service.options import Options
from fathom.service.outages import starting
from fathom.service.workers import waiting_in
from fathom.storage.ownership import Owners, Ownership
from fathom.tasks.clients import prefect_client
from fathom.text.plain import counted

AT_ONCE = 8
"""Runs that are submitted at the same moment; Prefect would take no more of them in the same time."""
TURN_SECONDS = 5.0
"""In which whoever asks gets a turn, or is told that too many ask."""
FULL_SECONDS = 30.0
"""After which it is worth asking again where enough runs wait: about what a short run takes."""


class Submissions:
    """Flow runs of the server's deployment. `wake` is called after each, so that a worker looks for it at once."""

    def __init__(
        self,
        options: Options,
        owners: Owners,
        activity: ActivityLog,
        spending: Spending,
        wake: Callable[[], object] = lambda: None,
    ) -> None:
        self._options = options
        self._owners = owners
        self._activity = activity
        self._spending = spending
        self._wake = wake
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def deploy(self) -> None:
        """Make the deployment whose runs the server starts."""
        with starting():
            await deploy(
                self._options.deployment,
                deep_research,
                description="Research a question that was asked of the server.",
                pool=self._options.work_pool,
            )

    async def submit(
        self,
        caller: Caller,
        query: str,
        settings: ResearchSettings,
        ownership: Ownership,
        *,
        key: str,
        parent: str = "",
    ) -> str:
        """Start a run and return its id; with the same key, the same caller gets the same run again.

        Raises:
            NotAllowed: one run of the caller may not use so much.
            TooManyRequests: the caller has used up what a day allows, enough runs wait, or too many ask at the moment.
            Conflict: the key was used for another request.
        """
        check_most(caller, settings)
        settings = capped(caller, settings)
        given = settings.model_dump(mode="json", exclude_unset=True)
        parameters = {"query": query, "settings": given, **({"parent": parent} if parent else {})}
        own_key = f"serve/{caller.name}/{key}" if key else ""
        async with self._turn(), prefect_client() as client:
            deployment = await client.read_deployment_by_name(f"{FLOW}/{self._options.deployment}")
            repeated = bool(own_key) and await _exists(client, own_key)
            if not repeated:
                await self.check_room(client)
            async with nullcontext() if repeated else self._spending.taking(caller, most_usd(settings)) as taken:
                flow_run = await create_run(client, deployment.id, parameters, tags=ownership.tags, key=own_key or None)
        run_id = str(flow_run.id)
        if taken:
            await self._spending.hold(caller, taken, run_id)
        if key and {name: flow_run.parameters.get(name) for name in parameters} != parameters:
            raise Conflict("This Idempotency-Key was used for another request.", next_step="choose another key")
        if not repeated:
            await self._owners.record(run_id, ownership)
            await self._activity.note(run_id, caller, Action.asked)
        self._wake()
        return run_id

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn to ask Prefect, which gets slower for all where too many ask.

        Raises:
            TooManyRequests: it did not come in time.
        """
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise TooManyRequests(
                "More questions are asked than Prefect takes.", next_step="ask again later", retry_after=TURN_SECONDS
            ) from None
        try:
            yield
        finally:
            self._turns.release()

    async def check_room(self, client: PrefectClient) -> int:
        """Check that one more run may wait, and return how many may. Several who ask at once may all come in.

        Raises:
            TooManyRequests: as many wait as may.
        """
        waiting = await waiting_in(client, self._options.work_pool)
        if waiting >= self._options.queue:
            raise TooManyRequests(
                f"{counted(waiting, 'run')} wait for a worker, and no more may.",
                next_step="ask again later; `fathom serve --queue N` lets more wait",
                retry_after=FULL_SECONDS,
            )
        return self._options.queue - waiting


async def _exists(client: PrefectClient, key: str) -> bool:
    """Whether there is a run that was started with a key."""
    found = FlowRunFilter(idempotency_key=FlowRunFilterIdempotencyKey(any_=[key]))
    return bool(await client.read_flow_runs(flow_run_filter=found, limit=1))


BEGIN_SECONDS = 5.0
"""In which a run that was taken begins. It would overwrite a state that was set while it begins."""
_LOOK_SECONDS = 0.1


async def cancel_flow_run(flow_run_id: UUID, message: str) -> bool:
    """Cancel a flow run, and return whether there was anything to cancel."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BEGIN_SECONDS
    async with prefect_client() as client:
        state = (await client.read_flow_run(flow_run_id)).state
        while state and state.is_pending() and loop.time() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            state = (await client.read_flow_run(flow_run_id)).state
        if state and state.is_final():
            return False
        # Without a process there is nobody who would say that it has ended.
        waits = state is not None and (state.is_scheduled() or state.name == "Suspended")
        ends = Cancelled if waits else Cancelling
        await client.set_flow_run_state(flow_run_id, ends(message=message), force=True)
    return True
