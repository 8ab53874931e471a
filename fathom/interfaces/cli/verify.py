"""`fathom verify` and `fathom trace`: checking the claims of a run or of another system's report."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fathom.errors import InvalidInput
from fathom.interfaces.cli.options import Json, Root, Run, flag_of, given_options, known_runs
from fathom.interfaces.cli.printing import dollars, line, one_line, output, printable, row
from fathom.text.plain import counted

if TYPE_CHECKING:
    from fathom.evidence.trace import Link, Trace
    from fathom.evidence.verify import Verification
    from fathom.models import Report
    from fathom.models.evidence import Claim
    from fathom.report.foreign.check import CheckedSource, ForeignCheck
    from fathom.report.foreign.judging import Wish

_STYLES = {
    "supported": "green",
    "contradicted": "red",
    "not_stated": "red",
    "not_checked": "dim",
    "verified": "green",
}
_PARTS = {"cited": "quote", "corroborating": "also said by", "contradicting": "contradicted by"}


def verify(
    run: RunOrReport,
    artifacts: Root = None,
    *,
    sources: Sources = None,
    fetch: Fetch = False,
    page: Page = None,
    as_json: Json = False,
) -> None:
    """Check a run again, or check a report from another system.

    For a run, every file, quote and verdict is checked again, without a server, network or model. Exits with 1 if a
    byte was changed or a check has a different result, and names the file and the claim.

    A report is a .md file that has links, footnotes or numbered references. Its claims are checked against the texts of
    its sources (--sources, --fetch), and judged by a model if one is chosen; extractive compares words only. Exits with
    1 if the sources do not state a claim, or contradict it.

    Example: fathom verify 1a2b3c4d

    Example: fathom verify report.md --fetch --model openai/gpt-5-mini --page check.html
    """
    given = given_options()
    if is_report(run):
        from fathom.report.foreign.judging import Wish

        folder, settings = sources.expanduser() if sources else None, given.checked(given.chosen())
        verify_report(Wish(Path(run).expanduser(), folder, fetch, settings), page, as_json=as_json)
    own = {"--sources": sources, "--fetch": fetch, "--page": page}
    for option in [*(name for name, value in own.items() if value), *map(flag_of, given.options)]:
        said = f"{option} applies only to a report in a .md file."
        raise InvalidInput(said, next_step=f"leave out {option}: a run has its own sources")
    from fathom.flows.runs.comparing import verified
    from fathom.flows.runs.stored import read_run

    found = read_run(run, artifacts, verified)
    output(found, _show_verification, as_json=as_json)
    raise typer.Exit(0 if found.ok else 1)


def _show_verification(found: Verification) -> None:
    from fathom.models.evidence import Verdict

    console = Console(highlight=False)
    for claim in found.claims:
        line(f"{claim.number:>3}  ", *_verdict(claim))
        text = Text(one_line(claim.sentence))
        for complaint in claim.complaints:
            text.append(f"\n{one_line(complaint)}", style="yellow")
        console.print(Padding(text, (0, 0, 0, 5)))
    counts = Counter(claim.verdict for claim in found.claims)
    verdicts = ", ".join(f"{counts[verdict]} {verdict.words}" for verdict in Verdict)
    line(f"\n{counted(len(found.claims), 'claim')}: {verdicts}")
    for problem in found.problems:
        where = f"{problem.file}, claim {problem.claim}" if problem.claim else problem.file
        line((printable(f"✗ {where}: {problem.message}"), "red"))
    if found.ok:
        checked = "every check has the same result" if found.rechecked else "the verdicts were made by older rules"
        line((f"{found.files} files and {found.quotes} quotes are unchanged; {checked}", "green"))


def _verdict(claim: Claim) -> Iterator[tuple[str, str]]:
    from fathom.report.prose import support_in_words
    from fathom.text.wording import ENGLISH

    verdict, corroboration = claim.verdict, claim.corroboration
    yield f"{verdict.words:<12}", _STYLES[verdict.value]
    yield f"  score {claim.score:.2f}  ", "dim"
    yield support_in_words(claim, ENGLISH), _STYLES.get(corroboration.value, "dim")


def trace(
    run: Run,
    number: Annotated[int, typer.Argument(metavar="N", help="Number of the claim, as `fathom verify` lists it.")],
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Show the stored passages that support a claim of a report.

    Needs no server, network or model. Exits with 1 if the stored files no longer contain the quotes.

    Example: fathom trace 1a2b3c4d 7
    """
    from fathom.flows.runs.comparing import traced
    from fathom.flows.runs.stored import read_run

    found, wrong = read_run(run, artifacts, lambda stored: traced(stored, number))
    output(found, _show_trace, as_json=as_json)
    changed = sorted({f"{problem.file}: {problem.message}" for problem in wrong})
    for problem in changed:
        typer.echo(f"fathom: {problem}", err=True)
    raise typer.Exit(1 if changed else 0)


