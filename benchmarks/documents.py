"""Answers from folders of documents, without a model: `python -m benchmarks.documents FOLDER`.

FOLDER has `corpora/NAME/` with documents and `questions.jsonl`: `id`, `corpus`, `type`, `question`, `gold` (groups of
alternatives, each of them required; null if the corpus does not answer), `within` (characters that they must lie
together), `files` and `on_topic`. Prints for each type of question where the fact that was asked for still is: in the
results of the tools, the notes, the report, its first section, and the 140 characters of answer mode; how runs end; and
how far the stated confidence of answers can be relied on (the columns of `benchmarks.calibration`).

`--shown` prints instead what a model that compresses would be shown: the share of the questions whose fact is in the
results of the tool, and in the prompts of the compressor; and the share of the results' tokens that stood in these
(`benchmarks.traffic`). It is measured twice: with the documents as their tool returns them, and with whole documents
as a web search returns pages, first those that have the answer, then others that were found. The compressor is a
scripted model over HTTP, which records its prompts; all other roles do without one, and a plan has one step of the
profile `quick`.

The runs are made without Prefect, in as many processes as there are cores.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import logging
import os
import re
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from benchmarks import metrics
from benchmarks.traffic import said_to, shown
from fathom.models import Answered, Ending, RunResult
from fathom.tools.documents.index import lay_out
from fathom.tools.documents.readers import read_document
from tests.inprocess import investigated
from tests.stubs import Settings, serving

SHOWN = ("results", "shown", "pages", "pages shown")
PAGES = 5  # of a web search, as `max_results` is
STAGES = ("results", "notes", "report", "first", "answer")
_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " ", "|": " "})
_MARKS = re.compile(r"\[(?:S[0-9a-f]{6,64}|\d{1,3})\]|[*`\\]")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_SHOWN = re.compile(r"^<source [^>]*>\n(.*?)\n</source>$", re.MULTILINE | re.DOTALL)
_LEVELS = {Answered.yes: "Answer", Answered.partly: "Answered in part", Answered.maybe: "May answer this"}
NOT_ANSWERED = "Not answered"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="corpora or ids, separated by commas")
    parser.add_argument("--lost", action="store_true", help="name each answer that is not in the first section")
    parser.add_argument("--shown", action="store_true", help="what a model that compresses would be shown")
    parser.add_argument("--embed-model", help="rank by meaning, too, with this model")
    arguments = parser.parse_args()
    lines = (arguments.folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    wanted = set(filter(None, arguments.only.split(",")))
    rows = [row for row in map(json.loads, lines) if not wanted or {row["id"], row["corpus"]} & wanted]
    ask = partial(_compressed if arguments.shown else _asked, arguments.embed_model)
    with tempfile.TemporaryDirectory() as root, ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = list(pool.map(partial(ask, arguments.folder, Path(root)), rows))
    known = [each for each in found if each["gold"] is not None]
    if arguments.shown:
        _print_stages(known, SHOWN)
        _print_shown(found, known if arguments.lost else ())
        return
    _print_stages(known, STAGES)
    _print_endings(found)
    _print_calibration(found)
    for each in found if arguments.lost else ():
        if each["gold"] is not None and not each["first"]:
            print(f"{each['id']} last seen in {_last(each)}: {each['question']} {each['gold']}")


def _asked(embed_model: str | None, folder: Path, root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return a question with what became of it."""
    ask = _asking(embed_model, folder, root, row)
    result: RunResult = asyncio.run(ask(root / row["id"]))
    short: RunResult = asyncio.run(ask(root / f"{row['id']}-short", mode="answer"))
    report = _read(result, "report.json") or {"sections": []}
    notes = _read(result, "notes.json") or []
    sections = [section["markdown"] for section in report["sections"]]
    texts = {
        "results": [text["text"] for text in _results(result, "documents")],
        "notes": ["\n".join([note["summary"], *note["extraction"]]) for note in notes],
        "report": sections,
        "first": sections[:1],
        "answer": [short.answer or ""],
    }
    held = {stage: _holds(parts, row) for stage, parts in texts.items()} if row["gold"] is not None else {}
    stated = {"confidence": short.confidence} if short.confidence is not None else {}
    return {
        **row,
        **held,
        **stated,
        "none": result.status is Ending.insufficient_evidence,
        "level": _LEVELS.get(result.answered or Answered.no, NOT_ANSWERED),
    }


