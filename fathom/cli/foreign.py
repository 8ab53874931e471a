"""`fathom verify FILE.md`: what the check of another system's report found, as a table, as JSON and as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fathom.cli.options import known_runs
from fathom.cli.printing import dollars, line, one_line, output, row

if TYPE_CHECKING:
    from fathom.models import Claim, Report
    from fathom.report.foreign_check import CheckedSource, ForeignCheck

ENDINGS = (".md", ".markdown")
PASSAGE_CHARS = 240
PIPED_WIDTH = 160  # columns of the table where no terminal shows it
_STYLES = {"supported": "green", "contradicted": "red", "not_stated": "red", "not_checked": "dim"}

RunOrReport = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE",
        help="Run: id or its first digits, folder, or plan title. Or a report: its file.",
        autocompletion=known_runs,
    ),
]
Sources = Annotated[
    Path | None,
    typer.Option(
        "--sources", metavar="FOLDER", help="For a report: folder with the texts of its sources.", show_default=False
    ),
]
Fetch = Annotated[bool, typer.Option("--fetch", help="For a report: read its sources from the web.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="For a report: model that judges its claims; extractive compares words only. [FATHOM_MODEL]",
    ),
]
MaxUsd = Annotated[
    float | None,
    typer.Option(
        "--max-usd", metavar="USD", help="For a report: maximum model cost (default: 5 if the price is known)."
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price", metavar="MODEL=IN,OUT[,CACHED]", help="Model price in dollars per million tokens; repeatable."
    ),
]
Page = Annotated[
    Path | None, typer.Option("--page", metavar="FILE", help="For a report: write the evidence to this HTML page.")
]


def is_report(run: str) -> bool:
    """Whether what is to be verified is a file of Markdown, and no run.

    Raises:
        InvalidInput: it has the ending of such a file, and there is none.
    """
    path = Path(run).expanduser()
    if path.suffix.lower() not in ENDINGS:
        return False
    if not path.is_file():
        from fathom.errors import InvalidInput

        raise InvalidInput(f"The file {run!r} does not exist.", next_step="check the path, or give the id of a run")
    return True


class Options(NamedTuple):
    """The options of `fathom verify` that are for reports."""

    sources: Path | None
    fetch: bool
    model: str | None
    max_usd: float | None
    price: list[str] | None
    page: Path | None


def refuse(options: Options) -> None:
    """Check that a run, which has its own sources, is verified without the options of a report.

    Raises:
        InvalidInput: one is given.
    """
    from fathom.errors import InvalidInput

    if wrong := [name for name, value in options._asdict().items() if value not in (None, False, [])]:
        option = f"--{wrong[0].replace('_', '-')}"
        said = f"{option} applies only to a report in a .md file."
        raise InvalidInput(said, next_step=f"leave out {option}: a run has its own sources")


def verify_report(file: str, options: Options, *, as_json: bool) -> None:
    """Check a report of another system, print what was found, and exit with 1 if a claim is objected to."""
    from fathom.cli.watch import Watch
    from fathom.config.given import table_from
    from fathom.flows.foreign import Wish, check_file
    from fathom.telemetry.progress import listen

    path = Path(file).expanduser()
    page = options.page.expanduser() if options.page else None
    if page:
        _check_page(page)
    folder = options.sources.expanduser() if options.sources else None
    prices = table_from("prices", options.price or [])
    wish = Wish(path, folder, options.fetch, options.model, prices, options.max_usd)
    # Whatever a library prints must not get between the results on stdout.
    with Watch(progress=not as_json) as watch, redirect_stdout(sys.stderr), listen(watch):
        found, report = check_file(wish)
    if page:
        _write_page(page, found, report)
    output(found, _show, as_json=as_json)
    if page and not as_json:
        row(("\npage  ", "dim"), str(page))
    raise typer.Exit(1 if found.objections else 0)


def _check_page(page: Path) -> None:
    from fathom.errors import InvalidInput

    if page.suffix.lower() not in (".html", ".htm") or page.is_dir():
        raise InvalidInput(f"{page} is not an HTML file name.", next_step="use a name that ends in .html")


def _write_page(page: Path, found: ForeignCheck, report: Report) -> None:
    from fathom.errors import InvalidInput
    from fathom.report.foreign_check import page_of
    from fathom.storage.atomic import AtomicFiles

    text = page_of(found, report)
    try:
        AtomicFiles(str(page.parent.absolute())).write(page.name, text.encode())
    except OSError as error:
        raise InvalidInput(f"{page} cannot be written: {error.strerror}.", next_step="choose another --page") from error


def _show(found: ForeignCheck) -> None:
    from fathom.models import Verdict
    from fathom.text.plain import counted

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPED_WIDTH)
    numbers = {source.source_id: source.number for source in found.sources}
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("No.", justify="right", no_wrap=True)
    table.add_column("Verdict", no_wrap=True)
    table.add_column("Claim", ratio=5)
    table.add_column("Why", ratio=4)
    for claim in found.claims:
        cited = "".join(f"[{numbers[i]}]" for i in claim.source_ids if i in numbers)
        said = Text.assemble(one_line(claim.sentence), (f" {cited}" if cited else "", "dim"))
        verdict = Text(claim.verdict.words, style=_STYLES[claim.verdict.value])
        why = Text("\n").join(_why(claim, numbers, judged=bool(found.model)))
        table.add_row(str(claim.number), verdict, said, why)
    with console.capture() as drawn:
        console.print(table)
    for drawn_line in drawn.get().splitlines():
        typer.echo(drawn_line.rstrip())
    counts = found.verdicts
    verdicts = ", ".join(f"{counts[verdict]} {verdict.words}" for verdict in Verdict)
    line(f"\n{counted(len(found.claims), 'claim')}: {verdicts}")
    line(("\nSources", "bold"))
    for source in found.sources:
        row(f"{source.number:>3}  ", *_source(source))
    if found.unused_files:
        row(("\nfiles that are not a source of the report  ", "dim"), one_line(", ".join(found.unused_files)))
    line()
    for warning in found.warnings:
        row(("warning  ", "yellow"), one_line(warning))
    row(("judge    ", "dim"), _judge(found))


def _why(claim: Claim, numbers: dict[str, int], *, judged: bool) -> Iterator[Text]:
    """Yield why a claim has its verdict: the reason, and the passage that decides or comes nearest."""
    if claim.judgement and claim.judgement.reason and not claim.complaints:
        yield Text(one_line(claim.judgement.reason))
    for complaint in claim.complaints:
        yield Text(one_line(complaint), style="yellow")
    if claim.verdict.value == "not_checked" and not claim.complaints:
        yield Text("no model judged it" if not judged else "the model did not judge it", style="dim")
    if claim.quotes:
        quote = claim.quotes[0]
        decides = claim.verdict.value in ("supported", "contradicted")
        passage = shorten(one_line(quote.text), PASSAGE_CHARS, placeholder=" …")
        number = f" [{numbers[quote.source_id]}]" if quote.source_id in numbers else ""
        yield Text.assemble(("" if decides else "nearest: ", "dim"), f"“{passage}”", (number, "dim"))


def _source(source: CheckedSource) -> Iterator[str | tuple[str, str]]:
    title = one_line(source.title)
    yield f"{title}  " if title and title != source.url else ""
    yield one_line(source.url), "dim"
    if source.places and source.places != [source.url]:
        yield f"  {one_line(', '.join(source.places))}"
    elif not source.places:
        yield f"  {one_line(source.reason)}", "yellow"


def _judge(found: ForeignCheck) -> str:
    from fathom.text.plain import counted

    if not found.model:
        return (
            "none: comparing words settles only claims that a source states word for word or does not mention at all. "
            "Use --model NAME to have the other claims judged."
        )
    usage = found.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    return f"{found.model}, {counted(usage.llm_calls, 'request')}, {tokens:,} tokens, {dollars(usage.cost_usd)}"
