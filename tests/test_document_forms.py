"""Every reader writes one form of Markdown, in which tables, code, lists and settings survive; and finds the date."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import docx
import pytest
from docutils.parsers.rst import states
from docx.shared import Pt
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reportlab.pdfgen.canvas import Canvas

from fathom.tools.documents.files import find_files
from fathom.tools.documents.normal import ReadDocument, SpanningCell, fence, spread, table, underlined_sections
from fathom.tools.documents.readers import read_document


def text_of(document: ReadDocument) -> str:
    """Return a document as it is laid out."""
    parts = [
        (f"{'#' * section.level} {section.heading}" if section.heading else "", section.text)
        for section in document.sections
    ]
    return "\n\n".join(part for pair in parts for part in pair if part)


def read(name: str, text: str) -> str:
    return text_of(read_document(name, text.encode()))


REST = """
Server
======

Use :func:`jsonify` and ``app.run()``, see :ref:`the guide <guide>` [1]_ and :made-up:`other text`.

.. code-block:: python
    :caption: app.py

    app = Flask(__name__)

    app.run()

Literal::

    $ flask run

.. list-table:: Codes
   :header-rows: 1

   * - Code
     - Meaning
   * - 404
     - not | found

+-----+------+
| a   | b    |
+=====+======+
| 1   | two  |
|     | rows |
+-----+------+

.. csv-table::
   :header: "k", "v"

   "x", "1"

.. note:: Mind the gap.

.. versionadded:: 2.0
   The ``nested`` flag.

.. made-up:: An argument
   :option: value

   The content of an unknown directive.

.. py:data:: DEBUG
   :type: bool

   Whether debug mode is on.

   Default: ``False``

Behind the setting.

- one

  more of one

  - nested
- two

3. three
4. four

term
  its definition

-v, --verbose  say more

.. raw:: html

   <script>alert(1)</script>

.. include:: /etc/hostname

.. toctree::

   other

.. [1] A footnote.
"""

REST_TEXT = """# Server

Use `jsonify` and `app.run()`, see the guide and `other text`.

app.py

```python
app = Flask(__name__)

app.run()
```

Literal:

```
$ flask run
```

Codes

| Code | Meaning |
|---|---|
| 404 | not \\| found |

| a | b |
|---|---|
| 1 | two rows |

| k | v |
|---|---|
| x | 1 |

Note: Mind the gap.

New in version 2.0: The `nested` flag.

An argument

The content of an unknown directive.

## DEBUG

Type: bool

Whether debug mode is on.

Default: `False`

# Server

Behind the setting.

- one

  more of one
  - nested
- two

3. three
4. four

- **term**: its definition

- **-v, --verbose**: say more

A footnote."""


LISTS = """
- one

  #. first
  #. second

     term
       What it means.

       :field: value
       :other: value

- two

  -f FILE, --file FILE  A file.
  -v                    More.

| A line
|   and another

.. [1] A note.

.. __: https://example.com/

>>> 1 + 1
2

Quoted::

> a
> b

===== =====
a     b
===== =====
1     - 2
      - 3
