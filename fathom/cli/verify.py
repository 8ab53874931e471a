"""`fathom verify` and `fathom trace`: the verdict on each claim, and the way from one claim to the stored bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fathom.cli import foreign
from fathom.cli.options import Json, Root, Run
from fathom.cli.printing import line, one_line, output, printable, row

if TYPE_CHECKING:
    from fathom.evidence.trace import Link, Trace
    from fathom.evidence.verify import Verification
    from fathom.models.evidence import Claim

_STYLES = {
    "supported": "green",
    "contradicted": "red",
    "not_stated": "red",
    "not_checked": "dim",
    "verified": "green",
}
_PARTS = {"cited": "quote", "corroborating": "also said by", "contradicting": "contradicted by"}


def verify(
    run: foreign.RunOrReport,
    artifacts: Root = None,
    *,
    sources: foreign.Sources = None,
    fetch: foreign.Fetch = False,
    model: foreign.Model = None,
    max_usd: foreign.MaxUsd = None,
    price: foreign.Prices = None,
    page: foreign.Page = None,
    as_json: Json = False,
) -> None:
    """Check a run again, or check a report from another system.

    For a run, every file, quote and verdict is checked again, without a server, network or model. Exits with 1 if a
    byte was changed or a check has a different result, and names the file and the claim.

    A report is a .md file that has links, footnotes or numbered references. Its claims are checked against the texts of
    its sources (--sources, --fetch). Exits with 1 if the sources do not state a claim, or contradict it.

    Example: fathom verify 1a2b3c4d

    Example: fathom verify report.md --fetch --model openai/gpt-5-mini --page check.html
    """
    wish = foreign.Options(sources, fetch, model, max_usd, price, page)
    if foreign.is_report(run):
        foreign.verify_report(run, wish, as_json=as_json)
    foreign.refuse(wish)
    from fathom.flows.runs.stored import read_run
    from fathom.flows.runs.verifying import verified

    found = read_run(run, artifacts, verified)
    output(found, _show_verification, as_json=as_json)
    raise typer.Exit(0 if found.ok else 1)


def _show_verification(found: Verification) -> None:
    from fathom.models.evidence import Verdict
    from fathom.text.plain import counted

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
    verdict, corroboration = claim.verdict, claim.corroboration.value
    yield f"{verdict.words:<12}", _STYLES[verdict.value]
    yield f"  score {claim.score:.2f}  ", "dim"
    yield corroboration.replace("_", " "), _STYLES.get(corroboration, "dim")


def trace(
    run: Run,
    number: Annotated[int, typer.Argument(metavar="N", help="Number of the claim in `fathom verify`.")],
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Show the stored bytes that support one claim of a report.

    Needs no server, network or model. Exits with 1 if the stored bytes no longer contain the quotes.

    Example: fathom trace 1a2b3c4d 7
    """
    from fathom.flows.runs.stored import read_run
    from fathom.flows.runs.verifying import traced

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
        _show_row("judged", f"{claim.judgement.verdict.words} by {claim.judgement.model}: {claim.judgement.reason}")
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