def _compressed(embed_model: str | None, folder: Path, root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return a question with what its results hold, and what of them a compressor was shown."""
    corpus = folder / "corpora" / row["corpus"]
    ask = partial(_asking(embed_model, folder, root, row), profile="quick", max_steps=1)
    found: dict[str, Any] = {"tokens": {}, "requests": {}}
    names: list[str] = row["files"]
    for stage, tool in (("", "documents"), ("pages", "web_search")):
        planted = {f"https://pages.example/{name}": _page(corpus / name) for name in names[:PAGES]} if stage else {}
        with serving(Settings(planted=planted, results=len(planted), without_raw=0)) as stubs:
            os.environ |= stubs.env
            scripted = {"compressor": {"model": "openai/stub"}}
            result: RunResult = asyncio.run(ask(root / f"{row['id']}-{tool}", tools=[tool], role_models=scripted))
            prompts = [said_to(record) for record in stubs.calls("compressor")]
        results = _results(result, tool)
        parts = [part for prompt in prompts for part in _SHOWN.findall(prompt)]
        held = {stage or "results": [text["text"] for text in results], f"{stage} shown".strip(): parts}
        if row["gold"] is not None:
            found |= {name: _holds(texts, row) for name, texts in held.items()}
        found["tokens"][tool] = shown(dict.fromkeys(text["text"] for text in results), parts)
        found["requests"][tool] = len(prompts)
        names = list(dict.fromkeys([*names, *(_name(text["url"], corpus) for text in results)]))
    return {**row, **found}


def _page(path: Path) -> str:
    """Return a document as the HTML of a page that has its whole text, as `fetch` reads it."""
    return html.escape(lay_out(read_document(path.name, path.read_bytes())).text)


def _name(url: str, corpus: Path) -> str:
    """Return the path of a found document in its corpus."""
    return unquote(url).removeprefix(f"docs:{corpus.name}/")


def _asking(
    embed_model: str | None, folder: Path, root: Path, row: dict[str, Any]
) -> Callable[..., Coroutine[Any, Any, RunResult]]:
    """Return what asks a question of its documents without a model."""
    logging.disable(logging.WARNING)
    os.environ["FATHOM_CACHE"] = str(root / "cache")
    docs = [str(folder / "corpora" / row["corpus"])]
    return partial(investigated, query=row["question"], model=None, docs=docs, embed_model=embed_model)


def _results(result: RunResult, tool: str) -> list[dict[str, Any]]:
    """Return the texts that a tool found in a run."""
    outputs = [json.loads(path.read_text()) for path in Path(result.artifacts).glob(f"*__{tool}*.json")]
    return [text for output in outputs for text in output["results"]]


def _read(result: RunResult, name: str) -> Any:
    path = Path(result.artifacts, name)
    return json.loads(path.read_text()) if path.exists() else None


def _holds(texts: Sequence[str], row: dict[str, Any]) -> bool:
    """Whether some texts have an alternative of each group, as whole words; with `within`, close together in one."""
    plain = [_plain(text) for text in texts]
    if not row["within"]:
        return all(any(_places(text, gold) for text in plain for gold in group) for group in row["gold"])
    return any(
        _together([[p for gold in group for p in _places(text, gold)] for group in row["gold"]], row["within"])
        for text in plain
    )


def _together(groups: list[list[int]], within: int) -> bool:
    near = (all(any(abs(p - q) <= within for q in group) for group in groups) for p in groups[0])
    return all(groups) and any(near)


def _places(text: str, gold: str) -> list[int]:
    gold = _plain(gold)
    before = (r"(?<!\w)" if gold[:1].isalnum() else "") + (r"(?<!\d[.,])" if gold[:1].isdigit() else "")
    after = (r"(?!\w)" if gold[-1:].isalnum() else "") + (r"(?![.,]\d)" if gold[-1:].isdigit() else "")
    return [match.start() for match in re.finditer(before + re.escape(gold) + after, text)]


def _plain(text: str) -> str:
    text = html.unescape(unicodedata.normalize("NFKC", text)).translate(_PLAIN)
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", text)).casefold().split())


def _print_stages(rows: Sequence[dict[str, Any]], stages: Sequence[str]) -> None:
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["type"]].append(row)
    print(f"| type | questions | {' | '.join(stages)} |\n|---|--:|{'--:|' * len(stages)}")
    for name, members in [*sorted(groups.items()), ("all", list(rows))]:
        shares = [f"{100 * sum(row[stage] for row in members) / (len(members) or 1):.0f}" for stage in stages]
        print(f"| {name} | {len(members)} | {' | '.join(shares)} |")


def _print_shown(rows: Sequence[dict[str, Any]], known: Sequence[dict[str, Any]]) -> None:
    print()
    for tool in ("documents", "web_search"):
        total, seen = (sum(row["tokens"][tool][part] for row in rows) for part in (0, 1))
        requests = sum(row["requests"][tool] for row in rows)
        print(
            f"{tool}: {len(rows)} questions, {requests} requests to the compressor, in which stood "
            f"{100 * seen / (total or 1):.1f} % of {total:,} tokens of results."
        )
    for row in known:
        for held, stage in (SHOWN[:2], SHOWN[2:]):
            if row[held] and not row[stage]:
                print(f"{row['id']} in {held}, but not shown: {row['question']} {row['gold']}")


def _print_endings(rows: Sequence[dict[str, Any]]) -> None:
    print("\n| the report says | reports | right in the first section | right below | wrong | no answer exists |")
    print("|---|--:|--:|--:|--:|--:|")
    for level in (*_LEVELS.values(), NOT_ANSWERED):
        members = [row for row in rows if row["level"] == level]
        known = [row for row in members if row["gold"] is not None]
        right, report = (sum(row[stage] for row in known) for stage in ("first", "report"))
        counts = (len(members), right, report - right, len(known) - report, len(members) - len(known))
        print(f"| {level} | {' | '.join(map(str, counts))} |")
    known = [row for row in rows if row["gold"] is not None]
    told = sum(row["first"] and row["level"] != NOT_ANSWERED for row in known)
    print(f"\nTold, not refused, right in the first section: {told} of {len(known)}.")
    for name, on_topic in (("on the topic", True), ("off the topic", False)):
        members = [row for row in rows if row["gold"] is None and bool(row["on_topic"]) is on_topic]
        none, said = sum(row["none"] for row in members), sum(row["level"] != "Answer" for row in members)
        print(f"Without an answer, {name}, {len(members)}: {none} end without a report, {said} are not headed Answer.")


def _print_calibration(rows: Sequence[dict[str, Any]]) -> None:
    stated = [(row["confidence"], bool(row.get("answer"))) for row in rows if "confidence" in row]
    print("\n| answers | right | AUROC | ECE | Brier | of their share |\n|--:|--:|--:|--:|--:|--:|")
    print(f"| {' | '.join(metrics.calibration(stated))} |")


def _last(row: dict[str, Any]) -> str:
    return next((stage for stage in ("report", "notes", "results") if row[stage]), "the documents")


if __name__ == "__main__":
    main()
