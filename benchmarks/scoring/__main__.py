"""Scores of finished runs, computed offline: `python -m benchmarks.scoring FOLDER [FOLDER2] [--page scores.html]`.

A FOLDER is a results folder (benchmarks/results.py), as `benchmarks.research`, `benchmarks.world` and
`benchmarks.scoring.reports` write it, or any folder of Fathom's runs: an artifact store, a batch, one run. With two
folders the systems stand side by side, over the questions that both were asked. `docs/measuring.md` defines each row.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.ending import ending
from benchmarks.results import Question, read_lines
from benchmarks.scoring.page import render
from benchmarks.scoring.summary import ROWS, Scored
from benchmarks.scoring.table import report


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scoring", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="one or two folders of finished runs")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="what is expected: questions as JSON Lines")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write a page with charts")
    parser.add_argument("--json", action="store_true", help="print every measure of every run as JSON")
    chosen = parser.parse_args()
    if len(chosen.folders) > 2:
        parser.error("two systems at most can be compared")
    for path in [*chosen.folders, *filter(None, [chosen.questions])]:
        if not path.exists():
            parser.error(f"{path} does not exist")
    expected = {one.question: one for one in read_lines(chosen.questions, Question)} if chosen.questions else None
    systems = [Scored.of(folder, expected) for folder in chosen.folders]
    if chosen.json:
        print(json.dumps([_as_json(one) for one in systems], indent=1, ensure_ascii=False))
    else:
        print(report(systems))
    if chosen.page:
        chosen.page.parent.mkdir(parents=True, exist_ok=True)
        chosen.page.write_text(render(systems), encoding="utf-8")
        print(f"\nPage: {chosen.page}")


def _as_json(system: Scored) -> dict[str, object]:
    runs = [{"id": name, **asdict(scores)} for name, (_, scores) in system.by_id().items()]
    return {
        "system": system.runs.system.model_dump(mode="json"),
        "means": {row.name: row.mean(system.scores) for row in ROWS},
        "runs": runs,
    }


if __name__ == "__main__":
    with ending():
        main()
