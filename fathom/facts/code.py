"""Code in a sentence: text in backticks, and words with the form of code or product names, `max_usd` or `TypedDict`.

Code is read by its signs: `None` in backticks denies nothing, and the 30 of `timeout=30` counts nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

LEAST = 3  # characters of a name in code that is looked for
LEAST_MODEL = 4  # characters of letters with digits that name something: R290
GAP = " · "  # the sign that replaces code: no word before it continues behind it

_SPAN = re.compile(r"(?<!`)(`+)(?!`)([^`\n]+)\1(?!`)")
_PIECE = re.compile(r"--[\w-]+|[^\W\d]\w*(?:\.\w+)*|(?<![\w.])\d+(?:\.\d+)*(?!\w)")
_WORD = re.compile(r"--[a-z][\w-]+|(?<![\w.])\w+(?:\(\))?")
_SNAKE = re.compile(r"[^\W_]_+[^\W_]")
_CAMEL = re.compile(r"[a-z]{2}[A-Z](?!n(?:nen)?\Z)[^\W_]*[a-z]")  # not SchülerInnen
_QUARTER_OR_YEAR = re.compile(r"(?:FY|[HQ])\d+\Z", re.IGNORECASE)
_COMMENT = re.compile(r"(?:\A|\s)(?:#|//)(?:\s.*)?\Z")
_PROMPT = re.compile(r"\A\s*(?:\$|>>>|\.\.\.)\s")


def code_spans(text: str) -> list[str]:
    """Return the texts in backticks."""
    return [span.strip() for _, span in _SPAN.findall(text)]


def without_code(text: str) -> str:
    """Return a text with a sign in place of each text in backticks."""
    return _SPAN.sub(GAP, text)


def blanked_code(text: str) -> str:
    """Return a text with blanks in place of each text in backticks, so that all offsets stay the same."""
    return _SPAN.sub(lambda found: " " * len(found[0]), text)


def identifiers(text: str) -> list[str]:
    """Return the words of a text that have the form of names in code or of product names: R290, utf8."""
    return [word for word in dict.fromkeys(_WORD.findall(text)) if _is_identifier(word)]


def _is_identifier(word: str) -> bool:
    if word.startswith("--") or (word.endswith("()") and len(word) > LEAST) or _SNAKE.search(word):
        return True
    with_digits = len(word) >= LEAST_MODEL and word[0].isalpha() and any(map(str.isdigit, word))
    return bool(_CAMEL.search(word)) or (with_digits and not _QUARTER_OR_YEAR.match(word))


def has_identifier(text: str, word: str) -> bool:
    """Whether a text has an identifier, however its parts are joined: TypedDict, typed_dict, typed dict."""
    return _joined(word) in _joined_text(text)


def lines_nowhere(code: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the lines of some code that no text has; white space, prompts and comments do not count."""
    for line in code.splitlines():
        said = _COMMENT.sub("", _PROMPT.sub("", line)).strip()
        if re.search(r"\w", said) and not any(_squeezed(said) in _squeezed_text(text) for text in texts):
            yield said


def pieces_nowhere(span: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the names and numbers of a piece of code that no text has; none if one text has it as a whole."""
    if any(_squeezed(span) in _squeezed_text(text) for text in texts):
        return
    for piece in dict.fromkeys(_PIECE.findall(span)):
        is_long = len(piece) >= LEAST or piece[0].isdigit()
        if is_long and not any(_has_piece(text, piece) for text in texts):
            yield piece


def _has_piece(text: str, piece: str) -> bool:
    if piece[0].isdigit():
        return bool(re.search(rf"(?<!\d){re.escape(piece)}(?!\d)", text))
    squeezed, folded = _squeezed_text(text), piece.casefold()
    return folded in squeezed or all(part in squeezed for part in folded.split("."))


def _squeezed(text: str) -> str:
    """Return a text without white space, capitals and escapes of Markdown."""
    return re.sub(r"\s+|\\(?=[_*|`])", "", text.casefold())


def _joined(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


_squeezed_text = lru_cache(maxsize=64)(_squeezed)  # of a source that many claims cite
_joined_text = lru_cache(maxsize=64)(_joined)
