"""`fathom answer`, `tell`, `stop`, `cancel` and `rate`: what a person says to a run, and of its report."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fathom.config.environment import artifact_root
from fathom.errors import InvalidInput, ServerUnreachable
from fathom.interfaces.cli.options import Json, Root, Run, known_runs
from fathom.interfaces.cli.printing import line, one_line, output, printable

if TYPE_CHECKING:
    from rich.console import Console

    from fathom.flows.runs.steering import Steered
    from fathom.models import Asked, Reply, ReportRating
    from fathom.storage.runs import StoredRun


_MOST_BYTES = 2**20  # of an edited plan


def answer(
    run: Annotated[
        str, typer.Argument(help="The run's id or its first digits (at least 4).", autocompletion=known_runs)
    ],
    *,
    accept: Annotated[
        bool, typer.Option("--accept", help="Accept the assumptions, the plan or the draft as shown.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the run instead of answering.")] = False,
    change: Annotated[str, typer.Option(metavar="TEXT", help="What to change in the plan or the report.")] = "",
    answers: Annotated[
        list[str] | None, typer.Option("--answer", metavar="N=TEXT", help="Answer question N; repeatable.")
    ] = None,
    file: Annotated[Path | None, typer.Option(metavar="PLAN", help="YAML file with the edited plan.")] = None,
    as_json: Json = False,
) -> None:
    """Answer a run that waits for you; `fathom runs` shows such runs.

    Without options, the command puts the run's question to you in the terminal. Outside a terminal, or with --json, it
    only prints the question.

    Example: fathom answer 1a2b3c4d --change "leave out the history"
    """

    if accept + stop + bool(change or answers or file) > 1:
        raise InvalidInput(
            "--accept and --stop cannot be combined with other options.", next_step="fathom answer --help"
        )
    _use_api("so no run waits")
    given = accept or stop or change or answers or file

    def reply(asked: Asked) -> Reply | None:
        return _reply(asked, stop=stop, change=change, answers=answers or [], file=file) if given else None

    asyncio.run(_answered(run.strip(), reply, as_json=as_json))


def _use_api(without: str) -> None:
    """Use the Prefect server that is running.

    Raises:
        ServerUnreachable: there is none, and what follows from that.
    """
    from fathom.flows.server import ensure_api, find_api

    if not find_api():
        raise ServerUnreachable(f"No Prefect server is running, {without}.", next_step="fathom runs lists the runs")
    ensure_api(lambda _line: None)


async def _answered(run: str, reply_of: Callable[[Asked], Reply | None], *, as_json: bool) -> None:
    """Answer a run with the reply of the options; without one, ask the person at the terminal or print the question."""
    from fathom.flows.runs import answering
    from fathom.flows.runs.finding import find_flow_run
    from fathom.interfaces.cli.dialogue import Dialogue

    waits = await answering.waiting((await find_flow_run(run)).id)
    reply = reply_of(waits.asked)
    if not reply and (as_json or not sys.stdin.isatty()):
        asked = {"run_id": waits.run_id, **waits.asked.model_dump(mode="json"), "complaint": waits.complaint}
        described = printable(answering.described(waits.asked, waits.complaint))
        shown = f"{described}\n\nAnswer with {_options(waits.asked)}."
        output(asked, lambda _: typer.echo(shown), as_json=as_json)
    elif reply := reply or await Dialogue(_screen)(waits.asked, waits.complaint):
        await answering.answer(waits, reply)
        go_on = f" The run's process has ended; continue it with: fathom resume {run}" if waits.gone else ""
        answered = {"run_id": waits.run_id, "answered": True}
        output(answered, lambda _: typer.echo(f"Answered.{go_on}"), as_json=as_json)


def _options(asked: Asked) -> str:
    own = {"question": "--answer N=TEXT, ", "plan": "--change TEXT, --file PLAN, "}
    return f"--accept, {own.get(asked.matter.value, '--change TEXT, ' if asked.rewords else '')}or --stop"


def _reply(asked: Asked, *, stop: bool, change: str, answers: Sequence[str], file: Path | None) -> Reply:
    """Return the reply that the options make.

    Raises:
        InvalidInput: they do not answer what is asked.
    """
    from fathom.config.inputs import read_text
    from fathom.interfaces.cli.dialogue import person
    from fathom.models import Matter, Reply
    from fathom.run.checklist import from_yaml

    what = f"The run asks about its {asked.matter.value}"
    if answers and asked.matter is not Matter.question:
        raise InvalidInput(f"{what}, so --answer cannot be used.", next_step="--accept, --change or --stop")
    if change and asked.matter is Matter.question:
        raise InvalidInput(f"{what}, so --change cannot be used.", next_step="--accept, --answer or --stop")
    if file and not asked.plan:
        raise InvalidInput(f"{what}, so --file cannot be used.", next_step="--accept or --stop")
    said = [question.default for question in asked.questions]
    for pair in answers:
        number, equals, text = pair.partition("=")
        if not equals or not number.strip().isdecimal() or not 1 <= int(number) <= len(said) or not text.strip():
            raise InvalidInput(f"--answer {pair!r} is not N=TEXT with N from 1 to {len(said)}.")
        said[int(number) - 1] = text.strip()
    plan = from_yaml(read_text(file, _MOST_BYTES), asked.plan) if file and asked.plan else None
    return Reply(answers=said, plan=plan, remark=change, stop=stop, by=person())


@contextmanager
def _screen() -> Iterator[Console]:
    from rich.console import Console

    yield Console(stderr=True, highlight=False)


As = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Your name, also shown in the report (default: user@host).")
]


def tell(
    run: Run,
    text: Annotated[str, typer.Argument(help="What the run should look at, in quotes.", show_default=False)] = "",
    *,
    take_back: Annotated[
        bool, typer.Option("--take-back", help="Take back the latest remark that the run has not taken up yet.")
    ] = False,
    name: As = None,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Tell a run in progress what else to look at.

    The run may be in any process, on any machine that shares the store. It acts on the remark after the current round;
    if that was the last one, the run adds a round beyond --depth. A run that is already writing accepts no remarks.
    Until the run takes a remark up, --take-back takes it back.

    Example: fathom tell 1a2b3c4d "look at the 2025 figures too"
    """
    from fathom.flows.runs.steering import check_author, check_remark, say
    from fathom.storage.steering import Steer

    if take_back and text:
        raise InvalidInput("--take-back takes no text.", next_step=f"fathom tell {run} --take-back")
    if take_back:
        back = say(run, Steer.back, "", check_author(name), artifacts)
        output(back, lambda back: line(f"Taken back: {one_line(back.text)}"), as_json=as_json)
        return
    said = say(run, Steer.tell, check_remark(text), check_author(name), artifacts)
    output(said, lambda said: _show(said, "acts on it after the current round"), as_json=as_json)


