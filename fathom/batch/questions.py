"""Reading the questions of a batch: text, CSV or JSON Lines, with any setting of a run beside each question."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from fathom.config.given import path_of, placed, settings_from, unknown, wrong_in
from fathom.config.inputs import check_query
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, WrongValue
from fathom.models.run import BatchQuestion

Format = Literal["txt", "csv", "jsonl"]
FORMATS: Mapping[str, Format] = {".txt": "txt", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
MOST_QUESTIONS = 10_000
MOST_NAMED = 5  # of the lines that cannot be used
_NAMES = ("question", "query")
_DELIMITERS = ",;\t"
_LOOKS: Mapping[Format, str] = {
    "txt": "write one question per line",
    "csv": "name the columns in the first line, such as question,profile; each further line is a question with its "
    'settings, such as "What does the Pro plan cost?",quick',
    "jsonl": 'write one object per line, such as {"question": "What does the Pro plan cost?", "profile": "quick"}',
}
_LABEL = "label."  # begins the name of a column that is only kept beside the results
_HELP = "a column or field is `question`, `run_key`, `id`, `label.NAME` or a setting, as in docs/settings.md"


def format_of(name: str) -> Format:
    """Return the format that a file's extension stands for; text if the extension is unknown.

    Raises:
        InvalidInput: files of that kind cannot be read.
    """
    ending = f".{name.rpartition('.')[2].lower()}" if "." in name.rpartition("/")[2] else ".txt"
    if ending not in FORMATS:
        raise InvalidInput(
            f"The extension of {name} does not say in which format its questions are.",
            next_step="save a table as CSV; for another text, name its format: --format txt, csv or jsonl",
        )
    return FORMATS[ending]


def read_questions(text: str, kind: Format, base: ResearchSettings) -> list[BatchQuestion]:
    """Return the questions in a text. Each can be researched with the batch's settings and its own.

    Raises:
        InvalidInput: there are none, too many, or some cannot be used; the message names their lines.
    """
    if not text.strip("\ufeff \t\r\n"):
        raise InvalidInput("The file is empty.", next_step=_LOOKS[kind])
    readers = {"txt": _lines, "csv": _table, "jsonl": _objects}
    found: list[BatchQuestion] = []
    wrong: list[InvalidInput] = []
    for line, fields in readers[kind](text.removeprefix("\ufeff")):
        try:
            found.append(_question(fields, base))
        except InvalidInput as error:
            wrong.append(InvalidInput(f"Line {line}: {error.message}", next_step=error.next_step or _HELP))
        if len(found) > MOST_QUESTIONS:
            raise InvalidInput(f"There are more than {MOST_QUESTIONS:,} questions.", next_step="split the file")
    if wrong:
        more = [f"{len(wrong) - MOST_NAMED} more lines cannot be used."] if len(wrong) > MOST_NAMED else []
        raise InvalidInput(
            " ".join([*(error.message for error in wrong[:MOST_NAMED]), *more]),
            next_step="; ".join(dict.fromkeys(error.next_step for error in wrong[:MOST_NAMED] if error.next_step)),
        )
    named = Counter(question.run_key for question in found if question.run_key)
    if twice := [key for key, number in named.items() if number > 1]:
        raise InvalidInput(f"The run key {twice[0]!r} occurs in several lines.", next_step="give each line its own key")
    if not found:
        raise InvalidInput("The file contains no question.", next_step=_LOOKS[kind])
    return found


def lines_of(questions: Sequence[BatchQuestion]) -> str:
    """Return questions as JSON Lines, which `read_questions` reads."""
    return "".join(
        json.dumps({"question": q.question, "run_key": q.run_key, **q.labels, **q.settings}, ensure_ascii=False) + "\n"
        for q in questions
    )


def settings_of(question: BatchQuestion, base: ResearchSettings) -> ResearchSettings:
    """Return the settings of a question: the batch's settings, overridden by the question's own.

    Raises:
        InvalidInput: one of its own cannot be used.
    """
    given = base.model_dump(mode="json", exclude_unset=True)
    for name, value in question.settings.items():
        inner = given.get(name)
        given[name] = {**inner, **value} if isinstance(inner, dict) and isinstance(value, dict) else value
    return settings_from(given)


def _question(fields: Mapping[str, JsonValue], base: ResearchSettings) -> BatchQuestion:
    named = {path_of(name): value for name, value in fields.items()}
    asked = [named.pop(name) for name in _NAMES if name in named]
    if len(asked) != 1 or not isinstance(asked[0], str):
        raise InvalidInput("There is no question.", next_step=_HELP)
    run_key = named.pop("run_key", "") or ""
    labels = {name: named.pop(name) for name in [*named] if _is_label(name)}
    if named.get("artifacts"):
        raise InvalidInput("A line cannot have its own artifacts.", next_step="choose the store of the whole batch")
    own = placed({path: value for path, value in named.items() if value is not None and value != ""})
    try:
        question = BatchQuestion(question=check_query(asked[0]), settings=own, run_key=str(run_key), labels=labels)
    except ValidationError as error:  # JSON can write a number that is infinite: 1e999
        raise InvalidInput(wrong=wrong_in(error.errors())) from None
    settings_of(question, base)
    return question


def _is_label(name: str) -> bool:
    return name == "id" or name.startswith(_LABEL)


def _check_columns(header: Sequence[str]) -> None:
    """Refuse a column that is nothing known: it may be a setting, misspelt, without which a question costs more.

    Raises:
        InvalidInput: there is one.
    """
    for name in header:
        path = path_of(name)
        if not path or _is_label(path) or path in (*_NAMES, "run_key"):
            continue
        if path.partition(".")[0] not in ResearchSettings.model_fields:
            raise InvalidInput(
                WrongValue(path, None, unknown([path], ResearchSettings)).told(f"Column {name.strip()!r}"),
                next_step=f"remove the column, or name it `{_LABEL}{path}` to keep it beside the results",
            )


def _lines(text: str) -> Iterator[tuple[int, Mapping[str, JsonValue]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, {"question": line.strip()}


def _objects(text: str) -> Iterator[tuple[int, Mapping[str, JsonValue]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = from_json(line, allow_inf_nan=False)
        except ValueError as error:
            raise InvalidInput(f"Line {number} is not JSON: {error}.", next_step="write one object per line") from None
        if isinstance(found, str):
            found = {"question": found}
        if not isinstance(found, dict):
            raise InvalidInput(f"Line {number} is not an object.", next_step='for example {"question": "..."}')
        yield number, found


def _table(text: str) -> Iterator[tuple[int, Mapping[str, JsonValue]]]:
    # What divides the columns differs by country: a spreadsheet writes semicolons where numbers have commas.
    first = text.partition("\n")[0]
    delimiter = next((one for one in _DELIMITERS if _names_question(first.replace('"', "").split(one))), ",")
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    try:
        header = next(rows, [])
        if not _names_question(header):
            raise InvalidInput("The first line does not name a column `question`.", next_step=_LOOKS["csv"])
        _check_columns(header)
        for cells in rows:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > len(header):
                said = f"Line {rows.line_num} has {len(cells)} cells, and the first line {len(header)}."
                raise InvalidInput(said, next_step=f"put cells with {delimiter!r} in quotes")
            yield rows.line_num, {name: _cell(name, cell) for name, cell in zip(header, cells, strict=False)}
    except csv.Error as error:
        raise InvalidInput(f"Line {rows.line_num} is not CSV: {error}.", next_step="check its quotes") from None


def _names_question(header: Sequence[str]) -> bool:
    return any(name.strip().lower() in _NAMES for name in header)


def _cell(name: str, cell: str) -> JsonValue:
    """Return the value of a cell. The values of a list setting may be separated by `;`; a label is always a text."""
    cell = cell.strip()
    if _is_label(path_of(name)):
        return cell
    if cell[:1] in ("{", "["):
        try:
            value: JsonValue = from_json(cell, allow_inf_nan=False)
        except ValueError as error:
            raise InvalidInput(f"{name} {cell!r} is not JSON: {error}.", next_step=_HELP) from None
        return value
    field = ResearchSettings.model_fields.get(path_of(name))
    if field and cell and "list[" in str(field.annotation):
        return [part.strip() for part in cell.split(";") if part.strip()]
    return cell
