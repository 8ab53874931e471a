"""The browser that opens pages made by script: where it is, and how it is started so that it reaches nothing itself.

Chromium resolves no name and has a proxy that is not there. All that a page asks for is given to it by us; what might
slip past that (WebSockets of workers, WebRTC, prefetches, updates) ends nowhere.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

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
        return "the extra `browser` is not installed: pip install 'fathom-research[browser]'"
    named = variable(BROWSER)
    path = next(filter(None, map(shutil.which, [named] if named else PROGRAMS)), "")
    if not path:
        return f"{BROWSER} is {named!r}, which is not a program" if named else f"install Chromium, or set {BROWSER}"
    sandbox = variable(SANDBOX).strip().lower() != "off"
    if sandbox and os.geteuid() == 0:
        return f"root starts Chromium without its sandbox: use another user, or set {SANDBOX}=off"
    return Program(path, sandbox)
