"""The page: in Chromium, where it is installed, and as plain forms and links."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from html import unescape
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Route, expect

from fathom.config.settings import ResearchSettings
from fathom.errors import NotAllowed
from fathom.flows.execution import local
from fathom.interfaces.page.rendering import templates
from fathom.service.caller import AccessRole, Caller, TokenLimits
from fathom.service.options import Options
from fathom.service.runs import RunService
from fathom.service.tokens import Tokens
from fathom.storage.store import ArtifactStore
from tests.conftest import FathomCLI, PrefectServer, quiet_port
from tests.server import Served, served_with
from tests.stubs import Stubs

QUESTION = "What is a descriptor in Python?"
HOSTILE = 'What is a descriptor in Python? "><script>alert(1)</script><img src=x onerror=alert(1)>'
PATIENCE = 60_000  # milliseconds, for what a worker does
NOWHERE = "/nowhere"
DESKTOP, PHONE = (1200, 900), (360, 740)
REPEATED = ".reference section section ~ section, .reference details ~ details"
"""Routes and schemas of the reference but the first ones, which one template makes: axe takes 20 seconds for all."""


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=120, headers={"Accept": "text/html"}) as client:
        yield client


@pytest.fixture(scope="module")
def finished(client: httpx.Client) -> str:
    """The path of the page of a run that has ended, with a hostile question."""
    answer = client.post("/", data={"question": HOSTILE, "profile": "quick"})
    assert answer.status_code == 303, answer.text
    path = answer.headers["Location"]
    with client.stream("GET", f"/api/v1{path}/events") as events:
        for _ in events.iter_lines():
            pass
    return str(path)


def is_wrong(said: ConsoleMessage) -> bool:
    return said.type == "error" and not said.location["url"].endswith(NOWHERE)  # whose status is told as an error


@contextmanager
def opened(browser: Browser, served: Served, size: tuple[int, int] = DESKTOP) -> Iterator[Page]:
    """A page on which nothing may fail, break the policy, leave the server or be wider than the screen."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, base_url=served.url)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    wrong: list[str] = []

    def refuse(dialog: Dialog) -> None:
        wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
    page.on("console", lambda said: wrong.append(said.text) if is_wrong(said) else None)
    page.on("dialog", refuse)
    page.on("request", lambda sent: None if sent.url.startswith(served.url) else wrong.append(f"left: {sent.url}"))
    try:
        yield page
    except Exception as error:
        error.add_note(f"At {page.url} stood: {page.locator('main').inner_text()}\nWrong there: {wrong}")
        raise
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    context.close()
    assert not wrong


def test_a_question_is_asked_approved_watched_read_and_followed_up(browser: Browser, served: Served) -> None:
    with opened(browser, served, DESKTOP) as desktop, opened(browser, served, PHONE) as phone:
        ask(phone)
        phone.get_by_role("heading", name="Is this the right plan?").wait_for()
        desktop.goto(phone.url)
        approve(desktop)
        read(phone)
        first = desktop.url
        desktop.get_by_label("A question that builds on this report").fill("And on a class?")
        desktop.get_by_label("A question that builds on this report").press("Control+Enter")
        desktop.wait_for_url(lambda url: url != first)
        desktop.locator("[data-over]").wait_for()
        desktop.locator(".thread summary").focus()
        desktop.keyboard.press("Enter")
        expect(desktop.locator(".thread .box").get_by_role("link", name="The whole report")).to_be_visible()
        desktop.set_viewport_size({"width": 320, "height": 740})
        assert desktop.evaluate("document.documentElement.scrollWidth") == 320
        assert Axe().run(desktop, ".thread", options={"resultTypes": ["violations"]}).violations_count == 0
        desktop.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
        desktop.goto(first)
        expect(desktop.get_by_role("link", name="And on a class?")).to_be_visible()


def ask(page: Page) -> None:
    page.goto("/")
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.get_by_label("Quick").check()
    page.get_by_text("More settings").click()
    page.get_by_label("Show me the plan first").check()
    page.evaluate("scrollTo(0, 0)")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_in_viewport(ratio=1)
    page.get_by_role("textbox", name="Question").press("Control+Enter")


def approve(page: Page) -> None:
    page.get_by_role("heading", name="Is this the right plan?").wait_for()
    page.locator(".edit summary").first.click()
    page.get_by_label("Title", exact=True).first.fill("The order of the lookup")
    page.get_by_text("What the report is to be like").click()
    page.get_by_label("Reader").fill("beginners")
    page.locator("h1").click()  # what is half edited stays, also when the page is brought up to date meanwhile
    page.evaluate("load(location.pathname).then((fresh) => take(fresh))")
    page.get_by_role("button", name="Accept and start").click()


