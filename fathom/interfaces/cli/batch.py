"""`fathom batch`: many questions from a file."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fathom.interfaces.cli.exits import loading
from fathom.interfaces.cli.options import Json, Mcp, Quiet, given_options
from fathom.interfaces.cli.printing import only_searched, output

if TYPE_CHECKING:
    from fathom.models.run import BatchQuestion, BatchResult

_MOST_BYTES = 2**30  # of a file of questions


def batch(
    file: Annotated[str, typer.Argument(help="File of questions: txt, csv or jsonl; - for standard input.")],
    *,
    at_once: Annotated[
        int, typer.Option(metavar="N", min=1, max=500, help="Maximum number of questions researched at once.")
    ] = 8,
    kind: Annotated[
        Literal["txt", "csv", "jsonl"] | None,
        typer.Option("--format", metavar="NAME", help="txt, csv or jsonl (default: by the file extension)."),
    ] = None,
    max_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="Maximum cost of all questions together.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum tokens for all questions together.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum model requests for all questions together.")
    ] = None,
    deployment: Annotated[
        str, typer.Option(metavar="NAME", help="Deployment that runs each question.")
    ] = "deep-research/on-demand",
    mcp: Mcp = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print the expected usage of all questions without starting them.")
    ] = False,
    run_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Name of the batch; an existing batch is continued.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Research many questions, each in its own run.

    A txt file has one question per line. A csv or jsonl file has a column or field `question`, and optionally others
    for settings of a run, such as profile, docs, model or max_usd. The workers of the deployment's work pool research
    the questions; if no worker is running, this command does. results.jsonl and index.html list how each question
    ended.

    To continue an interrupted batch, repeat the command with its --run-key: no finished question is researched again,
    and no finished call is repeated. Exit code: 0 if every question was researched, 1 if not.

    Example: fathom batch questions.csv --docs notes/ --at-once 4
    """

    from fathom.batch.questions import format_of, read_questions
    from fathom.config.inputs import read_text
    from fathom.flows.preflight import batch_caps, check_batch, estimated_batch
    from fathom.interfaces.cli.progress import show_batch
    from fathom.interfaces.cli.research import show_estimate
    from fathom.storage.lease import result_key
    from fathom.storage.names import slug

    name = "batch" if file == "-" else Path(file).stem
    written = format_of(f".{kind}" if kind else "" if file == "-" else file)
    budget = batch_caps({"max_usd": max_usd, "max_tokens": max_tokens, "max_calls": max_calls})
    settings = given_options().over_defaults()
    text = sys.stdin.read() if file == "-" else read_text(Path(file), _MOST_BYTES, "give a file of questions")
    questions = read_questions(text, written, settings)
    settings, questions, notices = check_batch(settings, questions)
    if estimate:
        phases = estimated_batch(questions, settings)
        output(phases, show_estimate, as_json=as_json)
        return
    request = {
        "settings": settings,
        "at_once": at_once,
        "budget": budget,
        "deployment": deployment,
        "run_key": result_key("", run_key) or f"{slug(name)[:40]}-{datetime.now(UTC):%Y%m%d-%H%M%S}",
    }
    try:
        result = research_batch(questions, request, notices, quiet=quiet, progress=not as_json)
    except BaseException as error:
        error.add_note(f"to continue, run the same command with --run-key {request['run_key']}")
        raise
    if quiet and not as_json:
        typer.echo(result.results)
    else:
        output(result, show_batch, as_json=as_json)
    raise typer.Exit(1 if result.failed else 0)


def research_batch(
    questions: Sequence[BatchQuestion], request: dict[str, Any], notices: Sequence[str], *, quiet: bool, progress: bool
) -> BatchResult:
    """Research questions and show their progress on stderr; `request` is as in `fathom.flows.batch.run`.

    Raises:
        FathomError: the batch failed or was stopped; another one with its run key continues it.
    """
    import logging

    from fathom.batch.questions import settings_of
    from fathom.flows.preflight import searched_in
    from fathom.flows.server import be_patient, ensure_api
    from fathom.interfaces.cli.progress import BatchWatch
    from fathom.telemetry.progress import listen

    logging.raiseExceptions = False  # the user need not know of a log line that cannot be sent
    # Whatever a library prints must not get between the results on stdout.
    with BatchWatch(quiet=quiet, progress=progress) as watch, redirect_stdout(sys.stderr):
        for searched in {searched_in(settings_of(question, request["settings"])) for question in questions} - {""}:
            watch.warn(only_searched(searched))
        for notice in notices:
            watch.say(notice)
        be_patient()
        ensure_api(watch.say)
        with loading():
            from fathom.flows.batch import run

        with listen(watch):
            return asyncio.run(run(questions, request, watch.say))
