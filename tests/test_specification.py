"""`docs/specification.md`: its rows have their form, and every page, module, test and command that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from fathom.interfaces.cli.commands import app

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/specification.md"
COLUMNS = 5
_LINK = re.compile(r"\]\((?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
_TEST = re.compile(r"`(?P<file>test_\w+)(?: -k (?P<part>\w+))?`")
_COMMAND = re.compile(r"`fathom (?P<name>[a-z]+)\b")


def _rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if row[1] != "here"]


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _exists(link: re.Match[str]) -> bool:
    path = (PAGE.parent / link["path"]).resolve()
    return path.exists() and (not link["anchor"] or link["anchor"] in _anchors(path))


def _is_tested(test: re.Match[str]) -> bool:
    file = ROOT / f"tests/{test['file']}.py"
    names = re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8")) if file.exists() else []
    return any((test["part"] or "") in name for name in names)


def test_each_section_has_a_row_that_says_how_it_is_kept() -> None:
    rows = _rows()
    assert len(rows) > 140
    assert [row for row in rows if len(row) != COLUMNS or not row[0] or not row[3]] == []
    assert [row for row in rows if row[1] not in ("kept", "different", "not built")] == []
    assert [row for row in rows if row[1] != "kept" and not row[4]] == []


def test_what_it_names_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    missing = [link[0] for link in _LINK.finditer(text) if not _exists(link)]
    missing += [test[0] for test in _TEST.finditer(text) if not _is_tested(test)]
    missing += [command[0] for command in _COMMAND.finditer(text) if command["name"] not in commands]
    assert missing == []
