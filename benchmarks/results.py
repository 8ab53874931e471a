"""A results folder: what one system answered to the questions of one set, in a form that any system can be put into.

    system.json        who answered: `System`
    questions.jsonl    what was asked, with what is expected where the set says so: a `Question` a line
    results.jsonl      how each question ended: a `Result` a line
    reports/ID.md      the reports
    pages.jsonl        texts of cited pages, where the system keeps none itself: a `Page` a line; may be missing

The runners of `benchmarks.research` and `benchmarks.world` write such folders, and so do the adapters for reports of
other systems; `benchmarks.scoring` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from fathom.errors import InvalidInput
from fathom.models import Model
from fathom.models.run import RowStatus

SYSTEM = "system.json"
QUESTIONS = "questions.jsonl"
RESULTS = "results.jsonl"
PAGES = "pages.jsonl"
REPORTS = "reports"

Words = list[list[str]]
"""Groups of alternatives: a text has them if it has at least one alternative of each group, as whole words."""


class FactCheck(Model):
    """A statement that a report is checked for. It states it if one of its sentences has the words."""

    claim: str
    is_true: bool  # a report should state it; if not, it must not
    words: Words
    source: str = ""  # address of the page that it stands in


class Question(Model):
    """A question of a set, and what a good report has. What is empty is not expected, or not known."""

    id: str
    question: str
    kind: str = ""  # of the set's own kinds
    expected_topics: Words = []  # each group is a topic
    required_sources: list[str] = []  # domains or addresses that a report should cite
    fact_checks: list[FactCheck] = []
    answer: Words = []  # of a short answer
    answerable: bool = True  # if not, the sources have no answer, and a good system says so


class Result(Model):
    """How one question ended. Counts and costs are None where the system does not tell."""

    id: str
    status: RowStatus
    report: str = ""  # path of the report in the folder; empty: there is none
    artifacts: str = ""  # address of the run's folder, of a run of Fathom
    answer: str | None = None  # a short one, in answer mode
    confidence: float | None = None  # 0 to 1, as the system states it
    llm_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None  # sent and received
    usd: float | None = None
    seconds: float | None = None


class Page(Model):
    """The text of a page as a system could read it."""

    url: str
    text: str
    title: str = ""


class System(Model):
    """Who answered. `versions` and `settings` are as the system has them."""

    name: str
    set: str  # of questions
    model: str = ""  # empty: none
    versions: dict[str, str] = {}
    settings: dict[str, object] = {}


Lines = TypeVar("Lines", bound=Model)


def read_lines(path: Path, model: type[Lines]) -> list[Lines]:
    """Return the lines of a file; none if there is no such file.

    Raises:
        InvalidInput: a line is damaged.
    """
    found = []
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line:
            continue
        try:
            found.append(model.model_validate_json(line))
        except ValidationError as error:
            said = f"{path}, line {number}: {reason(error)}."
            raise InvalidInput(said, next_step=f"a line is a {model.__name__} of benchmarks/results.py") from None
    return found


def read_system(folder: Path) -> System | None:
    """Return who answered, in a results folder; None if it is none.

    Raises:
        InvalidInput: it does not say so as a results folder does.
    """
    path = folder / SYSTEM
    try:
        return System.model_validate_json(_text(path)) if path.exists() else None
    except ValidationError:
        raise InvalidInput(f"{path} is damaged.", next_step="give another folder") from None


def reason(error: ValidationError) -> str:
    """Return the first thing that is wrong, and where."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text in UTF-8.", next_step="give another file") from None


def write_lines(path: Path, lines: Iterable[Model]) -> None:
    """Replace a file by lines."""
    new = path.with_name(f".{path.name}")
    new.write_text("".join(f"{line.model_dump_json(exclude_defaults=True)}\n" for line in lines), encoding="utf-8")
    new.replace(path)
