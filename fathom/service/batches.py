"""Batches that were asked of the server: a flow run on its pool, whose questions run there too and are the caller's.

What the server stores of a batch is whose it is and which flow run; all else is Prefect's and the batch's own. A batch
of somebody else does not exist for a caller: `NotThere`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID, uuid4

from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import ObjectNotFound
from pydantic import ValidationError

from fathom.batch.folder import QUESTIONS, BatchFolder
from fathom.batch.questions import Format, lines_of, read_questions, settings_of
from fathom.client.resources import Batch, BatchList, BatchRequest, BatchSummary, Question
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, NotThere
from fathom.flows.batch import research_batch
from fathom.flows.execution.deploying import create_run, deploy
from fathom.flows.preflight import check_batch, searched_in
from fathom.flows.runs.states import FLOW, row_of, state_of
from fathom.models import Model, RunState
from fathom.models.run import BatchQuestion, BatchRow
from fathom.service.activity import Action
from fathom.service.caller import AccessRole, Caller, check_owner, check_read, owned_by
from fathom.service.limits import capped, most_usd
from fathom.service.run_view import API, notices_of
from fathom.service.runs import RunService
from fathom.service.submissions import cancel_flow_run
from fathom.storage.atomic import side_by_side
from fathom.storage.lease import result_key
from fathom.storage.names import slug
from fathom.storage.ownership import Ownership
from fathom.storage.store import BATCHES, json_bytes
from fathom.tasks.clients import prefect_client

FOLDER = ".serve/batches"
State = Literal["queued", "running", "ended", "interrupted", "cancelled", "failed"]


class _Kept(Model):
    """What the server stores of a batch."""

    owner: str
    created: str
    questions: int
    run_id: str

    @property
    def ownership(self) -> Ownership:
        """Whose it is."""
        return Ownership(owner=self.owner)


async def start(
    service: RunService, caller: Caller, request: BatchRequest, table: tuple[str, Format] | None = None
) -> Batch:
    """Start a batch of the questions of a request or, in their place, of a table of questions in some format.

    Raises:
        NotAllowed: the caller may not ask, or not with these settings.
        InvalidInput: a question cannot be researched, or a line of the table cannot be used.
    """
    caller.check(AccessRole.asker)
    settings = service.settings_for(caller, request.settings, request.template)
    asked = [one if isinstance(one, Question) else Question(question=one) for one in request.questions]
    # As a file would be read: the same checks, with the numbers of questions in place of lines.
    listed = lines_of([BatchQuestion(question=one.question, settings=one.settings) for one in asked])
    text, kind = table or (listed, "jsonl")
    questions = read_questions(text, kind, settings)
    most = await _most(service, caller, settings, questions)
    settings, checked, _ = await asyncio.to_thread(check_batch, settings, questions, ask_prefect=False)
    usd = Decimal(str(request.budget.max_usd)) if request.budget.max_usd else most
    async with service.spending.taking(caller, usd, len(checked)) as taken:
        # What was taken is all that the batch may spend; it is not given back: its runs are too many to ask for.
        capped_at = {"max_usd": float(usd)} if taken and taken.usd else {}
        key, flow_run = await _created(service, caller, request, settings, checked, capped_at)
    now = datetime.now(UTC).isoformat()
    kept = _Kept(owner=caller.name, created=now, questions=len(checked), run_id=str(flow_run.id))
    await service.store.create(f"{FOLDER}/{key}.json", json_bytes(kept))
    await service.activity.note(kept.run_id, caller, Action.asked)
    searched = [searched_in(settings_of(question, settings)) for question in checked]
    return (await _shown(service, key, kept)).model_copy(update={"notices": notices_of(*searched)})


async def latest(service: RunService, caller: Caller) -> BatchList:
    """Return the batches that the caller may see, the newest first."""
    names = [name.removesuffix(".json") for name in await service.store.list(FOLDER)]

    async def read(key: str) -> Batch | None:
        kept = await _read(service, key)
        return await _shown(service, key, kept) if kept and kept.ownership.readable_by(caller) else None

    found = [one for one in await side_by_side(names, read) if one]
    found.sort(key=lambda one: (one.created, one.id), reverse=True)
    fields = set(BatchSummary.model_fields)
    return BatchList(batches=[BatchSummary(**one.model_dump(include=fields)) for one in found])


async def one(service: RunService, caller: Caller, key: str) -> Batch:
    """Return a batch with a row for each question."""
    return await _shown(service, key, await _find(service, caller, key))


async def cancel(service: RunService, caller: Caller, key: str) -> None:
    """End a batch and the runs of its questions that are under way.

    Raises:
        NotAllowed: it is somebody else's.
    """
    kept = await _find(service, caller, key)
    check_owner(kept.ownership, caller, "batch")
    if flow_run := await _flow_run(kept.run_id):
        await cancel_flow_run(flow_run.id, f"{caller.name} cancelled it.")


async def _most(
    service: RunService, caller: Caller, settings: ResearchSettings, questions: Sequence[BatchQuestion]
) -> Decimal:
    """Check what the caller has chosen for each question, as for a run of its own, and return what all may cost."""
    costs: dict[str, Decimal] = {}
    total = Decimal(0)
    for question in questions:
        if question.run_key:
            raise InvalidInput(
                "Questions in a batch of the server cannot have a run key.", next_step="leave `run_key` out"
            )
        own = json.dumps(question.settings, sort_keys=True)
        if own not in costs:
            service.settings_for(caller, question.settings)  # what no request may set, no question of it may
            merged = settings_of(question, settings)
            await service.check_use(caller, merged)
            costs[own] = most_usd(capped(caller, merged))
        total += costs[own]
    return total


async def _created(  # noqa: PLR0917 - what is asked, and by whom
    service: RunService,
    caller: Caller,
    request: BatchRequest,
    settings: ResearchSettings,
    questions: Sequence[BatchQuestion],
    capped_at: dict[str, float],
) -> tuple[str, FlowRun]:
    key = f"{slug(request.name)[:40].replace('_', '-')}-{uuid4().hex[:8]}"
    path = f"{BATCHES}/{key}/{QUESTIONS}"
    about = "Research many questions that were asked of the server."
    async with prefect_client() as client:
        room = await service.submissions.check_room(client)
        await service.store.write(path, lines_of(questions).encode())
        made = await deploy(
            service.options.deployment, research_batch, description=about, pool=service.options.work_pool
        )
        flow_run = await create_run(
            client,
            made,
            {
                "file": service.store.address(path),
                "settings": capped(caller, settings).model_dump(mode="json", exclude_unset=True),
                "at_once": min(request.at_once, room),
                "budget": request.budget.model_dump(exclude_none=True) | capped_at,
                "deployment": f"{FLOW}/{service.options.deployment}",
                "run_key": key,
            },
            tags=owned_by(caller).tags,
            key=f"fathom/serve/batch/{key}",
        )
    return key, flow_run


async def _find(service: RunService, caller: Caller, key: str) -> _Kept:
    missing = NotThere(f"There is no batch {key[:60]!r}.", next_step="GET /api/v1/batches lists them")
    kept = await _read(service, key) if key and result_key("", key) == key else None
    if kept is None:
        raise missing
    check_read(kept.ownership, caller, missing)
    return kept


async def _read(service: RunService, key: str) -> _Kept | None:
    try:
        return _Kept.model_validate_json(await service.store.read(f"{FOLDER}/{key}.json"))
    except (FileNotFoundError, ValidationError):
        return None


async def _shown(service: RunService, key: str, kept: _Kept) -> Batch:
    folder = BatchFolder(service.store, key)
    text = (await service.store.read(f"{folder.path}/{QUESTIONS}")).decode()
    questions = read_questions(text, "jsonl", ResearchSettings())
    rows = [_row(service, record.row) for record in (await folder.records(questions)).values()]
    costs = [row.cost_usd for row in rows]
    return Batch(
        id=key,
        run_id=kept.run_id,
        state=await _state(await _flow_run(kept.run_id)),
        created=kept.created,
        owner=kept.owner,
        questions=kept.questions,
        ended=dict(Counter(row.status for row in rows)),
        rows=rows,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost),
    )


def _row(service: RunService, row: BatchRow) -> BatchRow:
    reason = service.without_paths(row.reason)
    report = f"{API}/runs/{row.run_id}/report" if row.report else ""
    return row.model_copy(update={"reason": reason, "report": report})


async def _flow_run(run_id: str) -> FlowRun | None:
    async with prefect_client() as client:
        try:
            return await client.read_flow_run(UUID(run_id))
        except ObjectNotFound:
            return None


async def _state(flow_run: FlowRun | None) -> State:
    if flow_run is None or flow_run.state_type is None:
        return "ended"
    if await state_of(row_of(flow_run)) is RunState.interrupted:
        return "interrupted"
    kinds: dict[StateType, State] = {
        StateType.SCHEDULED: "queued",
        StateType.PENDING: "queued",
        StateType.CANCELLED: "cancelled",
        StateType.CANCELLING: "cancelled",
        StateType.COMPLETED: "ended",
        StateType.FAILED: "failed",
    }
    kind = kinds.get(flow_run.state_type, "running")
    # A batch in which a question failed is a failed flow run too; it has ended all the same.
    ended = kind == "failed" and ". Results: " in ((flow_run.state and flow_run.state.message) or "")
    return "ended" if ended else kind
