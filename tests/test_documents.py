"""The local corpus: reading every kind of file, indexing them, and what a search returns."""

from __future__ import annotations

import io
import os
import re
import shutil
from itertools import pairwise
from pathlib import Path

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from fathom.errors import InvalidInput
from fathom.models import Document
from fathom.telemetry.progress import Event, listen
from fathom.tools.documents import corpus, pool
from fathom.tools.documents.corpus import check_documents, open_corpus, python_reference
from fathom.tools.documents.index import Index
from fathom.tools.documents.normal import DocumentSection, ReadDocument
from fathom.tools.documents.readers import UnreadableFile, read_document
from fathom.tools.documents_tool import DocumentsTool


def pdf(*pages: str, title: str = "") -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setTitle(title)
    for page in pages:
        for n, line in enumerate(page.splitlines()):
            canvas.drawString(72, 720 - 14 * n, line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def encrypted(data: bytes, user: str, owner: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user, owner, algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def word(title: str, *blocks: tuple[str, str], table: list[list[str]] | None = None) -> bytes:
    document = docx.Document()
    document.add_heading(title, 0)
    for style, text in blocks:
        document.add_paragraph(text, style=style)
    if table:
        rows = document.add_table(len(table), len(table[0]))
        for row, cells in zip(rows.rows, table, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


MARKDOWN = b"""---
title: "Tides"
tags: [sea]
---
Intro line.

# Spring tides

They follow the new moon.

```sh
# not a heading
```

Neap tides
----------

| a | b |
|---|---|
| 1 | 2 |
"""
REST = """=======
 Tides
=======

Intro line.

Spring
======

They follow the new moon.

Causes
------

Gravity.
"""
HTML = b"""<!doctype html><html><head><title>Tides</title></head><body><nav><a href="/">Home</a></nav><article>
<h1>Tides</h1><p>The sea rises and falls twice a day along most of the coasts of the world.</p><h2>Spring tides</h2>
<p>They follow the new moon and the full moon, when the pull of the sun adds to that of the moon.</p></article>"""


def headings(document: ReadDocument) -> list[tuple[str, int]]:
    return [(section.heading, section.level) for section in document.sections]


def test_each_kind_of_file_has_a_title_and_sections() -> None:
    markdown = read_document("a.md", MARKDOWN)
    assert markdown.title == "Tides"
    assert headings(markdown) == [("", 0), ("Spring tides", 1), ("Neap tides", 2)]
    assert "# not a heading" in markdown.sections[1].text

    rest = read_document("a.rst", REST.encode("utf-16"))
    assert (rest.title, headings(rest)) == ("Tides", [("Tides", 1), ("Spring", 2), ("Causes", 3)])
    assert [section.text for section in rest.sections] == ["Intro line.", "They follow the new moon.", "Gravity."]

    page = read_document("a.html", HTML)
    assert page.title == "Tides"
    assert headings(page)[-1] == ("Spring tides", 2)
    assert "Home" not in "".join(section.text for section in page.sections)
    assert "Short." in read_document("a.htm", b"<p>Short.</p>").sections[0].text

    paper = read_document("a.pdf", pdf("The sea rises.", "It falls.", title="Tides"))
    sections = [DocumentSection("The sea rises.", page=1), DocumentSection("It falls.", page=2)]
    assert paper == ReadDocument("Tides", sections, "2000-01-01")  # what reportlab writes
    assert {read_document("a.pdf", pdf("It rises.", title=title)).title for title in ("Tides.doc", "(anonymous)")} == {
        ""
    }

    letter = read_document(
        "a.docx",
        word(
            "Tides",
            ("Normal", "The sea rises."),
            ("Heading 1", "Spring"),
            ("Normal", "New moon."),
            table=[["a", "b"], ["1", "2"]],
        ),
    )
    assert letter == ReadDocument(
        "Tides",
        [
            DocumentSection("The sea rises."),
            DocumentSection("New moon.\n\n| a | b |\n|---|---|\n| 1 | 2 |", "Spring", 1),
        ],
    )

    plain = read_document("a.txt", "Ebbe und Flut: r\u00fcckl\u00e4ufig.".encode("cp1252"))
    assert plain == ReadDocument("", [DocumentSection("Ebbe und Flut: r\u00fcckl\u00e4ufig.")])


def test_the_bytes_decide_where_the_ending_lies() -> None:
    assert read_document("a.txt", pdf("The sea rises.")).sections[0].page == 1
    assert read_document("a.pdf", word("Tides", ("Normal", "The sea rises."))).title == "Tides"
    assert read_document("a.txt", HTML).title == "Tides"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b" \n\t ", "empty"),
        ("a.md", b"# ***\n", "no text"),
        ("a.txt", b"ELF\0\1\2", "not text"),
        ("a.pdf", b"hello", "no pdf file"),
        ("a.pdf", b"%PDF-1.7\nnothing follows", "damaged pdf"),
        ("a.pdf", pdf(""), "scanned"),
        ("a.pdf", encrypted(pdf("Secret."), "password", "owner"), "password-protected"),
        ("a.docx", word("Tides", ("Normal", "x"))[:900], "damaged docx"),
        ("a.docx", b"PK\x03\x04", "damaged docx"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "password-protected"),
        ("a.html", b"<html><body></body></html>", "no text"),
    ],
)
def test_what_cannot_be_read_says_why(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        read_document(name, data)


def test_a_pdf_without_a_password_to_open_it_is_read() -> None:
    assert read_document("a.pdf", encrypted(pdf("Open."), "", "owner")).sections[0].text == "Open."


# -- searching ----------------------------------------------------------------------------------------------------

FILLER = " ".join(["Lorem ipsum dolor sit amet consectetur."] * 40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    (root / "sub" / ".hidden").mkdir(parents=True)
    long = [f"## Part {n}\n\n{FILLER}\n" for n in range(30)]
    long[17] = "## Barnacles\n\nBarnacles cement themselves to ships.\n"
    (root / "long.md").write_text("# The long one\n\n" + "\n".join(long), encoding="utf-8")
    (root / "sub" / "tides.pdf").write_bytes(pdf("The sea rises.", "Barnacles like spring tides.", title="Tides"))
    (root / "moon.txt").write_text("The moon pulls at the sea.\nM\u00fcnchen lies far from it.", encoding="utf-8")
    (root / "copy.txt").write_bytes((root / "moon.txt").read_bytes())
    (root / "sea.md").write_text("\u6d77\u6d0b\u6f6e\u6c50\u7531\u6708\u7403\u5f15\u8d77\u3002", encoding="utf-8")
    (root / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    (root / "program.exe").write_bytes(b"MZ\0\1")
    (root / "sub" / ".hidden" / "x.txt").write_text("barnacles", encoding="utf-8")
    return root


async def test_search_reads_small_documents_whole_and_long_ones_in_part(folder: Path, tmp_path: Path) -> None:
    tool = DocumentsTool([str(folder)], tmp_path / "cache", 5)
    assert "notes" in tool.description
    by_url = {text.url: text for text in (await tool.run("barnacles")).results}
    assert set(by_url) == {"docs:notes/long.md", "docs:notes/sub/tides.pdf"}

    tides = by_url["docs:notes/sub/tides.pdf"]
    assert (tides.title, tides.location, tides.full, tides.kind) == ("Tides", "page 2", True, "document")
    assert tides.text == "The sea rises.\n\nBarnacles like spring tides."

    long = by_url["docs:notes/long.md"]
    assert (long.title, long.location, long.full) == ("The long one", "Barnacles", False)
    found = re.findall(r"^## .*", long.text, re.M)
    assert found == ["## Part 16", "## Barnacles", "## Part 18"]
    assert long.text.startswith("# The long one\n\n[...]\n\n## Part 16")
    assert long.text.count("[...]") == 1

    surveyed = await tool.survey("barnacles on ships", 1)
    assert surveyed.documents == [Document(title="The long one", headings=["Barnacles"])]
    assert [file.path for file in surveyed.unread] == ["docs:notes/broken.pdf", "docs:notes/program.exe"]


async def test_queries_in_any_writing(folder: Path, tmp_path: Path) -> None:
    tool = DocumentsTool([str(folder)], tmp_path / "cache", 1)
    for query, url in {
        "munchen": "docs:notes/copy.txt",
        "\u6708\u7403": "docs:notes/sea.md",
        "pulling moons": "docs:notes/copy.txt",
    }.items():
        assert [text.url for text in (await tool.run(query)).results] == [url], query
    assert (await tool.run("zzzz")).results == []
    assert (await tool.run("?!")).results == []


async def test_the_same_folder_gives_the_same_bytes_anywhere(folder: Path, tmp_path: Path) -> None:
    def corpus_of(root: Path, cache: str) -> DocumentsTool:
        return DocumentsTool([str(root)], tmp_path / cache, 5)

    before = await corpus_of(folder, "one").run("sea moon barnacles")
    moved = Path(shutil.copytree(folder, tmp_path / "elsewhere" / "notes"))
    assert await corpus_of(moved, "two").run("sea moon barnacles") == before
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    assert await corpus_of(moved, "file").run("sea moon barnacles") == before  # nowhere to keep the index


async def test_what_is_left_out_is_said_and_the_index_is_kept(folder: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    cache = tmp_path / "cache"
    with listen(events.append):
        await DocumentsTool([str(folder)], cache, 5).run("moon")
    [warning] = [event for event in events if event.kind == "warning"]
    assert "docs:notes/broken.pdf (it is a damaged pdf" in warning.message
    assert "moon.txt" not in warning.message  # what it says was read, in a copy of it

    [index] = (cache / "documents").iterdir()
    written = index.stat().st_ino
    corpus._opened.cache_clear()
    assert "docs:notes/broken.pdf" in open_corpus([str(folder)], cache).skipped
    assert index.stat().st_ino == written

    (folder / "moon.txt").write_text("The moon is made of basalt.", encoding="utf-8")
    [basalt] = (await DocumentsTool([str(folder)], cache, 5).run("basalt")).results
    assert (basalt.url, basalt.title) == ("docs:notes/moon.txt", "moon")
    assert len(list((cache / "documents").iterdir())) == 1


def test_paths_are_checked_before_the_run(folder: Path, tmp_path: Path) -> None:
    check_documents([])
    check_documents([str(folder)])
    check_documents([str(folder / "broken.pdf"), str(folder / "moon.txt")])
    with pytest.raises(InvalidInput, match=r"The file or folder .* does not exist"):
        check_documents([str(folder), str(tmp_path / "missing")])
    check_documents([str(folder / "program.exe"), str(folder / "moon.txt")])
    with pytest.raises(InvalidInput, match=r"program.exe: it is not text.*any text, html, pdf"):
        check_documents([str(folder / "program.exe")])
    with pytest.raises(InvalidInput, match="damaged pdf"):
        check_documents([str(folder / "broken.pdf")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="Nothing to read"):
        check_documents([str(tmp_path / "empty")])


def test_a_file_given_twice_counts_once_and_equal_names_are_told_apart(tmp_path: Path) -> None:
    for parent in ("x", "y"):
        (tmp_path / parent / "docs").mkdir(parents=True)
        (tmp_path / parent / "docs" / "a.txt").write_text(f"text of {parent}", encoding="utf-8")
    paths = [str(tmp_path / p) for p in ("x/docs", "y/docs", "x/docs/a.txt")]
    index = open_corpus(paths, tmp_path / "cache")
    urls = {index.document(match.document).url for match in index.search("text", 9)}
    assert urls == {"docs:docs/a.txt", "docs:docs~2/a.txt"}


def results(root: Path, cache: Path, *queries: str) -> list[object]:
    corpus._opened.cache_clear()
    index = open_corpus([str(root)], cache)
    found = [[(index.document(m.document).url, m.hits[0].score) for m in index.search(q, 9)] for q in queries]
    return [*found, index.skipped]


def test_only_changed_files_are_read_again_and_the_index_is_as_if_made_anew(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    queries = ("sea moon", "barnacles", "iron", "basalt")
    results(folder, cache, *queries)

    moon = folder / "moon.txt"
    (folder / "copy.txt").unlink()  # of the two that are the same, the one that counted
    (folder / "broken.pdf").write_bytes(pdf("Mended: the moon is made of basalt."))
    (folder / "sub" / "iron.md").write_text("# Iron\n\nThe moon has an iron core.", encoding="utf-8")
    changed = results(folder, cache, *queries)
    assert changed == results(folder, tmp_path / "anew", *queries)
    assert [url for url, _ in changed[3]] == ["docs:notes/broken.pdf"]  # type: ignore[attr-defined] # a list of pairs
    assert changed[4] == {"docs:notes/program.exe": "it is not text"}

    status = moon.stat()
    moon.write_text(moon.read_text(encoding="utf-8").replace("moon", "iron"), encoding="utf-8")
    os.utime(moon, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert results(folder, cache, *queries) == changed  # same size, same time: not even opened
    os.utime(moon)
    assert results(folder, cache, *queries) == results(folder, tmp_path / "third", *queries) != changed


def test_a_damaged_index_is_made_anew(folder: Path, tmp_path: Path) -> None:
    before = results(folder, tmp_path, "barnacles")
    [index] = (tmp_path / "documents").iterdir()
    index.write_bytes(b"damaged" * 1_000)
    assert results(folder, tmp_path, "barnacles") == before
    assert index.read_bytes().startswith(b"SQLite")


def test_several_processes_read_what_one_reads_and_say_how_far_they_are(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = results(folder, tmp_path / "one", "sea moon", "barnacles")
    monkeypatch.setattr(pool, "PLAIN_BYTES", 1_000)
    monkeypatch.setattr(pool, "REPORT_EVERY", 0.0)
    events: list[Event] = []
    with listen(events.append):
        assert results(folder, tmp_path / "several", "sea moon", "barnacles") == one
    assert Event("phase", "reading documents: 2 of 5") in events


def test_a_file_that_takes_too_long_is_left_out(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    results(folder, cache)
    tides = folder / "sub" / "tides.pdf"
    tides.write_bytes(pdf("The sea rises and falls."))
    monkeypatch.setattr(pool, "SECONDS", 0.001)
    [skipped] = results(folder, cache)
    assert isinstance(skipped, dict)
    assert "takes longer" in skipped["docs:notes/sub/tides.pdf"]
    monkeypatch.undo()
    assert results(folder, cache) == [skipped]  # not tried again in every run
    os.utime(tides)
    [skipped] = results(folder, cache)
    assert isinstance(skipped, dict)
    assert "docs:notes/sub/tides.pdf" not in skipped


def test_in_a_large_corpus_common_words_still_count() -> None:
    texts = {f"docs:{n}": f"A common word and another one, number {n}." for n in range(1_500)}
    texts |= {f"docs:other{n}": f"Nothing of the kind, number {n}." for n in range(1_600)}
    texts |= {"docs:x": "A rare thing, yet a plain remark.", "docs:y": "A rare thing, yet a common word."}
    index = Index.build({url: ReadDocument("", [DocumentSection(text)]) for url, text in texts.items()})
    best = [index.document(match.document).url for match in index.search("rare common word", 2)]
    assert best == ["docs:y", "docs:x"]


paragraphs = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=8).map("\n\n".join)


@given(
    st.lists(st.builds(DocumentSection, paragraphs, st.sampled_from(["", "Heading"]), st.just(2)), max_size=4),
    st.text(),
)
def test_passages_hold_every_word_and_no_query_breaks_the_search(sections: list[DocumentSection], query: str) -> None:
    index = Index.build({"docs:a": ReadDocument("A", sections)})
    text = index.document(1).text
    passages = index.passages(1)
    assert all(a.stop <= b.start for a, b in pairwise(passages))
    assert "".join("".join(text[p.start : p.stop].split()) for p in passages) == "".join(text.split())
    index.search(query, 5)


def test_a_long_paragraph_is_cut_and_stays_searchable() -> None:
    sentences = " ".join(f"Sentence number {n} is about topic{n}." for n in range(2_000))
    documents = {
        "docs:a": ReadDocument("A", [DocumentSection(sentences)]),
        "docs:b": ReadDocument("B", [DocumentSection("x" * 50_000)]),
    }
    index = Index.build(documents)
    assert max(p.words for p in index.passages(1)) <= 400
    assert max(p.stop - p.start for p in index.passages(2)) <= 4_000
    [match] = index.search("topic1234", 5)
    [hit] = match.hits
    [passage] = [p for p in index.passages(1) if p.id == hit.passage]
    assert "topic1234." in index.document(1).text[passage.start : passage.stop]
    index.search(sentences, 5)  # a query of any length


# -- the built-in corpus ------------------------------------------------------------------------------------------


def test_the_python_reference_says_nothing_twice() -> None:
    documents = python_reference()
    assert 60 <= len(documents) <= 120
    assert "python:else" not in documents
    assert documents["python:if"].title == 'The "if" statement'
    seen: dict[str, str] = {}
    repeated = 0
    for url, document in documents.items():
        for section in document.sections:
            for paragraph in re.split(r"\n\s*\n", section.text):
                repeated += len(paragraph) > 200 and seen.setdefault(paragraph, url) != url
    assert repeated <= 10


async def test_the_python_reference_answers(tmp_path: Path) -> None:
    corpus._opened.cache_clear()
    tool = DocumentsTool([], tmp_path, 3)
    found = [text.url for text in (await tool.run("How does Python look up an attribute on an instance?")).results]
    assert "python:attribute-access" in found
    assert "Python language reference" in tool.description

    for query, url in {
        "How does the with statement work?": "python:with",
        "How are default parameter values evaluated?": "python:function",
        "operator precedence": "python:operator-summary",
        "what does yield return": "python:yield",
    }.items():
        assert url in [text.url for text in (await tool.run(query)).results], query
