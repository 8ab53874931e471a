"""Pages that are unkind to a text engine, and the processor time that each stage takes for a megabyte of them.

Generated pages of a normal vocabulary are kind: their rare words tell any two sentences apart. Price lists, logs, forum
threads and many reports of one event are not. Every stage should take a time that is proportional to what was read: the
table shows seconds for a megabyte, at two sizes, so that a step that grows faster shows up as a second number that is
larger than the first.

    python -m benchmarks.unkind [--size 0.5] [--kinds rows,logs] [--stages corroborate]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from itertools import islice

from fathom.contradictions.finding import Said, find_contradictions
from fathom.evidence.bearing import Bearing
from fathom.evidence.claims import claims_of
from fathom.evidence.grounding import ground
from fathom.evidence.judging import requests_for, unsettled
from fathom.evidence.passages import Search
from fathom.evidence.stored import texts_of
from fathom.extractive.compressor import compress
from fathom.models import Note, ReportSection, SourceText
from fathom.retrieval.portions import shown
from fathom.roles import CompressRequest
from fathom.sources.scoring import rate_sources
from fathom.text.parsed import parse

QUESTION = "Which pump at the northern station had the highest pressure in 2024, and why was it replaced?"
SOURCES = 5
FACTS = 15  # that a note quotes of a page
BOUND = 0.5
"""Seconds of processor time for a megabyte, of all stages together."""
_WORDS_TEXT = """
pump station pressure valve northern southern river team report value measured reached replaced filter motor level water
flow after before during because while rose fell stayed high low steady second first new old main spare
"""
_WORDS = _WORDS_TEXT.split()
_DAY = date(2025, 6, 1)


def _small(chance: random.Random) -> Iterator[str]:
    """Sentences of a few dozen words: subject, number, phrase."""
    while True:
        words = " ".join(chance.choices(_WORDS, k=chance.randint(4, 12)))
        yield f"The {words} {chance.randint(1, 400)} {' '.join(chance.choices(_WORDS, k=3))}. "


def _template(chance: random.Random) -> Iterator[str]:
    """One template whose numbers alone differ."""
    while True:
        yield f"On day {chance.randint(1, 365)} the northern station's pump reached {chance.randint(1, 99)} bar.\n\n"


def _alike(_chance: random.Random) -> Iterator[str]:
    """One sentence, again and again, with the same number."""
    while True:
        yield "The pump at the northern station reached 40 bar in 2024 and was replaced. "


def _copies(chance: random.Random) -> Iterator[str]:
    """Near copies of one paragraph, each with one other word."""
    paragraph = " ".join(chance.choices(_WORDS, k=60)).split()
    while True:
        changed = [*paragraph]
        changed[chance.randrange(len(changed))] = f"w{chance.randrange(10_000)}"
        yield f"The {' '.join(changed[:30])}. The {' '.join(changed[30:])}.\n\n"


def _one_sentence(chance: random.Random) -> Iterator[str]:
    """A sentence without an end."""
    while True:
        yield f"{chance.choice(_WORDS)} {chance.randint(1, 99)}, "


def _rows(chance: random.Random) -> Iterator[str]:
    """A table of very many rows."""
    yield "| Pump | Station | Pressure | Year |\n|---|---|---|---|\n"
    while True:
        yield f"| P{chance.randint(1, 99)} | northern | {chance.randint(1, 99)} bar | {chance.randint(2000, 2025)} |\n"


def _logs(chance: random.Random) -> Iterator[str]:
    """Lines of a log, without a blank line."""
    while True:
        yield (
            f"2024-06-{chance.randint(10, 28)}T12:{chance.randint(10, 59)}:{chance.randint(10, 59)} WARN pump "
            f"P{chance.randint(1, 9)} northern pressure={chance.randint(1, 99)} state={chance.choice(_WORDS)}\n"
        )


def _items(chance: random.Random) -> Iterator[str]:
    """A list of very many items under one lead-in."""
    yield "The pumps that were replaced at the northern station:\n\n"
    while True:
        yield f"- pump {chance.randint(1, 99)} with {chance.randint(1, 99)} bar\n"


def _headings(chance: random.Random) -> Iterator[str]:
    """Headings with a line each."""
    while True:
        yield f"## Pump {chance.randint(1, 9999)}\n\nIt reached {chance.randint(1, 99)} bar in 2024.\n\n"


def _fences(chance: random.Random) -> Iterator[str]:
    """Short fences of code."""
    while True:
        yield f"```\npump.set(pressure={chance.randint(1, 99)})\n```\n\nThe pump was replaced.\n\n"


def _one_line(chance: random.Random) -> Iterator[str]:
    """One word without a space."""
    while True:
        yield f"pump{chance.randint(1, 99)}"


KINDS: Mapping[str, Callable[[random.Random], Iterator[str]]] = {
    "small": _small,
    "template": _template,
    "alike": _alike,
    "copies": _copies,
    "sentence": _one_sentence,
    "rows": _rows,
    "logs": _logs,
    "items": _items,
    "headings": _headings,
    "fences": _fences,
    "word": _one_line,
}


def page(kind: str, characters: int, seed: int) -> str:
    """Return a page of a kind, of about so many characters."""
    parts: list[str] = []
    length = 0
    for part in KINDS[kind](random.Random(seed)):
        if length >= characters:
            break
        parts.append(part)
        length += len(part)
    return "".join(parts)


def _sources(kind: str, characters: int) -> list[SourceText]:
    return [
        SourceText(
            source_id=f"S{n}aaaaa",
            url=f"https://site{n}.example/{kind}",
            title=f"Pumps of the northern station, part {n}",
            kind="web",
            text=page(kind, characters // SOURCES, n),
        )
        for n in range(SOURCES)
    ]


def _first_lines(text: str) -> list[str]:
    lines = (line.strip()[:300] for line in text.replace(". ", ".\n").split("\n"))
    return list(islice(filter(None, lines), FACTS))


class _Stages:
    """What the stages of a run are given: the texts, what notes quote of them, and a section that cites them."""

    def __init__(self, texts: list[SourceText]) -> None:
        self.texts = texts
        self.facts = [
            Said(found, (text.source_id,), text.title)
            for text in texts
            for found in [line.strip()[:300] for line in text.text.replace(". ", ".\n").split("\n") if line.strip()][
                :FACTS
            ]
        ]
        quoted = [f"{fact.text} [{fact.source_ids[0]}]" for fact in self.facts]
        self.note = Note(
            step_id=1,
            artifact_file="note.json",
            source_ids=[text.source_id for text in texts],
            summary_title="Pumps",
            summary="Pumps.",
            extraction=quoted,
            is_useful=True,
        )
        said = [f"{fact.text.rstrip('.').replace('the', 'a')} [{fact.source_ids[0]}]." for fact in self.facts]
        self.section = ReportSection(heading="Pumps", markdown="\n\n".join(said))
        self.stored = list(texts_of(texts))

    def parse(self) -> None:
        for text in self.texts:
            parse(text.text).sentence(0)

    def compress(self) -> None:
        compress(
            CompressRequest(
                plan_title=QUESTION,
                step_title=QUESTION,
                step_description="",
                tool_name="web_search",
                texts=self.texts,
                page_tokens=1_000,
            )
        )

    def show(self) -> None:
        shown(self.texts, QUESTION, text_tokens=8_000, request_tokens=20_000, most_requests=6)

    def ground(self) -> None:
        ground(self.note, self.texts)

    def score(self) -> None:
        rate_sources(self.texts, self.facts, query=QUESTION, today=_DAY)

    def contradict(self) -> None:
        find_contradictions(self.facts)

    def judge(self) -> None:
        statements = claims_of([self.section])
        search = Search(self.stored)
        requests_for(unsettled(statements, search), Bearing(self.stored))


STAGES = ("parse", "compress", "show", "ground", "score", "contradict", "judge")


def measured(kind: str, characters: int, stages: tuple[str, ...]) -> dict[str, float]:
    """Return the processor seconds for a megabyte that each stage takes of pages of a kind."""
    given = _Stages(_sources(kind, characters))
    size = sum(len(text.text) for text in given.texts) / 1_000_000
    found: dict[str, float] = {}
    for stage in stages:
        start = time.process_time()
        getattr(given, stage)()
        found[stage] = (time.process_time() - start) / size
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", type=float, default=0.5, metavar="MB", help="of the smaller set; the larger has four times"
    )
    parser.add_argument("--kinds", default=",".join(KINDS), metavar="NAMES", help="of pages (default: all)")
    parser.add_argument("--stages", default=",".join(STAGES), metavar="NAMES", help="(default: all)")
    options = parser.parse_args()
    stages = tuple(options.stages.split(","))
    print(f"Seconds a megabyte at {options.size} / {4 * options.size} MB; all together should take {BOUND}\n")
    print(f"| pages | {' | '.join(stages)} | all |\n|---|{'--:|' * (len(stages) + 1)}")
    for kind in options.kinds.split(","):
        small, large = (measured(kind, int(size * 1_000_000), stages) for size in (options.size, 4 * options.size))
        pairs = [*((small[stage], large[stage]) for stage in stages), (sum(small.values()), sum(large.values()))]
        print(f"| {kind} | {' | '.join(f'{a:.2f} / {b:.2f}' for a, b in pairs)} |", flush=True)


if __name__ == "__main__":
    main()
