"""Plain text in Markdown: what CommonMark or GitHub would take for layout is escaped, and nothing else."""

from __future__ import annotations

import re

_CITATION = r"\[S[0-9a-f]{6,64}(?:\s*[,;]\s*S[0-9a-f]{6,64})*\]"
_NAME = r"(?<![^\W_])_|_(?![^\W_])"  # an underscore that is not inside of a word
_SPECIAL = re.compile(
    rf"{_CITATION}"
    # Escapes, code, emphasis, strikethrough, links, HTML and entities ...
    rf"|(?P<special>\\(?=[!-/:-@\[-`{{-~]|$)|[`*~]|{_NAME}|\](?=\()|<(?=[a-z/!?])|&(?=\#?\w{{1,32}};)"
    # ... and at the ends of a line: headings, quotations, lists, rules, lines that make a heading of the one above, and
    # definitions of links.
    r"|(?<=^)\#(?=\#{0,5}(?:\s|$))|\#(?=\#*$)|(?<=^)>|(?<=^)[-+](?=\s|$)|(?<=^)[-=:|](?=[-=:|\s]*$)|(?<=^)\[(?=[^\[\]]*\]:))",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)", re.MULTILINE)
_CODE = r"^ {0,3}(?:```.*?(?:^ {0,3}```|\Z)|~~~.*?(?:^ {0,3}~~~|\Z))|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)"
# Code in one line, of what neither begins nor ends with a space and has no citation or mark of one.
_SPAN = r"(?<!`)(?P<ticks>`+)(?=[^`\s])(?:(?!\[S[0-9a-f]{6}|⸨)[^\n]){1,200}?(?<=[^`\s])(?P=ticks)(?!`)"
_SPAN_OR_SPECIAL = re.compile(f"{_SPAN}|{_SPECIAL.pattern}", _SPECIAL.flags)
_CODE_OR_NAME = re.compile(rf"({_CODE}|\\.)|({_NAME})", re.DOTALL | re.MULTILINE)


def escaped(text: str) -> str:
    """Return Markdown that renders as a plain text, but for its citations by source id, which stay as they are."""
    return _NUMBER.sub(r"\1\\\2", _SPECIAL.sub(_kept_or_escaped, _stripped(text)))


def _kept_or_escaped(found: re.Match[str]) -> str:
    return f"\\{found['special']}" if found["special"] else found[0]


def _stripped(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n"))


def escaped_quotation(text: str) -> str:
    """Return Markdown that renders as a plain text, but for its citations and for `code` in balanced backticks."""
    return _NUMBER.sub(r"\1\\\2", _SPAN_OR_SPECIAL.sub(_kept_or_escaped, _stripped(text)))


def with_names(markdown: str) -> str:
    """Return Markdown in which `_` is no emphasis, because names such as `__dict__` contain it; code stays as it is."""
    return _CODE_OR_NAME.sub(lambda found: found[1] or f"\\{found[3]}", markdown)
