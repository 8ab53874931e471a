"""Reading the files that benchmarks come in: JSON, JSON Lines, CSV, workbooks, and what is encrypted in them."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, TextIO, TypeVar

from lxml import etree

Row = dict[str, Any]
Made = TypeVar("Made")

_SHEET, _STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)


def read_rows(path: Path, made: Callable[[int, Row], Made]) -> list[Made]:
    """Return what is made of each record, and of its number from 1 on, in a file of json, jsonl, csv or xlsx.

    Of JSON Lines and CSV one record is held at a time: the file of BrowseComp-Plus has 2 GB.

    Raises:
        ValueError: it is not what its ending says.
    """
    ending = path.suffix.lower()
    if ending == ".xlsx":
        return [made(number, row) for number, row in enumerate(_workbook(path), 1)]
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = _table(file) if ending == ".csv" else json.load(file) if ending == ".json" else _lines(file)
        return [made(number, _checked(row)) for number, row in enumerate(rows, 1)]


def decrypted(text: str, canary: str) -> str:
    """Return a text that was XORed with the SHA-256 of a canary and written in base64.

    Raises:
        ValueError: it was not, or not with that canary.
    """
    key = hashlib.sha256(canary.encode()).digest()
    return bytes(a ^ b for a, b in zip(base64.b64decode(text, validate=True), cycle(key), strict=False)).decode()


def _lines(file: TextIO) -> Iterator[Any]:
    return (json.loads(line) for line in file if line.strip())


def _table(file: TextIO) -> Iterator[Any]:
    try:
        yield from csv.DictReader(file, restval="")
    except csv.Error as error:
        raise ValueError(f"it is no CSV: {error}") from None


def _checked(row: Any) -> Row:
    if not isinstance(row, dict):
        raise ValueError("it is no list of objects")
    return row


def _workbook(path: Path) -> list[Row]:
    """Return the rows of a workbook's first sheet by the names in its first row."""
    try:
        with zipfile.ZipFile(path) as parts:
            sheet = etree.fromstring(parts.read(_SHEET), _PARSER)
            named = parts.read(_STRINGS) if _STRINGS in parts.namelist() else b"<sst/>"
    except (zipfile.BadZipFile, etree.XMLSyntaxError) as error:
        raise ValueError(f"it is no workbook: {error}") from None
    strings = ["".join(one.itertext("{*}t")) for one in etree.fromstring(named, _PARSER).iterfind("{*}si")]
    table = [{_column(cell): _text(cell, strings) for cell in row.iterfind("{*}c")} for row in sheet.iter("{*}row")]
    header = table[0] if table else {}
    return [{name: row.get(column, "") for column, name in header.items()} for row in table[1:] if any(row.values())]


def _column(cell: Any) -> str:
    return re.sub(r"\d", "", cell.get("r"))


def _text(cell: Any, strings: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return "".join(cell.itertext("{*}t"))
    value = cell.findtext("{*}v") or ""
    return strings[int(value)] if cell.get("t") == "s" else value
