"""Plain text that becomes Markdown reads as it was: in a report of quotations, in titles, questions and tables."""

from __future__ import annotations

import re
from html import unescape

import nh3
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from fathom.models import Report, ReportSection, Source, StepCoverage, StepStatus, UnreadFile
from fathom.report.html import render_html
from fathom.report.markdown import render_markdown
from fathom.report.prose import new_parser
from fathom.report.quotations import escaped, escaped_quotation, quoted_markdown, with_names

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LAYOUT = [
    "__dict__",
    "snake_case",
    "&amp;",
    "1. ",
    "10) ",
    "- ",
    "```",
    "~~",
    "![x](y)",
    "[a]: b",
    "<b>",
    "---",
    "    ",
]
texts = st.lists(st.sampled_from([*"\\`*_[]()<>#+-.!|~=:&;/ab1é \n", *LAYOUT]), max_size=14).map("".join)


def rendered(parser: MarkdownIt, markdown: str) -> str:
    """Return the text that a reader of a Markdown text sees, on one line."""
    return " ".join(unescape(nh3.clean(parser.render(markdown).replace("<br", " <br"), tags=set())).split())


@given(texts)
def test_escaped_text_reads_as_it_was_and_has_no_layout(text: str) -> None:
    assert rendered(GITHUB, escaped(text)) == " ".join(text.split())
    blocks = {token.type for token in GITHUB.parse(escaped(text))}
    assert blocks <= {"paragraph_open", "inline", "paragraph_close"}


inline = st.lists(st.sampled_from(["__dict__", "`__a__`", "``__a`__``", "*c*", "_d_", "e_f", r"\_"]), max_size=5)


@given(st.lists(st.one_of(inline.map(" ".join), st.just("```\n__b__ c\n```"), st.just("- __e__")), max_size=5))
def test_names_in_a_model_s_markdown_keep_their_underscores(parts: list[str]) -> None:
    markdown = "\n\n".join(parts)
    assert rendered(GITHUB, with_names(markdown)) == rendered(new_parser(), markdown)


def test_a_report_keeps_every_name_as_it_is() -> None:
    quote = "Set `obj.__dict__` or *args and **kwargs; 1 < 2 & C:\\*.py [0](x)."
    source = Source(source_id="S1a2b3c", url="docs:notes/__init__.md", title="The __init__ | of *it*", kind="document")
    report = Report(
        title="What is __dict__?",
        query="What is __dict__ in C# _really_?",
        extractive=True,
        sections=[
            ReportSection(heading="Answer", markdown=f"{quote} [S1a2b3c]", quoted=True),
            ReportSection(heading="By __slots__", markdown="**Bold** __call__ and `__code__`. [S1a2b3c]"),
        ],
        sources=[source],
        open_questions=["1. Who calls __del__?"],
        coverage=[
            StepCoverage(
                step_id=1, title="__get__ | __set__", status=StepStatus.done, calls=1, useful_notes=1, sources=1
            )
        ],
        unread=[UnreadFile(path="docs:notes/__main__.pdf", reason="it is empty")],
    )
    seen = rendered(GITHUB, render_markdown(report))
    for text in (
        "What is __dict__?",
        "What is __dict__ in C# _really_?",
        "By __slots__",
        f"{quote.replace('`', '')} [1]",
        "Bold __call__ and __code__. [1]",
        "1. Who calls __del__?",
        "1. __get__ | __set__ done",
        "The __init__ | of *it*, docs:notes/__init__.md",
        "docs:notes/__main__.pdf: it is empty",
    ):
        assert text in seen.replace("&#124;", "|")
    assert quote.replace("`obj.__dict__`", "<code>obj.__dict__</code>") in unescape(render_html(report))


@pytest.mark.parametrize(
    ("heading", "written"),
    [
        ("list[int]: what it means", "list[int]: what it means"),
        ("What does `list[int]` mean?", "What does `list[int]` mean?"),
        ("`x[0](y)` and x[0][1]", "`x[0](y)` and x[0][1]"),
        ("See [here](https://example.org) or <a href=x>", "See [here\\](https://example.org) or \\<a href=x>"),
        ("[a]: https://example.org", "\\[a]: https://example.org"),
    ],
)
def test_a_heading_reads_as_it_was_and_makes_no_link(heading: str, written: str) -> None:
    section = ReportSection(heading=heading, markdown="It is old.")
    report = Report(title="T", query="T", extractive=False, sections=[section, section], sources=[])
    markdown = render_markdown(report)
    assert f"## {written}\n" in markdown
    inside = [child.type for token in GITHUB.parse(markdown) for child in token.children or []]
    assert not {"link_open", "html_inline"} & {*inside}
    page = unescape(render_html(report))
    assert re.sub(r"`(.*?)`", r"<code>\1</code>", heading) in page
    assert 'href="https://example' not in page