def stop(run: Run, *, name: As = None, artifacts: Root = None, as_json: Json = False) -> None:
    """End the research of a run and let it write its report.

    Calls in progress finish, no new call is made, and the report uses what was found and says who stopped the research.
    A run that waits for your answer stops once you have answered. To end a run without a report: fathom cancel.

    Example: fathom stop 1a2b3c4d
    """
    from fathom.flows.runs.steering import check_author, say
    from fathom.storage.steering import Steer

    said = say(run, Steer.stop, "", check_author(name), artifacts)
    output(said, lambda said: _show(said, "writes its report once the calls in progress have ended"), as_json=as_json)


def cancel(run: Run, *, name: As = None, artifacts: Root = None, as_json: Json = False) -> None:
    """End a run at once, without a report.

    Calls in progress are dropped, and no other starts. What the run has found is kept: `fathom resume` continues it. To
    have a report over what was found: fathom stop. A run that waits for a worker leaves the queue.

    Example: fathom cancel 1a2b3c4d
    """
    from fathom.flows.runs.steering import check_author

    author = check_author(name)
    _use_api("so no run is in progress")
    run_id, ended = asyncio.run(_cancel(run.strip(), author, artifacts))

    def show(_told: object) -> None:
        if ended:
            line(f"The run {run_id[:8]} had ended already: fathom show {run_id[:8]}")
        else:
            line(f"Cancelled as {one_line(author)}. To continue the run: fathom resume {run_id[:8]}")

    output({"run_id": run_id, "cancelled": not ended}, show, as_json=as_json)


async def _cancel(run: str, author: str, artifacts: str | None) -> tuple[str, bool]:
    """Cancel a run, and return its id and whether it had ended already."""
    from fathom.flows.runs.finding import find_flow_run
    from fathom.flows.runs.stored import find_all, locate
    from fathom.service.submissions import cancel_flow_run
    from fathom.storage.store import ArtifactStore

    root, named = locate(run, artifact_root(artifacts))
    flow_run = await find_flow_run(named, await find_all(ArtifactStore(root), named))
    return str(flow_run.id), not await cancel_flow_run(flow_run.id, f"{author} cancelled it.")


def _show(said: Steered, then: str) -> None:
    run = said.run_id[:8]
    if said.running:
        line(f"Told as {one_line(said.author)}: the run {run} {then}.")
    else:
        line(
            f"Stored as {one_line(said.author)}. No process works on the run {run} now; once one does, the run {then}."
        )
        line((f"If the run was interrupted or cancelled: fathom resume {run}", "dim"))


def rate(
    run: Run,
    thumb: Annotated[Literal["up", "down"], typer.Argument(help="Whether the report was of use.", show_default=False)],
    *,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, in quotes.")] = "",
    name: As = None,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Rate a report: up or down, with a note.

    Your rating replaces your earlier one. `fathom show` prints the ratings of a run and `fathom costs` their totals;
    the report and its evidence stay as they are.

    Example: fathom rate 1a2b3c4d down --note "the 2025 figures are missing"
    """
    from fathom.flows.runs.steering import check_author, check_remark
    from fathom.flows.runs.stored import no_report, read_run
    from fathom.storage.steering import Ratings

    said, author = check_remark(note) if note else "", check_author(name)

    async def give(stored: StoredRun) -> ReportRating:
        if await stored.files.report_text() is None:
            raise await no_report(stored.files)
        return await Ratings(stored.store).give(stored.run_id, good=thumb == "up", note=said, by=author)

    output(read_run(run, artifacts, give), _show_rating, as_json=as_json)


def _show_rating(rating: ReportRating) -> None:
    line(f"Rated {'up' if rating.good else 'down'} as {one_line(rating.by)}.")
