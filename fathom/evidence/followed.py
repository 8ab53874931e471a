"""The list of follow-up runs in a run's page, which otherwise stays as the run left it.

The page's hash in `provenance.json` is computed without this list. So nothing is recorded anew when a follow-up ends,
and still nothing else in the page can change: only links to reports beside it are taken for the list.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from textwrap import shorten
from typing import NamedTuple

from fathom.storage.store import REPORT_PAGE
from fathom.text.plain import clean_line

ASKED_CHARS = 300
_END = b"</header>\n"  # the list stands behind it; no text of a page can contain it
_LIST = '<p class="question" dir="auto"><span class="label">Followed by</span> {links}</p>\n'
_LINK = '<a href="../{folder}/report.html">{asked}</a>'
_LINKED = r'<a href="\.\./[a-z0-9_]+/report\.html">[^<>"]*</a>'
_LISTED = re.compile(
    rf'<p class="question" dir="auto"><span class="label">Followed by</span> {_LINKED}(?:<br>{_LINKED})*</p>\n'
    r"(?=</header>\n)".encode()
)
_OTHERS = re.compile(
    rb'<p class="question" dir="auto"><span class="label">Follow(?:ed by|-up to)</span> .*?</p>\n', re.DOTALL
)
_FOLDER = re.compile(r"[a-z0-9_]+")


class FollowUp(NamedTuple):
    """A run that followed another one: the name of its folder, and its question."""

    folder: str
    asked: str


def with_follow_ups(page: bytes, runs: Sequence[FollowUp]) -> bytes:
    """Return a report's page that names these runs and no others."""
    plain = without_follow_ups(page)
    links = [
        _LINK.format(
            folder=run.folder, asked=html.escape(shorten(clean_line(run.asked), ASKED_CHARS, placeholder=" …"))
        )
        for run in runs
        if _FOLDER.fullmatch(run.folder)
    ]
    added = _LIST.format(links="<br>".join(links)) if links else ""
    return plain.replace(_END, added.encode() + _END, 1)


def without_follow_ups(page: bytes) -> bytes:
    """Return a report's page as its run left it."""
    return _LISTED.sub(b"", page, count=1)


def alone(page: bytes) -> bytes:
    """Return a report's page without the questions of the runs before and after its own."""
    return _OTHERS.sub(b"", page)


def as_left(name: str, data: bytes) -> bytes:
    """Return the bytes of a file of a run as the run left them."""
    return without_follow_ups(data) if name == REPORT_PAGE else data
