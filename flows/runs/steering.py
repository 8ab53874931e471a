"""Remarks of people to a run in progress, in any process on any machine that shares its store."""

from __future__ import annotations

import asyncio
import getpass
import socket
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from fathom.config.environment import Environment, artifact_root
from fathom.config.secrets import Scrubber
from fathom.errors import InvalidInput, RunNotFound
from fathom.flows.runs.states import place, recent
from fathom.flows.runs.stored import find, find_here, is_prefix, locate, on_stderr
from fathom.flows.server import find_api
from fathom.models import Model
from fathom.storage.lease import read_lease
from fathom.storage.runs import StoredRun
from fathom.storage.steering import Steer, Steering, SteeringEntry, waiting_among
from fathom.text.plain import clean_line

MOST_CHARS, MOST_NAME = 1_000, 100
AGAIN = 'ask for more: fathom ask RUN "..."'


class Steered(Model):
    """What was said to a run; `text` of `back` is the remark that was taken back. `running`: a process works on it."""

    run_id: str
    kind: Literal["tell", "back", "stop"]
    text: str
    author: str
    at: str
    running: bool


def check_remark(text: str) -> str:
    """Return a remark on one line, without control characters, and without secrets.

    Raises:
        InvalidInput: it is empty or longer than 1,000 characters.
    """
    text = Scrubber(Environment.read().secrets).message(clean_line(text))
    if not text:
        raise InvalidInput("The remark is empty.", next_step='say what to look at: fathom tell RUN "the 2025 figures"')
    if len(text) > MOST_CHARS:
        raise InvalidInput(
            f"The remark has {len(text):,} characters; the limit is {MOST_CHARS:,}.", next_step="shorten it"
        )
    return text


def check_author(name: str | None) -> str:
    """Return the author's name, by default `user@host`.

    Raises:
        InvalidInput: it is empty or longer than 100 characters.
    """
    if name is None:
        user = "someone"
        with suppress(OSError, KeyError, ImportError):  # a container may run as a user without a name
            user = getpass.getuser()
        name = f"{user}@{socket.gethostname()}"
    name = Scrubber(Environment.read().secrets).message(clean_line(name))
    if not 0 < len(name) <= MOST_NAME:
        raise InvalidInput(f"--as takes 1 to {MOST_NAME} characters.", next_step="for example --as ann")
    return name


def say(name: str, kind: Steer, text: str, author: str, artifacts: str | None) -> Steered:
    """Find a run, and steer it; the run reads what was said at the next fixed point.

    Raises:
        RunNotFound: there is no such run.
        InvalidInput: there are several, or it is too late.
    """

    async def said() -> Steered:
        return await steer(await _found(name, artifacts), kind, text, author)

    return asyncio.run(said())


async def steer(run: StoredRun, kind: Steer, text: str, author: str) -> Steered:
    """Tell a run of a store something, take that back, or stop its research.

    `text` is the remark or, of one that is taken back, its token; without one, the latest that can be is taken back.

    Raises:
        InvalidInput: it is too late.
    """
    run_id = run.run_id
    result = await run.files.result()
    if result and result.run_id == run_id:
        raise InvalidInput(f"The run {run_id[:8]} has finished.", next_step=f"fathom show {run_id[:8]}, or {AGAIN}")
    entry = SteeringEntry(
        kind=kind, run_id=run_id, author=author, at=datetime.now(UTC).isoformat(timespec="seconds"), text=text
    )
    steering = Steering(run.store, run.run_key, run_id)
    while True:
        entries = await steering.entries()
        if kind is Steer.back:
            remark = _waiting(entries, text, run_id[:8])
            entry, said = entry.model_copy(update={"text": remark.token}), remark.text
        else:
            _check_open(entries, kind, run_id[:8])
            said = text
        if await steering.add(entry):
            break
    lease = await read_lease(run.store, run.run_key)
    return Steered(
        run_id=run_id,
        kind=kind.value,
        text=said,
        author=author,
        at=entry.at,
        running=lease is not None and lease.alive,
    )


def _waiting(entries: list[SteeringEntry], token: str, run: str) -> SteeringEntry:
    waiting = waiting_among(entries)
    if found := [entry for entry in waiting if token in ("", entry.token)]:
        return found[-1]
    if token and waiting:
        message = f"The run {run} has taken this remark up already, or it was taken back."
    else:
        message = f"The run {run} has no remark that can still be taken back: it has taken up what it was told."
    raise InvalidInput(message, next_step=f'tell it what to do instead: fathom tell {run} "..."')


def _check_open(entries: list[SteeringEntry], kind: Steer, run: str) -> None:
    if kind is Steer.stop and (stopped := next((e for e in entries if e.kind is Steer.stop), None)):
        raise InvalidInput(
            f"{stopped.remark.said} stopped the research of {run} already.", next_step="the report is on its way"
        )
    if any(entry.kind in (Steer.stop, Steer.ended) for entry in entries):
        raise InvalidInput(
            f"The run {run} has ended its research and is writing.",
            next_step=f"wait for the report, then {AGAIN}",
        )
    if kind is Steer.tell and any(entry.kind is Steer.heard for entry in entries):
        raise InvalidInput(
            f"The run {run} is in its last round and takes up no further remark.",
            next_step=f"wait for the report, then {AGAIN}",
        )


async def _found(name: str, artifacts: str | None) -> StoredRun:
    """Return a run; if it waits for a worker, from the server's record."""
    try:
        return await find_here(name, artifacts, on_stderr)
    except RunNotFound:
        folder = locate(name, artifact_root(artifacts))[1]
        for run in await recent() if find_api() else ():
            if is_prefix(folder, run.id):
                own, run_key = place(run.id, run.parameters)
                with suppress(RunNotFound):
                    return await find(own, run.id)
                return StoredRun(own, "", run.id, run_key)
        raise
