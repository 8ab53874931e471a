"""Reports of other systems as a results folder: `python -m benchmarks.scoring.reports FOLDER --questions Q --out OUT`.

FOLDER holds one Markdown file a question, ID.md, as gpt-researcher, open_deep_research and most others write them.
Claims can be checked only against the pages that a report cites: give them as JSON Lines of `url` and `text`
(`--pages`), or have them fetched (`--fetch`), under the same rules as `fetch` in a run. Pages that cannot be had count
as pages that were never read. What the runs cost, if it is known, stands in FOLDER/results.jsonl, by id.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ending import ending
from benchmarks.results import (
    PAGES,
    QUESTIONS,
    REPORTS,
    RESULTS,
    SYSTEM,
    Page,
    Question,
    Result,
    System,
    read_lines,
    write_lines,
)
from fathom.config.environment import Environment
from fathom.errors import InvalidInput
from fathom.models.run import RowStatus
from fathom.report.foreign.reading import read_markdown
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.web import WebReader


def main() -> None:
    """Write the results folder."""
    chosen = _arguments()
    questions = read_lines(chosen.questions, Question)
    if not questions:
        said = f"{chosen.questions} holds no questions."
        raise InvalidInput(said, next_step="give JSON Lines of `id` and `question` as --questions")
    kept = {one.id: one for one in read_lines(chosen.folder / RESULTS, Result)}
    (chosen.out / REPORTS).mkdir(parents=True, exist_ok=True)
    results = [_result(chosen.folder, chosen.out, one, kept.get(one.id)) for one in questions]
    found = sum(bool(one.report) for one in results)
    if not found:
        said = f"{chosen.folder} holds no report of these questions."
        raise InvalidInput(said, next_step="a report is named ID.md, by the id of its question")
    pages = read_lines(chosen.pages, Page) if chosen.pages else []
    if chosen.fetch:
        known = {page.url for page in pages}
        pages += asyncio.run(_fetched([url for url in _cited(chosen.out, results) if url not in known]))
    system = System(name=chosen.system, set=chosen.set, model=chosen.model)
    (chosen.out / SYSTEM).write_text(system.model_dump_json(indent=2) + "\n", encoding="utf-8")
    write_lines(chosen.out / QUESTIONS, questions)
    write_lines(chosen.out / RESULTS, results)
    write_lines(chosen.out / PAGES, pages)
    print(f"{found} of {len(questions)} questions have a report, {len(pages)} pages are known.", file=sys.stderr)
    print(chosen.out)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scoring.reports",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the reports")
    parser.add_argument("--questions", type=Path, required=True, metavar="FILE", help="what was asked, as JSON Lines")
    parser.add_argument("--out", type=Path, required=True, metavar="OUT", help="the results folder to write")
    parser.add_argument("--system", required=True, metavar="NAME", help="for example gpt-researcher")
    parser.add_argument("--model", default="", metavar="NAME", help="the model that it used")
    parser.add_argument("--set", default="questions", metavar="NAME", help="what the set of questions is called")
    parser.add_argument("--pages", type=Path, metavar="FILE", help="texts of cited pages, as JSON Lines")
    parser.add_argument("--fetch", action="store_true", help="fetch the cited pages whose text is not given")
    chosen = parser.parse_args()
    for path in filter(None, [chosen.folder, chosen.questions, chosen.pages]):
        if not path.exists():
            parser.error(f"{path} does not exist")
    return chosen


def _result(folder: Path, out: Path, question: Question, kept: Result | None) -> Result:
    path = folder / f"{question.id}.md"
    text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    if not text:
        return kept.model_copy(update={"report": ""}) if kept else Result(id=question.id, status=RowStatus.failed)
    report = f"{REPORTS}/{question.id}.md"
    (out / report).write_text(f"{text}\n", encoding="utf-8")
    found = kept or Result(id=question.id, status=RowStatus.complete)
    return found.model_copy(update={"report": report})


def _cited(out: Path, results: Sequence[Result]) -> list[str]:
    """Return the addresses that all reports cite, each once."""
    reports = ((out / one.report).read_text(encoding="utf-8") for one in results if one.report)
    return list(dict.fromkeys(source.url for report in reports for source in read_markdown(report).sources))


async def _fetched(urls: Sequence[str]) -> list[Page]:
    environment = Environment.read()
    allowed = AllowList.parse(environment.fetch_allow)
    reader = WebReader(allowed, TimedCache(environment.cache / "pages", 30 * 86_400))
    found, failed = await reader.read(urls)
    for url, error in failed.items():
        print(f"{url}: {error}", file=sys.stderr)
    return [Page(url=page.url, title=page.title, text=page.whole) for page in found]


if __name__ == "__main__":
    with ending():
        main()
