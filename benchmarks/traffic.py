"""What passes between the pipeline and its providers: `python -m benchmarks.traffic`.

Runs the pipeline without Prefect against the scripted providers of the tests, over HTTP, and counts what arrived there
and what was sent back. Nothing is taken from the pipeline's own books, so a change of these cannot change a count.

    raw tokens          of the texts that the providers returned, each once; in the cl100k encoding
    shown               share of them that stood in a prompt of the compressor: a token counts if eight words in a row
                        did, of which its word is one
    model requests      requests to the model, those included that were tried again
    waits               requests to the model in the longest chain in which each arrived after the one before was
                        answered; `with tools`, the same over all requests. It follows from the order of events. On a
                        busy machine, requests of the same time may come too late for each other, so that it counts too
                        many, never too few: --delay gives them more time
    prompt tokens       as the scripted model counts them, a quarter of the bytes
    outside             prompt tokens of all roles but the compressor
    to be noted         facts of the texts and passages in one of the forms of `tests/stubs/forms.py`, each once
    noted               share of them for which the scripted compressor returned a faithful bullet
    kept                share of these bullets that stood in a prompt of a later role but the judge, which quotes pages
    to the writer       share of these that stood in a prompt for a section
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from benchmarks import tokens
from benchmarks.guard.measurements import isolate
from tests.inprocess import investigated
from tests.stubs import FACT, Record, Settings, serving
from tests.stubs.forms import form_of, noted

WORDS = 8  # in a row, by which a place of a text is found again
WRITERS = ("section", "answer")
_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"\\[nt\"\\]")  # of the notes, which are JSON
_CITED = re.compile(r"\s*\[S[0-9a-f]{6,64}\]")


@dataclass
class Bullets:
    """Bullets of one form: how many the texts have, how many were returned, and how many stood in prompts."""

    there: int = 0
    written: int = 0
    kept: int = 0
    to_writer: int = 0


@dataclass
class Traffic:
    """What was counted in one run."""

    page_bytes: int
    raw_tokens: int
    shown_tokens: int
    model_requests: int
    tool_requests: int
    waits: int
    waits_with_tools: int
    prompt_tokens: int
    prompt_tokens_outside: int
    requests_by_role: dict[str, int]
    prompt_tokens_by_role: dict[str, int]
    bullets: dict[str, Bullets]


def measure(page_bytes: int, steps: int, breadth: int, delay: float) -> Traffic:
    """Run the pipeline once, two rounds of a report; the model takes `delay` seconds, a tool a tenth of that."""
    scripted = Settings(
        llm_delay=delay, search_delay=delay / 10, page_bytes=page_bytes, forms=True, steps=steps, breadth=breadth
    )
    with tempfile.TemporaryDirectory() as folder, serving(scripted) as stubs:
        isolate(Path(folder), stubs.env)
        asyncio.run(investigated(Path(folder, "store"), depth=2, breadth=breadth, model_calls={}))
        return traffic(page_bytes, stubs.requests)


def traffic(page_bytes: int, records: Sequence[Record]) -> Traffic:
    """Count what some requests and their answers have."""
    model = [record for record in records if record.kind == "llm"]
    requests, prompts = Counter[str](), Counter[str]()
    for record in model:
        requests[record.role] += 1
        prompts[record.role] += record.usage.get("prompt_tokens", 0)
    texts = retrieved(records)
    raw, seen = shown(texts, [said_to(record) for record in model if record.role == "compressor"])
    return Traffic(
        page_bytes=page_bytes,
        raw_tokens=raw,
        shown_tokens=seen,
        model_requests=len(model),
        tool_requests=len(records) - len(model),
        waits=waits(model),
        waits_with_tools=waits(records),
        prompt_tokens=prompts.total(),
        prompt_tokens_outside=prompts.total() - prompts["compressor"],
        requests_by_role=dict(requests),
        prompt_tokens_by_role=dict(prompts),
        bullets=bullets(texts, model),
    )


def said_to(record: Record) -> str:
    """Return all messages of a request to the model, as text."""
    return "\n".join(str(message["content"]) for message in record.body["messages"])


def retrieved(records: Iterable[Record]) -> list[str]:
    """Return the texts that the search service returned, of each page the longest, and none twice."""
    longest: dict[str, str] = {}
    for record in records:
        if record.kind not in ("search", "extract") or not isinstance(record.answer, dict):
            continue
        for result in record.answer.get("results", []):
            text = result.get("raw_content") or result.get("content") or ""
            longest[result["url"]] = max(longest.get(result["url"], ""), text, key=len)
    return list(dict.fromkeys(longest.values()))


def shown(texts: Iterable[str], prompts: Iterable[str]) -> tuple[int, int]:
    """Return how many tokens some texts have, and how many of these stand in some prompts."""
    runs = {run for prompt in prompts for run in _runs([word[0].lower() for word in _WORD.finditer(prompt)])}
    total = seen = 0
    for text in texts:
        places = list(_WORD.finditer(text))
        found = bytearray(len(places))
        for first, run in enumerate(_runs([place[0].lower() for place in places])):
            if run in runs:
                found[first : first + WORDS] = b"\1" * len(found[first : first + WORDS])
        total += tokens.count(text)
        for stretch in re.finditer(b"\1+", found):
            end = places[stretch.end()].start() if stretch.end() < len(places) else len(text)
            seen += tokens.count(text[places[stretch.start()].start() : end])
    return total, min(seen, total)


def _runs(words: Sequence[str]) -> list[int]:
    """Return the hashes of all runs of so many words, or of all words where they are fewer."""
    return [hash(tuple(words[n : n + WORDS])) for n in range(max(1, len(words) - WORDS + 1))]


def waits(records: Iterable[Record]) -> int:
    """Return the length of the longest chain of requests in which each arrived after the one before was answered."""
    chains: list[tuple[float, int]] = []  # when each request was answered, and the longest chain that ends with it
    longest = 0
    for record in sorted(records, key=lambda one: one.started):
        length = 1 + max((length for ended, length in chains if ended <= record.started), default=0)
        longest = max(longest, length)
        if record.ended is not None:
            chains.append((record.ended, length))
    return longest


def bullets(texts: Iterable[str], model: Sequence[Record]) -> dict[str, Bullets]:
    """Count, by form, faithful bullets: of some texts, those that the compressor returned, those in later prompts."""
    found: defaultdict[str, Bullets] = defaultdict(Bullets)
    for bullet in dict.fromkeys(bullet for text in texts for bullet in [*FACT.findall(text), *noted(text)]):
        found[_form(bullet)].there += 1
    later = [(record.role, _spaced(said_to(record))) for record in model if record.role not in ("compressor", "judge")]
    for bullet in dict.fromkeys(bullet for record in model for bullet in _returned(record)):
        if not (form := _form(bullet)):
            continue
        lines = [_spaced(line) for line in bullet.splitlines()]
        roles = {role for role, prompt in later if all(line in prompt for line in lines)}
        found[form].written += 1
        found[form].kept += bool(roles)
        found[form].to_writer += not roles.isdisjoint(WRITERS)
    return dict(sorted(found.items()))


def _form(bullet: str) -> str:
    return "fact" if FACT.match(bullet) else form_of(bullet)


def _returned(record: Record) -> list[str]:
    """Return the bullets of a compressor's answer, without ids."""
    if record.role != "compressor" or record.status != 200:
        return []
    answer = json.loads(record.answer["choices"][0]["message"]["content"])
    return [_CITED.sub("", bullet) for bullet in answer["extraction"]]


