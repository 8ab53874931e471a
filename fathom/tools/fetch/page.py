"""The text of a fetched page: HTML, PDF or text, distinguished by its bytes, not by what the server calls it.

Parsers of HTML and PDF have no reliable limits: ten megabytes of links take a minute and more than a gigabyte. So PDFs
and large pages are read by a process of their own with 20 seconds and 2 GB.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fathom.errors import ToolRejected
from fathom.text.plain import clean_title
from fathom.tools.documents.dating import published
from fathom.tools.documents.layout import lay_out
from fathom.tools.documents.pool import read_apart
from fathom.tools.documents.readers import Unreadable, read_document
from fathom.tools.fetch.client import Answer

SECONDS = 20.0
SMALL = 256 * 1024  # bytes of HTML that any parser can read quickly
SCRIPTED_WORDS = 60  # a page with scripts and fewer words than these may be made by them
FEW_WORDS = 20  # with at least these it is read as it is when no browser can open it
_NO_TEXT = ("image/", "audio/", "video/", "font/")


class Page(BaseModel):
    """A page as text. `published` is an ISO 8601 date or time, empty when the page states none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    published: str
    text: str
    fields: dict[str, str] = {}  # of its header
    archived: str = ""  # the address of the copy that was read instead, because the page is gone
    archived_on: str = ""  # its day, in ISO 8601


def read_page(answer: Answer) -> Page:
    """Read the body of an answer.

    Raises:
        ToolRejected: it is not text, holds none, or takes too long to read.
    """
    kind, charset = _content_type(answer.headers.get("content-type", ""))
    data = answer.data
    if data.startswith((b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"MZ", b"\x7fELF")):
        raise ToolRejected("The page is an archive or a program.")
    if kind.startswith(_NO_TEXT) and not data.lstrip()[:1] == b"<":
        raise ToolRejected(f"The page is not text but {kind[:40]}.")
    is_pdf = b"%PDF-" in data[:1024]
    data = data if is_pdf else _as_utf8(data, charset)
    name, apart = f"page{_ending(kind, data)}", is_pdf or len(data) > SMALL
    try:
        document = read_apart(Path(name), data, SECONDS) if apart else lay_out(read_document(name, data))
    except Unreadable as error:
        raise ToolRejected(f"The page cannot be read: {error}.") from error
    stated = "" if is_pdf else published(data)
    return Page(title=clean_title(document.title), published=stated, text=document.text, fields=document.fields)


def made_by_script(answer: Answer, text: str) -> bool:
    """Whether a page is HTML with scripts and next to no text: they may make it."""
    kind, _charset = _content_type(answer.headers.get("content-type", ""))
    few = len(text.split()) < SCRIPTED_WORDS and len(text) < 8 * SCRIPTED_WORDS
    return few and "html" in kind and re.search(rb"<script\b", answer.data, re.IGNORECASE) is not None


def _content_type(header: str) -> tuple[str, str]:
    kind, _, parameters = header.partition(";")
    charset = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", parameters, re.IGNORECASE)
    return kind.strip().lower(), charset[1] if charset else ""


def _as_utf8(data: bytes, charset: str) -> bytes:
    """Return a text in UTF-8 if its server names another encoding; otherwise its bytes decide."""
    try:
        codec = codecs.lookup(charset).name if charset else "utf-8"
        if codec == "utf-8" or "escape" in codec:  # escapes are Python's own, and no page is written in them
            return data
        return data.decode(codec, "replace").encode("utf-8", "replace")
    except (LookupError, ValueError):  # unknown, or one of Python's own that is not a text encoding
        return data


def _ending(kind: str, data: bytes) -> str:
    if "html" in kind and b"<" in data[:1000]:
        return ".html"
    return ".md" if kind in ("text/markdown", "text/x-markdown") else ".txt"
