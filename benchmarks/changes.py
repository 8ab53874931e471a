"""Whether what changed is found, and nothing else: `python -m benchmarks.changes`.

`benchmarks/data/changes.txt` has its questions with the sentences of their pages (`|` marks a row of a table, `^` a
heading), and two wordings of each. A scripted model, over HTTP, writes one report in the first wording and another in
the second:

    same pages      over the same pages: whatever is told is false
    changed pages   some sentences of the pages were changed, added or removed: each must be told, nothing else
    reworded pages  over pages that say the same facts in the words of the second report: whatever is told is false
    quotations      the same changed pages without a model, from a folder of documents

A change that neither report has is not counted: what a report leaves out nobody watches.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal

from fathom.changes.comparing import ComparedRun, compare
from fathom.changes.model import Change, Changes
from fathom.evidence.stored import stored_texts
from fathom.evidence.support import spaced_words
from fathom.models import Report, RunResult, ToolCall, ToolResult
from fathom.text.urls import source_ids
from tests.inprocess import investigated
from tests.stubs import Settings, Stubs, serving

DATA = Path(__file__).parent / "data" / "changes.txt"
Mark = Literal["=", "~", "+", "-"]
KINDS = {"~": "changed", "+": "new", "-": "gone"}


@dataclass(frozen=True)
class Fact:
    """What a page says: as it was and as it is, and how both reports say it; empty where it is not."""

    mark: Mark
    before: str
    after: str
    first: str
    second: str
    row: bool = False  # of the page's table
    heading: bool = False

    def on_page(self, *, changed: bool) -> str:
        """Return it as it stands on its page, before or after its change."""
        stands = self.after if changed else self.before
        return f"## {stands}" if stands and self.heading else stands


@dataclass
class Page:
    """A page of a question. `header` names the columns of its table."""

    url: str
    title: str
    header: str = ""
    facts: list[Fact] = field(default_factory=list)

    def text(self, *, changed: bool, reworded: bool = False) -> str:
        """Return the page, before or after its changes, with a line that is another one at each visit."""
        if reworded:
            return "\n\n".join([f"# {self.title}", *(fact.second for fact in self.facts if fact.mark == "=")])
        lines = [f"# {self.title}", ""]
        rows = [(f.after if changed else f.before) for f in self.facts if f.row]
        if rows:
            columns = self.header.count("|") + 1
            lines += [f"| {self.header} |", "|" + "---|" * columns, *(f"| {row} |" for row in rows), ""]
        said = [f.on_page(changed=changed) for f in self.facts if not f.row]
        lines += ["\n\n".join(filter(None, said)), "", f"This page was read {4211 if changed else 3907} times."]
        return "\n".join(lines)


@dataclass
class Question:
    """A question with its pages."""

    query: str
    pages: list[Page] = field(default_factory=list)

    @property
    def planted(self) -> list[Fact]:
        """The facts that change."""
        return [fact for page in self.pages for fact in page.facts if fact.mark != "="]


@dataclass
class Score:
    """What was told, of what there was to tell."""

    claims: int = 0
    planted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    unreported: int = 0
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


def questions() -> list[Question]:
    """Read the questions."""
    found: list[Question] = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        head, _, rest = line.partition(" ")
        if head == "#":
            found.append(Question(rest.partition(": ")[2] or rest))
        elif head == "@":
            url, _, title = rest.partition(" ")
            found[-1].pages.append(Page(url, title))
        elif head == "|":
            found[-1].pages[-1].header = rest
        elif rest:
            found[-1].pages[-1].facts.append(_fact(head, rest))
    return found


def _fact(head: str, rest: str) -> Fact:
    said, *wordings = rest.split(" // ")
    before, _, after = said.partition(" -> ")
    row, heading, mark = head.startswith("|"), head.startswith("^"), head[-1]
    if mark == "+":
        return Fact("+", "", before, "", (wordings or [before])[-1], row, heading)
    if mark == "-":
        return Fact("-", before, "", (wordings or [before])[-1], "", row, heading)
    assert mark in "=~", rest
    return Fact("~" if mark == "~" else "=", before, after or before, wordings[0], wordings[1], row, heading)


async def report_on(
    question: Question, stubs: Stubs, root: Path, *, changed: bool, second: bool, reworded: bool = False
) -> ComparedRun:
    """Let the scripted model read the pages and write a report in one of the wordings."""
    ids = source_ids(page.url for page in question.pages)
    planted = {page.url: page.text(changed=changed, reworded=reworded) for page in question.pages}
    bullets, lines = [], []
    for page in question.pages:
        for fact in page.facts:
            stands = fact.after if changed else fact.before
            # Over the same pages, what the second report says of a changing fact is in the first wording.
            wording = fact.second if second and (changed or fact.mark == "=") else fact.first
            if reworded:
                stands = wording = fact.second if fact.mark == "=" else ""
            if stands and wording:
                bullets.append(f"{stands} [{ids[page.url]}]")
                lines.append(f"{wording} [{ids[page.url]}]")
    stubs.settings = Settings(
        planted=planted, bullets=bullets, section="\n\n".join(lines), results=len(planted), without_raw=0.0,
        steps=1, breadth=1, follow_ups=0, score=9, verdicts={"": "supported"},  # its sentences are true in other words
    )  # fmt: skip
    return _side(await investigated(root, question.query, profile="quick", fresh=True))


async def quote_on(question: Question, root: Path, *, changed: bool) -> ComparedRun:
    """Let the backend without a model read the pages as documents."""
    folder = root / "docs"  # the same for both runs, as a watched folder is
    folder.mkdir(parents=True, exist_ok=True)
    for page in question.pages:
        name = re.sub(r"\W+", "-", page.title)
        (folder / f"{name}.md").write_text(page.text(changed=changed), encoding="utf-8")
    found = await investigated(
        root / "runs", question.query, profile="quick", model="extractive", docs=[str(folder)], tools=["documents"]
    )
    return _side(found)


def _side(result: RunResult) -> ComparedRun:
    folder = Path(result.artifacts)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    texts = stored_texts(
        files,
        (
            ToolResult(call=ToolCall(tool="read", input=""), artifact_file=name, sha256=sha256(data).hexdigest())
            for name, data in sorted(files.items())
            if "__step" in name
        ),
    )
    report = Report.model_validate_json(files["report.json"]) if "report.json" in files else None
    return ComparedRun(result.run_id, "2026-11-23", "", report, texts)


def score(
    found: Changes, question: Question, before: ComparedRun, after: ComparedRun, *, changed: bool, total: Score
) -> None:
    """Add what was told of a pair of runs."""
    total.claims += len({claim.sentence for claim in after.claims})
    told = list(found.changes)
    for fact in question.planted if changed else ():
        if not (before.report and after.report) or not (_has(before, fact.before) or _has(after, fact.after)):
            total.unreported += 1
            continue
        total.planted[KINDS[fact.mark]] += 1
        match = next((change for change in told if _tells(change, fact)), None)
        if match:
            told.remove(match)
            total.found[KINDS[fact.mark]] += 1
        else:
            total.missed.append(f"{KINDS[fact.mark]}: {fact.before} -> {fact.after}")
    # That a page counts its readers is no fact of the question, but true: a report of quotations may have it.
    total.false += [_line(change) for change in told if "3907" not in [d.before for d in change.differences]]


def _has(side: ComparedRun, stands: str) -> bool:
    words = spaced_words(stands)
    quoted = (spaced_words(quote.text) for claim in side.claims for quote in claim.quotes)
    return bool(stands) and any(words in text for text in quoted)


def _tells(change: Change, fact: Fact) -> bool:
    sides = ((change.before, fact.before), (change.after, fact.after))
    return change.kind == KINDS[fact.mark] and all(
        bool(said) == bool(stands) and (not said or any(spaced_words(stands) == spaced_words(p) for p in said.passages))
        for said, stands in sides
    )


def _passages(change: Change) -> list[str]:
    return [passage for said in (change.before, change.after) if said for passage in said.passages]


def _line(change: Change) -> str:
    sides = [side.sentence if side else "-" for side in (change.before, change.after)]
    values = [(d.before, d.after) for d in change.differences]
    return f"{change.kind}: {' -> '.join(sides)} {values or ''}"


def _said_again(found: Changes) -> Changes:
    """Leave out that a reworded page lacks the facts that change; it has the others only."""
    lacking = [spaced_words(fact.before) for question in questions() for fact in question.planted]
    told = [
        change
        for change in found.changes
        if change.kind != "gone" or not any(spaced_words(p) in lacking for p in _passages(change))
    ]
    return found.model_copy(update={"changes": told})


async def measure(chosen: Sequence[Question], root: Path) -> Iterator[tuple[str, Score]]:
    """Return the scores of all pairs."""
    same, changed, reworded, quoted = Score(), Score(), Score(), Score()
    with serving() as stubs:
        os.environ.update(stubs.env)
        for number, question in enumerate(chosen):
            place = root / str(number)
            first = await report_on(question, stubs, place, changed=False, second=False)
            other = await report_on(question, stubs, place, changed=False, second=True)
            later = await report_on(question, stubs, place, changed=True, second=True)
            score(compare(first, other), question, first, other, changed=False, total=same)
            score(compare(first, later), question, first, later, changed=True, total=changed)
            again = await report_on(question, stubs, place, changed=False, second=True, reworded=True)
            score(_said_again(compare(first, again)), question, first, again, changed=False, total=reworded)
            early = await quote_on(question, place, changed=False)
            late = await quote_on(question, place, changed=True)
            score(compare(early, late), question, early, late, changed=True, total=quoted)
    return iter(
        (("same pages", same), ("changed pages", changed), ("reworded pages", reworded), ("quotations", quoted))
    )


def main() -> None:
    """Print the counts, and all that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, help="the number of one question, from 0")
    chosen = questions()
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        os.environ["XDG_CACHE_HOME"] = folder
        scores = list(asyncio.run(measure(chosen if only is None else [chosen[only]], Path(folder))))
    for name, found in scores:
        kinds = {kind: f"{found.found[kind]}/{number}" for kind, number in found.planted.items()}
        print(f"{name}: {found.claims} claims, {len(found.false)} false; found {json.dumps(kinds)}; "
              f"{found.unreported} planted in no report")  # fmt: skip
        for what, lines in (("false", found.false), ("missed", found.missed)):
            for line in lines:
                print(f"    {what} {line}")


if __name__ == "__main__":
    main()
