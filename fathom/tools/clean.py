"""Foreign text, made fit to store, to count and to cite."""

from __future__ import annotations

import re

__all__ = ["clean_line", "clean_text"]

# An embedded image is hundreds of thousands of characters that say nothing. Its payload may be wrapped over lines.
_DATA_URI = re.compile(
    r"\bdata:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+(?:=[\w.+-]+)?)*,[^\s\"'<>()\[\]]*(?:\s+[A-Za-z0-9+/=]{60,})*", re.I
)
_EMPTY_IMAGE = re.compile(r"!\[([^\[\]\n]*)\]\(\s*\)")
# Control characters, lone surrogates (JSON can carry them, UTF-8 cannot), zero-width spaces and byte-order marks.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u200b\ufeff]")


def clean_text(text: str) -> str:
    """Return the text without embedded files and control characters, its lines ended by newlines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    return _EMPTY_IMAGE.sub(r"\1", _DATA_URI.sub("", _UNPRINTABLE.sub("", text))).strip("\n")


def clean_line(text: str) -> str:
    """Return the text on one line: for titles, names and messages."""
    return " ".join(clean_text(text).split())
