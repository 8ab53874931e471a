"""All pages of the closed world."""

from __future__ import annotations

import hashlib
from functools import cache

from benchmarks.world.chronicles import long_pages
from benchmarks.world.pages import Page
from benchmarks.world.special import special_pages
from benchmarks.world.subjects import subject_pages


@cache
def all_pages() -> tuple[Page, ...]:
    """Return them, in the same order and with the same bytes every time."""
    return (*subject_pages(), *special_pages(), *long_pages())


def digest() -> str:
    """Return 16 hex digits that stand for the text of all pages: results over different worlds cannot be compared."""
    text = "\0".join(f"{page.url}\0{page.published}\0{page.markdown}" for page in all_pages())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