===== =====
"""


def test_rest_loses_its_markup_and_not_its_text() -> None:
    assert read("a.rst", REST) == REST_TEXT


def test_docutils_makes_only_the_states_that_a_text_needs_and_reads_it_as_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nested = "\n\n".join((REST, LISTS, "Again\n=====\n\n" + LISTS))
    made: list[str] = []
    init = states.RSTState.__init__

    def counted(self: states.RSTState, *args: object) -> None:
        made.append(type(self).__name__)
        init(self, *args)

    monkeypatch.setattr(states.RSTState, "__init__", counted)
    few = read("a.rst", nested)
    count = len(made)
    monkeypatch.setattr(states.RSTState, "nested_sm", states.NestedStateMachine)
    assert read("a.rst", nested) == few
    assert 4 * count < len(made) - count


def test_one_rest_file_does_not_change_how_another_is_read(capfd: pytest.CaptureFixture[str]) -> None:
    before = read("a.rst", "See `x` and :strong:`y`.")
    read(
        "b.rst",
        ".. role:: strong(raw)\n   :format: html\n\n.. default-role:: math\n\n|today| :unknown:`z`\n\nTitle\n=\n",
    )
    assert read("a.rst", "See `x` and :strong:`y`.") == before == "See x and y."
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text", ["Title\n=====\n\n" + "long " * 3_000, "A\n=\n\nText.\n\nB\n-\n\nText.\n\nC\n~\n\nD\n=\n\n~\n\nE\n-----\n"]
)
def test_rest_that_cannot_be_parsed_is_read_as_text(text: str) -> None:
    words = [word for word in text.split() if word.isalpha()]
    assert [word for word in read("a.rst", text).replace("#", " ").split() if word.isalpha()] == words


MARKDOWN = """+++
title = "Guide"
date = 2024-05-06
+++
<!-- hidden
comment -->
# Use

Text with `<!-- code -->` in it.

<table><tr><th>a</th><th>b|c</th></tr>
<tr><td>1</td><td>2</td></tr></table>

````md
<!-- kept -->
```
# no heading
```
````

| x | y |
|---|---|
| 1 | 2 |
"""


def test_of_markdown_only_front_matter_comments_and_html_tables_change() -> None:
    document = read_document("a.md", MARKDOWN.encode())
    assert (document.title, document.date) == ("Guide", "2024-05-06")
    assert text_of(document) == (
        "# Use\n\nText with `<!-- code -->` in it.\n\n\n\n| a | b\\|c |\n|---|---|\n| 1 | 2 |\n\n\n"
        "\n````md\n<!-- kept -->\n```\n# no heading\n```\n````\n\n| x | y |\n|---|---|\n| 1 | 2 |"
    )


def test_a_plain_text_is_markdown_only_if_it_clearly_is() -> None:
    clearly = "# One\n\nText.\n\n## Two\n\n- item\n- item\n"
    assert [section.heading for section in read_document("a.txt", clearly.encode()).sections] == ["One", "Two"]
    script = "# one\nset -e\n# two\n- item\n"
    assert read("a.txt", script) == script.strip()


MANUAL = """\
Files
=====

These functions open files.

open(name)
class File(name, *, mode="r")

   Called for every file.

   Note:

     It blocks.

   File.close()
      Closes it.

file.mode
   How it was opened.

All of them may raise an error:

    open("missing")
      # raises
"""


def test_what_stands_below_a_signature_describes_it() -> None:
    sections = read_document("a.txt", MANUAL.encode()).sections
    assert [(section.level, section.heading, section.text.split("\n")[0]) for section in sections] == [
        (1, "Files", "These functions open files."),
        (2, 'open(name), File(name, *, mode="r")', "Called for every file."),
        (3, "File.close()", "Closes it."),
        (2, "file.mode", "How it was opened."),
        (1, "Files", "All of them may raise an error:"),
    ]
    assert "# raises" in sections[-1].text


@given(st.lists(st.sampled_from(["f(x)", "a.b", "  g()", "   word", "      deeper", "", "Title", "=====", "text."])))
def test_no_line_of_a_plain_text_is_lost(lines: list[str]) -> None:
    sections = underlined_sections("\n".join(lines))
    said = " ".join(f"{section.heading} {section.text}" for section in sections)
    kept = {line.strip() for line in lines if line.strip() and not line.startswith("=")}
    assert {line for line in kept if line not in said} == set()


PAGE = """<!doctype html><html><head><title>Status codes | Site</title>
<meta property="article:published_time" content="2023-04-05T06:07:08Z"></head><body>
<nav><a href="/">Home</a></nav><header>Banner</header>
<main><h1>Status codes<a class="headerlink" href="#s">¶</a></h1>
<p>Call <code>app.<b>run</b>()</code> or <a href="/x">read on</a>.
<sup><a href="#f1">[1]</a></sup> 10<sup>6</sup> times<br>a day.</p>
<table><caption>Codes</caption>
<thead><tr><th rowspan=2>Code</th><th colspan=2>Meaning</th></tr><tr><th>short</th><th>long</th></tr></thead>
<tr><td rowspan=2>404</td><td>not|found</td><td><p>no such</p><p>page</p></td></tr>
<tr><td>gone</td><td><code>x</code></td></tr></table>
<table><tr><th>Default</th><td>30 s</td></tr><tr><th>Type</th><td>int</td></tr></table>
<table role="presentation"><tr><td><p>Layout cell.</p></td></tr></table>
<div class="highlight-python notranslate"><pre><span>def</span> f():
    return `1`

    # end
