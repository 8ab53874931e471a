"""The kinds of files that people have, as the programs that they use write them: what each becomes."""

from __future__ import annotations

import io
import json
import mailbox
import os
import re
import time
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import openpyxl
import pptx
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.pdfgen.canvas import Canvas

from fathom.tools.documents import pool, recognition
from fathom.tools.documents.files import File, find_files
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
    title: str = "Prices",
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
    book.properties.title = title
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
    assert huge.unread == "only the first 500,000 cells were read"
    far = workbook({"Far": [["a", "b"], ["c", 1]]})
    with zipfile.ZipFile(io.BytesIO(far)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[sheet] = members[sheet].replace(b'<row r="2"', b'<row r="999999999"').replace(b'"A2"', b'"XFD999999999"')
    assert "| a | b |" in text_of(read_document("a.xlsx", zipped(members)))


@pytest.mark.parametrize("data", [ods("<broken"), zipped({"mimetype": ODS_TYPE}), workbook({"A": []})[:-40]])
def test_a_broken_spreadsheet_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"it is a damaged (ods|xlsx), or no "):
        read_document("a.ods" if b"mimetype" in data[:60] else "a.xlsx", data)


def test_a_formula_whose_value_no_program_has_stored_is_named() -> None:
    sums = workbook({"S": [["Net", "Gross"], [100, "=A2*1.25"], [40, "=A3*1.25"], [9, '=IF(A4>9,"high","")']]})
    with zipfile.ZipFile(io.BytesIO(sums)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[sheet] = members[sheet].replace(b'r="B4"', b'r="B4" t="str"')  # as Excel stores an empty text
    read = read_document("sums.xlsx", zipped(members))
    assert "| 100 |  |" in text_of(read)
    assert read.unread == (
        "2 formulas without a stored value were left empty: open it in a spreadsheet program and save it"
    )


# -- texts and presentations of OpenDocument -----------------------------------------------------------------------

OPEN_DOCUMENT = """<office:document-content
  xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
  xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
  xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"
  xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
  xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body>{}</office:body></office:document-content>"""
LETTER = """<office:text><text:tracked-changes><text:p>struck out</text:p></text:tracked-changes>
  <text:h text:outline-level="1">Berths</text:h>
  <text:p>Berth<text:s/>22 costs <text:span>310 euros</text:span>.<text:note><text:note-citation>1</text:note-citation>
    <text:note-body><text:p>From May.</text:p></text:note-body></text:note><office:annotation><text:p>?</text:p>
    </office:annotation></text:p>
  <text:section><text:h text:outline-level="2">Rules</text:h><text:list><text:list-item><text:p>No fires</text:p>
    <text:list><text:list-item><text:p>nor grills</text:p></text:list-item></text:list></text:list-item>
    <text:list-item><text:p>No dogs</text:p></text:list-item></text:list></text:section>
  <table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Boat</text:p></table:table-cell>
    <table:table-cell><text:p>Fee</text:p></table:table-cell></table:table-row></table:table-header-rows>
    <table:table-row><table:table-cell><text:p>Njord</text:p></table:table-cell>
    <table:table-cell><text:p>14</text:p></table:table-cell></table:table-row></table:table></office:text>"""
TALK = """<office:presentation><draw:page><draw:frame presentation:class="title"><draw:text-box>
  <text:p>Season</text:p></draw:text-box></draw:frame><draw:frame><draw:text-box><text:list><text:list-item>
  <text:p>Water opens on 11 April</text:p></text:list-item></text:list></draw:text-box></draw:frame>
  <presentation:notes><draw:frame><draw:text-box><text:p>The ice was late.</text:p></draw:text-box></draw:frame>
  </presentation:notes></draw:page><draw:page/></office:presentation>"""


def open_document(kind: str, body: str) -> bytes:
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    return zipped({"mimetype": mimetype, "content.xml": OPEN_DOCUMENT.format(body)})


def test_texts_and_presentations_of_opendocument_are_read() -> None:
    letter = read_document("letter.odt", open_document("text", LETTER))
    assert letter.title == "Berths"
    assert text_of(letter) == (
        "# Berths\n\nBerth 22 costs 310 euros. From May.\n\n## Rules\n\n- No fires\n  - nor grills\n- No dogs\n\n"
        "| Boat | Fee |\n|---|---|\n| Njord | 14 |"
    )
    talk = read_document("talk.odp", open_document("presentation", TALK))
    assert text_of(talk) == "# Season\n\n- Water opens on 11 April\n\nNotes:\n\nThe ice was late.\n\n## Slide 2"


# -- tables as text, transcripts, notebooks ------------------------------------------------------------------------

COMMAS = 'Model, Price, Note\nPro,129,"small, light"\nMini,59,\n'
SEMICOLONS = "Artikel;Preis\nPro, schwarz;129,50\nMini, weiß, neu;59,00\nMax, neu;1.210,00\n"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (COMMAS, "| Mini | 59 |  |"),
        (SEMICOLONS, "| Max, neu | 1.210,00 |"),
        (f"sep=;\n{SEMICOLONS}", "| Max, neu | 1.210,00 |"),
        (SEMICOLONS.replace(";", "\t"), "| Max, neu | 1.210,00 |"),
        (SEMICOLONS.replace(";", "|"), "| Max, neu | 1.210,00 |"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_the_delimiter_of_a_table_is_found(text: str, last: str, ending: str) -> None:
    rows = text_of(read_document(f"a.{ending}", text.encode())).split("\n")
    assert (len(rows), rows[-1]) == (text.count("\n") - text.count("sep=") + 1, last)


VTT = """WEBVTT - Budget call

NOTE made by a machine

1
00:00:01.000 --> 00:00:04.000 align:start
<v Anna Berg>We pay <i>12 euros</i></v>

00:00:04.000 --> 00:00:06.500
<v Anna Berg>a month for the sensor.</v>

00:00:06.500 --> 00:00:08.000
<v Tom>&amp; from May?</v>
"""
SRT = """1
00:59:58,000 --> 01:00:01,000
Anna: We pay 12 euros

2
01:00:01,000 --> 01:00:03,000
We pay 12 euros
a month.
"""


def test_a_transcript_is_paragraphs_with_time_and_speaker() -> None:
    call = read_document("call.vtt", VTT.encode())
    assert (call.title, text_of(call)) == (
        "Budget call",
        "[00:00:01] Anna Berg: We pay 12 euros a month for the sensor.\n\n[00:00:06] Tom: & from May?",
    )
    assert text_of(read_document("a.srt", SRT.replace("\n", "\r\n").encode())) == (
        "[00:59:58] Anna: We pay 12 euros a month."
    )
    with pytest.raises(UnreadableFile, match="damaged srt"):
        read_document("a.srt", b"Nothing is said.")


def test_a_notebook_is_its_cells_with_what_they_print() -> None:
    frame = "<table><tr><th>model</th><th>price</th></tr><tr><td>Pro</td><td>129</td></tr></table>"
    shown = {"text/html": [frame], "text/plain": ["raw"], "image/png": "iVBO"}
    cells = [
        {"cell_type": "markdown", "source": ["# Prices\n", "\n", "As of May.\n", "```\n", "open"]},
        {
            "cell_type": "code",
            "source": "show(prices)\nprint(1)",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "execute_result", "data": shown},
                {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["..."]},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    notebook = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    read = read_document("a.ipynb", json.dumps(notebook).encode())
    assert read.title == "Prices"
    assert text_of(read) == (
        "# Prices\n\nAs of May.\n```\nopen\n\n```python\nshow(prices)\nprint(1)\n```\n\n"
        "Output of `print(1)`:\n\n```\n1\n```\n\n"
        "| model | price |\n|---|---|\n| Pro | 129 |\n\n```\nKeyError: 'x'\n```"
    )
    for damaged in (b'{"cells": 1}', b"{", b'{"cells": [{"cell_type": "code"}], "metadata": {}}'):
        with pytest.raises(UnreadableFile, match="damaged ipynb"):
            read_document("a.ipynb", damaged)


# -- mail ----------------------------------------------------------------------------------------------------------


def message(
    subject: str, body: str, *, at: str, sender: str = "Anna Berg <anna@example.org>", answers: str = "", html: str = ""
) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"], made["Date"] = sender, "tom@example.org", subject, at
    made["Message-ID"] = f"<{at[5:7]}@example.org>"
    if answers:
        made["In-Reply-To"] = answers
    if body:
        made.set_content(body)
    if html:
        made.add_alternative(html, subtype="html") if body else made.set_content(html, subtype="html")
    return made


def test_a_mail_is_its_fields_its_text_and_its_attachments() -> None:
    mail = message("Angebot Hygro Pro – für März", "Der Preis ist 129 €.\n", at="Thu, 05 Mar 2026 10:00:00 +0100")
    mail.add_attachment(
        "model;price\nPro;129\n".encode("utf-16"), maintype="text", subtype="csv", filename="preise.csv"
    )
    mail.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="Angebot.pdf")
    read = read_document("angebot.eml", mail.as_bytes())
    assert (read.title, read.date) == ("Angebot Hygro Pro – für März", "2026-03-05")
    assert read.fields["From"] == "Anna Berg"
    assert read.unread == "attachments were not read: Angebot.pdf; save them beside it"
    text = text_of(read)
    assert "+0100\n\n# Angebot Hygro Pro – für März\n\nDer Preis ist 129 €.\n\nAttachments: preise.csv, Angebot" in text
    assert text.endswith("### preise.csv\n\n| model | price |\n|---|---|\n| Pro | 129 |")
    page = message("x", "", at="Thu, 05 Mar 2026 10:00:00 +0100", html="<p>Der <b>Preis</b> steht fest.</p>")
    assert "Der Preis steht fest." in text_of(read_document("a.eml", page.as_bytes()))


def test_files_of_an_office_that_a_mail_brings_are_read_with_it() -> None:
    mail = message("Offer", "See the sheet.\n", at="Thu, 05 Mar 2026 10:00:00 +0100")
    for name, data in (("boats.xlsx", workbook({"Boats": [["Boat", "Fee"], ["Njord", 14]]})), ("big.odt", b"PK\3\4")):
        mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    read = read_document("offer.eml", mail.as_bytes())
    assert "### boats.xlsx\n\n#### Boats\n\n| Boat | Fee |\n|---|---|\n| Njord | 14 |" in text_of(read)
    assert read.unread == "attachments were not read: big.odt; save them beside it"
    box = read_document("offer.mbox", b"From x Thu Mar  5 10:00:00 2026\n" + mail.as_bytes())
    assert "Njord" not in text_of(box) and "boats.xlsx, big.odt" in box.unread


def test_a_mailbox_is_read_thread_by_thread_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "Inbox"
    box = mailbox.mbox(path)
    box.add(
        message(
            "Re: Price",
            "From March on it is 139 euros.",
            at="Fri, 06 Mar 2026 10:00:00 +0000",
            answers="<05@example.org>",
        )
    )
    box.add(message("Lunch", "At noon?", at="Wed, 04 Mar 2026 10:00:00 +0000", sender="Tom <tom@example.org>"))
    box.add(message("Price", "It is 129 euros.", at="Thu, 05 Mar 2026 10:00:00 +0000"))
    box.close()
    read = read_document("Inbox", path.read_bytes())
    headings = [(section.level, section.heading) for section in read.sections]
    assert headings == [
        (1, "Lunch"),
        (2, "Tom, 2026-03-04"),
        (1, "Price"),
        (2, "Anna Berg, 2026-03-05"),
        (2, "Anna Berg, 2026-03-06"),
    ]
    assert read.sections[-1].text.endswith("From March on it is 139 euros.")
    assert read.date == "2026-03-06"
    assert text_of(read_document("x.mbox", path.read_bytes())) == text_of(read)


def test_a_file_of_several_sheets_or_threads_is_not_named_after_the_first() -> None:
    def titled(*sheets: str) -> str:
        read = read_document(
            "prices.xlsx", workbook({name: [["Boat", "Price"], ["Njord", 14]] for name in sheets}, title="")
        )
        return read.title

    assert (titled("Boats"), titled("Sheet1"), titled("Boats", "Lockers")) == ("Boats", "", "")
    days = {"Price": 4, "Lunch": 5}
    mails = [message(subject, "Yes.", at=f"Wed, 0{day} Mar 2026 10:00:00 +0000") for subject, day in days.items()]
    box = [b"From x Wed Mar  4 10:00:00 2026\n" + mail.as_bytes() for mail in mails]
    assert read_document("club.mbox", box[0]).title == "Price"
    assert read_document("club.mbox", b"\n\n".join(box)).title == ""


def test_of_a_mailbox_a_damaged_message_is_named_and_the_others_are_read() -> None:
    days = [message(f"Day {n}", f"It rained {n} mm.", at=f"Wed, 0{n} Mar 2026 10:00:00 +0000") for n in range(1, 5)]
    days[2].add_attachment(b'{"cells": 1}', maintype="application", subtype="json", filename="rain.ipynb")
    first, second, third, fourth = (mail.as_bytes() for mail in days)
    broken = second.replace(b"tom@example.org", b'"')
    unknown = fourth.replace(b"mm.", "mm, Ö.".encode()).replace(b'charset="utf-8"', b'charset="x-rain"')
    box = b"\n\n".join(b"From x Wed Mar  4 10:00:00 2026\n" + mail for mail in (first, broken, third, unknown))
    read = read_document("rain.mbox", box)
    assert all(f"It rained {n} mm" in text_of(read) for n in (1, 3, 4)) and "mm, Ö." in text_of(read)
    damaged = "damaged messages were not read: number 2 “Day 2” (IndexError)"
    assert read.unread == f"{damaged}; attachments were not read: rain.ipynb; save them beside it"
    with pytest.raises(UnreadableFile, match="damaged mbox"):
        read_document("rain.mbox", b"From x Wed Mar  4 10:00:00 2026\n" + broken)


@pytest.mark.parametrize("name", [b"To", b"Content-Type"])
def test_of_a_field_without_end_the_beginning_is_read(name: bytes) -> None:
    mail = message("Price", "It is 129 euros.", at="Thu, 05 Mar 2026 10:00:00 +0000").as_bytes()
    start = time.process_time()
    read = read_document("a.eml", re.sub(rb"(?m)^%b: .*" % name, b'%b: text/plain; x="a' % name + b'"' * 200_000, mail))
    assert time.process_time() - start < 60  # 0.2 s; minutes, were all of it parsed
    assert (read.title, read.date, read.fields["From"]) == ("Price", "2026-03-05", "Anna Berg")
    assert "It is 129 euros." in text_of(read)


# -- slides and books ----------------------------------------------------------------------------------------------


def slides() -> bytes:
    shown: Any = pptx.Presentation()
    shown.core_properties.title, shown.core_properties.modified = "Sales 2026", datetime(2026, 3, 1)
    first = shown.slides.add_slide(shown.slide_layouts[0])
    first.shapes.title.text, first.placeholders[1].text = "Sales in\vspring", "Anna Berg"
    second = shown.slides.add_slide(shown.slide_layouts[1])
    second.shapes.title.text, second.placeholders[1].text = "What sells", "Sensors\nMeters"
    second.placeholders[1].text_frame.paragraphs[1].level = 1
    second.notes_slide.notes_text_frame.text = "Say that the Pro sells best."
    third = shown.slides.add_slide(shown.slide_layouts[6])
    cells = third.shapes.add_table(3, 2, 0, 0, 100, 100).table
    for n, text in enumerate(["Model", "Price", "Pro", "129 €", "", "119 €"]):
        cells.cell(n // 2, n % 2).text = text
    cells.cell(1, 0).merge(cells.cell(2, 0))
    group = third.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "Prices without tax"
    buffer = io.BytesIO()
    shown.save(buffer)
    return buffer.getvalue()


def test_a_slide_is_a_section_with_its_tables_and_notes() -> None:
    read = read_document("a.pptx", slides())
    assert (read.title, read.date) == ("Sales 2026", "2026-03-01")
    assert text_of(read) == (
        "# Sales in spring\n\nAnna Berg\n\n## What sells\n\n- Sensors\n  - Meters\n\nNotes:\n\n"
        "Say that the Pro sells best.\n\n## Slide 3\n\n"
        "| Model | Price |\n|---|---|\n| Pro | 129 € |\n| Pro | 119 € |\n\nPrices without tax"
    )


def book() -> bytes:
    page = "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>t</title></head><body><h1>{}</h1><p>{}</p></body></html>"
    container = (
        "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'>"
        "<rootfiles><rootfile full-path='OEBPS/a.opf'/></rootfiles></container>"
    )
    items = "".join(f"<item id='{n}' href='{n}%20x.xhtml' media-type='application/xhtml+xml'/>" for n in ("one", "two"))
    package = (
        "<package xmlns='http://www.idpf.org/2007/opf' xmlns:dc='http://purl.org/dc/elements/1.1/'><metadata>"
        "<dc:title>Tides and Moons</dc:title><dc:creator>Anna Berg</dc:creator><dc:date>2026-03-01T00:00:00Z</dc:date>"
        f"</metadata><manifest>{items}</manifest><spine><itemref idref='two'/><itemref idref='one'/></spine></package>"
    )
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/a.opf": package,
            "OEBPS/one x.xhtml": page.format("Neap tides", "They are low."),
            "OEBPS/two x.xhtml": page.format("Spring tides", "They are high."),
        }
    )


def test_a_book_is_its_pages_in_order() -> None:
    read = read_document("a.epub", book())
    assert (read.title, read.date, read.fields) == ("Tides and Moons", "2026-03-01", {"Author": "Anna Berg"})
    assert text_of(read) == "# Spring tides\n\nThey are high.\n\n# Neap tides\n\nThey are low."


# -- text and other bytes ------------------------------------------------------------------------------------------

LOG = b"2026-03-05 10:00:01 ERROR disk sda1 is full\n2026-03-05 10:00:02 INFO  retrying\n"


@pytest.mark.parametrize("name", ["a.log", "LOG", "a.conf.bak", "a.unknown"])
def test_text_is_read_under_any_name(name: str) -> None:
    assert "ERROR disk sda1 is full" in text_of(read_document(name, LOG))
    assert "ERROR disk sda1 is full" in text_of(read_document(name, LOG.decode().encode("utf-16")))


def test_the_entries_of_a_log_stay_apart() -> None:
    trace = b"2026-03-05 10:00:03 ERROR failed\nTraceback:\n  at main\n"
    assert text_of(read_document("a.log", LOG + trace)).split("\n") == [
        "- 2026-03-05 10:00:01 ERROR disk sda1 is full",
        "- 2026-03-05 10:00:02 INFO  retrying",
        "- 2026-03-05 10:00:03 ERROR failed",
        "  Traceback:",
        "    at main",
    ]


@pytest.mark.parametrize("name", ["a.ipynb", "a.eml"])
def test_deep_nesting_is_left_out_or_read(name: str) -> None:
    parts = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5_000))
    data = {"a.ipynb": b'{"cells": ' + b"[" * 100_000, "a.eml": b"Subject: deep\n" + parts.encode()}[name]
    with pytest.raises(UnreadableFile, match=r"RecursionError|holds no text"):
        read_document(name, data)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.mp3", bytes(range(256)), "it is not text"),
        ("a.bin", bytes(range(1, 32)) * 9, "it is not text"),
        ("a.gz", b"\x1f\x8b\x08 ", "it is an archive"),
        ("a.zip", zipped({"a.txt": "x"}), "it is an archive"),
        (
            "a.xlsx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
            "it is password-protected, or in a format of Office",
        ),
        ("a.pptx", zipped({"[Content_Types].xml": "<x/>", "ppt/presentation.xml": "<x/>"}), "it is a damaged pptx"),
        ("a.epub", zipped({"mimetype": "application/epub+zip"}), "it is a damaged epub"),
        ("a.xlsx", b"not one", "it is damaged, or no xlsx file"),
        ("a.odt", open_document("text", LETTER)[:-40], "it is a damaged odt"),
        ("a.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "it is a message of Outlook: save it as eml"),
        ("a.rtf", rb"{\rtf1\ansi The sails are in locker 9.\par}", "save it as docx or odt"),
    ],
)
def test_what_is_not_read_has_a_reason(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        read_document(name, data)


# -- pictures ------------------------------------------------------------------------------------------------------


def scans(folder: Path) -> list[File]:
    """Write a picture and a PDF of two scanned pages, and return them."""
    picture = Image.new("L", (1200, 200), 255)
    ImageDraw.Draw(picture).text((40, 60), "The price is 129 euros", fill=0, font=ImageFont.load_default(72))
    picture.save(folder / "photo.png")
    canvas = Canvas(str(folder / "scan.pdf"), pagesize=(600, 100))
    for _ in range(2):
        canvas.drawInlineImage(picture, 0, 0, 600, 100)
        canvas.showPage()
    canvas.save()
    return list(find_files([str(folder)]))


COMMANDS = {
    "tesseract": """#!/bin/sh
if [ "$1" = --list-langs ]; then printf 'List of languages:\\neng\\n'; else printf 'The price is\\n129 euros\\n'; fi
""",
    "pdftoppm": """#!/bin/sh
for last; do :; done
: > "$last.png"
""",
}


def test_the_text_of_pictures_and_scanned_pages_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the system's commands; where it has none, by scripts with their command lines."""
    if recognition.missing_commands():
        (commands := tmp_path / "commands").mkdir()
        for name, script in COMMANDS.items():
            (commands / name).write_text(script, encoding="utf-8")
            (commands / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(commands), prepend=os.pathsep)
    (tmp_path := tmp_path / "scans").mkdir()
    read = {file.path.name: read for file, read in pool.read_files(scans(tmp_path))}
    assert {name: getattr(one, "text", one) for name, one in read.items()} == {
        "photo.png": "The price is 129 euros",
        "scan.pdf": "The price is 129 euros\n\nThe price is 129 euros",
    }
    assert [span.page for span in read["scan.pdf"].spans] == [1, 2]  # type: ignore[union-attr]


def test_a_recognised_sentence_is_one_although_tesseract_sees_a_gap_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        "Lease\\n\\n1. Notice must be given twelve\\n\\nmonths before the end of a year. It costs\\n\\n35 euros, "
        "and is given\\n\\nb) by letter"
    )
    (tmp_path / "tesseract").write_text(f"#!/bin/sh\nprintf '{said}'\n", encoding="utf-8")
    (tmp_path / "tesseract").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    read = recognition.recognise(b"", pdf=False)
    notice = "1. Notice must be given twelve months before the end of a year. It costs 35 euros, and is given"
    assert text_of(read) == f"Lease\n\n{notice}\n\nb) by letter"


def test_without_the_commands_a_picture_is_left_out_with_the_way_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = scans(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    reasons = {file.path.name: str(read) for file, read in pool.read_files(files)}
    assert reasons["photo.png"].startswith("it holds a picture and no text: install tesseract (Debian, Ubuntu: apt")
    assert reasons["scan.pdf"].startswith("it holds scanned pages and no text: install tesseract and pdftoppm (Debian")
