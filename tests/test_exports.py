"""What leaves a run: a Word document, references, a PDF, and the command that writes them."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import sys
from datetime import UTC, datetime
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
import rispy
from bibtexparser.entrypoint import parse_string
from bibtexparser.middlewares.names import split_multiple_persons_names
from docx import Document
from docx.oxml.ns import qn
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from pypdf import PdfReader
from typer.testing import CliRunner

from fathom.errors import InvalidInput, NoReport
from fathom.interfaces.cli.commands import app
from fathom.models import Bibliographic, Report, ReportSection, Source
from fathom.models.evidence import Claim, SourceQuality, Verdict
from fathom.report.docx import render_docx
from fathom.report.exporting import FORMATS, bibtex, check_formats, references, render_pdf, ris
from fathom.report.html import render_html
from fathom.report.markdown import render_markdown
from fathom.report.tables import render_csv, render_xlsx
from fathom.storage.store import ArtifactStore, json_bytes
from fathom.text.plain import clean_line
from fathom.text.sentences import fences
from fathom.text.urls import web_address
from fathom.tools.documents.readers import UnreadableFile, read_document
from tests.conftest import Bucket, FathomCLI
from tests.evidence_run import IDS, finished_run
from tests.inprocess import investigated
from tests.sample_report import sample_report

ANY = st.text(st.characters(codec="utf-8"), max_size=60) | st.text("{}\\$&%#_~^@\"',= \n\r[]()ab-", max_size=40)
ADDRESSES = st.builds("https://example.org/{}".format, ANY)
ID = "S1a2b3c"


def report_of(
    title: str, url: str, *, markdown: str = "", kind: str = "unknown", published: str = "", location: str = ""
) -> Report:
    scores = dict.fromkeys(("credibility", "relevance", "recency", "corroboration", "overall"), 0.5)
    source = Source(source_id=ID, url=url, title=title, kind="web", location=location, published="last week")
    quality = {"source_id": ID, "type": kind, "published": published, **scores}
    return Report(
        title=title,
        query="What is known?",
        extractive=True,
        sections=[ReportSection(heading=title, markdown=f"{markdown}\n\nIt is known [{ID}].")],
        sources=[source],
        qualities=[SourceQuality.model_validate(quality)],
    )


def links(document: Any) -> tuple[list[str], list[str]]:
    """Return where the links of a document lead: to which bookmarks, and to which addresses."""
    found = list(document.element.body.iter(qn("w:hyperlink")))
    inner = [link.get(qn("w:anchor")) for link in found if link.get(qn("w:anchor"))]
    outer = [document.part.rels[link.get(qn("r:id"))].target_ref for link in found if link.get(qn("r:id"))]
    return inner, outer


def test_a_word_document_has_the_report_s_structure() -> None:
    report = sample_report()
    document = Document(BytesIO(render_docx(report)))
    headings = [p.text for p in document.paragraphs if p.style and p.style.name == "Heading 1"]
    assert headings[:3] == ["Answered in part", "Where sources disagree", "Before you rely on it"]
    assert headings[3:7] == [section.heading for section in report.sections[1:]]
    assert {"Not found", "How this was researched"} < set(headings)
    assert headings[-2:] == ["Sources", "Evidence"]
    styles = {p.style.name for p in document.paragraphs if p.style}
    assert {"Title", "Quote", "Heading 2", "List Bullet", "List Number"} <= styles
    assert any(run.bold for p in document.paragraphs for run in p.runs)
    assert any(run.italic for p in document.paragraphs for run in p.runs)
    assert [len(table.columns) for table in document.tables] == [3, 4, 7, 4]  # sides, years, steps, evidence
    assert [len(table.rows) - 1 for table in document.tables[2:]] == [len(report.coverage), len(report.claims)]

    sources = report.sources
    inner, outer = links(document)
    marks = [mark.get(qn("w:name")) for mark in document.element.body.iter(qn("w:bookmarkStart"))]
    assert [mark for mark in marks if mark.startswith("source")] == [f"source_{n}" for n in range(1, len(sources) + 1)]
    assert set(inner) == set(marks)
    assert len([mark for mark in marks if mark.startswith("chapter")]) == len(headings)
    fields = [field.get(qn("w:instr")) for field in document.element.body.iter(qn("w:fldSimple"))]
    assert fields == [f"PAGEREF chapter_{number}" for number in range(1, len(headings) + 1)]
    assert outer == [source.url for source in sources if source.url.startswith("https")]
    first = [p.text for p in document.paragraphs].index("Sources") + 1
    listed = [p.text for p in document.paragraphs][first : first + len(sources)]
    assert all(text.startswith(f"[{n}]\t{s.title}") for n, (text, s) in enumerate(zip(listed, sources, strict=True), 1))


def test_a_report_is_never_read_as_a_document() -> None:
    report = sample_report().model_copy(update={"language": "de"})
    files = {
        "report.md": render_markdown(report).encode(),
        "report.html": render_html(report).encode(),
        "report.json": json_bytes(report.model_dump(mode="json")),
    }
    for form in ("md", "html", "json", "docx", "pdf", "xlsx"):
        with pytest.raises(UnreadableFile, match="a report that Fathom wrote"):
            read_document(f"export.{form}", FORMATS[form][1](files))


def test_a_text_with_the_headings_of_a_report_is_read() -> None:
    read = read_document("essay.md", b"# Pay\n\n## How this was researched\n\nBy letter.\n\n## Sources\n\nTen.\n")
    assert [section.heading for section in read.sections][1:] == ["How this was researched", "Sources"]


LISTS = """
3. `a.__dict__` comes first

   and is a dictionary
   1. inner
