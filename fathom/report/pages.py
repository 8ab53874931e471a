"""Pages that come from elsewhere: only what the policy of Fathom's own pages holds in may be opened here."""

from __future__ import annotations

import re

from fathom.report.html import script_hash

_FORMER = (
    "uHvRTgp8d3OUgfOcVWijTr7MslPWQeYhoBLFX86cxiI=",
    "eS26X1SpZWuwXBgDw0iJEq5PhNeYsu0gkPp+ea9j5y4=",
    "uww7fmi1boRwHnTUx0+tm6kBecM21LM55GWwf12RhkI=",
)
"""Hashes of the scripts of earlier versions. Add that of `report.js` when a change of it is released."""
_HASH = r"sha256-[A-Za-z0-9+/]{43}="
_START = re.compile(
    r'<!doctype html>\n<html[^<>]*>\n<head>\n<meta charset="utf-8">\n'
    r'<meta http-equiv="Content-Security-Policy" content="'
    rf"default-src 'none'; style-src '{_HASH}'; (?:script-src '(?P<script>{_HASH})'; )?base-uri 'none'; "
    r"form-action 'none'\">\n"
)
_PLAIN = re.compile(r'<meta name="[a-z-]+" content="[^"<>]*">')


def unsafe(page: bytes) -> str:
    """Return why a page may not be opened; nothing if its policy lets only Fathom's own script run."""
    try:
        text = page.decode().replace("&#39;", "'")
    except UnicodeDecodeError:
        return "is not in UTF-8"
    start = _START.match(text)
    if not start:
        return "does not begin with the content security policy of Fathom's pages"
    if start["script"] and start["script"].removeprefix("sha256-") not in (script_hash(), *_FORMER):
        return "has a script that this version of Fathom does not know"
    for found in re.finditer("<meta", text[start.end() :], re.IGNORECASE):
        if not _PLAIN.match(text, start.end() + found.start()):  # it could lead to another page
            return "has settings that Fathom's pages do not have"
    return ""
