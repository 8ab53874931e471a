"""What documents are called, what their headers say, and how a search for an identifier finds the one that bears it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fathom.config.groups import RoleModel
from fathom.evidence.grounding import ground
from fathom.llm.base import ModelCall
from fathom.llm.dialects import Dialect
from fathom.llm.prompts import messages
from fathom.models import Note, Source, SourceText
from fathom.retrieval.identifiers import borne_by, identifiers_of, naming
from fathom.roles import COMPRESSOR, CompressRequest
from fathom.tools.documents.readers import read_document
from fathom.tools.documents.worker import read_file
from fathom.tools.documents_tool import DocumentsTool

ENHANCEMENT = """LEP: 677
Title: Callable ``a | b`` Syntax
Author: Ada Holt <ada@example.org>,
        Ben Sahr <ben at example.org>
Discussions-To: list@example.org
Status: Rejected
Created: 13-Dec-2021
History: `16-Dec-2021 <https://lists.example.org/1>`__
Resolution: https://lists.example.org/2

Abstract
========

It would let people write what a function takes and returns.
"""
RFC = """Engineering Task Force                                       R. Fielding
Request for Comments: 9110                                         Adobe
STD: 97                                                        June 2022
Category: Standards Track                                         Fastly


                             HTTP Semantics

Abstract

   The protocol is stateless.
