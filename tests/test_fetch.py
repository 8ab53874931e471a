"""The fetch tool: which pages it reads, whom it connects to, what it survives, and what it keeps."""

from __future__ import annotations

import asyncio
import gzip
import os
import resource
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

import httpcore
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import InvalidInput, ToolError, ToolRateLimited, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.models import SourceText, ToolOutput
from fathom.storage.cache import TimedCache
from fathom.text.urls import source_ids, urls_in
from fathom.tools import http
from fathom.tools.base import NoArtifacts, RunContext
from fathom.tools.fetch import client
from fathom.tools.fetch import web as reading
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.client import GuardedBackend, system_resolve
from fathom.tools.fetch.web import WebReader
from fathom.tools.fetch_tool import FetchTool
from fathom.tools.redact import redact
from fathom.tools.registry import configured_tools
from fathom.tools.toolbox import open_toolbox
from tests.inprocess import investigated
from tests.listening import app_of, listening

HTML = """<html><head><title>Tides on Titan</title>
<meta property="article:published_time" content="2025-03-04T10:00:00Z">
</head><body><article><h1>Tides on Titan</h1><p>Kraken Mare rises by a third of a metre with every orbit, as models
of the shoreline have shown since 2012.</p><p>A second paragraph tells of the straits.</p></article></body></html>"""

PRIVATE = """
127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 127.0.0.1. 0 0.0.0.0 00.0.0.0
10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1
192.88.99.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 0xa9fea9fe 2852039166 0251.0376.0251.0376
[::] [::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:8.8.8.8] [::127.0.0.1] [::8.8.8.8] [64:ff9b::7f00:1]
[64:ff9b::8.8.8.8] [64:ff9b:1::1] [2002:7f00:1::] [2002:0808:0808::1] [2001:0:7f00:1::] [2001::1] [2001:db8::1]
168.63.129.16 [2606:4700:1:1:0:5efe:10.0.0.1] [2606:4700:1:1:200:5efe:192.168.0.1] [2606:4700:1:1::a9fe:a9fe]
[2606:4700:a83f:8110::] [2606:4700:1:1:a9:fea9:fe00:0] [2606:4700:1:1:a8:3f81:1000:0]
[fe80::1] [fe80::1%25eth0] [fc00::1] [fd00:ec2::254] [fec0::1] [ff02::1] [100::1] [3fff::1] [5f00::1]
⑫⑦.⓪.⓪.① １２７.0.0.1 127。0。0。1 %31%32%37.0.0.1 1.2.3 1.2.3.4.5 08.8.8.8 example.0x7f
"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Network(httpcore.AsyncNetworkBackend):
    """Counts the connections it opens, all of them to one local port."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.opened: list[tuple[str, int]] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.opened.append((host, port))
        return await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", self.port, timeout, local_address, socket_options)


class Site:
    """A web of hosts, served by one local server; every name resolves to a public address that leads here."""

    def __init__(self) -> None:
        self.pages: dict[str, Handler | str] = {}  # by path
        self.addresses: dict[str, list[list[str]]] = {}  # answers of the resolver, in order; the last is repeated
        self.requests: list[tuple[str, str]] = []  # host, path
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.network = Network()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.path != "/robots.txt":
            self.requests.append((request.host, request.path_qs))
            self.times.append(time.monotonic())
            self.headers.append(dict(request.headers))
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404)
        if isinstance(page, str):
            return web.Response(text=page, content_type="text/html" if page.startswith("<") else "text/plain")
        return await page(request)

    async def resolve(self, host: str, _port: int) -> list[str]:
        answers = self.addresses.get(host, [["93.184.215.14"]])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def tool(self, query: str, cache: Path | None = None, allow: Iterable[str] = ()) -> FetchTool:
        allowed = AllowList.parse(allow)
        return FetchTool(NoArtifacts(), ["web_search"], query, self.reader(allowed, cache))

    def reader(self, allowed: AllowList, cache: Path | None = None) -> WebReader:
        return WebReader(allowed, TimedCache(cache, 3_600), GuardedBackend(allowed, self.resolve, self.network))

    async def fetch(self, url: str, cache: Path | None = None, allow: Iterable[str] = ()) -> SourceText:
        (text,) = (await self.tool(f"What does {url} say?", cache, allow).run(url)).results
        return text


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "APART_SECONDS", 0.0)
    scripted = Site()
    async with listening(app_of(scripted.serve)) as url:
        scripted.network.port = int(url.rpartition(":")[2])
        yield scripted