</pre></div>
<table class="highlighttable"><tr><td><pre>1
2</pre></td><td><pre>a
b</pre></td></tr></table>
<dl><dt>--max-time</dt><dt>-m</dt><dd>Seconds.<p>Default: 30</p></dd><dd><pre>curl -m 5</pre></dl>
<ol start=3><li>three<ul><li>nested<li>other</ul><li><p>four</p><p>more</p></ol>
<div class="admonition note"><p class="admonition-title">Note</p><p>Mind the gap.</p></div>
<p hidden>Hidden.</p><a href="/edit">Edit this page</a><script>var x</script>
</main><aside>Related</aside><footer>Foot</footer></body></html>"""

PAGE_TEXT = """# Status codes

Call `app.run()` or read on. 10^6 times
a day.

Codes

| Code | Meaning short | Meaning long |
|---|---|---|
| 404 | not\\|found | no such page |
| 404 | gone | `x` |

- **Default**: 30 s
- **Type**: int

Layout cell.

```python
def f():
    return `1`

    # end
```

```
a
b
```

- **--max-time, -m**: Seconds.

  Default: 30

  ```
  curl -m 5
  ```

3. three
   - nested
   - other
4. four

   more

Note: Mind the gap."""


def test_a_page_keeps_what_its_main_part_shows() -> None:
    document = read_document("a.html", PAGE.encode())
    assert (document.title, document.date) == ("Status codes", "2023-04-05")
    assert text_of(document) == PAGE_TEXT


def test_a_page_of_settings_without_a_main_part_loses_only_its_menus() -> None:
    menu = "<ul>" + "".join(f"<li><a href='/{n}'>Page {n}</a>" for n in range(5)) + "</ul>"
    body = "<h1>Options</h1><dl><dt>timeout<dd>Seconds until a request is given up. " + "It matters. " * 20 + "</dl>"
    text = read("a.html", f"<html><body><div>{menu}</div>{body}</body></html>")
    assert "- **timeout**: Seconds until" in text
    assert "Page 3" not in text


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 1_900 + "deep", "<ul><li>" * 900 + "deep", "<dl><dt>" * 900 + "deep", "<b><i>" * 900 + "deep",
        "<table><tr><td>" * 600 + "deep",
        "<table><tr>" + "<td rowspan=9999 colspan=9999>x" * 2_000 + "<tr><td>deep" * 2_000,
        "<form><p>" * 900 + "deep", "<blockquote><pre>" * 900 + "deep", "<!--" * 9_000 + "--><p>deep",
    ],
)  # fmt: skip
def test_no_page_is_nested_too_deeply(markup: str) -> None:
    assert "deep" in read("a.html", f"<html><body><main>{markup}")


def test_settings_that_cannot_be_read_stay_as_they_are() -> None:
    files = [
        ("a.yaml", "[" * 50_000 + "x"), ("a.yaml", "- " * 50_000 + "x"),
        ("a.json", "[" * 200_000 + "1"), ("a.toml", "a=" + "[" * 50_000),
        ("a.yaml", "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))),
        ("a.yaml", "a: &a [b, *a]"), ("a.yaml", "a: b: c"), ("a.json", '{"a": 1} {"b": 2}'), ("a.csv", "no columns"),
        ("a.yaml", f"a: &a {'x' * 9_000}\n" + "b: [" + "*a, " * 9_000 + "]"),
    ]  # fmt: skip
    code = (
        "import json, sys; from fathom.tools.documents.readers import read_document\n"
        "for name, text in json.load(sys.stdin):\n"
        "    print(json.dumps(read_document(name, text.encode()).sections[0].text), flush=True)"
    )  # in a process of its own, because a parser in C could end this one
    command, given = [sys.executable, "-c", code], json.dumps(files)
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=False)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [text.strip() for _, text in files]
    assert done.returncode == 0


def test_settings_become_a_line_each() -> None:
    yaml = (
        "server: &base\n  ports: [80, 443]\n  debug: yes\nother:\n  <<: *base\n  debug: 0x1F\nrun: |\n  a\n\n  b\n"
        "---\nx: !!python/name:os.system\n"
    )
    assert read("a.yml", yaml) == (
        "- server.ports: 80, 443\n- server.debug: yes\n- other.ports: 80, 443\n- other.debug: 0x1F\n"
        "- run:\n\n  ```\n  a\n\n  b\n  ```\n\n- x:"
    )
    assert read("a.json", '{"a": [{"b": 1.50, "c": null}, {"b": true}], "d": {}}') == (
        "- a[0].b: 1.50\n- a[0].c: null\n- a[1].b: true\n- d: {}"
    )
    assert read("a.toml", "[tool.x]\nline = 120\nat = 2024-01-02\n") == "- tool.x.line: 120\n- tool.x.at: 2024-01-02"
    assert read("a.csv", 'name;note\nx;"a\nb|c"\n') == "| name | note |\n|---|---|\n| x | a b\\|c |"
    assert read("a.tsv", "a\tb, c\n1\t2\n") == "| a | b, c |\n|---|---|\n| 1 | 2 |"


def test_comments_of_settings_stand_behind_what_they_are_about() -> None:
    yaml = (
        "# Of the team\n\nserver:\n  # seconds\n  timeout: 60   # was 30\n  ports:\n    - 80   # http\n    - 443\n"
        "  url: 'http://x/ # y'\n  run: |\n    # code\n    b\nusers:\n  - name: a\n  # left\n  - name: b\n# last\n"
    )
    assert read("a.yml", yaml) == (
        "Of the team\n\n- server.timeout: 60 # seconds; was 30\n- server.ports: 80, 443 # 80: http\n"
        "- server.url: http://x/ # y\n- server.run:\n\n  ```\n  # code\n  b\n  ```\n- users[0].name: a\n"
        "- users[1].name: b # left\n\nlast"
    )
    toml = '[p.1]\nmin = 4\ntext = """\n# none\n"""\n[p.2] # second\n# hot\nat = [{ min = 5 }]\n'
    assert read("a.toml", toml).endswith("- p.1.min: 4\n- p.1.text: # none\n\nsecond\n\nhot\n\n- p.2.at[0].min: 5")


