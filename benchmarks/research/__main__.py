"""The command: `python -m benchmarks.research SET --data PATH --model MODEL`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.ending import ending

SETS = (
    "deep-research-bench, researcher-bench, deep-research-gym, live-research-bench, browsecomp, browsecomp-zh, "
    "browsecomp-plus or simpleqa"
)


def research(
    name: Annotated[str, typer.Argument(metavar="SET", help=f"{SETS}.")],
    *,
    data: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The set's file, or a checkout of its code.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Results folder; by default bench-results/SET-MODEL.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N questions.")] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="Model for every role.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="quick, standard or deep.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting of every run; repeatable."),
    ] = None,
    max_usd: Annotated[float | None, typer.Option(metavar="USD", help="Most that all questions may cost.")] = None,
    max_tokens: Annotated[int | None, typer.Option(metavar="N", help="Most tokens of all questions.")] = None,
    max_calls: Annotated[int | None, typer.Option(metavar="N", help="Most model requests of all questions.")] = None,
    at_once: Annotated[int, typer.Option(metavar="N", min=1, max=500, help="Most questions at the same time.")] = 4,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only print what it would use.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Answer the questions of a published benchmark and write the answers in the form that it scores.

    The same command again continues: no finished question is asked again, and a larger --limit asks only the new ones.
    What is not free needs a cap. Exit code: 0 if every question was researched, 1 if not, 2 if the command is wrong.

    Example: python -m benchmarks.research researcher-bench --data ResearcherBench/ --limit 5
    """
    from benchmarks.research import running
    from benchmarks.research.outcome import SUBMISSION
    from benchmarks.research.registry import BENCHMARKS
    from fathom.config.given import read_settings
    from fathom.errors import InvalidInput
    from fathom.flows.preflight import batch_caps
    from fathom.interfaces.cli.research import show_estimate
    from fathom.storage.names import slug

    if name not in BENCHMARKS:
        raise InvalidInput(f"There is no set {name!r}.", next_step=f"choose from {', '.join(BENCHMARKS)}")
    budget = batch_caps({"max_usd": max_usd, "max_tokens": max_tokens, "max_calls": max_calls})
    benchmark = BENCHMARKS[name]
    questions = benchmark.questions(data)[:limit]
    options: dict[str, Any] = {**read_settings(setting or []), "model": model, "profile": profile}
    place = out or Path("bench-results") / f"{name}-{slug(model or 'default')}"
    prepared = running.prepare(benchmark, questions, place, options)
    phases = running.estimate(prepared)
    if estimate:
        if as_json:
            _print(phases)
        else:
            show_estimate(phases)
        return
    running.check_caps(phases, budget, len(questions), at_once)
    usd = phases[-1].usd
    if not quiet:
        price = "of unknown price" if usd is None else f"usually ${usd.usual:.2f}, at most ${usd.most:.2f}"
        typer.echo(f"{benchmark.title}: {len(questions)} questions, {price}.", err=True)
    result = running.run(prepared, budget, at_once=at_once, quiet=quiet, progress=not as_json)
    if as_json:
        _print({**result.model_dump(mode="json"), "out": str(place)})
    else:
        ended = ", ".join(f"{count} {status.value.replace('_', ' ')}" for status, count in result.ended.items())
        typer.echo(f"{ended} (of {result.questions})\nresults     {place}\nsubmission  {place / SUBMISSION}")
        typer.echo(f"score       {benchmark.score}")
    raise typer.Exit(1 if result.failed else 0)


def _print(found: object) -> None:
    from pydantic_core import to_json

    typer.echo(to_json(found, indent=2).decode())


def main() -> None:
    """Run the command line and exit."""
    with ending():
        app = typer.Typer(add_completion=False)
        app.command()(research)
        # Not by calling `app`, which returns the exit code, replaces our exception hook and says nothing after Ctrl-C.
        command = typer.main.get_command(app)
        with command.make_context("python -m benchmarks.research", sys.argv[1:]) as context:
            command.invoke(context)


if __name__ == "__main__":
    main()
