"""The page by keyboard alone: what people do every day is reached by Tab, and each stop on the way can be seen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.server import Served
from tests.test_page import opened

MOST_STOPS = 60
STOP = """wanted => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const seen = ["IFRAME", "BODY"].includes(one.tagName) || (outlined && inside);
  return [one === wanted, seen ? "" : one.outerHTML.slice(0, 200)];
}"""
"""Whether the focus is on an element, and what has it if it cannot be seen."""


def reach(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus."""
    element = wanted.first.element_handle()
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        reached, unseen = page.evaluate(STOP, element)
        assert not unseen
        if reached:
            return
    pytest.fail(f"Tab does not reach {wanted}")


def press(page: Page, wanted: Locator) -> None:
    reach(page, wanted)
    page.keyboard.press("Enter")


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    with opened(browser, served) as shown:
        yield shown


def read(page: Page) -> None:
    """Wait for the report, and skip it."""
    page.locator("iframe.report.whole").wait_for()
    press(page, page.get_by_role("link", name="Skip the report"))


def test_all_that_people_do_every_day_is_done_by_keyboard(page: Page) -> None:
    page.goto("/")
    reach(page, page.get_by_role("textbox", name="Question"))
    page.keyboard.type("What is a mixin class in Python?")
    reach(page, page.get_by_label("Standard"))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Quick")).to_be_checked()
    press(page, page.get_by_role("button", name="Ask"))
    page.locator("[data-over]").wait_for()
    run = page.url
    page.goto("/runs")
    press(page, page.get_by_role("link", name="What is a mixin class"))
    page.wait_for_url(run)

    press(page, page.locator("summary", has_text="Export"))
    with page.expect_download():
        press(page, page.get_by_role("link", name="Markdown"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Markdown")).to_be_hidden()
    expect(page.locator("summary", has_text="Export")).to_be_focused()
    press(page, page.locator("summary", has_text="Share"))
    expect(page.get_by_role("button", name="With everybody")).to_be_visible()
    read(page)
    expect(page.get_by_role("button", name="With everybody")).to_be_hidden()  # the focus has left the menu

    reach(page, page.get_by_label("A question that builds on this report"))
    page.keyboard.type("And what is it for?")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != run)
    page.locator("[data-over]").wait_for()
    page.goto(run)
    press(page, page.locator("summary", has_text="Share"))
    press(page, page.get_by_role("button", name="By a public link"))
    expect(page.get_by_text("It is shown once.")).to_be_visible()
    read(page)
    press(page, page.get_by_role("button", name="Watch"))
    page.wait_for_url("**/watches#*")
    page.request.post(f"/watches/{page.url.rpartition('#')[2]}/remove")

    page.goto(run)
    read(page)
    press(page, page.locator("summary", has_text="Rename or delete"))
    reach(page, page.get_by_role("textbox", name="Name"))
    page.keyboard.type("Mixins")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Named Mixins")).to_be_visible()
    read(page)
    press(page, page.locator("summary", has_text="Rename or delete"))
    press(page, page.get_by_role("link", name=re.compile("Delete this question")))
    page.wait_for_url("**/remove")
    press(page, page.get_by_role("button", name=re.compile("^Delete")).first)
    page.wait_for_url("**/runs")
    expect(page.get_by_text("Mixins")).to_have_count(0)
