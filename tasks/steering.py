"""What people say to a run: read at fixed points and recorded, so that a resumed run or a replay hears the same."""

from __future__ import annotations

from datetime import UTC, datetime

from fathom.run.engine import Engine
from fathom.storage.steering import Entry, Steer, stop_among
from fathom.tasks.durable import recorded_task
from fathom.tasks.results import Heard


@recorded_task(name="hear", run_name="read what people say", shown=False, absent=Heard())
async def hear(round_number: int, known: int, closing: bool, more: bool, _engine: Engine) -> Heard:
    """Return the remarks after those that are known, and whether somebody stopped the research.

    When `closing`, nobody can say anything after this: the research ends or, if there are remarks and `more` is
    possible, has one round more. So each remark is taken up or was refused.
    """
    while True:
        entries = await _engine.steering.entries()
        remarks = [entry.remark for entry in entries if entry.kind is Steer.tell][known:]
        stopped = stop_among(entries)
        kind = Steer.heard if more and remarks and not stopped else Steer.ended
        # An earlier attempt may have been killed after it had said so.
        if not closing or any(entry.kind in (kind, Steer.ended) for entry in entries):
            return Heard(remarks=remarks, stopped=stopped)
        if await _engine.steering.add(
            Entry(kind=kind, run_id=_engine.start.run_id, author="fathom", at=datetime.now(UTC).isoformat())
        ):
            return Heard(remarks=remarks, stopped=stopped)