def test_a_comment_of_a_group_of_settings_is_not_said_of_its_first_value() -> None:
    yaml = "# About the pump\npump:\n  start_cm: 12  # above the keel\n  stop_cm: 4\n# At night\nalarm: {door_s: 60}\n"
    document = read_document("pump.yaml", yaml.encode())
    assert document.title == "About the pump"
    assert text_of(document) == (
        "About the pump\n\n- pump.start_cm: 12 # above the keel\n- pump.stop_cm: 4\n\nAt night\n\n- alarm.door_s: 60"
    )


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "  c", "- d"]), st.booleans(), st.booleans()), max_size=12))
def test_no_comment_of_settings_is_lost(lines: list[tuple[str, bool, bool]]) -> None:
    said = iter(f"word{n}" for n in range(100))
    text = "z: 1\n"
    for key, above, beside in lines:
        text += f"# {next(said)}\n" if above else ""
        text += f"{key}: 1" if key else ""
        text += f" # {next(said)}\n" if beside else "\n"
    for ending in (".yaml", ".toml"):
        known = read(f"a{ending}", text if ending == ".yaml" else text.replace(":", " =").replace("- ", ""))
        assert all(len(re.findall(rf"word{n}\b", known)) == 1 for n in range(100) if re.search(rf"word{n}\b", text)), (
            known
        )