words = st.lists(st.sampled_from([*"\\*_[]()<>#+-.!~=:&;/ab1é ", *LAYOUT[:4], "`x`", "[S1a2b3c]"]), max_size=8)
cells = st.lists(st.one_of(words.map("".join), st.just("a | b")).map(str.strip), min_size=2, max_size=2)


@given(st.lists(cells, min_size=1, max_size=3))
def test_a_quoted_table_stays_a_table_and_its_cells_plain_text(rows: list[list[str]]) -> None:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    markdown = quoted_markdown("\n".join([lines[0], "|---|---|", *lines[1:]]))
    tokens = GITHUB.parse(markdown)
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    found = [" ".join(rendered(GITHUB, token.content).split()) for token in tokens if token.type == "inline"]
    expected = [rendered(GITHUB, escaped_quotation(cell)) for row in rows for cell in row]
    assert found == expected


@given(st.text(st.sampled_from("`~ab \\*<|-#[]\n"), max_size=40), st.sampled_from(["", "sh", "c++"]))
def test_quoted_code_stays_verbatim(code: str, language: str) -> None:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    markdown = quoted_markdown(f"Run *it*: [S1a2b3c]\n\n{fence}{language}\n{code}\n{fence}\n\n- *item*")
    tokens = GITHUB.parse(markdown)
    assert [token.content for token in tokens if token.type == "fence"] == [f"{code}\n"]
    assert [t.type for t in tokens if t.level == 0 and t.nesting >= 0] == [
        "paragraph_open",
        "fence",
        "bullet_list_open",
    ]
    assert not [child for token in tokens for child in token.children or [] if child.type == "em_open"]


@given(st.lists(texts, max_size=4).map("\n\n".join))
def test_quoted_prose_reads_as_it_was_and_has_no_layout(text: str) -> None:
    lines = [line for line in text.split("\n") if not line.strip().startswith(("- ", "|", "```", "~~~"))]
    plain = "\n".join(lines).replace("`", "'")
    assert rendered(GITHUB, quoted_markdown(plain)) == " ".join(plain.split())
    assert {token.type for token in GITHUB.parse(quoted_markdown(plain))} <= {
        "paragraph_open",
        "inline",
        "paragraph_close",
    }


def numbers_shown(parser: MarkdownIt, markdown: str) -> list[int]:
    """Return the numbers that a reader sees before items, as browsers count them."""
    next_of, shown = list[int](), list[int]()
    for token in parser.parse(markdown):
        if token.type == "ordered_list_open":
            next_of.append(int(token.attrs.get("start", 1)))
        elif token.type == "ordered_list_close":
            next_of.pop()
        elif token.type == "list_item_open" and token.info:
            shown.append(next_of[-1])
            next_of[-1] += 1
    return shown


numbered = st.tuples(st.sampled_from(["", "  ", "    "]), st.sampled_from(["", *"0125", "10"]))


@given(st.lists(st.lists(numbered, min_size=1, max_size=6), min_size=1, max_size=3))
def test_a_quoted_item_keeps_its_number(lists: list[list[tuple[str, str]]]) -> None:
    text = "\n\n".join(
        "\n".join(f"{indent}- {f'{number}. ' if number else ''}item [S1a2b3c]" for indent, number in items)
        for items in lists
    )
    markdown = quoted_markdown(text)
    assert "\\" not in markdown
    for parser in (GITHUB, new_parser()):
        assert numbers_shown(parser, markdown) == [int(n) for items in lists for _, n in items if n], (text, markdown)
    assert re.findall("item", rendered(GITHUB, markdown)) == ["item"] * sum(map(len, lists))


def test_steps_read_as_in_their_source() -> None:
    quoted = "- 4. Fold it. [S1a2b3c]\n- 5. Bake it. [S1a2b3c]\n- 9. Eat it. [S1a2b3c]"
    assert quoted_markdown(quoted) == "4. Fold it. [S1a2b3c]\n5. Bake it. [S1a2b3c]\n\n…\n\n9. Eat it. [S1a2b3c]"


@example("`1. `<b>`")
@given(texts)
def test_any_quotation_renders_and_loses_no_letter(text: str) -> None:
    markdown = quoted_markdown(text)
    shown = rendered(GITHUB, re.sub(r"^( *)(\d+)\. ", r"\1- \2 ", markdown, flags=re.MULTILINE))
    assert re.findall(r"[ab1é]", shown) == re.findall(r"[ab1é]", text) or "```" in text
