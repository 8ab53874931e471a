"""Asking a person during a run: in the terminal where it was started, in Prefect's UI, or by `fathom answer`.

The flow run is paused, with a form. A person in the terminal answers by the same path as everybody else, so the first
answer counts. A run of a deployment does not keep its worker's slot for long: it is suspended, its process ends, and it
is run again once it is answered.

Prefect's own functions for this set the state first and store the form after it, ignore an old form's answer once a
process was killed, and would let a run fail that nobody answered in time. So the states are set here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, NoReturn
from uuid import uuid4

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.exceptions import Pause
from prefect.input.run_input import keyset_from_paused_state
from prefect.states import Paused, Running, Suspended
from prefect.utilities.engine import propose_state

from fathom.config.environment import Environment
from fathom.config.groups import Clarify
from fathom.config.secrets import Scrubber
from fathom.errors import InvalidInput, RunCancelled
from fathom.evidence.provenance import digest_of
from fathom.flows.runs.answering import ASKED, RESPONSE, Waiting, answer, form_of, key_of, read_input, reply_of
from fathom.models import Asked, Matter, Reply
from fathom.run.engine import Engine
from fathom.storage.store import json_bytes
from fathom.tasks.clients import prefect_client
from fathom.tasks.events import tell_waiting
from fathom.tasks.supervision import stop
from fathom.telemetry.audit_events import Actor, AuditType
from fathom.telemetry.progress import phase

POLL_SECONDS = 1.0
_MOST_ANSWERS = 200  # of one run
_YEARS = 10 * 365 * 24 * 3600  # Prefect wants a limit for a pause
WHAT = {
    Matter.question: "what the question means",
    Matter.plan: "whether the plan is right",
    Matter.report: "whether the draft of the report is right",
}

Terminal = Callable[[Asked, str], Awaitable[Reply | None]]
"""Asks the person in the terminal, with a complaint about the last answer; returns None when the person has left."""

_terminal: ContextVar[Terminal | None] = ContextVar("fathom_terminal", default=None)


@contextmanager
def in_terminal(terminal: Terminal | None) -> Iterator[None]:
    """Let runs inside the block ask the person in the terminal, if there is one."""
    token = _terminal.set(terminal)
    try:
        yield
    finally:
        _terminal.reset(token)


async def ask(asked: Asked, engine: Engine) -> Reply:
    """Ask a person and return the first usable reply; waiting does not count as work of the run.

    Raises:
        Pause: the run is suspended until it is answered.
        RunCancelled: nobody could be asked whether to go on. A run that a person stops is cancelled.
    """
    context = FlowRunContext.get()
    unattended = _terminal.get() is None and engine.settings.people.clarify is Clarify.never
    if context is None or context.flow_run is None or (asked.optional and unattended):
        return _assumed(asked)  # the pipeline without Prefect, or nobody sits at the run
    async with prefect_client() as client:
        asking = _Asking(client, context.flow_run, asked, engine)
        with engine.ledger.resting():
            reply = await asking.reply()
    reply = Scrubber(Environment.read().secrets).model(reply)
    reply = reply.model_copy(update={"at": datetime.now(UTC).isoformat(timespec="seconds")})
    details = reply.model_dump(mode="json", exclude_defaults=True)
    actor: Actor = "system" if reply.assumed else "user"
    await engine.audit.record(AuditType.person_replied, actor, _short(asked, reply), matter=asked.matter, **details)
    return reply


class _Asking:
    """One question of a run, and its answers on the Prefect server."""

    def __init__(self, client: PrefectClient, flow_run: FlowRun, asked: Asked, engine: Engine) -> None:
        self._client = client
        self._flow_run = flow_run
        self._asked = asked
        self._engine = engine
        self._how = f"fathom answer {str(flow_run.id)[:8]}"
        self._told = False
        self._complaint, self._typed = asked.why, ""  # later the complaint about an answer that cannot be used
        # The key is the same for the same question, whichever process asks.
        self._name = f"{asked.matter.value}-{digest_of(json_bytes(asked))[:12]}"

    async def reply(self) -> Reply:
        """Return the first reply that can be used."""
        reply = await self._earlier()
        while reply is None:
            try:
                reply = await self._ask()
            except InvalidInput as error:
                self._complaint = error.message
        return reply

    async def _earlier(self) -> Reply | None:
        """Return an answer that the server has stored: it came while no process of the run could store it."""
        for state in ("paused", "suspended"):
            kept = await self._client.filter_flow_run_input(
                self._flow_run.id, f"{state}-{self._name}", _MOST_ANSWERS, set()
            )
            for found in kept:
                try:
                    reply = await self._answered(found.key.removesuffix(RESPONSE)) if RESPONSE in found.key else None
                except InvalidInput as error:
                    self._complaint = error.message
                    continue
                if reply:
                    return reply
        return None

    async def _ask(self) -> Reply | None:
        """Ask once, in the process if it may wait; None if somebody let the run go on without an answer.

        Raises:
            InvalidInput: the answer cannot be used.
        """
        terminal, minutes = _terminal.get(), self._engine.settings.people.wait_minutes
        if not terminal and not minutes:
            return await self._nobody()
        key = await self._enter(suspended=False)
        talk = asyncio.create_task(self._talk(terminal, key)) if terminal else None
        try:
            async with asyncio.timeout(None if terminal else 60 * minutes):
                await self._while_paused()
        except TimeoutError:
            if not await self._answered(key):
                return await self._nobody(key)
        finally:
            if talk:
                talk.cancel()
                await asyncio.wait([talk])
        return await self._answered(key)

    async def _enter(self, *, suspended: bool) -> str:
        """Store the form, then let the run wait for it; return the key of this wait."""
        key, said = f"{self._name}-{uuid4().hex[:8]}", f"Waiting for you. Here, or: {self._how}"
        state: State[Any] = (
            Suspended(pause_key=key, message=said)
            if suspended
            else Paused(timeout_seconds=_YEARS, pause_key=key, message=said)
        )
        keyset = keyset_from_paused_state(state)
        state.state_details.run_input_keyset = {str(name): kept for name, kept in keyset.items()}
        form = form_of(self._asked, self._complaint, self._typed)
        await form.asave(keyset, self._flow_run.id)
        kept = {"asked": self._asked.model_dump(mode="json"), "complaint": self._complaint}
        await self._client.create_flow_run_input(self._flow_run.id, f"{key_of(state)}{ASKED}", json.dumps(kept))
        await self._tell()
        reached = await propose_state(self._client, state, self._flow_run.id)
        if suspended and reached.is_paused():
            raise Pause(state=reached)
        return key_of(state)

    async def _tell(self) -> None:
        """Report that the run waits: on its screen, and once in its log and as an event."""
        phase(f"waiting for you: {self._how}")
        if not self._told:
            self._told, what = True, WHAT[self._asked.matter]
            action = f"The run waits for somebody to say {what}: here, or {self._how}"
            await self._engine.audit.record(AuditType.person_asked, "system", action, matter=self._asked.matter)
            await tell_waiting(self._engine.start, what, self._how)

    async def _while_paused(self) -> None:
        # Supervision stops a run that is being cancelled.
        while True:
            state = (await self._client.read_flow_run(self._flow_run.id)).state
            if not state or not (state.is_paused() or state.is_cancelling() or state.is_cancelled()):
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _answered(self, key: str) -> Reply | None:
        """Return the answer to a wait, if there is one.

        Raises:
            InvalidInput: it cannot be used.
        """
        given = await read_input(self._client, self._flow_run.id, f"{key}{RESPONSE}")
        if given is None:
            return None
        self._typed = str(given.get("plan") or "")
        reply = reply_of(self._asked, given)
        if reply.stop:
            # The question is asked again when the run continues.
            await self._client.delete_flow_run_input(self._flow_run.id, f"{key}{RESPONSE}")
            said = f"The run was stopped by {reply.by}."
            await self._engine.audit.record(AuditType.person_replied, "user", said, matter=self._asked.matter)
            await self._stop(said)
        return reply

    async def _talk(self, terminal: Terminal, key: str) -> None:
        """Let the person in the terminal answer, again if the server refuses that."""
        waits = Waiting(self._flow_run.id, key, self._asked)
        complaint = self._complaint
        while reply := await terminal(self._asked, complaint):
            try:
                await answer(waits, reply)
                phase("taking your answer")
                return
            except InvalidInput as error:
                complaint = error.message
            await asyncio.sleep(2 * POLL_SECONDS)  # if somebody else has answered, the conversation ends here

    async def _nobody(self, key: str = "") -> Reply | None:
        """Suspend, continue or stop the run when nobody answers in the process."""
        if self._flow_run.deployment_id:
            if key:
                await propose_state(self._client, Running(), self._flow_run.id)
                if reply := await self._answered(key):  # at this very moment
                    return reply
            await self._enter(suspended=True)
            await asyncio.sleep(POLL_SECONDS)  # not suspended: it is about to be cancelled
            return None
        if self._asked.matter is not Matter.question and not self._asked.optional:
            minutes = self._engine.settings.people.wait_minutes
            await self._stop(f"Within {minutes:g} minutes nobody said {WHAT[self._asked.matter]}.")
        if not key:
            return _assumed(self._asked)
        with suppress(InvalidInput):  # somebody was quicker
            await answer(Waiting(self._flow_run.id, key, self._asked), _assumed(self._asked))
        return await self._answered(key)

    async def _stop(self, why: str) -> NoReturn:
        """Cancel the run, which can be continued, and then asks again."""
        stop([self._flow_run.id], RunCancelled(why))
        await asyncio.Event().wait()
        raise AssertionError("the run was cancelled")


def _assumed(asked: Asked) -> Reply:
    """Return the default reply if nobody replies."""
    if asked.matter is not Matter.question and not asked.optional:
        raise RunCancelled(f"Nobody can be asked {WHAT[asked.matter]}.", next_step="fathom resume RUN asks again")
    return Reply(answers=[question.default for question in asked.questions], assumed=True)


def _short(asked: Asked, reply: Reply) -> str:
    if reply.answers:
        return f"{'assumed' if reply.assumed else 'answered'}: {'; '.join(reply.answers)}"
    changed = f"changed the {asked.matter.value}" if reply.plan else f"accepted the {asked.matter.value}"
    return f"asked for a change: {reply.remark}" if reply.remark else changed