- bullet

text

1. anew ~~not~~ [page](https://example.org/x) [mail](mailto:a@example.org) ![picture](https://example.org/p.png)
"""


def test_lists_count_anew_and_names_keep_their_underscores() -> None:
    document = Document(BytesIO(render_docx(report_of("T", "docs:a.md", markdown=LISTS))))
    items = [p for p in document.paragraphs if p.style and p.style.name.startswith("List")]
    assert [(p.style.name, p.text) for p in items if p.style][:4] == [
        ("List Number", "a.__dict__ comes first"),
        ("List Continue", "and is a dictionary"),
        ("List Number 2", "inner"),
        ("List Bullet", "bullet"),
    ]
    numbering = document.part.numbering_part.element
    ids = [mark.get(qn("w:val")) for mark in document.element.body.iter(qn("w:numId"))]
    starts = {
        str(number.numId): [int(v.get(qn("w:val"))) for v in number.iter(qn("w:startOverride"))]
        for number in numbering.num_lst
    }
    assert [starts[i] for i in ids] == [[3], [1], [1]]
    assert links(document)[1] == ["https://example.org/x", "https://example.org/p.png"]


@settings(max_examples=15, deadline=None)
@given(title=ANY, markdown=ANY, url=ADDRESSES | ANY)
@example("a\x00b\x1b\ufffe\u202e\ud800", "&#x202e;&#0;<script>x</script>\n\n=cmd|'/c'!A0\n\n|a|b|\n|-|-|\n|c|", "x")
@example("t", "[a](javascript:x) [b](file:///etc/passwd) <https://example.org/{}> ![i](//h/p)", "http://[")
def test_foreign_text_becomes_characters_and_nothing_else(title: str, markdown: str, url: str) -> None:
    data = render_docx(report_of(title, url, markdown=markdown))
    document = Document(BytesIO(data))
    assert document.element.body.xpath("//w:object | //w:instrText | //w:altChunk | //w:drawing") == []
    fields = [field.get(qn("w:instr")) for field in document.element.body.iter(qn("w:fldSimple"))]
    assert all(re.fullmatch(r"PAGEREF chapter_\d+", field) for field in fields)
    text = "".join(p.text for p in document.paragraphs)
    assert not re.search(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", text)
    external = [rel.target_ref for rel in document.part.rels.values() if rel.is_external]
    assert all(re.fullmatch(r"https?://[!-~]+", address) for address in external)


def unescaped(value: str) -> str:
    """Undo what LaTeX would: the names of characters, then backslashes before the others."""
    names = {"braceleft": "{", "braceright": "}", "backslash": "\\", "asciitilde": "~", "asciicircum": "^"}
    return re.sub(r"\\text(\w+)\{\}|\\([$&%#_])", lambda m: names[m[1]] if m[1] else m[2], value)


@given(title=ANY, url=ADDRESSES | ANY, location=ANY)
@example("a {b", "https://example.org/{x}?a=%7B&b=\\", "}")
@example("ER  - \nTY  - ELEC", "https://example.org/\u2028x", "@misc{x, y = {z}}")
def test_any_title_and_address_come_back_from_a_bibliography(title: str, url: str, location: str) -> None:
    listed = references(report_of(title, url, location=location), {ID: "2026-03-02T09:14:07Z"})
    (reference,) = listed
    assert reference.title == (clean_line(title) or clean_line(url))

    library = parse_string(bibtex(listed))
    assert library.failed_blocks == []
    (entry,) = library.entries
    fields = {field.key: str(field.value) for field in entry.fields}
    assert entry.key == ID
    assert unescaped(fields.get("title", "")[1:-1]) == reference.title
    assert fields.get("url", "") == web_address(url)
    assert unescaped(fields.get("note", "")) == clean_line(location)

    (read,) = rispy.loads(ris(listed))
    assert (read["id"], read.get("title", "")) == (ID, reference.title)
    assert read.get("urls", [""]) == [web_address(url).replace(";", "%3B")]


@given(authors=st.lists(ANY, max_size=3), venue=ANY, licence=ANY, doi=ANY)
@example(["Fen, Ada", "Centre for Lakes and Tides", "a, b, c", "and"], "J. {Lakes", "cc-by %", "10.1/a_b")
@example(["Ann O’Reed"], "x\nER  - ", "", "10.1/{x}")
@example(["0", "&"], "", "", "")
def test_what_a_catalogue_says_comes_back_from_a_bibliography(
    authors: list[str], venue: str, licence: str, doi: str
) -> None:
    known = Bibliographic(authors=authors, venue=venue, licence=licence, doi=doi)
    report = report_of("T", "https://doi.org/10.1/x", kind="academic")
    sources = [source.model_copy(update={"reference": known}) for source in report.sources]
    listed = references(report.model_copy(update={"sources": sources}), {})
    names = [name for name in map(clean_line, authors) if name]
    library = parse_string(bibtex(listed))
    assert library.failed_blocks == []
    fields = {field.key: str(field.value) for field in library.entries[0].fields}
    assert unescaped(fields.get("journal", "")) == clean_line(venue)
    assert fields.get("doi", clean_line(doi)) == clean_line(doi)
    assert unescaped(fields.get("note", "").removeprefix("licence: ")) == clean_line(licence)
    assert len(split_multiple_persons_names(fields.get("author", ""))) == len(names)
    (record,) = rispy.loads(ris(listed))
    assert record.get("authors", []) == names
    assert (record.get("secondary_title", ""), record.get("doi", "")) == (clean_line(venue), clean_line(doi))


def test_a_reference_names_its_authors_and_journal() -> None:
    known = Bibliographic(authors=["Fen, Ada", "Jan van der Meer"], doi="10.1234/a_b", venue="Lakes & Seas")
    report = report_of("T", "https://doi.org/10.1234/a_b", kind="academic", published="2023-07-01")
    report = report.model_copy(update={"sources": [report.sources[0].model_copy(update={"reference": known})]})
    assert bibtex(references(report, {})) == (
        f"@article{{{ID},\n  author = {{Fen, Ada and Jan van der Meer}},\n  title = {{{{T}}}},\n"
        "  journal = {Lakes \\& Seas},\n  year = {2023},\n  doi = {10.1234/a_b},\n"
        "  url = {https://doi.org/10.1234/a_b},\n}\n"
    )
    named = "Ada Fen, Jan van der Meer, Lakes & Seas"
    assert f"1. [T](https://doi.org/10.1234/a_b), {named}, last week" in render_markdown(report)
    assert named.replace("&", "&amp;") in render_html(report)
    assert any(named in paragraph.text for paragraph in Document(BytesIO(render_docx(report))).paragraphs)
    assert Report.model_validate_json(report.model_dump_json()) == report
    assert "reference" not in report_of("T", "https://a.example").model_dump_json()


@pytest.mark.parametrize(
    ("url", "kind", "entry_type", "ris_type"),
    [
        ("https://example.org/paper", "academic", "article", "JOUR"),
        ("https://example.org/docs", "documentation", "manual", "ELEC"),
        ("https://example.org/repository", "code", "software", "COMP"),
        ("https://example.org/today", "news", "online", "NEWS"),
        ("https://example.org/law", "government", "online", "GOVDOC"),
        ("docs:minutes.pdf", "document", "misc", "GEN"),
    ],
)
def test_an_entry_says_what_kind_of_source_it_is(url: str, kind: str, entry_type: str, ris_type: str) -> None:
    listed = references(report_of("T", url, kind=kind, published="2023-07-01"), {ID: "2026-03-02T09:14:07Z"})
    text, tagged = bibtex(listed), ris(listed)
    assert text.startswith(f"@{entry_type}{{{ID},\n  title = {{{{T}}}},\n  year = {{2023}},\n")
    web = url.startswith("https")
    assert (f"url = {{{url}}},\n  urldate = {{2026-03-02}}" in text) is web
    assert (f"howpublished = {{{url}}}" in text) is not web
    assert tagged.startswith(f"TY  - {ris_type}\r\nID  - {ID}\r\nTI  - T\r\nPY  - 2023\r\n")
    assert "Y2  - 2026/03/02\r\n" in tagged and tagged.endswith("\r\nER  - \r\n")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.org/a b?c={d}#é", "https://example.org/a%20b?c=%7Bd%7D#%C3%A9"),
        ("HTTP://example.org/%20", "HTTP://example.org/%20"),
        ("https://[::1]/x", "https://[::1]/x"),
        *(
            (bad, "")
            for bad in ("javascript:alert(1)", "https://", "http://[", "https://a:b/", "//h/p", "file:///x", "")
        ),
    ],
)
def test_only_what_leads_to_the_web_is_an_address(url: str, address: str) -> None:
    assert web_address(url) == address


def test_a_pdf_has_the_report_s_text_its_links_and_few_pages() -> None:
    report = sample_report()
    pdf = PdfReader(BytesIO(render_pdf(report)))
    said = " ".join(" ".join(page.extract_text() for page in pdf.pages).replace("-\n", "").split())
    assert pdf.metadata and pdf.metadata.title == report.title
    assert len(pdf.pages) <= 6
    for expected in (
        "Answered in part",
        "How sure",
        "What it costs",
        "Port Merrin tidal lagoon: annual statement 2024",
    ):
        assert expected in said
    for number in range(1, len(report.claims) + 1):
        assert f" {number} " in said
    actions = [a.get_object().get("/A") for page in pdf.pages for a in page.get("/Annots", [])]
    web = {str(action["/URI"]) for action in actions if action and "/URI" in action}
    assert web == {source.url for source in report.sources if source.url.startswith("http")}
    assert [entry.title for entry in pdf.outline if not isinstance(entry, list)][:2] == [
        "Answered in part",
        "Where sources disagree",
    ]


LONG_ADDRESS = f"https://example.org/[{'of-a-page/' * 20}"


@settings(max_examples=15, deadline=None)
@given(title=ANY, markdown=ANY, url=ADDRESSES | ANY)
@example("#let x = 1 $ \\", '#read("/etc/passwd") @source-1 <a> *b* `c`', "http://[")
@example("", f"At {LONG_ADDRESS}", "")
def test_foreign_text_is_set_as_it_is_in_a_pdf(title: str, markdown: str, url: str) -> None:
    assume(all(fence.closed for fence in fences(markdown)))  # else what follows it is code, and cites nothing
    pdf = PdfReader(BytesIO(render_pdf(report_of(title, url, markdown=markdown))))
    said = "".join("".join(page.extract_text().split()) for page in pdf.pages)
    assert "Itisknown[1]" in said
    assert LONG_ADDRESS in said or LONG_ADDRESS not in markdown
    assert "root:" not in said


def test_a_format_that_cannot_be_written_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, run: Path, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    done = CliRunner().invoke(app, ["export", str(run), "--to", "pdf,docx", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["bridge.docx"]
    assert "pdf was not written: E4001 PDF needs typst, which is not installed. (install it" in done.stderr


@pytest.fixture
def run(home: Path) -> Path:
    """The folder of a finished run in the default root."""
    sections = [ReportSection(heading="Opening", markdown=f"It was opened in 1932 [{next(iter(IDS.values()))}].")]
    folder = home / "artifacts" / "research_artifacts" / "bridge"
    folder.mkdir(parents=True)
    for name, data in finished_run(sections).items():
        (folder / name).write_bytes(data)
    return folder


def test_every_format_is_written_beside_and_not_into_the_evidence(
    fathom_cli: FathomCLI, run: Path, tmp_path: Path
) -> None:
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    done = fathom_cli(["export", str(run), "--to", "md,JSON, bib,.ris,docx,xlsx,md", "--json"])
    assert done.returncode == 0, done.stderr
    paths = json.loads(done.stdout)
    assert paths == {
        wanted: str(tmp_path / f"bridge.{wanted}") for wanted in ("md", "json", "bib", "ris", "docx", "xlsx")
    }
    assert (tmp_path / "bridge.md").read_bytes() == before["report.md"]
    assert (tmp_path / "bridge.json").read_bytes() == before["report.json"]
    assert "urldate = {2026-01-02}" in (tmp_path / "bridge.bib").read_text()
    assert Document(str(tmp_path / "bridge.docx")).core_properties.created.year >= datetime.now(UTC).year
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


def test_an_export_may_go_to_a_bucket(run: Path, moto_s3: Bucket) -> None:
    done = CliRunner().invoke(app, ["export", str(run), "--to", "ris", "--out", f"{moto_s3.url}/exports"])
    assert done.stdout == f"{moto_s3.url}/exports/bridge.ris\n"
    assert asyncio.run(ArtifactStore(moto_s3.url).read("exports/bridge.ris")).startswith(b"TY  - ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--to", "odt"],
            "The format 'odt' does not exist. (choose from md, html, json, docx, pdf, xlsx, csv, bib, ris)",
        ),
        (["--to", " ,"], "No format was given"),
        (["--to", "md,html"], "The run has not finished: it has no report yet."),
        (["--to", "docx", "-o", "out/report.docx"], "--out out/report.docx names a file. (give a folder"),
        (["--to", "md", "--out", "{run}"], "would look like tampering"),
        (["--to", "md", "--out", "{run}/../other"], "would look like tampering"),
        (["--to", "md", "--out", "{run}/../../../file/x"], "cannot be written"),
    ],
)
def test_what_cannot_be_exported_is_said_and_nothing_written(run: Path, arguments: list[str], said: str) -> None:
    (run / "report.html").unlink(missing_ok=True)
    (run.parent.parent.parent / "file").write_text("in the way")
    before = sorted(run.parent.parent.parent.rglob("*"))
    done = CliRunner().invoke(app, ["export", str(run), *(part.format(run=run) for part in arguments)])
    assert isinstance(done.exception, InvalidInput | NoReport)
    assert done.exception.exit_code == (3 if "not finished" in said else 2)
    assert said in str(done.exception)
    assert sorted(run.parent.parent.parent.rglob("*")) == before


def test_formats_are_named_once() -> None:
    assert check_formats("bib,BIB, docx") == ["bib", "docx"]
    assert check_formats(",".join(FORMATS)) == list(FORMATS)


# -- a workbook ----------------------------------------------------------------------------------------------------

FORMULAS = ('=HYPERLINK("https://example.org?"&A1)', "+1+1", "-2+3+cmd'!A0", "@SUM(1+1)", "#REF!")


def test_a_workbook_has_claims_sources_and_tables_and_runs_nothing() -> None:
    table = f"| Plan | Price | Version | Code |\n|---|---|---|---|\n| {FORMULAS[0]} | 12.50 [{ID}] | 3.10 | 007 |\n"
    report = report_of(FORMULAS[0], "https://example.org/prices", markdown=f"{FORMULAS[1]}\n\n{table}")
    claims = [
        Claim(number=n, section=0, sentence=said, source_ids=[ID], verdict=Verdict.supported, score=1.0)
        for n, said in enumerate(FORMULAS, 1)
    ]
    book = load_workbook(BytesIO(render_xlsx(report.model_copy(update={"claims": claims}))))
    name = book.sheetnames[3]
    assert book.sheetnames[:3] == ["Report", "Claims", "Sources"]
    assert not {*"[]:*?/\\"} & {*name}
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    assert all(cell.quotePrefix for cell in cells if cell.data_type == "s")
    assert [row[1:4] for row in book["Claims"].iter_rows(values_only=True, min_row=2)] == [
        (said, "supported", 1) for said in FORMULAS
    ]
    assert [cell.value for cell in book["Sources"][2]][1:3] == [FORMULAS[0], "https://example.org/prices"]
    head, row = book[name].iter_rows()
    assert [cell.value for cell in head] == ["Plan", "Price", "Version", "Code", "Sources"]
    assert [cell.value for cell in row] == [FORMULAS[0], 12.5, 3.1, "007", 1]
    assert [cell.number_format for cell in row[1:3]] == ["0.00", "0.00"]


def test_tables_are_a_csv_that_runs_nothing(fathom_cli: FathomCLI, run: Path, tmp_path: Path) -> None:
    rows = "\n".join(f"| {said} | -1.5 [{ID}] |" for said in FORMULAS)
    table = f"| Plan, in full | Change |\n|---|---|\n{rows}\n"
    one = render_csv(report_of("Plans", "https://example.org/prices", markdown=table)).decode()
    head, *read = csv.reader(StringIO(one))
    assert head == ["Plan, in full", "Change", "Sources"]
    inert = [said if said.startswith("#") else f"'{said}" for said in FORMULAS]
    assert read == [[said, "-1.5", "1"] for said in inert]
    two = render_csv(report_of("Plans", "docs:a.md", markdown=f"{table}\nThen:\n\n| a |\n|---|\n| 1 |\n")).decode()
    assert [row for row in csv.reader(StringIO(two)) if len(row) < 2][1:] == [[], ["Answer"], ["a"], ["1"]]
    done = fathom_cli(["export", str(run), "--to", "csv,md"])
    assert done.returncode == 2 and "csv was not written: " in done.stderr and "no table" in done.stderr
    assert [file.suffix for file in tmp_path.glob("bridge.*")] == [".md"]


PLANS = [
    (f"Plan {name}", f"€{9 + 10 * n}", f"{50 + 50 * n} GB", ("Kiel", "Oslo", "Graz", "Bern")[n % 4])
    for n, name in enumerate("ABCDEFGHIJKLMNOP")
]


async def plans_in_kiel(folder: Path, plans: int) -> Report:
    """Return the report on a question that some rows of a table answer."""
    rows = "\n".join(f"| {' | '.join(plan)} |" for plan in PLANS[:plans])
    (docs := folder / f"plans{plans}.md").write_text(f"| Plan | Price | Size | Region |\n|---|---|---|---|\n{rows}\n")
    asked = "Which plans are in the region of Kiel?"
    result = await investigated(folder / "store", asked, model="extractive", docs=[str(docs)])
    return Report.model_validate_json((Path(result.artifacts) / "report.json").read_bytes())


@pytest.mark.usefixtures("home")
async def test_dots_end_a_table_that_is_cut_but_no_file_for_machines(tmp_path: Path) -> None:
    report = await plans_in_kiel(tmp_path, 16)
    shown = [line.split(" | ")[0] for line in render_markdown(report).split("\n") if line.startswith("|")]
    assert shown[2:7] == ["| Plan A", "| Plan E", "| Plan I", "| Plan M", "| …"]
    assert Document(BytesIO(render_docx(report))).tables[0].rows[-1].cells[0].text == "…"
    assert len(report.claims) >= 5 and not any("…" in claim.sentence for claim in report.claims)
    assert "…" not in (told := render_csv(report).decode()) and "Plan M,€129,650 GB,Kiel,1\r\n" in told
    assert "…" not in render_markdown(await plans_in_kiel(tmp_path, 1))


@given(title=ANY, said=ANY)
def test_any_text_can_be_stored_in_a_workbook(title: str, said: str) -> None:
    load_workbook(BytesIO(render_xlsx(report_of(title, "docs:a.md", markdown=f"| a |\n|---|\n| {said} |"))))


def test_sheets_of_one_name_are_told_apart() -> None:
    report = report_of("Claims", "docs:a.md", markdown="| a |\n|---|\n| 1 |\n\nThen:\n\n" * 12)
    names = load_workbook(BytesIO(render_xlsx(report))).sheetnames
    assert len({name.lower() for name in names}) == 15
