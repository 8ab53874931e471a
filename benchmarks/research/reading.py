"""Reading the files that benchmarks come in: JSON, JSON Lines, CSV, workbooks, and what is encrypted in them."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import zipfile
from itertools import cycle
from pathlib import Path
from typing import Any

from lxml import etree

_SHEET, _STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file by its ending: json, jsonl, csv or xlsx.

    Raises:
        ValueError: it is not what its ending says.
    """
    match path.suffix.lower():
        case ".xlsx":
            return _workbook(path)
        case ".csv":
            with path.open(encoding="utf-8-sig", newline="") as lines:
                return [dict(row) for row in csv.DictReader(lines)]
        case ".json":
            rows = json.loads(path.read_text(encoding="utf-8"))
        case _:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("it is no list of objects")
    return rows


def decrypted(text: str, canary: str) -> str:
    """Return a text that was XORed with the SHA-256 of a canary and written in base64.

    Raises:
        ValueError: it was not, or not with that canary.
    """
    key = hashlib.sha256(canary.encode()).digest()
    return bytes(a ^ b for a, b in zip(base64.b64decode(text, validate=True), cycle(key), strict=False)).decode()


def _workbook(path: Path) -> list[dict[str, Any]]:
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
