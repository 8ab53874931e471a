"""Opening a page in a browser, which is given every byte by us and opens no connection itself.

So the rules of `fetch` hold for whatever a page asks for: each address is checked where it is connected to, redirects
too. Only GET requests are answered, and only for resources that make up text. A page keeps nothing: each is opened in a
separate context.

The browser is started so that it reaches nothing itself: Chromium resolves no name and has a proxy that does not exist.
Fathom supplies everything that a page requests; traffic that might bypass this (WebSockets of workers, WebRTC,
prefetches, updates) ends nowhere.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from fathom.config.environment import installing
from fathom.errors import ToolError, ToolTimeout, ToolUnavailable
from fathom.network import user_agent
from fathom.tools.fetch.client import MAX_BYTES, FetchedAnswer

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright, Request, Route, WebSocketRoute

START_SECONDS = 60.0  # for starting the browser
SECONDS = 20.0  # for opening a page, all that it loads included
ENDING_SECONDS = 5.0  # for closing it; then the browser is ended
QUIET_SECONDS = 0.5  # seconds without a request or new text, after which a page counts as finished
EMPTY_SECONDS = 3.0  # the same for one that has no text yet
MOST_REQUESTS = 100
MOST_BYTES = 2 * MAX_BYTES  # bytes of everything that a page loads
AT_ONCE = 2  # pages; a browser takes some 100 MB for each
_READ = frozenset({"document", "script", "xhr", "fetch", "other"})  # kinds of requests that make up text
_LENGTH = "document.readyState === 'loading' ? -1 : document.body ? document.body.innerText.length : 0"

Ask = Callable[[str], Awaitable[FetchedAnswer]]
"""Requests an address for a page, checked like any other; raises ToolError."""


class Renderer:
    """One browser, started when the first page needs it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)

    async def render(self, answer: FetchedAnswer, ask: Ask) -> bytes:
        """Return a page that was read as HTML, after its scripts have run; `ask` requests what they load.

        Raises:
            ToolTimeout: its scripts do not end.
            ToolUnavailable: the browser cannot be started, or ended.
        """
        from playwright.async_api import Error

        host = answer.url.host[:100]
        async with self._places:
            try:
                context = await self._context()
                try:
                    async with asyncio.timeout(SECONDS):
                        html = await _Visit(answer, ask).read(context)
                finally:
                    await self._leave(context)
            except TimeoutError as error:
                raise ToolTimeout(f"The scripts of {host} do not end within {SECONDS:g} seconds.") from error
            except Error as error:
                why = error.message.splitlines()[0][:200] if error.message else "no reason given"
                raise ToolUnavailable(f"The browser could not open {host}: {why}") from error
        return html[:MAX_BYTES]

    async def aclose(self) -> None:
        """End the browser, if one was started."""
        driver, browser = self._driver, self._browser
        self._driver = self._browser = None
        if not driver:
            return
        from playwright.async_api import Error

        for end in (browser.close if browser else None, driver.stop):  # the last step also ends the rest of the browser
            with suppress(TimeoutError, Error):
                async with asyncio.timeout(ENDING_SECONDS):
                    if end:
                        await end()

    async def _leave(self, context: BrowserContext) -> None:
        """Close a page; if a script without end does not let it, end the browser."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(ENDING_SECONDS):
                await context.close()
        except (TimeoutError, Error):
            await self.aclose()

    async def _context(self) -> BrowserContext:
        from playwright.async_api import ProxySettings, async_playwright

        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                await self.aclose()
                self._driver = await async_playwright().start()
                self._browser = await self._driver.chromium.launch(
                    executable_path=self._program.path,
                    chromium_sandbox=self._program.sandbox,
                    args=list(ARGUMENTS),
                    proxy=ProxySettings(server=PROXY["server"], bypass=PROXY["bypass"]),
                    handle_sigint=False,  # the run ends it
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=START_SECONDS * 1000,
                )
            return await self._browser.new_context(
                user_agent=user_agent(), accept_downloads=False, service_workers="block", locale="en"
            )


class _Visit:
    """One page while it is open: its permissions to load, and the amount that it has loaded."""

    def __init__(self, answer: FetchedAnswer, ask: Ask) -> None:
        self._answer = answer
        self._ask = ask
        self._page: Page | None = None
        self._opened = False
        self._requests = self._bytes = self._pending = 0

    async def read(self, context: BrowserContext) -> bytes:
        """Open the page and return its HTML once it is quiet, or as it is when the time is nearly over."""
        await context.route("**/*", self._serve)
        await context.route_web_socket("**/*", _refuse)
        self._page = await context.new_page()
        clock = asyncio.get_running_loop().time
        until = clock() + SECONDS * 0.7
        await self._page.goto(str(self._answer.url), wait_until="commit", timeout=0)
        length, since = -1, clock()
        while clock() < until:
            found = await self._length(self._page)
            if found != length or found < 0 or self._pending:
                length, since = found, clock()
            elif clock() - since >= (QUIET_SECONDS if found else EMPTY_SECONDS):
                break
            await asyncio.sleep(0.1)
        return (await self._page.content()).encode("utf-8", "replace")

    async def _length(self, page: Page) -> int:
        """Return the length of the page's text; -1 while it is loading or redirecting."""
        from playwright.async_api import Error

        try:
            return int(await page.evaluate(_LENGTH))
        except Error as error:
            if "context was destroyed" in error.message:
                return -1
            raise

    async def _serve(self, route: Route, request: Request) -> None:
        """Answer one request of the page, or let it fail."""
        from playwright.async_api import Error

        self._pending += 1
        try:
            with suppress(Error):  # the page is closed
                if answer := await self._answered(request):
                    await route.fulfill(status=answer.status, headers=_headers(answer, request), body=answer.data)
                elif request.is_navigation_request():
                    await route.fulfill(status=204)  # the page stays, which an error would replace
                else:
                    await route.abort()
        finally:
            self._pending -= 1

    async def _answered(self, request: Request) -> FetchedAnswer | None:
        opening = request.is_navigation_request()
        if opening and not self._opened:
            self._opened = True
            return self._answer
        if not self._may_load(request, opening=opening):
            return None
        self._requests += 1
        try:
            async with asyncio.timeout(SECONDS):
                answer = await self._ask(request.url)
        except (ToolError, TimeoutError):
            return None
        self._bytes += len(answer.data)
        return answer

    def _may_load(self, request: Request, *, opening: bool) -> bool:
        if request.method != "GET" or request.resource_type not in _READ:
            return False
        # A frame or a window would not be read, and another host's content would belong to another page.
        in_page = self._page is not None and request.frame == self._page.main_frame
        if opening and not (in_page and _same_host(request.url, self._answer)):
            return False
        return self._requests < MOST_REQUESTS and self._bytes < MOST_BYTES


