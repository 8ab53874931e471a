"""The report's page in a real browser: Chromium, where it is installed."""

from __future__ import annotations

import unicodedata
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from pypdf import PdfReader

from fathom.models import Report, ReportSection
from fathom.report.html import render_html
from tests.sample_report import PHASES, sample_report

LONG = "a_name_" * 60


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(sample_report(), PHASES), encoding="utf-8")
    return path


def opened(browser: Browser, file: Path, **options: Any) -> Page:
    page = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options}).new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    page.goto(file.as_uri())
    return page


def test_anyone_can_read_it(browser: Browser, file: Path) -> None:
    page = opened(browser, file, color_scheme="light")
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    page.locator("a.cite").first.click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.emulate_media(color_scheme="dark")
    found = Axe().run(page, options={"resultTypes": ["violations"], "runOnly": ["color-contrast"]})
    assert found.violations_count == 0, found.generate_report()


def test_a_citation_opens_its_evidence_and_a_source_s_number_leads_out(browser: Browser, file: Path) -> None:
    page = opened(browser, file)
    citation = page.locator("#answer a.cite").first
    card = page.locator("#card")
    for key in ("Enter", " "):
        citation.focus()
        page.keyboard.press(key)
        assert card.is_visible()
        assert "covered its running cost" in card.inner_text()
        assert page.locator("#card mark").first.is_visible()
        assert page.evaluate("document.activeElement.className") == "close"
        page.keyboard.press("Escape")
        assert not card.is_visible()
        assert page.evaluate("document.activeElement.className") == "cite"
    citation.click()
    page.locator("#card a[href='#source-1']").first.click()
    assert not card.is_visible() and page.url.endswith("#source-1")


def test_only_what_cites_a_source_is_shown_and_marked(browser: Browser, file: Path) -> None:
    page = opened(browser, file)
    all_of_it = page.evaluate("document.body.innerText")
    third = page.evaluate("mark('3'); [...CSS.highlights.get('cited')].map((range) => `${range}`.replace('\\n', ' '))")
    assert third == [
        "The two best sources disagree on what the 2022 repair cost, and none says what the gates will cost to replace",
        "The repair of 2022 cost 4.2 million (2022-01-01)",
        "Insurance has doubled since the repair of 2022",
        "The repair of 2022 cost 4.2 million",
        "One gate jammed in March 2022, and the lagoon stood idle for eleven weeks",
    ]
    assert set(page.locator("a.cite.on").all_inner_texts()) == {"3"}
    contents = page.locator(".contents li:visible")
    assert contents.count() == page.locator("main section > h2:visible").count()
    shown = page.locator("main .prose > p:visible, main .prose li:visible, .claims > li:not([hidden])")
    assert shown.filter(has=page.locator("a.cite.on, a[href='#source-3']")).count() == shown.count() > 3
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.evaluate("mark('')")
    assert page.evaluate("document.body.innerText") == all_of_it
    assert page.evaluate("CSS.highlights.get('cited').size") == page.locator("a.cite.on").count() == 0


def test_a_quotation_of_a_table_s_rows_shows_the_table(browser: Browser, tmp_path: Path) -> None:
    report, file = sample_report(), tmp_path / "report.html"
    first = report.claims[0]
    rows = {
        "before": "ini | 4 |\n\n| Gate | Price |\n|---|---| ",
        "text": "| East | 2 <b> |\n| West | 3 |",
        "after": " | Nor",
    }
    quotes = [first.quotes[0].model_copy(update=rows), *first.quotes[1:]]
    claims = [first.model_copy(update={"quotes": quotes}), *report.claims[1:]]
    file.write_text(render_html(report.model_copy(update={"claims": claims}), PHASES), encoding="utf-8")
    page = opened(browser, file)
    page.locator("#answer a.cite").first.click()
    table = page.locator("#card blockquote").first
    assert table.locator("th").all_inner_texts() == ["Gate", "Price"]
    assert table.locator("td mark").all_inner_texts() == ["East", "2 <b>", "West", "3"]
    assert "|" not in table.inner_text()
    assert "East | 2 <b> / West | 3" in str(page.locator(".paper tbody tr").first.text_content())
    found = Axe().run(page, "#card")
    assert found.violations_count == 0, found.generate_report()


