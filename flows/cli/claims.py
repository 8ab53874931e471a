"""A run's evidence as a person reads it: the verdict on each claim, and one claim's way back to the stored bytes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fathom.errors import StoreError
from fathom.evidence.provenance import PROVENANCE, read
from fathom.storage.store import ArtifactStore, RunFolder
from flows.cli.screen import printable
from flows.preflight import artifact_root
from flows.runs import find, locate

if TYPE_CHECKING:
    from fathom.evidence.provenance import Provenance
    from fathom.evidence.trace import Link, Trace
    from fathom.evidence.verify import Verification
    from fathom.models.claims import Claim

_STYLES = {"supported": "green", "weak": "yellow", "unsupported": "red", "verified": "green", "contradicted": "red"}
_PARTS = {"cited": "quote", "corroborating": "also said by", "contradicting": "but another source says"}
READERS = 16  # files that are read at once


async def files_of(name: str, artifacts: str | None) -> dict[str, bytes]:
    """Return the files of the one run that a name stands for: the recorded ones, and every raw output.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
        StoreError: it has no record of its evidence.
    """
    root, name = locate(name, artifact_root(artifacts))
    store = ArtifactStore(root)
    folder = RunFolder(store, str((await find(store, name))["folder"]))
    try:
        files = {PROVENANCE: await store.read(f"{folder.folder}/{PROVENANCE}")}
    except FileNotFoundError:
        files = {}
    names = {*await folder.list(), *recorded(files).files}
    limit = asyncio.Semaphore(READERS)

    async def load(file: str) -> None:
        async with limit:
            with suppress(FileNotFoundError):  # verification names it
                files[file] = await store.read(f"{folder.folder}/{file}")

    await asyncio.gather(*map(load, sorted(names)))
    return files


def recorded(files: Mapping[str, bytes]) -> Provenance:
    """Return the record among a run's files.

    Raises:
        StoreError: there is none.
    """
    if PROVENANCE not in files:
        if "result.json" in files:
            raise StoreError(
                f"The run has no {PROVENANCE}: it ended without a report.", next_step="see its result.json"
            )
        raise StoreError(f"The run has no {PROVENANCE}: it has not finished.", next_step="fathom resume RUN")
    return read(files[PROVENANCE])[0]


def show_verification(found: Verification) -> None:
    """Show the verdict on each claim, then what is wrong with the stored files."""
    console = Console(highlight=False)
    if found.claims:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for heading, width in (("#", None), ("verdict", 11), ("score", None), ("corroboration", 13)):
            table.add_column(heading, no_wrap=True, min_width=width)
        table.add_column("claim", ratio=1)
        for claim in found.claims:
            table.add_row(*_cells(claim))
        console.print(table)
    counts = Counter(claim.verdict.value for claim in found.claims)
    console.print(
        f"\n{len(found.claims)} claims: "
        + ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("supported", "weak", "unsupported")),
        soft_wrap=True,
    )
    for problem in found.problems:
        where = f"{problem.file}, claim {problem.claim}" if problem.claim else problem.file
        console.print(Text(printable(f"✗ {where}: {problem.message}"), style="red"), soft_wrap=True)
    if found.ok:
        checked = (
            f"{found.files} files and {found.quotes} quotes are as they were recorded; every check came out the same"
        )
        console.print(Text(checked, style="green"), soft_wrap=True)


def _cells(claim: Claim) -> Iterator[Text]:
    yield Text(str(claim.number))
    yield Text(claim.verdict.value, style=_STYLES.get(claim.verdict.value, ""))
    yield Text(f"{claim.score:.2f}")
    yield Text(claim.corroboration.value.replace("_", " "), style=_STYLES.get(claim.corroboration.value, "dim"))
    text = Text(_one_line(claim.sentence))
    for complaint in claim.complaints:
        text.append(f"\n  {_one_line(complaint)}", style="yellow")
    yield text


def show_trace(found: Trace) -> None:
    """Show a claim and, for each of its quotes, the way to the stored bytes."""
    console = Console(highlight=False)
    claim = found.claim
    verdict = claim.verdict.value
    console.print(Text(f"Claim {claim.number}, in “{_one_line(found.heading)}”", style="bold"), soft_wrap=True)
    console.print(Text(_one_line(claim.sentence)), soft_wrap=True)
    rows = [
        ("cites", ", ".join(claim.source_ids) or "nothing", ""),
        ("verdict", f"{verdict}, score {claim.score:.2f}", _STYLES.get(verdict, "")),
        ("corroboration", claim.corroboration.value.replace("_", " "), _STYLES.get(claim.corroboration.value, "")),
        *(("complaint", complaint, "yellow") for complaint in claim.complaints),
    ]
    if claim.judgement:
        rows.append(("judged", f"{claim.judgement.verdict.value} by {claim.judgement.model}", ""))
    _show_rows(console, rows)
    for link in found.links:
        heading = "nearest passage" if link.part == "cited" and verdict == "unsupported" else _PARTS[link.part]
        console.print(Text(f"\n{heading}", style="bold"))
        console.print(_quoted(link), soft_wrap=True)
        _show_rows(console, [(name, value, "") for name, value in _chain(link)])
    if not found.links:
        console.print("\nNo stored passage comes near it.")


def _quoted(link: Link) -> Text:
    before, after = _one_line(f"{link.before}|")[:-1], _one_line(f"|{link.after}")[1:]
    return Text.assemble("  ", (before, "dim"), (_one_line(link.quote.text), "bold"), (after, "dim"))


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


def _show_rows(console: Console, rows: list[tuple[str, str, str]]) -> None:
    for name, value, style in rows:
        console.print(Text.assemble((f"  {name:<10} ", "dim"), (_one_line(value), style)), soft_wrap=True)


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())
