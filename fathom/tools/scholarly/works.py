"""A scholarly work as a page, made from a catalogue's entry: the code that all catalogues share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from typing import Any

from pydantic import AliasPath, Field

from fathom.models import Bibliographic
from fathom.text.plain import clean_line
from fathom.tools.lookup import LookupTool, doi_address
from fathom.tools.pages import WebPage, clean_doi

RETRACTED = "Retracted: "
WORDS = "It returns abstracts. Input: a few specific words, in English."
_TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>")  # not the text between "p < 0.05" and "q > 3"
_BREAK = re.compile(r"</(?:\w+:)?(?:p|title|h\d|sec)>", re.IGNORECASE)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"


def within(first: str, *path: str | int) -> Any:
    """Return a field of a model that takes its text from a nested place of the answer, if that exists."""
    return Field("", validation_alias=AliasPath(first, *path))


class ScholarlyTool(LookupTool):
    """A catalogue of scholarly works."""

    group = "scholarly"


def work(title: str, abstract: str, entry: Bibliographic, *, address: str = "", published: str = "") -> WebPage:
    """Return a work as a page, at the address of its DOI if it has one; markup in a catalogue's texts is taken out."""
    doi = clean_doi(entry.doi)
    own = {"authors": [plain(author) for author in entry.authors if author], "doi": doi, "venue": plain(entry.venue)}
    return WebPage(
        url=doi_address(doi) if doi else address,
        title=(RETRACTED if entry.retracted else "") + clean_line(plain(title)),
        published=published,
        excerpt=plain(abstract),
        reference=entry.model_copy(update=own),
    )


def plain(markup: str) -> str:
    """Return a text without the tags of HTML or JATS, which catalogues take over from publishers."""
    text = _TAG.sub("", _BREAK.sub("\n", markup))
    return "\n".join(line for line in map(clean_line, unescape(text).splitlines()) if line)


def name_of(family: str, given: str) -> str:
    """Return a name as bibliographies sort it."""
    return ", ".join(part for part in (family, given) if part)


def day_of(parts: Sequence[str | int | None]) -> str:
    """Return year, month and day, as far as they are known, in the form of ISO 8601; a month may be a name."""
    known: list[str] = []
    for part, digits in zip(parts, (4, 2, 2), strict=False):
        month = _MONTHS.find(str(part)[:3].lower()) if digits == 2 else -1
        number = month // 4 + 1 if month >= 0 else part
        if not str(number or "").isdigit():
            break
        known.append(str(number).zfill(digits))
    return "-".join(known)