def test_a_word_document_keeps_lists_code_and_tables() -> None:
    document = docx.Document()
    document.core_properties.modified = datetime(2024, 3, 4)
    document.add_heading("Guide", 0)
    document.add_heading("Use", 1)
    for style, text in (
        ("Normal", "Intro."), ("List Bullet", "one"), ("List Bullet 2", "nested"), ("List Bullet", "two"),
        ("Normal", "Steps:"), ("List Number", "first"), ("List Number", "second"),
    ):  # fmt: skip
        document.add_paragraph(text, style=style)
    mixed = document.add_paragraph("Call ")
    mixed.add_run("app.run()").font.name = "Courier New"
    mixed.add_run(" now.")
    for line in ("def f():", "    return 1"):
        run = document.add_paragraph().add_run(line)
        run.font.name, run.font.size = "Consolas", Pt(9)
    rows = document.add_table(3, 2)
    for at, text in enumerate(["a", "b|c", "1", "2", "3", "4"]):
        rows.cell(at // 2, at % 2).text = text
    rows.cell(1, 0).merge(rows.cell(2, 0))
    buffer = io.BytesIO()
    document.save(buffer)
    found = read_document("a.docx", buffer.getvalue())
    assert (found.title, found.date) == ("Guide", "2024-03-04")
    assert text_of(found) == (
        "# Use\n\nIntro.\n\n- one\n  - nested\n- two\n\nSteps:\n\n1. first\n2. second\n\nCall `app.run()` now.\n\n"
        "```\ndef f():\n    return 1\n```\n\n| a | b\\|c |\n|---|---|\n| 1 3 | 2 |\n| 1 3 | 4 |"
    )


def test_a_pdf_has_headings_paragraphs_items_and_code() -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    lines = [
        ("Helvetica-Bold", 18, "Annual report"),
        ("Helvetica", 10, "The sea rises and falls twice a day along most of the coasts, but environ-"),
        ("Helvetica", 10, "mental changes are slow, and long-"),
        ("Helvetica", 10, "term ones need a long look at data."),
        ("Helvetica", 10, "A short line."),
        ("Helvetica", 10, "\u2022 first item that is long enough to be wrapped at the end of its line, then"),
        ("Helvetica", 10, "goes on"), ("Helvetica", 10, "\u2022 second item"), ("Courier", 9, "$ tide --long"),
        ("Courier", 9, "ok"), ("Helvetica-Bold", 14, "Method"),
        ("Helvetica", 10, "We looked for a long term at mental things."), ("Helvetica", 8, "7"),
    ]  # fmt: skip
    for n, (font, size, line) in enumerate(lines):
        canvas.setFont(font, size)
        canvas.drawString(72, 720 - 24 * n, line)
    canvas.showPage()
    canvas.save()
    assert text_of(read_document("a.pdf", buffer.getvalue())) == (
        "# Annual report\n\nThe sea rises and falls twice a day along most of the coasts, but environmental "
        "changes are slow, and long-term ones need a long look at data.\n\nA short line.\n\n"
        "- first item that is long enough to be wrapped at the end of its line, then goes on\n- second item\n\n"
        "```\n$ tide --long\nok\n```\n\n## Method\n\nWe looked for a long term at mental things."
    )


def pdf_of(*pages: list[tuple[float, float, str]]) -> str:
    """Return what is read of pages, each with the places of its texts: points from the left and from the top."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for page in pages:
        for x, y, text in page:
            canvas.saveState()  # as reportlab draws a cell
            canvas.translate(x, 800 - y)
            canvas.setFont("Helvetica", 10)
            canvas.drawString(0, 0, text)
            canvas.restoreState()
        canvas.showPage()
    canvas.save()
    return text_of(read_document("a.pdf", buffer.getvalue()))


def test_a_pdf_has_tables_also_over_two_pages() -> None:
    before = [(70.0, 20.0, "These are the dates of the year, as the office has set them for all.")]
    rows = [("Date", "Item"), ("May 1", "The cycle"), ("June 2", "All plans | due")]
    cells = [(x, 50 + 30.0 * n, text) for n, row in enumerate(rows) for x, text in zip((70.0, 200.0), row, strict=True)]
    wrapped = (200.0, 92.0, "of the year begins")
    cells.insert(4, wrapped)
    following = [(70.0, 30.0, "July 3"), (200.0, 30.0, "Awards"), (70.0, 50.0, "July 9"), (200.0, 50.0, "Rest")]
    assert pdf_of(before + cells, following) == (
        f"{before[0][2]}\n\n| Date | Item |\n|---|---|\n| May 1 | The cycle of the year begins |\n"
        "| June 2 | All plans \\| due |\n\n| Date | Item |\n|---|---|\n| July 3 | Awards |\n| July 9 | Rest |"
    )


@pytest.mark.parametrize("line_by_line", [False, True])
def test_columns_of_prose_in_a_pdf_are_no_table(line_by_line: bool) -> None:
    left = [
        "The sea rises and falls twice a day",
        "along most of the coasts, and what",
        "it leaves behind is often the work",
    ]
    right = [
        "of many years that nobody has seen",
        "from where the people of the towns",
        "look out over the water and wonder",
    ]
    cells = [(x, 50.0 + 12 * n, line) for x, side in ((70.0, left), (300.0, right)) for n, line in enumerate(side)]
    text = pdf_of(sorted(cells, key=lambda cell: cell[1]) if line_by_line else cells)
    assert "|" not in text
    assert all(line.split()[-1] in text for line in left + right)


def test_marks_of_a_list_in_a_pdf_are_no_column() -> None:
    assert "|" not in pdf_of(
        [(x, 50.0 + 20 * n, text) for n in range(4) for x, text in ((70.0, "\u2022"), (100.0, "One."))]
    )


@pytest.mark.parametrize(
    ("name", "text", "date"),
    [
        ("2023-09-30-minutes.md", "# M\n\nText.", "2023-09-30"), ("20230930.txt", "Text.", "2023-09-30"),
        ("log-2023-09.txt", "Text.", "2023-09"), ("v20239930.txt", "Text.", ""), ("build-1234567890.txt", "Text.", ""),
        ("a.md", "---\ntitle: T\nlast_modified: 2022-01-01\ndate: 2021-05-06T07:08:09Z\n---\nText.", "2021-05-06"),
        ("2020-01-01.md", "---\nupdated: May 6, 2021\n---\nText.", "2021-05-06"),
        ("a.rst", "T\n=\n\n:Date: 6 May 2021\n\nText.", "2021-05-06"),
        ("a.txt", "Title\n\nLast updated: May 2021\n", "2021-05"),
        ("a.md", "# House rules\n\nVersion 2, adopted by the board on 4 May 2021.", "2021-05-04"),
        ("a.md", "# Gebühren\n\nStand: 4. Mai 2021. Sie gelten bis 31. Dezember 2022.", "2021-05-04"),
        ("a.md", "# House rules\n\nIt replaces version 2 of 4 May 2021.\n\nValid from 1 May 2021 to 3 May 2022.", ""),
        ("a.md", "# Review\n\nPublished May 2021. Two authors.", "2021-05"),
        ("a.md", "# Review\n\nUpdated rules 5 apply from 6 May 2021.", ""),
        ("a.md", "# Council meeting, 30 September 2023\n\nOn 1 May 2020 it rained.", "2023-09-30"),
        ("a.md", "# Minutes of the meeting of 30 September 2023\n\nText.", "2023-09-30"),
        ("a.md", "# Amendment 2 to the lease of 4 May 2021\n\nText.", ""),
        ("a.md", "# Amendment 2 to the lease of 4 May 2021\n\nSigned on 6 June 2023.", "2023-06-06"),
        ("a.md", "# Lease\n\nbetween A Ltd. and B e. V. (tenant), dated 6 May 2021\n\nText.", "2021-05-06"),
        ("a.md", "# Amendment 2\n\nAmendment to the lease of A and B, dated 4 May 2021\n\nText.", ""),
        ("a.md", "# Withdrawal of the report of 4 May 2021\n\nText.", ""),
        ("a.md", "# Nachtrag zum Vertrag vom 4. Mai 2021\n\nText.", ""),
        ("a.md", "# Nachtrag 2\n\nKiel, den 4. Mai 2021\n\nText bis 6. Juni 2023.", "2021-05-04"),
        ("a.txt", "Harbour Ltd.\n\n4 May 2021\n\nDear Ms Berg,\n\nText.", "2021-05-04"),
        ("a.md", "# Diary\n\n4 May 2021\n\nRain.\n\n5 May 2021\n\nSun.", ""),
        ("a.md", "# Trip\n\nWe met in Kiel on 4 May 2021", ""),
        ("a.md", "# Schedule of the policy, 1 January to 31 December 2026\n", ""),
        ("a.md", "# From 1 May 2020 to 2 May 2020\n", ""), ("a.md", "# In 2023\n\nOn 1 May 2020 it rained.", ""),
        ("a.md", "Up\n\ndate: unknown\n", ""), ("a.html", "<p>Text.</p><time datetime='2020-02-03'>", "2020-02-03"),
        ("a.md", "# T\n" + "Text.\n" * 20 + "Date: 2020-02-03\n", ""), ("a.txt", "Date: 2023-02-31", ""),
    ],
)  # fmt: skip
def test_the_date_of_a_document(name: str, text: str, date: str) -> None:
    assert read_document(name, text.encode()).date == date


CELLS = st.text(st.sampled_from("ab \\|`*_\n\t-:<&[]"), max_size=12)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_table_is_one_whatever_its_cells_hold(rows: list[list[str]]) -> None:
    rows = [["head" for _ in rows[0]], *rows]
    width = max(len(row) for row in rows if any(cell.strip() for cell in row))
    written = table(rows)
    lines = written.split("\n")
    assert lines[1] == "|" + "---|" * width
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    unescaped = [[part.replace("\\|", "|") for part in _cells(line)] for n, line in enumerate(lines) if n != 1]
    kept[0] = kept[0] + [""] * (width - len(kept[0]))
    assert unescaped == [[" ".join(cell.split()) for cell in row] for row in kept]
    tokens = MarkdownIt("commonmark").enable("table").parse(written)
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    assert sum(token.type == "tr_open" for token in tokens) == len(kept)


def _cells(line: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]]


@given(st.text(st.sampled_from("ab `~\n#-|"), min_size=1, max_size=40))
def test_code_is_verbatim_whatever_it_holds(code: str) -> None:
    written = fence(code)
    assert bool(written) == bool(code.strip())
    if written:
        (token,) = MarkdownIt("commonmark").parse(written)
        assert token.type == "fence"
        assert token.content.rstrip() == code.rstrip().lstrip("\n") or token.content.strip() == code.strip()


def test_cells_reach_over_rows_and_columns() -> None:
    assert spread(
        [[SpanningCell("a", 2, 2), SpanningCell("b")], [SpanningCell("c")], [SpanningCell("d", 3, everywhere=True)]]
    ) == [
        ["a", "", "b"],
        ["a", "", "c"],
        ["d", "d", "d"],
    ]


def test_a_folder_is_searched_for_settings_and_data(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.json", "c.toml", "d.csv", "e.tsv", "f.yml"):
        (tmp_path / name).write_text("x")
    assert [file.path.name for file in find_files([str(tmp_path)])] == [
        "a.yaml", "b.json", "c.toml", "d.csv", "e.tsv", "f.yml",
    ]  # fmt: skip
