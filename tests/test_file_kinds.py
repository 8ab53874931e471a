"""The kinds of files that people have, as the programs that they use write them: what each becomes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import openpyxl
import pytest

from fathom.tools.documents.normal import ReadDocument
from fathom.tools.documents.readers import UnreadableFile, read_document


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def text_of(document: ReadDocument) -> str:
    parts = (f"{'#' * section.level} {section.heading}\n\n{section.text}".strip() for section in document.sections)
    return "\n\n".join(parts)


# -- spreadsheets --------------------------------------------------------------------------------------------------


def workbook(
    sheets: Mapping[str, Sequence[Sequence[object]]],
    formats: Mapping[str, str] | None = None,
    merged: Sequence[str] = (),
) -> bytes:
    """Return an xlsx; formats by column and merged cells are on its first sheet."""
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet: Any = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    for column, shape in (formats or {}).items():
        for cell in book.worksheets[0][column]:
            cell.number_format = shape
    for cells in merged:
        book.worksheets[0].merge_cells(cells)
    book.properties.title = "Prices"
    book.save(buffer)
    return buffer.getvalue()


def test_a_sheet_is_a_table_with_its_header_and_cells_as_they_are_shown() -> None:
    prices: list[Sequence[object]] = [
        ["Price list"],
        [],
        ["Model", "Price", "VAT", "Since", "Weight"],
        ["Hygro Pro", 129, 0.19, datetime(2026, 1, 5), 1.5],
        ["Hygro | Mini", 59.5, 0.1925, datetime(2026, 1, 5, 9, 30), 0.25],
        [],
        ["Hygro Max", 1210, 0.19, None, 12345],
    ]
    formats = {"B": "#,##0.00 [$€-407]", "C": "0%", "E": '0.0" kg"'}
    about: list[Sequence[object]] = [["Company", "Acme Ltd"], ["Founded", 2009], ["Open", True]]
    document = read_document("prices.xlsx", workbook({"2026": prices, "About us": about}, formats))
    assert document.title == "Prices"
    assert text_of(document) == (
        "# 2026\n\nPrice list\n\n"
        "| Model | Price | VAT | Since | Weight |\n|---|---|---|---|---|\n"
        "| Hygro Pro | 129.00 € | 19% | 2026-01-05 | 1.5 kg |\n"
        "| Hygro \\| Mini | 59.50 € | 19.25% | 2026-01-05 09:30 | 0.25 kg |\n\n"
        "| Model | Price | VAT | Since | Weight |\n|---|---|---|---|---|\n"
        "| Hygro Max | 1210.00 € | 19% |  | 12345.0 kg |\n\n"
        "# About us\n\n- **Company**: Acme Ltd\n- **Founded**: 2009\n- **Open**: TRUE"
    )


def test_merged_cells_hold_for_the_rows_and_columns_that_they_span() -> None:
    rows: list[Sequence[object]] = [
        [None, "Sales", None, "Costs"],
        ["Region", 2024, 2025, 2025],
        ["North", 1, 2, 3],
        [None, 4, 5, 6],
    ]
    read = text_of(read_document("a.xlsx", workbook({"S": rows}, merged=["B1:C1", "A3:A4"])))
    assert read == (
        "# S\n\n| Region | Sales 2024 | Sales 2025 | Costs 2025 |\n|---|---|---|---|\n"
        "| North | 1 | 2 | 3 |\n| North | 4 | 5 | 6 |"
    )


ODS = """<office:document-content
  xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
  xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
  xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>
  <table:table table:name="Prices"><table:table-row><table:table-cell><text:p>Model</text:p></table:table-cell>
    <table:table-cell><text:p>Price<text:s/>net</text:p></table:table-cell></table:table-row>
  <table:table-row><table:table-cell table:number-rows-spanned="2"><text:p>Hygro <text:span>Pro</text:span></text:p>
    <office:annotation><text:p>a remark</text:p></office:annotation></table:table-cell>
    <table:table-cell office:value="129"><text:p>129,00 €</text:p></table:table-cell></table:table-row>
  <table:table-row><table:covered-table-cell/><table:table-cell><text:p>119,00 €</text:p></table:table-cell>
    <table:table-cell table:number-columns-repeated="16382"/></table:table-row>
  <table:table-row table:number-rows-repeated="1048573"><table:table-cell/></table:table-row>
  </table:table></office:spreadsheet></office:body></office:document-content>"""
ODS_TYPE = "application/vnd.oasis.opendocument.spreadsheet"


def ods(content: str = ODS) -> bytes:
    return zipped({"mimetype": ODS_TYPE, "content.xml": content})


def test_ods_is_read_as_shown() -> None:
    assert text_of(read_document("a.ods", ods())) == (
        "# Prices\n\n| Model | Price net |\n|---|---|\n| Hygro Pro | 129,00 € |\n| Hygro Pro | 119,00 € |"
    )


def test_of_a_huge_sheet_the_first_cells_are_read() -> None:
    repeated = '<table:table-row table:number-rows-repeated="900000"><table:table-cell'
    huge = read_document("a.ods", ods(ODS.replace("<table:table-row><table:table-cell", repeated, 1)))
    assert huge.unread == "only the first 1,000,000 cells were read"
    far = workbook({"Far": [["a", "b"], ["c", 1]]})
    with zipfile.ZipFile(io.BytesIO(far)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[sheet] = members[sheet].replace(b'<row r="2"', b'<row r="999999999"').replace(b'"A2"', b'"XFD999999999"')
    assert "| a | b |" in text_of(read_document("a.xlsx", zipped(members)))


@pytest.mark.parametrize("data", [ods("<broken"), zipped({"mimetype": ODS_TYPE}), workbook({"A": []})[:-40]])
def test_a_broken_spreadsheet_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"it is a damaged (ods|xlsx), or not"):
        read_document("a.ods" if b"mimetype" in data[:60] else "a.xlsx", data)
