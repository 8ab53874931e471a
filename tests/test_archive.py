"""Pages that are gone: their archived copy is read and called so, and the archive is told of no private address."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fathom.errors import ToolError, ToolRejected, ToolUnavailable
from fathom.models import Bibliographic, CheckedLink, Report
from fathom.report.chapters import credit_of
from fathom.storage.cache import TimedCache
from fathom.text.wording import ENGLISH
from fathom.tools.fetch import archive
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.client import GuardedBackend
from fathom.tools.fetch.web import WebReader, check_links
from fathom.tools.fetch_tool import as_found
from fathom.tools.pages import WebPage, output
from fathom.tools.search.web_extract import WebExtractTool
from tests.inprocess import investigated
from tests.stubs import Stubs
from tests.stubs.pages import page as stub_page
from tests.test_fetch import HTML, Site, answering, site

__all__ = ["site"]

ARCHIVE = "http://archive.org"
GONE = "http://moons.org/gone"
COPY = "http://web.archive.org/web/20190304050607id_/http://moons.org/gone"


def available(address: str = COPY.replace("id_", ""), **fields: object) -> str:
    closest = {"status": "200", "available": True, "url": address, "timestamp": "20190304050607", **fields}
    return json.dumps({"url": GONE, "archived_snapshots": {"closest": closest}})


@pytest.fixture
def archived(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A web whose archive has a copy of the page that is gone."""
    monkeypatch.setattr(archive, "APART", 0.0)
    site.pages["/wayback/available"] = available()
    site.pages["/web/20190304050607id_/http://moons.org/gone"] = HTML
    return site


def reader(site: Site, allow: Sequence[str] = ()) -> WebReader:
    allowed = AllowList.parse(allow)
    guarded = GuardedBackend(allowed, site.resolve, site.network)
    return WebReader(allowed, TimedCache(None, 0), guarded, archive=ARCHIVE)


def hosts(site: Site) -> list[str]:
    return [host for host, _ in site.requests]


def check(page: WebPage) -> None:
    (source,) = output([page]).results
    assert (source.url, source.title) == (GONE, "Tides on Titan (archived copy of 2019-03-04)")
    assert "Kraken Mare" in source.text
    assert credit_of(source, ENGLISH) == [f"archived at {COPY}"]
    work = source.model_copy(update={"title": "Tides", "reference": Bibliographic(authors=["Fen, Ada"])})
    (found,) = output([as_found(page, work)]).results
    (again,) = output([as_found(page, found)]).results
    assert again == found
    assert (found.title, credit_of(found, ENGLISH)) == (
        "Tides (archived copy of 2019-03-04)",
        ["Ada Fen", f"archived at {COPY}"],
    )


@pytest.mark.parametrize("status", [404, 410])
async def test_the_copy_of_a_page_that_is_gone_is_read_and_called_so(archived: Site, status: int) -> None:
    archived.pages["/gone"] = answering(b"", status)
    check(await reader(archived).page(GONE))
    assert archived.requests[1:] == [
        ("archive.org", "/wayback/available?url=http%3A%2F%2Fmoons.org%2Fgone"),
        ("web.archive.org", "/web/20190304050607id_/http://moons.org/gone"),
    ]


def lose(archived: Site, lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a host's address away."""
    resolve = archived.resolve

    async def resolved(host: str, port: int) -> list[str]:
        if host == lost:
            raise OSError("no such name")
        return await resolve(host, port)

    monkeypatch.setattr(archived, "resolve", resolved)


async def test_so_is_that_of_a_page_whose_host_is_gone(archived: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(archived, "moons.org", monkeypatch)
    check(await reader(archived).page(GONE))


async def test_a_page_that_a_search_found_is_replaced_in_the_same_way(archived: Site) -> None:
    read = await WebExtractTool([reader(archived)]).run(GONE)
    (source,) = read.results
    assert (source.url, source.full, read.failures) == (GONE, True, [])
    assert source.title.endswith("(archived copy of 2019-03-04)")


@pytest.mark.parametrize(
    ("leads_to", "day"),
    [
        ("http://web.archive.org/web/20180102030405id_/http://moons.org/gone", "2018-01-02"),
        ("http://elsewhere.org/web/20180102030405id_/http://moons.org/gone", ""),
    ],
)
async def test_a_copy_may_lead_to_that_of_another_day_and_nowhere_else(archived: Site, leads_to: str, day: str) -> None:
    archived.pages["/web/20190304050607id_/http://moons.org/gone"] = answering(b"", 302, Location=leads_to)
    archived.pages["/web/20180102030405id_/http://moons.org/gone"] = HTML
    try:
        reference = (await reader(archived).page(GONE)).reference
        assert reference and (reference.archived, reference.full_text) == (day, leads_to)
    except ToolRejected as gone:
        assert not day
        assert "answered 404" in gone.message


@pytest.mark.parametrize("status", [200, 403, 500])
async def test_other_pages_have_no_need_of_it(archived: Site, status: int) -> None:
    archived.pages["/gone"] = answering(HTML.encode(), status, content_type="text/html")
    try:
        assert (await reader(archived).page(GONE)).reference is None
    except ToolError:
        assert status != 200
    assert set(hosts(archived)) == {"moons.org"}


@pytest.mark.parametrize(
    ("url", "allow"),
    [
        ("http://moons.org/gone", ["moons.org:80"]),
        ("http://moons.org/gone", ["10.1.0.0/16"]),
        ("http://wiki/gone", []),
        ("http://wiki.internal/gone", []),
        ("http://wiki.local/gone", []),
        ("http://93.184.215.14/gone", []),
        ("http://moons.org/gone?access_token=abc", []),
        ("http://moons.org/gone?a=b&sig=abc", []),
    ],
)
async def test_it_is_not_told_what_may_be_private(archived: Site, url: str, allow: list[str]) -> None:
    with pytest.raises(ToolRejected, match="answered 404"):
        await reader(archived, allow).page(url)
    assert "archive.org" not in hosts(archived)


async def test_a_private_address_behind_a_public_name_is_not_read_from_the_archive(archived: Site) -> None:
    archived.addresses["moons.org"] = [["10.0.0.7"]]
    with pytest.raises(ToolRejected, match="not on the public internet"):
        await reader(archived).page(GONE)
    assert archived.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        '{"url": "http://moons.org/gone", "archived_snapshots": {}}',
        available(available=False),
        available(status="404"),
        available("http://169.254.169.254/web/20190304050607/http://moons.org/gone"),
        available("http://web.archive.org.evil.com/web/20190304050607/http://moons.org/gone"),
        available("http://web.archive.org/save/http://moons.org/gone"),
        '{"archived_snapshots": []}',
        "<!doctype html><title>Too many requests</title>",
        "",
    ],
)
async def test_without_a_copy_the_page_is_gone(archived: Site, answer: str) -> None:
    archived.pages["/wayback/available"] = answer
    with pytest.raises(ToolRejected, match=r"moons\.org answered 404"):
        await reader(archived).page(GONE)
    assert hosts(archived) == ["moons.org", "archive.org"]


