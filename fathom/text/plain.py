"""Plain text: cleaning texts from elsewhere, and wording counts and lists for readers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from fathom.text.citations import without_addresses

# An embedded image is hundreds of thousands of meaningless characters. Its payload may be wrapped over lines.
_DATA_URI = re.compile(
    r"\bdata:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+(?:=[\w.+-]+)?)*,[^\s\"'<>()\[\]]*(?:\s+[A-Za-z0-9+/=]{60,})*", re.I
)
_EMPTY_IMAGE = re.compile(r"!\[([^\[\]\n]*)\]\(\s*\)")
# Control characters, lone surrogates (JSON can carry them, UTF-8 cannot), and characters that hide or reorder text:
# soft hyphens, zero-width spaces, bidirectional marks and overrides, byte-order marks, annotations, tags, selectors.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Persian, Indic scripts and emoji are spelled with joiners; after a Latin letter they only hide.
_IDLE_JOINERS = re.compile(r"(?:(?<=[\x00-\u024f])|\A)[\u200c\u200d]+")


def without_controls(text: str) -> str:
    """Return the text without control characters other than newlines and tabs, which a terminal obeys.

    Among them are those that turn the order of the text around: a reader then sees another text than is written.
    """
    return _CONTROLS.sub("", text)


def clean_text(text: str) -> str:
    """Return the text without embedded files, control and hidden characters, its lines ended by newlines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    # Looking for a part is far quicker than the patterns, which try every character.
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        text = _IDLE_JOINERS.sub("", _UNPRINTABLE.sub("", text))
    if ":" in text and "data:" in text.lower():
        text = _DATA_URI.sub("", text)
    if "![" in text:
        text = _EMPTY_IMAGE.sub(r"\1", text)
    return text.strip("\n")


def clean_line(text: str) -> str:
    """Return the text on one line: for titles, names and messages."""
    return " ".join(clean_text(text).split())


def shortened(text: str, chars: int) -> str:
    """Return a line, cut behind a word and with an ellipsis if it is longer than a number of characters."""
    line = " ".join(text.split())
    if len(line) <= chars:
        return line
    cut = line[: chars - 2]
    return f"{cut if line[chars - 2] == ' ' else cut.rpartition(' ')[0] or cut} …"


def clean_title(text: str) -> str:
    """Return a page's title on one line, at most 300 characters, without addresses, since readers see it."""
    return clean_line(without_addresses(clean_line(text)))[:300].rstrip()


def joined(words: Sequence[str], conjunction: str) -> str:
    """Return one or more words as a list: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 claim`, `1,200 claims`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Return a number of bytes in a readable unit: `512 bytes`, `3.4 MB`."""
    for unit, of in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= of:
            return f"{number / of:,.1f} {unit}"
    return counted(number, "byte")


def common_start(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