def read(page: Page) -> None:
    frame = page.frame_locator("iframe.report")
    assert [page.locator("h1").count(), frame.locator("h1:visible").count()] == [1, 0], "the question stands twice"
    frame.locator("#answer a.cite").first.click()
    assert frame.locator("#card mark").first.is_visible()
    assert "target" in frame.get_by_text("Open the stored file").first.evaluate("link => link.getAttributeNames()")
    page.keyboard.press("Escape")
    expect(frame.locator("#answer a.cite").first).to_be_focused()
    page.locator("iframe.report.whole").wait_for()
    chosen = page.locator(".sources a").first
    for key, pressed in (("Enter", "true"), (" ", "false")):
        chosen.press(key)
        expect(chosen).to_have_attribute("aria-pressed", pressed)
        if pressed == "true":
            said = re.compile(r"Source 1 is cited in \d+ places?\. Only the parts that cite it are shown\.")
            expect(page.locator("#said")).to_contain_text(said)
            expect(frame.locator("#answer a.cite.on").first).to_be_in_viewport()
    expect(frame.locator("a.cite.on, main section[hidden]")).to_have_count(0)
    expect(page.locator("#said")).to_contain_text("All of the report is shown.")
    page.get_by_text("The plan", exact=True).click()
    expect(page.locator(".steps")).to_contain_text("The order of the lookup")
    expect(page.locator("details", has=page.locator(".steps"))).to_contain_text("reader: beginners")
    # By a key: Chromium sends a click right after a scroll into the frame, which is in another process.
    page.get_by_role("button", name="Check it again").press("Enter")
    expect(page.locator("#checked")).to_contain_text(re.compile(r"Checked just now: (\d+) of \1 claim"))
    page.get_by_text("Export", exact=True).click()
    tables = page.get_by_role("link", name="Tables")
    assert "download" not in tables.evaluate("link => link.getAttributeNames()"), "a browser would not show why not"
    with page.expect_download() as download:
        page.get_by_role("link", name="Markdown").click()
    assert download.value.suggested_filename.endswith(".md")
    assert page.locator("iframe.report").evaluate("f => f.contentDocument === null"), "it has our origin"


