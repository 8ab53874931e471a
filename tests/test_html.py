"""The report as a page: all of it in one file, nothing from elsewhere, nothing that a page or a model could run."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.models import Claim, Quote, Report, ReportSection, Source, Verdict
from fathom.report.html import render_html
from fathom.report.markdown import render_markdown
from fathom.report.prose import section_html
from tests.sample_report import PHASES, sample_report

VOID = {"meta", "br", "hr", "img", "input", "link"}
ALLOWED = {"http", "https"}


class Page(HTMLParser):
    """The elements of a page; every one that is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.said: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]  # it is in one
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("rect", "path", "g", "text", "circle", "line") and self.open[-1:] != [tag]:
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.said.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render_html(sample_report(), PHASES))


def test_the_same_report_is_the_same_page() -> None:
    assert render_html(sample_report(), PHASES) == render_html(sample_report(), PHASES)


def test_nothing_comes_from_elsewhere(page: Page) -> None:
    assert len(page.of("script")) == len(page.of("style")) == 1
    assert not [tag for tag, _ in page.elements if tag in ("link", "img", "iframe", "object", "embed", "form", "base")]
    loading = {"src", "srcset", "poster", "background", "action", "formaction", "data"}
    assert not [attributes for _, attributes in page.elements if loading & set(attributes)]
    (policy,) = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_every_link_inside_of_the_page_has_its_end(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    inner = {link["href"] for link in page.of("a") if (link.get("href") or "").startswith("#")}
    assert inner
    assert inner <= {f"#{name}" for name in ids}


def test_every_citation_leads_to_its_claim_and_each_claim_to_its_quotes(page: Page) -> None:
    report = sample_report()
    cited = [link for link in page.of("a") if link.get("class") == "cite"]
    assert all(link.get("aria-label") for link in cited)
    led_to = {link["href"] for link in cited}
    assert {f"#claim-{claim.number}" for claim in report.claims if claim.source_ids} <= led_to
    said = "".join(page.said)
    for claim in report.claims:
        for quote in claim.quotes:
            assert f"bytes {quote.start} to {quote.end}" in said


def test_what_the_check_objects_to_is_marked_and_who_judged_is_said(page: Page) -> None:
    marks = [link for link in page.of("a") if (link.get("class") or "").startswith("mark ")]
    assert {link["class"] for link in marks} == {"mark contradicted", "mark not_stated", "mark disputed"}
    chips = {span["class"] for span in page.of("span") if (span.get("class") or "").startswith("chip ")}
    assert chips == {f"chip {verdict.value}" for verdict in Verdict} | {"chip disputed"}
    judged = "What no source says word for word was judged by example/judge-1"
    assert judged in "".join(page.said)
    report = sample_report()
    claims = [claim.model_copy(update={"judgement": None}) for claim in report.claims]
    unjudged = "".join(Page(render_html(report.model_copy(update={"claims": claims}))).said)
    assert "No model judged the claims" in unjudged and "was judged by" not in unjudged


def test_what_the_check_objects_to_is_marked_in_the_last_cell_of_its_row() -> None:
    report = sample_report()
    section = report.sections[0].model_copy(
        update={"markdown": "| A | B |\n|---|---|\n| gate | 4 m | [S00000a]\n| wall [S00000a] | |", "quoted": False}
    )
    claims = [
        report.claims[0].model_copy(update={"number": n, "sentence": said, "verdict": Verdict.not_stated})
        for n, said in enumerate(("gate | 4 m", "wall"), 1)
    ]
    rows = re.findall(r"<tr>.*?</tr>", str(section_html(section, claims, {"S00000a": 1})), re.DOTALL)
    assert [row.count("<td>") for row in rows] == [0, 2, 2]
    assert [re.findall(r">([^<>]+)</a>", row.rpartition("<td>")[2]) for row in rows[1:]] == [
        ["1", "not stated"],
        ["not stated"],
    ]


def test_headings_are_in_order_and_tables_can_be_reached(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(following - level <= 1 for level, following in pairwise(levels))
    scrolling = [attributes for _, attributes in page.elements if attributes.get("class") == "scroll"]
    assert scrolling
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in scrolling)


def test_charts_are_drawings_that_name_themselves_and_need_no_style() -> None:
    report = sample_report()
    steps = [row.model_copy(update={"title": f"<b>{row.title}</b> {'on and ' * 20}"}) for row in report.coverage]
    html = render_html(report.model_copy(update={"coverage": steps}), PHASES)
    drawings = [Page(drawing) for drawing in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]
    assert [drawing.of("svg")[0]["aria-label"] for drawing in drawings] == [
        "Output (GWh)",
        "Evidence by step",
        "Sources by type",
        "Sources by year",
        "Cost by phase, in US dollars",
        "Time of model calls by phase, in seconds",
        "Tokens by phase",
    ]
    by_step = drawings[1]
    assert {tag for drawing in drawings for tag, _ in drawing.elements} == {"svg", "rect", "text"}
    assert not [a for drawing in drawings for _, a in drawing.elements if {"id", "style"} & set(a)]
    assert f"{len(steps)}. &lt;b&gt;{report.coverage[-1].title}" in html
    assert "R2_1" not in html + render_markdown(report)
    assert len(by_step.of("rect")) == 2 * len(steps) + 2  # two bars a step, and the legend
    assert max(float(bar["width"] or 0) for bar in by_step.of("rect")) == 270
    assert all(len(text) <= 46 for text in by_step.said)
    assert {"Useful notes", "Sources", "3"} <= {text.strip() for text in by_step.said}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The gates of the lagoon are to be replaced in the next year."),
        ("de", "Die Tore der Lagune werden nicht mit dem Damm ersetzt."),
        ("fr", "Les vannes de la lagune sont dans une digue qui est fermée."),
        ("ja", "ラグーンの門は二十五年後に交換されます。"),
        ("zh", "潟湖的闸门必须在二十五年后更换。"),
        ("", "4711 SHA-256 GWh"),
    ],
)
def test_a_section_says_its_language_where_it_is_clear(language: str, text: str) -> None:
    report = sample_report().model_copy(update={"sections": [ReportSection(heading="H", markdown=text)], "claims": []})
    (answer,) = [a for a in Page(render_html(report)).of("div") if a.get("class") == "prose lead"]
    assert answer.get("lang", "") == language


HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[a](javascript:alert(1))",
            "![x](http://attacker.example/p.png)",
            "</style><script>",
            "\u202egnp.exe",
            "{{ 7*7 }}",
            "\ue000claim:1\ue001",
            "<svg onload=alert(1)>",
            "]]>--><b>",
            "|a|b|\n|-|-|\n|<script>|c|",
            "`</code><script>`",
            "[S0a0a0a]",
        ]
    ),
)


@given(st.lists(HOSTILE, min_size=7, max_size=7))
def test_whatever_a_report_holds_it_can_neither_run_nor_load_anything(texts: list[str]) -> None:
    title, query, heading, body, source_title, quoted, warning = texts
    report = Report(
        title=title,
        query=query,
        extractive=False,
        sections=[ReportSection(heading=heading, markdown=f"{body} [S0a0a0a].")],
        sources=[Source(source_id="S0a0a0a", url="javascript:alert(1)", title=source_title, kind="web")],
        claims=[
            Claim(
                number=1,
                section=0,
                sentence=body,
                source_ids=["S0a0a0a"],
                verdict=Verdict.not_stated,
                score=0.5,
                quotes=[Quote(source_id="S0a0a0a", artifact_file="a.json", start=0, end=1, sha256="0", text=quoted)],
            )
        ],
        warnings=[warning],
        open_questions=[body],
        limitations=[quoted],
    )
    page = Page(render_html(report))
    assert len(page.of("script")) == len(page.of("style")) == 1
    assert not page.of("img")
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style")]
        href = attributes.get("href") or "#"
        assert href.startswith(("#", "./")) or href.partition(":")[0] in ALLOWED
    assert not {"\u202e", "\u2066"} & set("".join(page.said))


@pytest.mark.parametrize(
    ("title", "repeats"),
    [("How high is the pier above the water?", True), ("How high is the pier …", True), ("Height of the pier", False)],
)
def test_a_page_that_shows_the_question_can_hide_a_title_that_repeats_it(title: str, repeats: bool) -> None:
    asked = {"query": "How high is the pier above the water?", "title": title}
    (heading,) = Page(render_html(sample_report().model_copy(update=asked))).of("h1")
    assert (heading.get("class") == "asked") is repeats