def answering(body: bytes, status: int = 200, **headers: str) -> Handler:
    async def answer(_request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, status=status, headers=named)

    return answer


async def test_a_page_becomes_one_whole_source(site: Site) -> None:
    site.pages["/tides"] = HTML
    text = await site.fetch("http://moons.example/tides")
    assert (text.title, text.published, text.full, text.kind) == ("Tides on Titan", "2025-03-04T10:00:00Z", True, "web")
    assert text.source_id == source_ids([text.url])[text.url]
    assert "Kraken Mare rises by a third of a metre" in text.text
    assert site.headers[0]["User-Agent"].startswith("fathom/")
    assert site.headers[0]["Host"] == "moons.example"
    assert not {"Cookie", "Authorization", "Referer"} & set(site.headers[0])
    assert site.network.opened[0] == ("93.184.215.14", 80)  # the address that was checked, never the name


class Searched(NoArtifacts):
    """A run whose only search returned one page."""

    async def list(self) -> list[str]:
        return ["plan__step1_a__web_search.json", "plan__step1_a__fetch.json"]

    async def read(self, name: str) -> ToolOutput:
        host = "found" if "search" in name else "linked"
        url = f"http://{host}.example/page?id=7"
        ids = source_ids([url])
        return ToolOutput(results=[SourceText(source_id=ids[url], url=url, title="t", kind="web", text="t")])


async def test_only_known_pages_are_read_and_in_their_own_spelling(site: Site) -> None:
    site.pages["/page"] = site.pages["/named"] = "A page of text."
    tool = FetchTool(
        Searched(), ["web_search"], "Compare (http://named.example/named), please", site.reader(AllowList())
    )
    source_id = source_ids(["http://found.example/page?id=7"])["http://found.example/page?id=7"]
    for known in (
        source_id,
        f"[{source_id}]",
        "https://www.found.example/page/?id=7&utm_source=SECRET",
        "<http://named.example/named>",
    ):
        assert (await tool.run(known)).results
    assert {path for _, path in site.requests} == {"/page?id=7", "/named"}
    site.requests.clear()
    unknown = [
        "http://linked.example/page?id=7",
        "http://found.example/page?id=8",
        "http://found.example/",
        "http://named.example/named?q=SECRET",
        "S000000",
        "",
        "file:///etc/passwd",
        "http://[broken",
        "named.example/named",
        f"{source_id} http://evil.example",
    ]
    for address in unknown:
        with pytest.raises(ToolRejected, match="reads only pages"):
            await tool.run(address)
    assert site.requests == []


@pytest.mark.parametrize("host", PRIVATE.split())
async def test_private_addresses_are_refused_in_every_spelling(site: Site, host: str) -> None:
    for address in (f"http://{host}/", f"http://{host}:8080/x", f"https://{host}/"):
        with pytest.raises(ToolRejected):
            await site.fetch(address)
    assert site.network.opened == []


@pytest.mark.parametrize(
    "url",
    [
        "http://user@example.org/",
        "http://user:secret@example.org/",
        "http://@example.org/",
        "http://example.org:22/",
        "http://example.org:6379/",
        "http://example.org:65536/",
        "http://example.org\\@127.0.0.1/",
        "http://exa\u202emple.org/",
        "http://example.org/" + "x" * 3_000,
        "http:///path",
        "http://.example.org/",
    ],
)
async def test_misleading_addresses_are_refused(site: Site, url: str) -> None:
    with pytest.raises(ToolRejected):
        await site.fetch(url)
    assert site.network.opened == []