"""
PAGE = b"""<html><head><title>Overview</title></head><body><main><h1>Backing up the archive</h1>
<dl><dt>Owner</dt><dd>Lena Brandt</dd><dt>Status</dt><dd>In force</dd></dl><p>A copy is taken at two.</p></main></body>
</html>"""


def place(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_header_over_several_lines_is_read_whole() -> None:
    document = read_document("lep-0677.rst", ENHANCEMENT.encode())
    assert document.title == "LEP 677: Callable `a | b` Syntax"
    assert document.fields == {
        "Author": "Ada Holt, Ben Sahr", "Status": "Rejected", "Created": "13-Dec-2021", "History": "16-Dec-2021",
    }  # fmt: skip
    assert document.date == "2021-12-13"
    assert "- **Status**: Rejected\n" in document.sections[0].text  # each field can be quoted by itself
    assert document.sections[1].heading == "Abstract"


@pytest.mark.parametrize(
    ("name", "text", "title", "fields"),
    [
        ("http.txt", RFC, "STD 97: HTTP Semantics", {"Request for Comments": "9110", "Category": "Standards Track"}),
        ("rfc9110.txt", RFC, "RFC 9110: HTTP Semantics", {"STD": "97", "Category": "Standards Track"}),
        ("a.md", "---\ntitle: Leave\nstatus: approved\ndraft: false\n---\n# Overview\n\nText.",
         "Leave", {"status": "approved"}),
        ("eip-1559.md", "---\neip: 1559\ntitle: Fees\nstatus: Final\n---\nText.",
         "EIP 1559: Fees", {"status": "Final"}),
        ("a.md", "---\nweight: 15\ntitle: Fees\n---\nText.", "Fees", {"weight": "15"}),
        ("a.md", "+++\ntitle = 'Fees'\n+++\nText.", "Fees", {}),
        ("a.rst", "The gate\n========\n\n:Version: 4.2\n:Status: Draft\n\nText.",
         "The gate", {"Version": "4.2", "Status": "Draft"}),
        ("a.md", "# 12. Use it\n\nDate: 2023-05-04\n\n## Status\n\nAccepted\n\n## Context\n\nIt is slow today.",
         "12. Use it", {"Status": "Accepted"}),
        ("a.md", "ID: ADR-0012\nTitle: Use it\n\nText.", "ADR-0012: Use it", {}),
        ("a.md", "CVE: CVE-2024-1234\nTitle: Overflow\nReplaces: CVE-2023-9\n\nText.",
         "CVE-2024-1234: Overflow", {"Replaces": "CVE-2023-9"}),
        ("a.txt", "From: Ada <ada@x.org>\nSubject: New hours\n\nFrom July on.", "New hours", {"From": "Ada"}),
        ("a.txt", "Trip report\n\nWe met two makers of cork.", "Trip report", {}),
        ("a.html", PAGE.decode(), "Backing up the archive", {"Owner": "Lena Brandt", "Status": "In force"}),
        ("a.txt", "Ada: What is it?\nBen: I do not know what it is.\n\nText.", "", {}),  # a dialogue is no header
        ("a.md", "# 1. Introduction\n\nText.", "", {}),
        ("a.md", "# 2024\n\nText.", "", {}),
        ("a.rst", "Abstract\n========\n\nText.", "", {}),
        ("a.yaml", "title: Fees\nstatus: Final\n", "", {}),  # settings, of which the title is one
    ],
)  # fmt: skip
def test_titles_and_headers(name: str, text: str, title: str, fields: dict[str, str]) -> None:
    document = read_document(name, text.encode())
    assert (document.title, document.fields) == (title, fields)


def test_a_field_leads_nowhere() -> None:
    header = "Status: see [here](http://evil.example/a) now\nOwner: ![x](http://evil.example/b) Ada\nLink: http://evil.example"
    fields = read_document("a.txt", f"{header}\n\nText.".encode()).fields
    assert fields == {"Status": "see here now", "Owner": "x Ada"}


def test_a_header_stays_short() -> None:
    header = "".join(f"Field-{'abcdefghijklmnop'[n]}: {'word ' * (n * 9)}\n" for n in range(1, 16))
    fields = read_document("a.txt", f"{header}\nText.".encode()).fields
    assert len(fields) == 12
    assert max(map(len, fields.values())) <= 80
    assert fields["Field-l"].endswith(" …")


def test_what_names_no_document_leaves_the_name_of_the_file(tmp_path: Path) -> None:
    notes = place(tmp_path, "2024-03-18_budget-round.md", "# Attendees\n\nAda\n\n# Agenda\n\nThe budget.")
    assert read_file(notes).title == "2024-03-18 budget round"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("PEP 572 and pep-0572", ["pep 572"]),
        ("RFCs 9110, 9112 and 7 others", ["rfc 9110", "rfc 9112", "rfc 7"]),
        ("rfc9110", ["rfc 9110"]),
        ("CVE-2024-1234", ["cve 2024 1234"]),
        ("adr-0012 use postgres", ["adr 12"]),
        ("E1002 in v3.12", ["e 1002", "v 3.12"]),
        ("release 3.12", ["v 3.12"]),
        ("--max-usd of os.path.join or max_usd", ["--max-usd", "max_usd", "os.path.join"]),
        ("GHSA-8v63-cqqc-6r2c", ["ghsa 8v63", "ghsa 8v63 cqqc 6r2c"]),
    ],
)
def test_identifiers(text: str, names: list[str]) -> None:
    assert sorted(one.name for one in identifiers_of(text) if one.sure) == sorted(names)


@pytest.mark.parametrize(
    "query", ["top 10 bridges of 2024", "2024", "12", "costs of 3.5 percent in 30 days", "well-known"]
)
def test_counts_and_years_name_no_document(query: str) -> None:
    titles = ["Top 10 bridges", "Report 2024", "12", "Chapter 12", "Version 3.5", "Well-known", "30 days"]
    bearers = [(n, one) for n, title in enumerate(titles) for one in borne_by(title, f"docs:x/{n}.md")]
    assert not naming(query, bearers)


def test_what_many_documents_bear_tells_none_apart() -> None:
    titles = [f"HTTP/2, HTTP-2 part {part}" for part in "abcdefg"]
    bearers = [(n, one) for n, title in enumerate(titles) for one in borne_by(title, f"docs:x/{title[-1]}.md")]
    assert naming("What is new in HTTP-2?", bearers[:5])
    assert not naming("What is new in HTTP-2?", bearers)


@pytest.mark.usefixtures("home")
async def test_a_document_that_is_asked_for_by_its_identifier_comes_first(tmp_path: Path) -> None:
    root = tmp_path / "mixed"
    place(root, "lep-0677.rst", ENHANCEMENT)
    place(root, "adr/0012-ledger.md", "# Ledger\n\nIt is kept in tables.")
    place(root, "adr/0031-log.md", "# Log\n\nADR-12 was slow. ADR-12 and LEP 677: ADR-12 is replaced, ADR-12.")
    place(root, "cli/max-usd.md", "# Cap\n\nThe run ends at this much.")
    place(root, "cli/flags.md", "# Flags\n\nThe flag --max-usd caps costs; --max-usd 2 is low; --max-usd 9 is high.")
    place(root, "codes.md", "# Codes\n\n## E1002 Rounds\n\nIt has ended.\n\n## E1003 Cap\n\nToo much was spent.")
    place(root, "faq.md", "# FAQ\n\nWhat is E1002? Many see E1002. E1002 is no fault, and LEP 677 has none. LEP 677.")
    place(root, "CVE-2024-1234.md", "# Summary\n\nA header overflows a buffer.")
    place(root, "news.md", "# News\n\nCVE-2024-1234 is fixed. Who has CVE-2024-1234? CVE-2024-1234 was found in May.")
    tool = DocumentsTool([str(root)], tmp_path / "cache", 3)
    asked = {
        "is ADR-12 still valid": "adr/0012-ledger.md",
        "adr 0012": "adr/0012-ledger.md",
        "why was LEP 677 not taken": "lep-0677.rst",
        "what does --max-usd do": "cli/max-usd.md",
        "I see E1002, what is wrong": "codes.md",
        "am I affected by CVE-2024-1234": "CVE-2024-1234.md",
    }
    found = {query: (await tool.run(query)).results for query in asked}
    assert {query: texts[0].url for query, texts in found.items()} == {q: f"docs:mixed/{f}" for q, f in asked.items()}
    rejected = found["why was LEP 677 not taken"][0]
    assert rejected.fields["Status"] == "Rejected"
    assert rejected.source().fields == rejected.fields  # they go with the source
    surveyed = await tool.survey("what became of LEP 677", 2)
    assert surveyed.documents[0].title == "LEP 677: Callable `a | b` Syntax"

    place(root, "adr/0012-ledger.md", "# Ledger\n\nIt is kept in a log now.")
    (root / "lep-0677.rst").unlink()
    assert (await tool.run("adr 12")).results[0].text.endswith("in a log now.")
    assert all("lep-" not in text.url for text in (await tool.run("LEP 677")).results)


def test_every_source_in_a_prompt_says_what_it_is() -> None:
    fields = {"Status": "Rejected", "Author": 'Ada "<b>" Holt'}
    about = {"source_id": "S1a2b3c", "kind": "document", "title": "LEP 677: It", "fields": fields}
    texts = [
        SourceText(**about, url="docs:x/lep-0677.rst", published="2021-12-13", text="[...]\n\nIn the middle."),
        SourceText(**{**about, "fields": {}}, url="https://www.example.org/a/b", text="Text."),
    ]
    request = CompressRequest(
        plan_title="P", step_title="S", step_description="D", tool_name="t", texts=texts, page_tokens=9
    )
    _, user = messages(ModelCall(spec=COMPRESSOR, request=request, model=RoleModel(model="m")), Dialect())
    assert (
        '<source id="S1a2b3c" title="LEP 677: It" from="lep-0677.rst" published="2021-12-13" '
        "header=\"Status: Rejected; Author: Ada '(b)' Holt\">\n[...]"
    ) in user["content"]
    assert '<source id="S1a2b3c" title="LEP 677: It" from="example.org">\nText.' in user["content"]
    assert "fields" not in Source(**{**about, "fields": {}}, url="docs:x").model_dump()


@pytest.mark.parametrize(
    ("title", "url", "fields"),
    [
        ("LEP 604: Unions", "docs:x/a.rst", {}),
        ("Unions", "docs:x/lep-0604.rst", {}),
        ("Unions", "docs:x/a.rst", {"Number": "604"}),
    ],
)
def test_a_bullet_may_name_its_document_by_its_number(title: str, url: str, fields: dict[str, str]) -> None:
    text = SourceText(
        source_id="S1a2b3c", kind="document", title=title, url=url, fields=fields,
        text="This allows unions of types to be written with a bar.",
    )  # fmt: skip
    said = {"summary_title": "Unions", "summary": "", "is_useful": True, "artifact_file": "a.json", "step_id": 1}
    bullets = ["LEP 604 lets people write unions of types with a bar. [S1a2b3c]", "LEP 605 allows unions. [S1a2b3c]"]
    grounded = ground(Note(**said, extraction=bullets, source_ids=["S1a2b3c"]), [text])
    assert [bullet.partition(" ")[2][:3] for bullet in grounded.note.extraction] == ["604"]