async def test_an_archive_that_fails_or_is_silent_is_as_good_as_none(
    archived: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(archive, "SECONDS", 0.05)
    for answer in (silent, answering(b"", 503), answering(b" " * (11 * 2**20))):
        archived.pages["/wayback/available"] = answer
        with pytest.raises(ToolRejected, match=r"moons\.org answered 404"):
            await reader(archived).page(GONE)
    archived.pages["/wayback/available"] = available()
    archived.addresses["web.archive.org"] = [["127.0.0.1"]]  # a redirect or a name must not lead inside
    with pytest.raises((ToolRejected, ToolUnavailable), match=r"moons\.org answered 404"):
        await reader(archived).page(GONE)


async def test_a_link_works_is_gone_or_cannot_be_checked(archived: Site) -> None:
    archived.pages |= {"/here": HTML, "/gone": answering(b"", 410), "/shut": answering(b"", 403)}
    pages = ["http://moons.org/here", GONE, "http://moons.org/shut", "http://10.0.0.1/x"]
    copied = CheckedLink(state="gone", copy_url=COPY, copied="2019-03-04")
    unknown = CheckedLink(state="unknown")
    assert await check_links(reader(archived), pages) == dict(
        zip(pages, [CheckedLink(state="works"), copied, unknown, unknown], strict=True)
    )
    assert ("moons.org", "/here") in archived.requests and "10.0.0.1" not in hosts(archived)


async def test_a_page_that_was_just_read_is_not_requested_again(archived: Site, tmp_path: Path) -> None:
    archived.pages["/here"] = HTML
    reading = archived.reader(AllowList.parse(()), tmp_path)
    await reading.page("http://moons.org/here")
    assert (await reading.link("http://moons.org/here")) == CheckedLink(state="works")
    assert archived.requests == [("moons.org", "/here")]


@pytest.mark.parametrize(("other", "state"), [("http://moons.org/here", "gone"), ("http://moons.org/shut", "unknown")])
async def test_a_host_is_gone_only_if_the_network_is_there(
    archived: Site, monkeypatch: pytest.MonkeyPatch, other: str, state: str
) -> None:
    archived.pages |= {"/here": HTML, "/shut": answering(b"", 403)}
    lose(archived, "lost.org", monkeypatch)
    assert (await check_links(reader(archived), ["http://lost.org/a", other]))["http://lost.org/a"].state == state


@pytest.mark.usefixtures("home")
async def test_a_report_says_how_many_of_its_links_work(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.page_bytes = 2_000
    here = f"{providers.url}/planted/here"
    providers.settings.planted = {here: f"<html><body><p>{stub_page(here, 2_000).text}</p></body></html>"}
    settings: dict[str, Any] = {"depth": 1, "fetch_allow_hosts": [here.split("/")[2]]}
    result = await investigated(tmp_path / "checked", report={"check_links": True}, **settings)
    report = Report.model_validate_json(Path(result.artifacts, "report.json").read_bytes())
    assert report.links and report.links.working == 1 and report.links.gone == len(report.sources) - 1 > 0
    assert [source.url for source in report.sources if not source.gone] == [here]
    share = 1 / len(report.sources)
    for form in ("report.md", "report.html"):
        said = Path(result.artifacts, form).read_text(encoding="utf-8")
        assert f"1 of {len(report.sources)} links of cited pages work ({share:.0%})." in said
        assert said.count("no archived copy found") == len(report.sources) - 1
    fetched = len(providers.fetched)
    result = await investigated(tmp_path / "not", **settings)
    report = Report.model_validate_json(Path(result.artifacts, "report.json").read_bytes())
    assert (report.links, len(providers.fetched)) == (None, fetched)