def test_links_to_a_claim_and_a_section_are_copied(browser: Browser, file: Path) -> None:
    page = opened(browser, file, permissions=["clipboard-read", "clipboard-write"])
    page.locator("#answer a.cite").first.click()
    page.locator("#card a.copy").first.click()
    page.locator("#card a.copy", has_text="Copied").first.wait_for()  # the browser copies when it has time
    assert page.evaluate("navigator.clipboard.readText()") == f"{file.as_uri()}#claim-1"
    page.keyboard.press("Escape")
    page.locator("h2:has-text('What it costs') a.anchor").click()
    copied = f"{file.as_uri()}#section-3"
    page.wait_for_function("async wanted => await navigator.clipboard.readText() === wanted", arg=copied)


def test_without_script_a_citation_unfolds_its_claim(browser: Browser, file: Path) -> None:
    page = opened(browser, file, java_script_enabled=False)
    claim = page.locator("#claim-1")
    assert not claim.is_visible()
    page.locator("#answer a.cite").first.click()
    assert claim.is_visible()


def test_a_table_with_long_heads_shows_its_last_column(browser: Browser, tmp_path: Path) -> None:
    report, file = sample_report(), tmp_path / "report.html"
    names = [
        "Supplier, model",
        *(f"{what} per month (EUR)" for what in ("Rent", "Maintenance", "Delivery")),
        "Total (EUR)",
    ]
    rows = [names, ["---"] * 5, ["Hebewerk HS 2000", "441", "81.50", "240", "342,900"]]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    sections = [ReportSection(heading="Costs", markdown=f"{table}\n\nAnd again:\n\n{table}"), *report.sections]
    file.write_text(render_html(report.model_copy(update={"sections": sections}), PHASES), encoding="utf-8")
    page = opened(browser, file, viewport={"width": 1000, "height": 900})
    around = page.locator(".scroll:has-text('Maintenance per month')").first
    assert around.evaluate("one => one.scrollWidth <= one.clientWidth")
    found = Axe().run(page, ".scroll")
    assert found.violations_count == 0, found.generate_report()


def test_nothing_is_wider_than_a_phone(browser: Browser, tmp_path: Path) -> None:
    report = sample_report()
    words = f"{LONG}: `{LONG}` https://example.org/{LONG}\n\n```\n{LONG}\n```\n\n| a | b |\n|---|---|\n| {LONG} | c |"
    sections = [*report.sections, ReportSection(heading=LONG, markdown=words)]
    file = tmp_path / "report.html"
    wide: Report = report.model_copy(update={"sections": sections, "title": LONG, "warnings": [LONG]})
    file.write_text(render_html(wide, PHASES), encoding="utf-8")
    page = opened(browser, file)
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    for width in (320, 360, 768):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.locator("#answer a.cite").first.click()
        card = page.locator("#card").bounding_box()
        assert card
        assert card["x"] >= 0
        assert card["x"] + card["width"] <= width
        page.keyboard.press("Escape")


def test_on_paper_it_is_short_and_whole(browser: Browser, file: Path) -> None:
    report = sample_report()
    printed = PdfReader(BytesIO(opened(browser, file).pdf(prefer_css_page_size=True, format="A4")))
    assert len(printed.pages) <= 6
    text = unicodedata.normalize("NFKC", "".join(page.extract_text() for page in printed.pages))  # ligatures
    said = "".join(text.split())
    for expected in ("Answered in part", "How this was researched", "Effects on the town and its households"):
        assert said.count("".join(expected.split())) == 1
    for hidden in ("Copy link", "Open the stored file", "with their passages", "Cost by phase", "Contents"):
        assert "".join(hidden.split()) not in said
    assert said.count("port_merrin_lagoon__step2_running_cost__web_search.json") == sum(
        bool(claim.quotes) for claim in report.claims
    )