def test_everybody_can_use_every_view(browser: Browser, served: Served, client: httpx.Client, finished: str) -> None:
    waits = client.post("/", data={"question": QUESTION, "profile": "quick", "approve": "plan"}).headers["Location"]
    files = {"files": ("<img src=x onerror=alert(1)>.md", b"# Pumps\n\nThe limit is 40 bar.\n")}
    client.post("/corpora", data={"name": "pumps"}, files=files)
    client.post("/watches", data={"question": QUESTION, "every": "1w", "name": "page test", "profile": "quick"})
    with opened(browser, served) as page:
        page.goto(waits)
        page.get_by_role("button", name="Accept and start").wait_for()
        views = [
            "/",
            "/runs",
            "/runs?text=nothing-is-like-that",
            "/library?q=descriptor",
            "/watches",
            "/watches/page-test",
            "/corpora",
            "/corpora/pumps",
            "/settings",
            "/docs",
            NOWHERE,
            f"{finished}/remove",
        ]
        for view in [waits, *views, finished]:
            page.goto(view)
            assert page.locator("h1").count() == 1
            page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
            for width in (DESKTOP[0], 320):
                page.set_viewport_size({"width": width, "height": DESKTOP[1]})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            page.evaluate(f"document.querySelectorAll('{REPEATED}').forEach((part) => part.remove())")
            # All rules on a phone, where most is in the way; the other scheme changes colours, of all pages at once.
            dark = [("dark", {"runOnly": ["color-contrast"]})] if view in ("/", "/docs", waits, finished) else []
            for scheme, rules in (("light", {}), *dark):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                found = Axe().run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
                assert not found, (view, scheme, [(one["id"], one["nodes"][0]["html"]) for one in found])
        page.goto("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "question"
    client.post("/watches/page-test/remove")
    client.post(f"{waits}/answer", data={"reject": "1"})


def test_the_answer_can_be_read_before_the_report_is_there(browser: Browser, served: Served, finished: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    with opened(browser, served) as page:
        page.route(lambda address: address.endswith("framed=1"), hold)
        page.goto(finished, wait_until="commit")
        answer = page.locator(".early .prose")
        expect(answer).to_be_in_viewport()
        said = answer.inner_text()[:30]
        while not held:
            page.wait_for_timeout(50)
        held[0].continue_()
        expect(page.frame_locator("iframe.report").locator("#answer")).to_contain_text(said)
        expect(answer).to_have_count(0)


def test_a_section_can_be_read_while_it_is_written(
    browser: Browser, prefect_server: PrefectServer, providers: Stubs, tmp_path: Path
) -> None:
    sentences = " ".join(f"Sentence {number} of the draft [ID]." for number in range(6))
    providers.settings.section = f"See [**here**](http://evil.example/x). {sentences} [a link](x)"
    providers.settings.token_seconds = 0.1  # a section takes some 6 seconds
    providers.settings.faults = {"section": ["slow*"], "judge": ["slow*"]}
    with served_with(Options(str(tmp_path), port=quiet_port())) as server, opened(browser, server) as page:
        asked = {"question": QUESTION, "profile": "quick", "model": "openai/stub"}
        started = httpx.post(f"{server.url}/", data=asked, headers={"Accept": "text/html"}, timeout=60)
        page.goto(started.headers["Location"])
        expect(page.locator("#notes li").first).to_be_visible(timeout=PATIENCE)
        expect(page.locator(".meters")).to_contain_text("not known", timeout=PATIENCE)  # what the model costs
        being_written, written = page.locator("#drafts"), page.locator("#sections")
        expect(being_written).to_contain_text("Sentence 1 of the draft [S", timeout=PATIENCE)
        expect(being_written).to_contain_text("draft, not checked yet", timeout=PATIENCE)
        expect(being_written).to_contain_text("Sentence 3 of the draft", timeout=PATIENCE)
        assert being_written.inner_text().count("Sentence 1 of the draft") == 1
        assert being_written.locator("a").count() == 0
        expect(written).to_contain_text("Sentence 5 of the draft [S", timeout=PATIENCE)
        assert written.locator("a").count() == 0
        expect(written).to_contain_text("draft, not checked yet", timeout=PATIENCE)
        httpx.delete(f"{server.url}/api/v1{started.headers['Location']}", timeout=60)
        page.locator("[data-over]").wait_for()


PRICES = b"# Prices\n\nThe Hygro Pro costs 240 euros.\n"
DROP = """names => {
  const data = new DataTransfer();
  for (const [name, bytes] of names) data.items.add(new File([new Uint8Array(bytes)], name));
  const drop = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
  document.querySelector("#question").dispatchEvent(drop);
}"""


def test_files_are_dropped_on_a_question_and_thrown_away_after_it(
    browser: Browser, served: Served, client: httpx.Client
) -> None:
    with opened(browser, served) as page:
        page.goto("/")
        page.evaluate(DROP, [["price list.md", [*PRICES]], ["tool.exe", [77, 90, 0, 3]], ["empty.txt", []]])
        chosen = page.get_by_role("status", name="Chosen files")
        expect(chosen).to_contain_text("price list.md, 1 kB")
        expect(chosen).to_contain_text("tool.exe is left out: it is not text")
        expect(chosen).to_contain_text("empty.txt is left out: it is empty")
        page.get_by_label("Throw them away after this run").check()
        page.get_by_label("Quick").check()
        question = page.get_by_role("textbox", name="Question")
        question.fill("What does the Hygro Pro cost?")
        question.press("Shift+Enter")
        assert question.input_value().endswith("\n")
        question.press("Enter")
        page.locator("[data-over] iframe.report").wait_for()
        expect(page.frame_locator("iframe.report").locator("#answer")).to_contain_text("240 euros")
        settings = client.get(f"/api/v1{page.url.removeprefix(served.url)}").json()["settings"]
        [name] = re.findall(r"price list _[0-9a-f]{6}", str(settings))
        assert client.get(f"/corpora/{name}").status_code == 404
        run = page.url.removeprefix(served.url)
        page.reload()
        expect(page.locator("header.head")).to_contain_text("Reads price list (no longer there")
        expect(page.get_by_role("button", name="Watch")).to_have_count(0)
    first = client.get(f"/api/v1{run}").json()
    follow = ran(client, f"/api/v1{run}/ask", {"question": "And the delivery of the Hygro Pro?"})
    told = client.get(follow).json()
    assert "documents" not in told["settings"]["tools"] and told["settings"]["corpora"] == []
    assert {one["title"] for one in told["result"]["sources"]} == {one["title"] for one in first["result"]["sources"]}
    assert told["understood"] == "The delivery of the Hygro Pro (cost)?"
    shown = client.get(follow.removeprefix("/api/v1")).text
    assert f"Understood as: <bdi>{told['understood']}</bdi>" in shown and 'id="watch-h"' not in shown
    client.post("/corpora", data={"name": "lost"}, files={"files": ("a.md", PRICES)})
    unanswered = ran(client, "/api/v1/runs", {"question": "Who won the cup in 1987?", "corpora": ["lost"]})
    client.delete("/api/v1/corpora/lost").raise_for_status()
    refused = client.post(f"{unanswered}/ask", json={"question": "Who sails?"})
    assert refused.status_code == 422 and "The documents of this run are gone." in refused.text


def test_questions_search_the_documents_of_the_server_unless_they_name_others(served: Served, tmp_path: Path) -> None:
    notes, asked = tmp_path / "notes", {"question": "What does the Hygro Pro cost?", "settings": {"profile": "quick"}}
    notes.mkdir()
    own = replace(served.options, port=quiet_port(), pool="nobody", docs=(str(notes),))
    with served_with(own, limit=0) as idle, httpx.Client(base_url=idle.url, timeout=120) as client:
        for form in (client.get(path, headers={"Accept": "text/html"}).text for path in ("/", "/watches")):
            assert "the server's documents are searched: notes." in form and 'id="searched"' not in form
        refused = client.post("/api/v1/runs", json=asked)
        assert refused.status_code == 422 and "Nothing to read" in refused.text
        (notes / "prices.md").write_bytes(PRICES)
        client.post("/api/v1/corpora", data={"name": "handbook"}, files={"files": ("a.md", PRICES)}).raise_for_status()
        for named, read in (({}, ["notes"]), ({"corpora": ["handbook"]}, [])):
            assert client.post("/api/v1/runs", json={**asked, **named}).json()["settings"]["docs"] == read
    service, asker = RunService(own), Caller("Ida", AccessRole.asker)
    assert service.settings_for(asker, {"docs": [str(notes)]}).docs == [str(notes)]
    assert service.settings_for(asker, {}, follow_up=True).docs == []
    with pytest.raises(NotAllowed):
        service.settings_for(asker, {"docs": ["/etc"]})


def test_a_scope_is_chosen_on_the_page_within_the_one_that_the_server_has(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FATHOM_SCOPE", "documents")
    own = replace(served.options, port=quiet_port(), pool="nobody", docs=(str(tmp_path),))
    (tmp_path / "prices.md").write_bytes(PRICES)
    asked, html = {"question": "What does the Hygro Pro cost?"}, {"Accept": "text/html"}
    with served_with(own, limit=0) as idle, httpx.Client(base_url=idle.url, timeout=120) as client:
        form = client.get("/", headers=html).text
        assert "Runs of this server read only your documents." in form
        assert '<option value="private">' in form and '<option value="web">' not in form
        assert "wider than documents" in client.post("/", data={**asked, "scope": "web"}, headers=html).text
        run = client.post("/", data={**asked, "scope": "private"}, headers=html).headers["Location"]
        assert client.get(f"/api/v1{run}").json()["settings"]["scope"] == "private"
        assert "Scope private." in client.get(run, headers=html).text


def test_a_run_of_a_terminal_is_not_said_to_wait_for_a_worker(client: httpx.Client, served: Served) -> None:
    settings = ResearchSettings(profile="quick", artifacts=str(served.root))
    with ThreadPoolExecutor(1) as thread:  # in this one, the browser's loop may be running
        flow_run = thread.submit(asyncio.run, local.create(QUESTION, settings)).result()  # its process never begins it
    path, how = f"/runs/{flow_run.id}", f"<code>fathom resume {str(flow_run.id)[:8]}</code> goes on where it stopped"
    interrupted = client.get(path).text
    assert how in interrupted and f"{path}/resume" not in interrupted
    assert client.get(f"/api/v1{path}").json()["state"] == "interrupted"
    client.post(f"{path}/cancel")
    cancelled = client.get(path).text
    assert how in cancelled and f"{path}/resume" not in cancelled


def test_a_question_without_an_answer_is_asked_in_other_words_on_its_page(client: httpx.Client) -> None:
    path = client.post("/", data={"question": "Who won the cup in 1987?", "profile": "quick"}).headers["Location"]
    with client.stream("GET", f"/api/v1{path}/events") as events:
        assert "insufficient_evidence" in "".join(events.iter_text())
    assert "The question in other words, or the next one" in client.get(path).text
    again = client.post(f"{path}/ask", data={"question": "What is a descriptor in Python?"})
    assert again.status_code == 303, again.text
    assert "Who won the cup in 1987?" in client.get(again.headers["Location"]).text


def test_a_corpus_of_several_files_is_named_after_all_of_them(client: httpx.Client) -> None:
    asked = {"question": "What does the Hygro Pro cost?", "profile": "quick", "depth": "99"}
    for names, named in (
        (("minutes-2026-09-14.md", "minutes-2026-10-12.md"), "minutes-2026 2 files"),
        (("price list.md", "staff.md", "notes.md"), "price list and 2 more"),
    ):
        sent = client.post("/", data=asked, files=[("files", (name, PRICES)) for name in names])
        assert re.search(rf'name="corpora" value="{named} _[0-9a-f]{{6}}" checked', sent.text)


def test_files_of_a_question_are_kept_and_refused_without_script(
    client: httpx.Client, served: Served, fathom_cli: FathomCLI
) -> None:
    asked, files = (
        {"question": "What does the Hygro Pro cost?", "profile": "quick", "depth": "99"},
        {"files": ("a b.md", PRICES)},
    )
    wrong = client.post("/", data=asked, files=files)  # what is kept of it need not be chosen again
    [kept] = re.findall(r'name="corpora" value="(a b _[0-9a-f]{6})" checked', wrong.text)
    assert wrong.status_code == 422 and "at most 5" in wrong.text
    run = client.post("/", data={**asked, "depth": "1", "corpora": kept}, files={"files": ("", b"")})
    reads = f'Reads <a href="/corpora/{kept.replace(" ", "%20")}"><bdi>a b</bdi>'
    assert reads in client.get(run.headers["Location"]).text
    assert client.get(f"/corpora/{kept}").status_code == 200
    with client.stream("GET", f"/api/v1{run.headers['Location']}/events") as events:
        assert "complete" in "".join(events.iter_text())
    for shown in ("", "/report", "/export/bib"):
        assert "a b.md, a file for this question" in client.get(f"{run.headers['Location']}{shown}").text
    found = fathom_cli(["library", "Hygro Pro", "--artifacts", str(served.root)]).stdout
    assert "a b.md, a file for this question" in found
    refused = client.post("/", data=asked, files={"files": ("tool.exe", b"MZ\0\3")})
    assert refused.status_code == 422 and "it is not text" in re.findall('id="wrong-files".*?</p>', refused.text)[0]


def test_anyone_reads_a_report_by_a_public_link_until_it_is_removed(
    prefect_server: PrefectServer, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    with ThreadPoolExecutor() as thread:
        add = Tokens(ArtifactStore(str(tmp_path))).add
        added = [
            (name, thread.submit(asyncio.run, add(name, AccessRole.asker, TokenLimits())).result())
            for name in ("ann", "bob")
        ]
    tokens = {name: {"Authorization": f"Bearer {token}"} for name, (_, token) in added}
    options = Options(str(tmp_path), port=quiet_port(), sign_in=True)
    with (
        served_with(options) as server,
        httpx.Client(base_url=server.url, timeout=120, headers=tokens["ann"]) as ann,
        httpx.Client(base_url=server.url, timeout=120) as anyone,
    ):
        first = ran(ann, "/api/v1/runs", {"question": QUESTION, "settings": {"profile": "quick"}})
        run = ran(ann, f"{first}/ask", {"question": "And on a class?"})
        assert ann.post(f"{run}/links?public=true", headers=tokens["bob"]).status_code == 404
        link = ann.post(f"{run}/links?public=true").json()
        report = anyone.get(link["page"])
        assert report.status_code == 200 and "And on a class?" in report.text
        assert QUESTION not in report.text, "the question of another run"
        assert "noindex" in report.headers["X-Robots-Tag"] and report.headers["Referrer-Policy"] == "no-referrer"
        [evidence, *_] = re.findall(r'href="\./([^"/]+)"', report.text)
        assert '<mark id="passage">' in anyone.get(link["page"] + evidence).text
        assert anyone.get(link["page"] + evidence.partition("?")[0]).headers["Content-Type"].startswith("text/plain")
        for name in ("run.json", "result.json", "audit.jsonl", "plan.json"):
            assert anyone.get(link["page"] + name).status_code == 404
        for address in (run, f"{run}/report", first.replace("/api/v1", "") + "/report"):
            assert anyone.get(address).status_code == 401
        assert anyone.get(link["page"].replace(run[-36:], first[-36:])).status_code == 404
        assert link["page"].split("/")[-2] not in "".join(
            file.read_text() for file in tmp_path.glob(".serve/**/*.json")
        )
        with served_with(replace(options, port=quiet_port(), pool="nobody", public_links=False), limit=0) as other:
            assert httpx.get(other.url + link["page"], timeout=60).status_code == 404
            assert (
                httpx.post(f"{other.url}{run}/links?public=true", headers=tokens["ann"], timeout=60).status_code == 403
            )
        html = {**tokens["ann"], "Accept": "text/html"}
        page = ann.get(run.removeprefix("/api/v1"), headers=html).text
        assert "1 link to this run" in page and f'name="link" value="{link["id"]}"' in page
        ann.post(f"{run.removeprefix('/api/v1')}/unlink", data={"link": link["id"]}, headers=html)
        assert anyone.get(link["page"]).status_code == 404

        again, inside = ann.post(f"{run}/links?public=true").json(), ann.post(f"{first}/links").json()
        listed = fathom_cli(["links", "list", "--artifacts", str(tmp_path)]).stdout
        assert {line.split()[0] for line in listed.splitlines()} == {again["id"], inside["id"]}
        assert re.search(rf"{again['id']}  \S+  anyone +ann  {run[-36:][:8]}  And on a class", listed)
        assert fathom_cli(["links", "revoke", again["id"], "--artifacts", str(tmp_path)]).returncode == 0
        assert anyone.get(again["page"]).status_code == 404 and len(ann.get(f"{first}/links").json()) == 1
        assert ann.get(f"{run}/activity").json()[-1]["by"] == "local"
        assert "There is no link" in fathom_cli(["links", "revoke", again["id"], "--artifacts", str(tmp_path)]).stderr


def ran(client: httpx.Client, address: str, asked: Mapping[str, object]) -> str:
    """Start a run, wait for its end, and return its address."""
    run = str(client.post(address, json=asked).json()["links"]["run"])
    with client.stream("GET", f"{run}/events") as events:
        for _ in events.iter_lines():
            pass
    return run


def test_a_report_is_watched_with_what_it_used_and_times_are_the_reader_s(
    browser: Browser, served: Served, client: httpx.Client
) -> None:
    client.post("/corpora", data={"name": "prices"}, files={"files": ("a.md", PRICES)})
    asked = {
        "question": "What does the Hygro Pro cost now?",
        "settings": {"profile": "quick", "library": True},
        "corpora": ["prices"],
    }
    path = ran(client, "/api/v1/runs", asked).removeprefix("/api/v1")
    with browser.new_context(base_url=served.url, timezone_id="Asia/Kolkata") as context:
        page = context.new_page()
        page.goto(path)
        time = page.locator("header.head time")
        at = datetime.fromisoformat(str(time.get_attribute("datetime"))).astimezone(ZoneInfo("Asia/Kolkata"))
        expect(time).to_contain_text(f"{at:%H:%M}")
        offer = page.get_by_role("region", name="Watch this question")
        expect(offer).to_contain_text("not search what earlier runs have read")
        page.get_by_role("button", name="Watch").press("Enter")
        page.wait_for_url("**/watches#*")
    [watch] = [one for one in client.get("/api/v1/watches").json()["watches"] if "cost now" in one["question"]]
    assert watch["settings"]["corpora"] == ["prices"] and watch["settings"]["profile"] == "quick"
    assert not {"library", "tools"} & {name for name, value in watch["settings"].items() if value}
    told = client.get(f"/watches/{watch['name']}").text
    assert '<a href="/corpora/prices"><bdi>prices</bdi></a> (1 file)' in told and "profile <code>quick</code>" in told
    assert "Reads <bdi>prices</bdi>" in client.get("/watches").text
    assert watch["report"] == path.rpartition("/")[2] and f'Made from <a href="{path}">a report</a>' in told
    assert all(f'action="/watches/{watch["name"]}/{act}"' in told for act in ("run", "pause", "remove"))
    link = f'<a href="/watches/{watch["name"]}">'
    shown = client.get(path).text  # at its top and below the report, in the place of the offer
    assert (shown.count(link), 'id="watch-h"' in shown, "its first run says what changed" in shown) == (2, False, True)
    twice = client.post(f"{path}/watch", data={"every": "1w"}).text
    assert 'id="wrong-watch" role="alert">You already watch this question. See Watches; remove that watch' in twice
    client.post(f"/watches/{watch['name']}/remove")
    assert link not in client.get(path).text
    made = {"question": "What does the Hygro Pro cost?", "every": "1w", "report": "nobody"}
    assert client.post("/api/v1/watches", json=made).status_code == 404


def test_a_run_is_renamed_and_removed_with_all_of_its_files(
    client: httpx.Client, served: Served, fathom_cli: FathomCLI
) -> None:
    run = ran(client, "/api/v1/runs", {"question": "What is a mixin?", "settings": {"profile": "quick"}})
    path = run.removeprefix("/api/v1")
    [folder] = served.root.rglob("what_is_a_mixin")
    [result] = folder.glob("result.json")
    result.write_text(json.dumps(json.loads(result.read_text()) | {"answered": "maybe"}))
    assert client.get(run).json()["answered"] == client.get("/api/v1/runs").json()["runs"][0]["answered"] == "maybe"
    assert all(
        'complete</span><span class="chip fair">perhaps answered' in client.get(at).text for at in ("/runs", path)
    )
    listed = fathom_cli(["runs", "--artifacts", str(served.root), "--limit", "1"]).stdout
    assert re.search(rf"{run[-36:][:8]} .* complete, perhaps answered +What is a mixin", listed)
    client.post(f"{path}/rename", data={"title": "Mixins, for Tuesday"})
    assert "Mixins, for Tuesday" in client.get("/runs").text
    assert client.patch(run, json={"title": ""}).json()["title"] == ""
    assert "Mixins, for Tuesday" not in client.get("/runs").text and "What is a mixin?" in client.get("/runs").text
    assert "cannot be brought back" in client.get(f"{path}/remove").text and client.get(path).status_code == 200
    assert client.post(f"{path}/remove").headers["Location"] == "/runs"
    assert client.get(path).status_code == client.get(run).status_code == 404
    assert "What is a mixin?" not in client.get("/runs").text
    assert not folder.exists()
    waits = client.post("/", data={"question": QUESTION, "profile": "quick", "approve": "plan"}).headers["Location"]
    assert client.delete(f"/api/v1{waits}?remove=true").status_code == 409
    shown = client.get(waits).text  # on a small screen too, what was told stands where it is told
    assert shown.index('id="remarks"') < shown.index("What should it look at besides?") < shown.index('id="notes"')
    for remark in ("Only Python 3.14.", "And <i>metaclasses</i>?"):
        client.post(f"{waits}/remarks", data={"text": remark})
    shown = client.get(waits).text
    assert "And &lt;i&gt;metaclasses&lt;/i&gt;?" in shown
    [_, token] = re.findall(r'name="remark" value="(\w+)"', shown)
    client.post(f"{waits}/take-back", data={"remark": token})
    shown = client.get(waits).text
    assert "Only Python 3.14." in shown and "metaclasses" not in shown
    assert "has taken this remark up already" in client.post(f"{waits}/take-back", data={"remark": token}).text
    [left] = client.get(f"/api/v1{waits}/remarks").json()["remarks"]
    assert (left["text"], left["author"]) == ("Only Python 3.14.", "local")
    assert client.delete(f"/api/v1{waits}/remarks/{left['id']}").status_code == 204
    again = client.delete(f"/api/v1{waits}/remarks/{left['id']}")
    assert (again.status_code, client.get(f"/api/v1{waits}/remarks").json()) == (422, {"remarks": []})
    assert "no remark that can still be taken back" in again.json()["detail"]
    said = [(one["action"], one["detail"]) for one in client.get(f"/api/v1{waits}/activity").json()]
    assert said[-2:] == [("took_back", "And <i>metaclasses</i>?"), ("took_back", "Only Python 3.14.")]
    client.post(f"{waits}/stop")
    stopped = client.get(waits).text
    assert "local</bdi> stopped the research." in stopped and "Stop and write" not in stopped
    client.delete(f"/api/v1{waits}")
    assert client.delete(f"/api/v1{waits}?remove=true").status_code == 204
    assert client.get(waits).status_code == 404


def test_after_a_refusal_a_run_is_still_followed_and_is_asked_again_with_its_files(
    browser: Browser, served: Served, client: httpx.Client
) -> None:
    """The answer to a refused form has an address of its own, at which nothing can be read again."""
    client.post("/corpora", data={"name": "tariffs"}, files={"files": ("a.md", PRICES)})
    asked = {"question": "Who paints the Hygro Pro?", "profile": "quick", "approve": "plan", "corpora": "tariffs"}
    waits = client.post("/", data=asked).headers["Location"]
    with browser.new_context(base_url=served.url) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(waits)
        page.get_by_label("What should it look at besides?").fill(" ")
        page.get_by_role("button", name="Tell it").click()
        page.wait_for_url("**/remarks")
        client.delete(f"/api/v1{waits}").raise_for_status()
        page.locator("[data-over]").wait_for()
        page.get_by_role("link", name="Ask it again").click()
        expect(page.get_by_role("textbox", name="Question")).to_have_value(asked["question"])
        expect(page.get_by_label("Quick")).to_be_checked()
        expect(page.get_by_label("tariffs")).to_be_checked()


def test_the_reference_of_the_api_is_read_by_keyboard_on_a_small_phone(browser: Browser, served: Served) -> None:
    with opened(browser, served, (320, 740)) as page:
        page.goto("/")
        page.get_by_role("link", name="API reference").press("Enter")
        page.get_by_text(re.compile(r"^Watches \d")).press("Enter")
        page.get_by_role("link", name="Watch a question", exact=True).press("Enter")
        route = page.get_by_role("region", name="Watch a question")
        expect(route).to_be_in_viewport()
        expect(route.locator("pre")).to_contain_text('"every": "1d"')
        route.get_by_role("link", name="Watch", exact=True).press("Enter")
        expect(page.locator("#schema-Watch")).to_contain_text("next_run")  # it was folded


def test_text_of_others_stays_text(client: httpx.Client, finished: str) -> None:
    page = client.get(finished)
    assert "<script>alert" not in page.text and "<img" not in page.text
    assert HOSTILE in unescape(page.text)
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    shown = templates().get_template("parts.html.j2").make_module({}).source  # type: ignore[attr-defined]
    assert "href" not in shown({"title": "x", "url": "javascript:alert(1)"})
    link = shown({"title": '"><b>', "url": 'https://example.org/"><b>'})
    assert "<b>" not in link and 'rel="noopener' in link


@pytest.mark.parametrize(
    ("path", "given", "field", "said"),
    [
        ("/", {"question": "  "}, "question", "Please write something"),
        ("/", {"question": "???"}, "question", "The question has no word."),
        ("/", {"question": "Danke schön!"}, "question", "“Danke schön!” asks for nothing."),
        ("/", {"question": "Why?", "depth": "99"}, "depth", "It must be at least 1 and at most 5."),
        ("/", {"question": "Why?", "max_usd": "much"}, "max_usd", "It must be a number, at least 0."),
        ("/", {"question": "Why?", "max_usd": "-1"}, "max_usd", "It must be at least 0."),
        ("/", {"question": "Why?", "minutes": "0"}, "minutes", "It must be more than 0."),
        ("/", {"question": "Why?", "approve": "all"}, "form", "people.approve 'all': it must be 'never'"),
        ("/watches", {"question": "Why?", "every": "1x"}, "every", "It must be a length of time"),
        ("/", {"question": "Why?", "template": "<b>"}, "template", "no template '<b>'"),
        ("/watches", {"question": " ", "every": "1d"}, "question", "Please write"),
        ("/corpora", {"name": "../x"}, "files", "not a form with files"),
    ],
)
def test_a_form_says_at_its_field_what_is_wrong(
    client: httpx.Client, path: str, given: dict[str, str], field: str, said: str
) -> None:
    answer = client.post(path, data=given)
    assert answer.status_code == 422
    [problem] = re.findall(rf'id="wrong-{field}" role="alert">(.*?)</p>', answer.text, re.DOTALL)
    assert said in unescape(problem)
    assert field == "form" or 'aria-invalid="true"' in answer.text
    assert all(value.strip() in unescape(answer.text) for value in given.values() if path == "/" and value != "<b>")


def test_everything_works_without_script(client: httpx.Client, finished: str) -> None:
    run = client.get(f"{finished}?check=1").text
    assert f'<a href="{finished}/report#source-1" data-source="1"' in run
    assert re.search(r"Checked just now: (\d+) of \1 claim", run)
    framed, alone = client.get(f"{finished}/report?framed=1"), client.get(f"{finished}/report")
    assert "script-src 'sha256-" in alone.headers["Content-Security-Policy"]
    assert alone.content == client.get(f"{finished}/export/html").content
    assert b"_blank" not in alone.content
    places = re.findall(r'<mark>([^<]*)</mark>(?:(?!<mark>).)*?target="_blank" href="./(.*?)"', framed.text, re.DOTALL)
    for quoted, place in places:  # each quotation leads to its bytes in the stored file
        shown = client.get(f"{finished}/{unescape(place)}").text
        assert quoted in re.findall(r'<mark id="passage">(.*?)</mark>', shown, re.DOTALL)[0]  # it may be a table's cell
    assert "passage" not in client.get(f"{finished}/{re.sub('=[0-9]+-', '=1-', places[0][1])}").text
    assert client.get(f"{finished}/run.json?bytes=0-9").content == client.get(f"{finished}/run.json").content
    for file in {place.partition("?")[0] for _, place in places}:
        stored = client.get(f"{finished}/{file}")
        assert stored.headers["Content-Type"].startswith("text/plain") and stored.headers["X-Content-Type-Options"]
    for form in ("md", "json", "docx", "pdf", "xlsx", "bib", "ris"):
        kept = client.get(f"{finished}/export/{form}")
        assert kept.status_code == 200, kept.text
        assert kept.content and kept.headers["Content-Disposition"].endswith(f'.{form}"')


def test_errors_are_pages_for_people_and_data_for_programs(client: httpx.Client) -> None:
    missing = client.get("/runs/00000000-0000-4000-8000-000000000000")
    assert missing.status_code == 404 and "There is nothing here" in missing.text
    assert client.get("/nowhere").status_code == client.get("/static/x.css").status_code == 404
    assert client.get("/runs/x/..%2f..%2frun.json").status_code == 404
    assert client.get("/api/v1/runs/x").json()["code"] == "E5001"


def test_pages_are_small_and_their_style_and_script_are_kept(client: httpx.Client, finished: str) -> None:
    def sent(address: str, **headers: str) -> tuple[int, str]:
        with client.stream("GET", address, headers=headers) as answer:
            return sum(map(len, answer.iter_raw())), answer.headers.get("Content-Encoding", "")

    files = re.findall(r'"(/static/[^"]+)"', client.get("/").text)
    for file in files:
        assert "immutable" in client.get(file).headers["Cache-Control"]
    beside = sum(sent(file)[0] for file in files)
    for view in ("/", "/docs", finished):
        size, encoding = sent(view)
        assert size + beside + (sent(f"{view}/report")[0] if view == finished else 0) < 50_000
        assert encoding == "gzip"
        # A site that leads there could tell by the length what its guesses in the address have in common with the page.
        assert sent(view, **{"Sec-Fetch-Site": "cross-site"})[1] == sent(view, **{"Accept-Encoding": ""})[1] == ""
    assert sent(f"/api/v1{finished}/events")[1] == ""


def test_whoever_signed_in_uses_the_forms(prefect_server: PrefectServer, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as thread:  # Playwright's loop is in this one
        adding = Tokens(ArtifactStore(str(tmp_path))).add("ann", AccessRole.asker, TokenLimits())
        _, token = thread.submit(asyncio.run, adding).result()
    with (
        served_with(Options(str(tmp_path), port=quiet_port(), sign_in=True), limit=0) as server,
        httpx.Client(base_url=server.url, headers={"Accept": "text/html"}, follow_redirects=True) as client,
    ):
        assert client.get("/runs").url.path == "/sign-in"
        assert client.post("/sign-in", data={"token": token, "next": "/runs"}).url.path == "/runs"
        assert client.post("/", data={"question": QUESTION}).status_code == 403
        secret = re.findall(r'name="csrf_token" value="(.*?)"', client.get("/").text)[0]
        started = client.post("/", data={"question": QUESTION, "csrf_token": secret})
        assert "waiting its turn" in started.text and "Cancel" in started.text
        upload = re.findall(r'action="(/corpora\?csrf_token=.*?)"', client.get("/corpora").text)[0]
        made = client.post(upload, data={"name": "pumps"}, files={"files": ("a.md", b"# Pumps\n\nAt most 40 bar.\n")})
        assert made.url.path == "/corpora/pumps"
        shared = client.post("/corpora/pumps/share", data={"shared": "1", "csrf_token": secret})
        assert "Share no longer" in shared.text
        assert client.post("/sign-out", data={"csrf_token": secret}).url.path == "/sign-in"
        assert client.get("/").url.path == "/sign-in"