def _spaced(text: str) -> str:
    return f" {' '.join(_WORD.findall(_ESCAPED.sub(' ', text).lower()))} ".replace("  ", " ")


def main() -> None:
    """Print the tables, or a JSON line for each size of the pages."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.traffic", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page-bytes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--steps", type=int, default=3, help="of the plan, at most 5")
    parser.add_argument("--breadth", type=int, default=2, help="searches of a step, at most 10")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds before an answer of the model")
    parser.add_argument("--json", action="store_true", help="one JSON line a size")
    options = parser.parse_args()
    measured = [measure(size, options.steps, options.breadth, options.delay) for size in options.page_bytes]
    if options.json:
        print("\n".join(json.dumps(asdict(one)) for one in measured))
    else:
        print("\n".join(table(measured)))


def table(measured: Sequence[Traffic]) -> list[str]:
    """Return the lines of three Markdown tables: all counts, those by role, and bullets by form."""
    sizes = [f"pages of {one.page_bytes:,} bytes" for one in measured]
    lines = _head("", sizes)
    lines += _row("raw tokens", [f"{one.raw_tokens:,}" for one in measured])
    lines += _row("shown to the compressor", [_share(one.shown_tokens, one.raw_tokens) for one in measured])
    lines += _row("model requests", [f"{one.model_requests}" for one in measured])
    lines += _row("tool requests", [f"{one.tool_requests}" for one in measured])
    lines += _row("waits for the model, one after the other", [f"{one.waits}" for one in measured])
    lines += _row("waits with tools", [f"{one.waits_with_tools}" for one in measured])
    lines += _row("prompt tokens", [f"{one.prompt_tokens:,}" for one in measured])
    lines += _row("prompt tokens outside the compressor", [f"{one.prompt_tokens_outside:,}" for one in measured])
    sums = [_sum(one.bullets.values()) for one in measured]
    lines += _row("to be noted", [f"{one.there}" for one in sums])
    lines += _row("noted", [_share(one.written, one.there) for one in sums])
    lines += _row("kept for later roles", [_share(one.kept, one.written) for one in sums])
    lines += _row("to the writer", [_share(one.to_writer, one.written) for one in sums])
    lines += ["", *_head("requests, prompt tokens", sizes)]
    for role in dict.fromkeys(role for one in measured for role in one.requests_by_role):
        counts = [(one.requests_by_role.get(role, 0), one.prompt_tokens_by_role.get(role, 0)) for one in measured]
        lines += _row(role, [f"{requests}, {prompts:,}" for requests, prompts in counts])
    lines += ["", *_head("to be noted, noted, kept, to the writer", sizes)]
    for form in sorted({form for one in measured for form in one.bullets}):
        of_form = [one.bullets.get(form, Bullets()) for one in measured]
        lines += _row(form, [f"{one.there}, {one.written}, {one.kept}, {one.to_writer}" for one in of_form])
    return lines


def _sum(found: Iterable[Bullets]) -> Bullets:
    total = Bullets()
    for one in found:
        total = Bullets(*(sum(pair) for pair in zip(astuple(total), astuple(one), strict=True)))
    return total


def _head(first: str, columns: Sequence[str]) -> list[str]:
    return [*_row(first, columns), f"|---|{'--:|' * len(columns)}"]


def _row(name: str, cells: Sequence[Any]) -> list[str]:
    return [f"| {name} | {' | '.join(cells)} |"]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    main()