@pytest.mark.parametrize(
    "answer", [["127.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["2606:2800:21f::1", "::1"], ["64:ff9b::a00:1"], []]
)
async def test_a_name_with_one_private_address_is_refused(site: Site, answer: list[str]) -> None:
    site.addresses["inner.example"] = [answer]
    with pytest.raises(ToolRejected, match="public internet"):
        await site.fetch("http://inner.example/")
    assert site.network.opened == []


async def test_redirects_and_changing_names_lead_nowhere_private(site: Site) -> None:
    async def to(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(request.query["to"])

    site.pages["/go"] = to
    site.pages["/loop"] = answering(b"", 302, Location="/loop")
    for target in (
        "http://127.0.0.1/",
        "http://inner.example/",
        "//169.254.169.254/",
        "file:///etc/passwd",
        "http://x@y/",
    ):
        site.addresses["inner.example"] = [["192.168.0.1"]]
        with pytest.raises(ToolRejected):
            await site.fetch(f"http://outer.example/go?to={target}")
    with pytest.raises(ToolRejected, match="more than 5"):
        await site.fetch("http://loop.example/loop")
    # Public while robots.txt is asked for, private when the page is.
    site.pages["/page"] = HTML
    site.addresses["rebinding.example"] = [["93.184.215.14"], ["127.0.0.1"]]
    with pytest.raises(ToolRejected):
        await site.fetch("http://rebinding.example/page")
    assert {host for host, _ in site.network.opened} == {"93.184.215.14"}
    assert ("rebinding.example", "/page") not in site.requests

    site.addresses["unknown.example"] = [["93.184.215.14"]]
    site.pages["/moved"] = answering(b"", 301, Location="/page")
    assert (await site.fetch("http://outer.example/moved")).url == "http://outer.example/moved"


@pytest.mark.parametrize("address", ["169.254.169.254", "168.63.129.16", "fd00:ec2::254", "64:ff9b::a9fe:a9fe"])
async def test_clouds_keep_their_credentials_whatever_is_allowed(site: Site, address: str) -> None:
    site.addresses["wiki.corp"] = [[address]]
    allow = ["wiki.corp:80", "169.254.0.0/16", "168.63.0.0/16", "fd00::/8", "64:ff9b::/96"]
    with pytest.raises(ToolRejected):
        await site.fetch("http://wiki.corp/", allow=allow)
    assert site.network.opened == []


async def test_private_hosts_are_read_when_allowed(site: Site) -> None:
    site.pages["/"] = "A page of the intranet."
    site.addresses["wiki.corp"] = [["10.1.2.3"]]
    for allow in (["wiki.corp:9000"], ["WIKI.corp:9000", "10.9.0.0/16"]):
        assert await site.fetch("http://wiki.corp:9000/", allow=allow)
        with pytest.raises(ToolRejected):
            await site.fetch("http://wiki.corp:9001/", allow=allow)
    assert await site.fetch("http://wiki.corp/", allow=["10.1.0.0/16"])
    for allow in (["wiki.corp:9000"], ["10.2.0.0/16"]):
        with pytest.raises(ToolRejected):
            await site.fetch("http://wiki.corp/", allow=allow)
    for entry in ("wiki.corp", "http://wiki.corp:80", "10.0.0.1/8", "wiki.corp:0", "", "*:80"):
        with pytest.raises(InvalidInput):
            AllowList.parse([entry])


async def test_robots_txt_is_honoured(site: Site) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /private\n\nUser-agent: fathom\nDisallow: /no\n"
    site.pages["/private"] = site.pages["/no/page"] = "Text."
    assert await site.fetch("http://a.example/private")
    with pytest.raises(ToolRejected, match=r"robots\.txt"):
        await site.fetch("http://a.example/no/page")
    site.pages["/robots.txt"] = answering(b"", 503)
    with pytest.raises(ToolUnavailable):
        await site.fetch("http://a.example/private")
    site.pages["/robots.txt"] = answering(b"", 403)
    assert await site.fetch("http://a.example/private")
    site.pages["/robots.txt"] = answering(b"User-agent: *\nDisallow: /" + b"*a" * 300_000 + b"\n")
    assert await site.fetch("http://a.example/private")
    assert {path for _, path in site.requests} == {"/private"}


async def test_hosts_are_asked_politely(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "APART_SECONDS", 0.4)
    running: list[int] = []

    async def slow(_request: web.Request) -> web.StreamResponse:
        running.append(running[-1] + 1 if running else 1)
        await asyncio.sleep(1)
        running.append(running[-1] - 1)
        return web.Response(text="Text.")

    site.pages = {f"/{n}": slow for n in range(4)}
    urls = [f"http://a.example/{n}" for n in range(4)]
    tool = site.tool(" ".join(urls))
    await asyncio.gather(*map(tool.run, urls))
    gaps = [later - earlier for earlier, later in zip(site.times, site.times[1:], strict=False)]
    assert min(gaps) >= 0.2  # as they arrive
    assert max(running) == 1


async def test_pages_are_kept_for_a_while_and_failures_never(site: Site, tmp_path: Path) -> None:
    site.pages["/page"] = answering(b"", 404)
    with pytest.raises(ToolRejected):
        await site.fetch("http://a.example/page", cache=tmp_path)
    site.pages["/page"] = HTML
    first = await site.fetch("http://a.example/page", cache=tmp_path)
    site.pages["/page"] = "Changed."
    assert await site.fetch("http://a.example/page", cache=tmp_path) == first
    assert len(site.requests) == 2
    # What one run may read, another may not.
    site.addresses["a.example"] = [["10.0.0.1"]]
    with pytest.raises(ToolRejected):
        await site.fetch("http://a.example/page", cache=tmp_path, allow=["10.7.0.0/16"])
    for entry in tmp_path.iterdir():
        entry.write_bytes(b"\xff{damaged")
    site.addresses.clear()
    assert (await site.fetch("http://a.example/page", cache=tmp_path)).text == "Changed."
    assert len(list(tmp_path.iterdir())) <= 3


def test_the_cache_forgets_and_does_without_a_disk(tmp_path: Path) -> None:
    cache = TimedCache(tmp_path / "c", 3_600)
    cache.put("key", "text")
    assert cache.get("key") == "text"
    [kept] = (tmp_path / "c").iterdir()
    os.utime(kept, (0, time.time() - 3_601))
    assert cache.get("key") is None
    TimedCache(tmp_path / "c", 3_600).put("other", "text")
    assert len(list((tmp_path / "c").iterdir())) == 1
    (tmp_path / "file").write_text("")
    blocked = TimedCache(tmp_path / "file", 60)
    blocked.put("key", "text")
    assert blocked.get("key") is None


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    await response.prepare(request)
    while True:
        await response.write(b"<p>" + b"x" * 65_536)


async def endless_gzip(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Encoding": "gzip"})
    await response.prepare(request)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    while True:
        await response.write(packer.compress(bytes(2**20)) or b"")
        await asyncio.sleep(0)


async def endless_headers(request: web.Request) -> web.StreamResponse:
    assert request.transport
    request.transport.write(b"HTTP/1.1 200 OK\r\n")
    for n in range(100_000):
        request.transport.write(b"X-%d: " % n + b"y" * 1_000 + b"\r\n")
        await asyncio.sleep(0)
    return web.Response()


async def drip(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    await response.prepare(request)
    while True:
        await response.write(b"x")
        await asyncio.sleep(0.05)


async def short(request: web.Request) -> web.StreamResponse:
    assert request.transport
    request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n<html>half")
    request.transport.close()
    return web.Response()


async def nonsense(request: web.Request) -> web.StreamResponse:
    assert request.transport
    request.transport.write(b"\x00\x01\x02 SSH-2.0\r\n\r\n" * 100)
    request.transport.close()
    return web.Response()


BOMB = gzip.compress(bytes(64 * 2**20), 1)
HOSTILE: dict[str, tuple[Handler, type[ToolError]]] = {
    "endless": (endless, ToolRejected),
    "endless gzip": (endless_gzip, ToolRejected),
    "endless headers": (endless_headers, ToolUnavailable),
    "drip": (drip, ToolTimeout),
    "cut short": (short, ToolUnavailable),
    "no http": (nonsense, ToolUnavailable),
    "gzip bomb": (answering(BOMB, content_type="text/html", Content_Encoding="gzip"), ToolRejected),
    "declared too large": (answering(bytes(11 * 2**20)), ToolRejected),
    "not packed as said": (answering(b"<html>plain", Content_Encoding="gzip"), ToolUnavailable),
    "packed as never asked": (answering(b"x", Content_Encoding="br"), ToolUnavailable),
    "zip": (answering(b"PK\x03\x04" + bytes(100), Content_Type="text/html"), ToolRejected),
    "gzip file": (answering(BOMB, Content_Type="application/pdf"), ToolRejected),
    "image": (answering(b"\x89PNG\r\n" + bytes(100), Content_Type="image/png"), ToolRejected),
    "binary": (answering(bytes(range(256)) * 9, Content_Type="text/plain"), ToolRejected),
    "broken pdf": (answering(b"%PDF-1.7\n" + b"junk " * 99, Content_Type="text/html"), ToolRejected),
    "deep html": (answering(b"<html><body>" + b"<div>" * 200_000, Content_Type="text/html"), ToolRejected),
    "too many links": (
        answering(b"<html><body>" + b"<a href='x'>y</a>" * 400_000, Content_Type="text/html"),
        ToolRejected,
    ),
    "nothing": (answering(b"", Content_Type="text/html"), ToolRejected),
    "gone": (answering(b"error page", 410), ToolRejected),
    "down": (answering(b"error page", 502), ToolUnavailable),
    "busy": (answering(b"", 429, Retry_After="3600"), ToolRateLimited),
    "no content": (answering(b"", 204), ToolRejected),
    "bad redirect": (answering(b"", 302, Location="http://[::"), ToolUnavailable),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_answers_are_harmless(site: Site, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TOTAL_SECONDS", 2.0)
    monkeypatch.setattr(reading, "SECONDS", 2)
    site.pages["/page"], expected = HOSTILE[kind]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with asyncio.timeout(60):  # some never end
        with pytest.raises(expected):
            await site.fetch("http://a.example/page")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024, "memory stays flat"


async def test_the_bytes_decide_what_a_page_is(site: Site) -> None:
    pdf = (Path(__file__).parent / "nothing.pdf").name  # the name is no evidence
    site.pages["/packed"] = answering(gzip.compress(HTML.encode()), Content_Type="text/html", Content_Encoding="gzip")
    raw = zlib.compressobj(wbits=-15)
    site.pages["/deflated"] = answering(raw.compress(HTML.encode()) + raw.flush(), Content_Encoding="deflate")
    site.pages[f"/{pdf}"] = answering(HTML.encode(), Content_Type="application/pdf")
    for path in ("packed", "deflated", pdf):
        assert (await site.fetch(f"http://a.example/{path}")).title == "Tides on Titan"
    site.pages["/sjis"] = answering(
        "潮汐は月の引力で起こる。".encode("shift_jis"), Content_Type="text/plain; charset=Shift_JIS"
    )
    assert (await site.fetch("http://a.example/sjis")).text == "潮汐は月の引力で起こる。"
    site.pages["/md"] = answering(
        b"# Tides\n\nText.\n\n## More\n\nMore text.", Content_Type="text/markdown; charset=nonsense"
    )
    text = await site.fetch("http://a.example/md")
    assert (text.title, text.text) == ("Tides", "# Tides\n\nText.\n\n## More\n\nMore text.")
    site.pages["/json"] = answering(b'{"tide": "high"}', Content_Type="application/json")
    assert (await site.fetch("http://a.example/json")).text == '{"tide": "high"}'
    site.pages["/hidden"] = "Safe\u202e txt\u200b\u2066.\x1b data:text/html;base64,AAAA tail"
    assert (await site.fetch("http://a.example/hidden")).text == "Safe txt.  tail"


async def test_large_pages_and_pdfs_are_read_apart(site: Site) -> None:
    from io import BytesIO

    from reportlab.pdfgen.canvas import Canvas

    drawn = BytesIO()
    canvas = Canvas(drawn)
    canvas.drawString(72, 700, "Kraken Mare rises with every orbit.")
    canvas.save()
    site.pages["/pdf"] = answering(drawn.getvalue(), Content_Type="text/html")
    assert "Kraken Mare rises" in (await site.fetch("http://a.example/pdf")).text
    site.pages["/large"] = HTML.replace("</article>", "<p>The tide comes in and goes out.</p>" * 10_000 + "</article>")
    text = await site.fetch("http://a.example/large")
    assert (text.title, len(text.text) > 300_000) == ("Tides on Titan", True)


async def test_when_fetch_is_offered(tmp_path: Path) -> None:
    bare = Environment.read({"HOME": str(tmp_path)})
    keyed = Environment.read({"HOME": str(tmp_path), "TAVILY_API_KEY": "k"})
    naming = "What does https://a.example/x say?"
    assert "fetch" not in configured_tools(ResearchSettings(), bare, "How do tides form?")
    assert "fetch" in configured_tools(ResearchSettings(), bare, naming)
    assert "fetch" in configured_tools(ResearchSettings(), keyed)
    assert configured_tools(ResearchSettings(tools=["documents"]), keyed, naming) == ["documents"]
    settings = resolve(ResearchSettings(), bare, configured_tools(ResearchSettings(), bare, naming))
    assert "fetch" in open_toolbox(RunContext(settings, bare, query=naming)).offered
    with pytest.raises(InvalidInput, match="cannot be allowed"):
        configured_tools(ResearchSettings(fetch_allow_hosts=["everything"]), bare)
    allowing = Environment.read({"HOME": str(tmp_path), "FATHOM_FETCH_ALLOW": "wiki.corp:80, 10.0.0.0/8"})
    assert resolve(ResearchSettings(), allowing, []).fetch_allow_hosts == ["10.0.0.0/8", "wiki.corp:80"]


@pytest.mark.usefixtures("home")
async def test_a_page_named_in_the_question_answers_it_without_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of its address are no words of the question, which the page would have to have."""
    times = "<title>Ferry</title><p>The last ferry leaves the island at 21:40 in summer and at 18:15 in winter.</p>"

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text=times, content_type="text/html")

    async with listening(app_of(page)) as address:
        monkeypatch.setenv("FATHOM_FETCH_ALLOW", address.removeprefix("http://"))
        asked = f"When does the last ferry leave in winter, according to {address}/timetables/index.html?"
        found = await investigated(tmp_path, asked, model="extractive", profile="quick")
    assert found.report, found.unanswered
    text = Path(found.report).read_text(encoding="utf-8")
    assert "18:15" in text.partition("## Answer\n")[2].partition("\n## ")[0]


def test_addresses_in_a_question() -> None:
    text = (
        "See https://a.org/x_(y). And (http://b.org/z), <https://c.org>; **https://d.org/q?a=1&b=2**! Not ftp://e.org"
    )
    assert urls_in(text) == ["https://a.org/x_(y)", "http://b.org/z", "https://c.org", "https://d.org/q?a=1&b=2"]


async def test_the_systems_resolver_answers_with_addresses() -> None:
    assert set(await system_resolve("localhost", 80)) <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to jane.doe+x@mail.example.org.", "Write to [email]."),
        ("IBAN DE89 3704 0044 0532 0130 00 PLEASE", "IBAN [iban] PLEASE"),
        ("GB29NWBK60161331926819, not GB29NWBK60161331926818", "[iban], not GB29NWBK60161331926818"),
        ("Card 4111 1111 1111 1111, 5500-0055-5555-5559.", "Card [card], [card]."),
        ("Not a card: 4111 1111 1111 1112", "Not a card: 4111 1111 1111 1112"),
        ("Call +49 30 1234567, (212) 555-0123 or 020 7946 0958!", "Call [phone], [phone] or [phone]!"),
        ("In 1999-2004, 12,345,678 of 1 000 000 on 2024-01-02", "In 1999-2004, 12,345,678 of 1 000 000 on 2024-01-02"),
        ("ISBN 978-3-16-148410-0, version 3.11.0.1234, pi 3.14159265358979", None),
        ("Cited in [S1a2b3c] at 10:30, 0.000123456789, 0123", None),
    ],
)
def test_redaction(text: str, expected: str | None) -> None:
    assert redact(text) == (text if expected is None else expected)


@given(st.text(), st.integers(10**13, 10**14 - 1), st.text())
def test_valid_card_numbers_never_stay(before: str, stem: int, after: str) -> None:
    doubled = [sum(divmod(2 * int(c), 10)) for c in str(stem)[::-1][::2]]
    check = -(sum(doubled) + sum(int(c) for c in str(stem)[::-1][1::2])) % 10
    assert f"{stem}{check}" not in redact(f"{before} {stem}{check} {after}")
    assert redact(redact(before)) == redact(before)


async def test_redacted_runs_store_nothing_unredacted(site: Site, tmp_path: Path) -> None:
    environment = Environment.read({"HOME": str(tmp_path)})
    note = tmp_path / "note.txt"
    note.write_text("The tide office answers under tides@office.example and +49 30 1234567 on every day.")
    settings = ResearchSettings(docs=[str(note)], redact=True)
    resolved = resolve(settings, environment, ["documents"])
    from fathom.models import ToolCall

    output = await open_toolbox(RunContext(resolved, environment)).run(ToolCall(tool="documents", input="tide office"))
    assert "under [email] and [phone] on" in output.results[0].text
