"""The headings above what a mail quotes of earlier messages: the reader of mail writes them, and dates go by them."""

from __future__ import annotations

import re

_QUOTED = "Quoted"
_HEADING = re.compile(rf"(?:#+ )?{_QUOTED}(?:: .*)?")


def quotation(by: str) -> str:
    """Return the heading of a quotation; `by` says who wrote it and when, empty if that is not known."""
    return f"{_QUOTED}: {by}" if by else _QUOTED


def is_quotation(heading: str) -> bool:
    """Whether a heading, with or without its marks of Markdown, stands above a quotation."""
    return bool(_HEADING.fullmatch(heading.strip()))