def _show_trace(found: Trace) -> None:
    claim = found.claim
    line((f"Claim {claim.number}, in “{one_line(found.heading)}”", "bold"))
    line(one_line(claim.sentence))
    _show_row("cites", ", ".join(claim.source_ids) or "nothing")
    _show_row("verdict", *_verdict(claim))
    for complaint in claim.complaints:
        _show_row("complaint", (one_line(complaint), "yellow"))
    if claim.judgement:
        reason = f": {claim.judgement.reason}" if claim.judgement.reason else ""
        _show_row("judged", f"{claim.judgement.verdict.words} by {claim.judgement.model}{reason}")
        if claim.judgement.given:
            _show_row("given", f"by the question, not a source: {one_line('; '.join(claim.judgement.given))}")
    for link in found.links:
        nearest = link.part == "cited" and claim.verdict.value in ("not_stated", "not_checked")
        line(("\nnearest passage" if nearest else f"\n{_PARTS[link.part]}", "bold"))
        # The bar keeps the space between the quote and what stands next to it.
        before, after = one_line(f"{link.before}|")[:-1], one_line(f"|{link.after}")[1:]
        row("  ", (before, "dim"), (one_line(link.quote.text), "bold"), (after, "dim"))
        for name, value in _chain(link):
            _show_row(name, one_line(value))
    if not found.links:
        line("\nNo stored passage is similar to it.")


def _chain(link: Link) -> Iterator[tuple[str, str]]:
    quote = link.quote
    yield "file", f"{quote.artifact_file}, bytes {quote.start} to {quote.end}, line {link.line} of the text"
    yield "sha256", quote.sha256
    if link.source:
        yield "source", f"[{quote.source_id}] {link.source.title}"
        yield "address", link.source.url
    if link.call:
        yield "retrieved", link.call.retrieved or "not recorded"
        yield "call", f"{link.call.number}. {link.call.tool}: {link.call.input}"
        yield "step", f"{link.call.step_id}. {link.step}"
    for title in link.notes:
        yield "note", title


def _show_row(name: str, *parts: str | tuple[str, str]) -> None:
    row((f"  {name:<10} ", "dim"), *parts)


ENDINGS = (".md", ".markdown")
PASSAGE_CHARS = 240
PIPED_WIDTH = 160  # width of the table in columns, if the output is not a terminal

RunOrReport = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE",
        help="Run: id or its first digits (at least 4), folder, or plan title. Or a report: its file.",
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
Page = Annotated[
    Path | None, typer.Option("--page", metavar="FILE", help="For a report: write the evidence to this HTML page.")
]


def is_report(run: str) -> bool:
    """Whether the argument names a Markdown file and not a run.

    Raises:
        InvalidInput: it has the extension of such a file, but the file does not exist.
    """
    path = Path(run).expanduser()
    if path.suffix.lower() not in ENDINGS:
        return False
    if not path.is_file():
        raise InvalidInput(f"The file {run!r} does not exist.", next_step="check the path, or give the id of a run")
    return True


def verify_report(wish: Wish, page: Path | None, *, as_json: bool) -> None:
    """Check a report of another system, print what was found, and exit with 1 if a claim is objected to."""
    from fathom.interfaces.cli.progress import RunWatcher
    from fathom.report.foreign.judging import check_file
    from fathom.telemetry.progress import listen

    page = page.expanduser() if page else None
    if page and (page.suffix.lower() not in (".html", ".htm") or page.is_dir()):
        raise InvalidInput(f"{page} is not an HTML file name.", next_step="use a name that ends in .html")
    # Whatever a library prints must not get between the results on stdout.
    with RunWatcher(progress=not as_json) as watch, redirect_stdout(sys.stderr), listen(watch):
        found, report = check_file(wish)
    if page:
        _write_page(page, found, report)
    output(found, _show, as_json=as_json)
    if page and not as_json:
        row(("\npage  ", "dim"), str(page))
    raise typer.Exit(1 if found.objections else 0)


def _write_page(page: Path, found: ForeignCheck, report: Report) -> None:
    from fathom.report.foreign.check import page_of
    from fathom.storage.atomic import AtomicFiles

    text = page_of(found, report)
    try:
        AtomicFiles(str(page.parent.absolute())).write(page.name, text.encode())
    except OSError as error:
        raise InvalidInput(f"{page} cannot be written: {error.strerror}.", next_step="choose another --page") from error


def _show(found: ForeignCheck) -> None:
    from fathom.models import Verdict

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
    """Yield the grounds of a claim's verdict: the reason, and the passage that decides or comes closest."""
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

    if not found.model:
        return (
            "none: comparing words settles only claims that a source states word for word or does not mention at all. "
            "Use --model NAME to have the other claims judged."
        )
    usage = found.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    return f"{found.model}, {counted(usage.llm_calls, 'request')}, {tokens:,} tokens, {dollars(usage.cost_usd)}"
