"""Answers from folders of documents, without a model: `python -m benchmarks.documents FOLDER`.

FOLDER has `corpora/NAME/` with documents and `questions.jsonl`: `id`, `corpus`, `type`, `question`, `gold` (groups of
alternatives, of which each must be there; null if the corpus does not answer), `within` (characters that they must lie
together), `files` and `on_topic`. Prints for each type of question where the fact that was asked for still is: in the
results of the tools, the notes, the report, its first section, and the 140 characters of answer mode; how runs end; and
how far the stated confidence of answers can be relied on (the columns of `benchmarks.calibration`).
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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import metrics
from fathom.models import Ending, RunResult
from tests.inprocess import investigated

STAGES = ("results", "notes", "report", "first", "answer")
CLOSEST = "What comes closest"
_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " ", "|": " "})
_MARKS = re.compile(r"\[(?:S[0-9a-f]{6,64}|\d{1,3})\]|[*`\\]")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_HEDGES = re.compile(r"what comes closest|not found in the sources", re.IGNORECASE)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="corpora or ids, separated by commas")
    parser.add_argument("--lost", action="store_true", help="name each answer that is not in the first section")
    arguments = parser.parse_args()
    lines = (arguments.folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    wanted = set(filter(None, arguments.only.split(",")))
    rows = [row for row in map(json.loads, lines) if not wanted or {row["id"], row["corpus"]} & wanted]
    with tempfile.TemporaryDirectory() as root, ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = list(pool.map(partial(_asked, arguments.folder, Path(root)), rows))
    _print_stages([each for each in found if each["gold"] is not None])
    _print_endings(found)
    _print_calibration(found)
    for each in found if arguments.lost else ():
        if each["gold"] is not None and not each["first"]:
            print(f"{each['id']} last seen in {_last(each)}: {each['question']} {each['gold']}")


def _asked(folder: Path, root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return a question with what became of it."""
    logging.disable(logging.WARNING)
    os.environ["FATHOM_CACHE"] = str(root / "cache")
    docs = [str(folder / "corpora" / row["corpus"])]
    ask = partial(investigated, query=row["question"], model=None, docs=docs)
    result: RunResult = asyncio.run(ask(root / row["id"]))
    short: RunResult = asyncio.run(ask(root / f"{row['id']}-short", mode="answer"))
    report = _read(result, "report.json") or {"sections": []}
    notes = _read(result, "notes.json") or []
    outputs = [json.loads(path.read_text()) for path in Path(result.artifacts).glob("*__documents*.json")]
    sections = [section["markdown"] for section in report["sections"]]
    head = "".join(f"{section['heading']}\n{section['markdown']}\n" for section in report["sections"][:1])
    texts = {
        "results": [text["text"] for output in outputs for text in output["results"]],
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
        "hedged": bool(_HEDGES.search(head)),
    }


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


def _print_stages(rows: Sequence[dict[str, Any]]) -> None:
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["type"]].append(row)
    print(f"| type | questions | {' | '.join(STAGES)} |\n|---|--:|{'--:|' * len(STAGES)}")
    for name, members in [*sorted(groups.items()), ("all", list(rows))]:
        shares = [f"{100 * sum(row[stage] for row in members) / (len(members) or 1):.0f}" for stage in STAGES]
        print(f"| {name} | {len(members)} | {' | '.join(shares)} |")


def _print_endings(rows: Sequence[dict[str, Any]]) -> None:
    known = [row for row in rows if row["gold"] is not None]
    claimed = sum(not row["none"] and not row["hedged"] and not row["report"] for row in known)
    hedged = sum(row["hedged"] and row["first"] for row in known)
    print(f"\nAnswerable, {len(known)}: {claimed} reports claim an answer without having it; {hedged} that have it in")
    print(f'their first section are headed "{CLOSEST}"; {sum(row["none"] for row in known)} end without a report.')
    for name, on_topic in (("on the topic", True), ("off the topic", False)):
        members = [row for row in rows if row["gold"] is None and bool(row["on_topic"]) is on_topic]
        none, said = sum(row["none"] for row in members), sum(row["hedged"] and not row["none"] for row in members)
        print(f"Without an answer, {name}, {len(members)}: {none} end without a report, {said} say so at once.")


def _print_calibration(rows: Sequence[dict[str, Any]]) -> None:
    stated = [(row["confidence"], bool(row.get("answer"))) for row in rows if "confidence" in row]
    print("\n| answers | right | AUROC | ECE | Brier | of their share |\n|--:|--:|--:|--:|--:|--:|")
    print(f"| {' | '.join(metrics.calibration(stated))} |")


def _last(row: dict[str, Any]) -> str:
    return next((stage for stage in ("report", "notes", "results") if row[stage]), "the documents")


if __name__ == "__main__":
    main()
