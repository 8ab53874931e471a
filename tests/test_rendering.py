"""Pages whose text is made by script, in a real Chromium: what is read, and that nothing private is reached."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from aiohttp import web

from fathom.config.environment import Environment
from fathom.config.settings import Render, ResearchSettings, resolve
from fathom.errors import ToolRejected, ToolTimeout, ToolUnavailable
from fathom.storage.cache import TimedCache
from fathom.tools.base import RunContext
from fathom.tools.fetch import render
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.client import GuardedBackend
from fathom.tools.fetch.render import PROGRAMS, Program, Renderer, find_browser
from fathom.tools.fetch.web import WebReader
from fathom.tools.registry import configured_tools
from fathom.tools.toolbox import open_toolbox
from tests.test_fetch import Site, site

__all__ = ["site"]

TITLE = "<!doctype html><html><head><title>Tides</title></head><body><div id=app>Please turn scripts on.</div>"
SCRIPTED = f"{TITLE}<script src=/app.js></script></body></html>"
APP = """
fetch('/facts.json').then(answer => answer.json()).then(facts => {
  document.getElementById('app').innerHTML = '<h1>Tides on Titan</h1><p>' + facts.said + '</p>';
});
"""
FACTS = '{"said": "Kraken Mare rises by a third of a metre with every orbit of the moon around Saturn."}'


@pytest.fixture
async def renderer() -> AsyncIterator[Renderer]:
    path = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not path:
        pytest.skip("Chromium is not installed")
    async with aclosing(Renderer(Program(path, sandbox=False))) as opened:
        yield opened


def reader(site: Site, renderer: Renderer | str) -> WebReader:
    allowed = AllowList()
    network = GuardedBackend(allowed, site.resolve, site.network)
    return WebReader(allowed, TimedCache(None, 3_600), network, renderer=renderer)


async def test_a_page_made_by_script_is_read(site: Site, renderer: Renderer) -> None:
    site.pages |= {
        "/": SCRIPTED,
        "/app.js": APP,
        "/facts.json": FACTS,
        "/plain": f"<p>{'word ' * 99}<script>1</script>",
    }
    pages = reader(site, renderer)
    page = await pages.page("http://tides.example/")
    assert "Kraken Mare rises by a third of a metre" in page.whole
    assert "turn scripts on" not in page.whole
    # Each thing is requested once, with our name and without what a browser would add.
    assert sorted(path for _, path in site.requests) == ["/", "/app.js", "/facts.json"]
    assert {headers["User-Agent"].partition("/")[0] for headers in site.headers} == {"fathom"}
    assert not any({"Cookie", "Referer", "Origin"} & headers.keys() for headers in site.headers)
    await pages.page("http://tides.example/plain")
    assert len(site.requests) == 4  # what has text is not opened in the browser


async def test_nothing_private_is_reached(site: Site, renderer: Renderer) -> None:
    arrived: list[str] = []

    async def tcp(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append("tcp")
        writer.close()

    class Udp(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            arrived.append("udp")

    server = await asyncio.start_server(tcp, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(Udp, local_addr=("127.0.0.1", port))
    private = f"127.0.0.1:{port}"

    async def away(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": f"http://{private}/redirected"})

    tries = [
        f"fetch('http://{private}/fetch').catch(no)",
        f"fetch('http://{private}/post', {{method: 'POST', body: 'x', mode: 'no-cors'}}).catch(no)",
        "fetch('/away').catch(no)",
        f"fetch('http://rebound.example:{port}/').catch(no)",
        f"navigator.sendBeacon('http://{private}/beacon')",
        f"new WebSocket('ws://{private}/socket').onerror = no",
        f"new EventSource('http://{private}/events')",
        f"new Image().src = 'http://{private}/image'",
        f"add('script', 'src', 'http://{private}/script')",
        f"add('iframe', 'src', 'http://{private}/frame')",
        "add('iframe', 'src', 'file:///etc/passwd')",
        f"add('object', 'data', 'http://{private}/object')",
        f"Object.assign(add('link', 'href', 'http://{private}/link'), {{rel: 'prefetch'}})",
        f"Object.assign(add('link', 'href', 'http://{private}'), {{rel: 'preconnect'}})",
        f"Object.assign(add('link', 'href', 'http://{private}/style'), {{rel: 'stylesheet'}})",
        f"window.open('http://{private}/window')",
        f"new Worker(URL.createObjectURL(new Blob([`new WebSocket('ws://{private}/worker');"
        f"fetch('http://{private}/worker')`])))",
        "navigator.serviceWorker.register('/worker.js').catch(no)",
        f"const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{private}'}}]}});"
        "peer.createDataChannel('x'); peer.createOffer().then(offer => peer.setLocalDescription(offer)).catch(no)",
        f"const link = add('a', 'href', 'http://{private}/download'); link.download = 'x'; link.click()",
    ]
    guarded = "\n".join(f"try {{ {each} }} catch (error) {{ }}" for each in tries)
    script = (
        "const no = () => {}; const add = (name, key, value) => { const made = document.createElement(name);"
        f"made[key] = value; document.body.appendChild(made); return made }};\n{guarded}\n"
        "document.getElementById('app').textContent = 'It tried everything that a page can try to reach a machine.';"
    )
    site.addresses["rebound.example"] = [["127.0.0.1"]]
    site.pages |= {"/": SCRIPTED, "/app.js": script, "/away": away, "/worker.js": f"fetch('http://{private}/')"}
    page = await reader(site, renderer).page("http://tides.example/")
    assert "tried everything" in page.whole
    site.pages["/app.js"] = f"location.href = 'http://{private}/leave'"
    assert (await reader(site, renderer).page("http://tides.example/")).whole == "Please turn scripts on."
    await asyncio.sleep(0.5)
    assert arrived == []
    udp.close()
    server.close()
    assert {path for _, path in site.requests} <= {"/", "/app.js", "/away", "/worker.js"}


async def test_a_page_without_end_costs_its_time_and_no_other_page(
    site: Site, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = f"{TITLE}<script>while (true) {{ }}</script></body></html>"
    polling = APP + "setInterval(() => fetch('/facts.json?' + Math.random()), 100);"
    site.pages |= {"/endless": endless, "/": SCRIPTED, "/app.js": polling, "/facts.json": FACTS}
    pages = reader(site, renderer)
    with monkeypatch.context() as patched, pytest.raises(ToolTimeout, match="do not end"):
        patched.setattr(render, "SECONDS", 4.0)
        await pages.page("http://tides.example/endless")
    assert "Kraken Mare" in (await pages.page("http://tides.example/")).whole
    assert len(site.requests) <= render.MOST_REQUESTS + 3


async def test_a_browser_that_fails_is_a_page_that_cannot_be_read(
    site: Site, renderer: Renderer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site.pages |= {"/": SCRIPTED, "/app.js": APP, "/facts.json": FACTS, "/blank": "<html><script>1</script></html>"}
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    async with aclosing(Renderer(Program(str(broken), sandbox=False))) as failing:
        with pytest.raises(ToolUnavailable, match="browser could not open"):
            await reader(site, failing).page("http://tides.example/")
    # Without a browser, a page is read as it is, and one without any text says what would help.
    without = reader(site, "install Chromium")
    assert (await without.page("http://tides.example/")).whole == "Please turn scripts on."
    with pytest.raises(ToolRejected, match="until its scripts have run") as refused:
        await without.page("http://tides.example/blank")
    assert refused.value.next_step == "install Chromium"

    monkeypatch.setattr("os.geteuid", lambda: 0)
    variables = {"FATHOM_BROWSER": str(broken)}
    assert "root starts Chromium without its sandbox" in str(find_browser(lambda name: variables.get(name, "")))
    variables["FATHOM_BROWSER_SANDBOX"] = "off"
    assert find_browser(lambda name: variables.get(name, "")) == Program(str(broken), sandbox=False)
    assert "not a program" in str(find_browser(lambda name: "nowhere"))


@pytest.mark.usefixtures("home")
async def test_the_browser_belongs_to_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FATHOM_BROWSER_SANDBOX", "off")
    environment = Environment.read()
    asked = ResearchSettings(artifacts="memory://run", model="extractive")
    default = resolve(asked, environment, configured_tools(asked, environment))
    never = default.model_copy(update={"render": Render.never})
    kept = [open_toolbox(RunContext(settings, environment)) for settings in (default, never)]
    assert ["render" in toolbox.settings for toolbox in kept] == [False, True]
    for toolbox in kept:
        await toolbox.aclose()  # nothing was started


async def test_a_failed_request_of_a_page_is_no_error(site: Site, renderer: Renderer) -> None:
    site.pages |= {"/": SCRIPTED.replace("<script", "<script src=/gone.js></script><script", 1), "/app.js": APP}
    page = await reader(site, renderer).page("http://tides.example/")  # its facts are gone, too
    assert page.whole == "Please turn scripts on."