async def _refuse(socket: WebSocketRoute) -> None:
    await socket.close()


def _same_host(url: str, answer: FetchedAnswer) -> bool:
    import httpx

    try:
        return httpx.URL(url).host == answer.url.host
    except httpx.InvalidURL:
        return False


def _headers(answer: FetchedAnswer, request: Request) -> dict[str, str]:
    """Return the headers of an answer for the page, without cookies. Scripts may read other public sites' answers."""
    origin = request.headers.get("origin", "*")
    kept = {name: answer.headers[name] for name in ("content-type",) if name in answer.headers}
    return {**kept, "access-control-allow-origin": origin, "cache-control": "no-store"}


PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
BROWSER, SANDBOX = "FATHOM_BROWSER", "FATHOM_BROWSER_SANDBOX"
_NOWHERE = "http://127.0.0.1:9"  # the discard port, on which nothing answers
PROXY = {"server": _NOWHERE, "bypass": "<-loopback>"}  # addresses of this machine go there, too
ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-gpu",
    "--disable-sync",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-remote-fonts",
    "--disable-notifications",
    "--blink-settings=imagesEnabled=false",
    "--js-flags=--max-old-space-size=512",
)


class Program(NamedTuple):
    """A browser, and whether it holds pages in its sandbox."""

    path: str
    sandbox: bool


def find_browser(variable: Callable[[str], str]) -> Program | str:
    """Return the browser to use, or why there is none; `variable` returns an environment variable.

    FATHOM_BROWSER names its program. Started by root, Chromium has no sandbox, and a page that breaks out of it would
    be root: it is used so only if FATHOM_BROWSER_SANDBOX is `off`.
    """
    if find_spec("playwright") is None:
        return f"the extra `browser` is not installed: {installing('browser')}"
    named = variable(BROWSER)
    path = next(filter(None, map(shutil.which, [named] if named else PROGRAMS)), "")
    if not path:
        return f"{BROWSER} is {named!r}, which is not a program" if named else f"install Chromium, or set {BROWSER}"
    sandbox = variable(SANDBOX).strip().lower() != "off"
    if sandbox and os.geteuid() == 0:
        return f"root starts Chromium without its sandbox: use another user, or set {SANDBOX}=off"
    return Program(path, sandbox)
