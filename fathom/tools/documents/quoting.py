"""The earlier messages that a mail quotes, told apart from its own words by the marks of the programs that send mail.

A quotation is what stands behind ">", below a line such as "On 3 May 2025, Ann Lee wrote:", or below a block with the
fields of a mail ("From: ... Sent: ..."). It is what somebody said earlier, and must not pass for what the mail says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fathom.text.plain import clean_line
from fathom.tools.documents.header import written

MOST_LINES = 3  # that say who wrote what follows: programs wrap them
LEAST_FIELDS = 3  # in a block: a sender, and two more
MOST_OPENING = 12  # lines that are read for an opening
MAX_LINE = 300  # characters that are read of each

_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)*")
_WROTE = re.compile(
    r"\W*(?:(?:on|am|le|el|il|op|em)\b.{1,200}?\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu)\b"
    r"|\w.{1,80}?\b(?:wrote|schrieb) (?:on|am)\b)",
    re.IGNORECASE,
)
_DIVIDER = re.compile(
    r"\W*(?:original message|forwarded message|begin forwarded message|ursprüngliche nachricht|"
    r"weitergeleitete nachricht|anfang der weitergeleiteten (?:nachricht|e-?mail)|message d['’]origine|"
    r"message transféré|mensaje original|messaggio originale|oorspronkelijk bericht)\W*",
    re.IGNORECASE,
)
_RULE = re.compile(r"\W*_{10,}\W*")
_NAMES = {
    "From": "from von de da van",
    "Date": "sent gesendet envoyé enviado inviato verzonden date datum fecha data",
    "To": "to an à para a aan",
    "Cc": "cc kopie",
    "Subject": "subject betreff objet asunto oggetto onderwerp assunto",
}
_NAMED = {word: name for name, words in _NAMES.items() for word in words.split()}
_FIELD = re.compile(rf"\W*(?P<name>{'|'.join(_NAMED)})\W{{0,3}}:\W{{0,3}}(?P<value>[^\s*].*)", re.IGNORECASE)
_ADDRESS = re.compile(r"[<\[(]*(?:mailto:)?[^\s<>()\[\]]+@[^\s<>()\[\],;]+[>\])]*")


class MailPart(NamedTuple):
    """A part of a mail: its own words, or those of an earlier message."""

    text: str
    is_quoted: bool
    by: str = ""  # who wrote a quotation and when, as the mail says it; empty if it does not


class _Line(NamedTuple):
    depth: int  # marks of quotation before it
    text: str


class _Opening(NamedTuple):
    """Lines that say who wrote what follows them."""

    lines: int
    by: str
    fields: str = ""  # of what follows, as Markdown


def told_apart(text: str) -> list[MailPart]:
    """Return the parts of a mail's text in their order, without the marks of quotations; none is empty."""
    lines = [_line(line) for line in text.split("\n")]
    parts: list[tuple[int, str | None, list[str]]] = [(0, None, [])]
    told: dict[int, str | None] = {0: None}  # who wrote what stands at each depth
    at = 0
    while at < len(lines):
        depth, line = lines[at]
        opening = _opening(lines[at : at + MOST_OPENING]) if line.strip() else None
        if opening:
            at += opening.lines
            at = next((n for n in range(at, len(lines)) if lines[n].text.strip()), len(lines))
            depth = max(depth, lines[at].depth) if at < len(lines) else depth
            told = {**{level: by for level, by in told.items() if level < depth}, depth: opening.by}
            parts += [(depth, opening.by, [opening.fields, ""])] if opening.fields else []
            continue
        by = told.setdefault(depth, "") if line.strip() else parts[-1][1]
        if line.strip() and (depth, by) != parts[-1][:2]:
            parts.append((depth, by, []))
        parts[-1][2].append(line)
        at += 1
    return [MailPart(body, by is not None, by or "") for _, by, said in parts if (body := "\n".join(said).strip())]


def _line(line: str) -> _Line:
    end = len(marks[0]) if (marks := _MARKS.match(line)) else 0
    return _Line(line.count(">", 0, end), line[end:] if ">" in line[:end] else line)


def _opening(lines: Sequence[_Line]) -> _Opening | None:
    """Return the opening of a quotation, if these lines begin with one."""
    own = [each.text[:MAX_LINE] for each in _beside(lines)]
    for count in range(1, min(MOST_LINES, len(own)) + 1):
        said = clean_line(" ".join(own[:count]))
        if said.rstrip("*_ ").endswith(":") and re.search(r"\d", said) and _WROTE.match(said):
            return _Opening(count, _plain(said))
    start = 1 if _DIVIDER.fullmatch(own[0]) or _RULE.fullmatch(own[0]) else 0
    while start < len(lines) and start and not lines[start].text.strip():
        start += 1
    block = _block(_beside(lines[start:]))
    if block:
        return block._replace(lines=start + block.lines)
    return _Opening(1, "") if _DIVIDER.fullmatch(own[0]) else None


def _beside(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines up to the first one that is empty or of another depth."""
    end = next((n for n, each in enumerate(lines) if each.depth != lines[0].depth or not each.text.strip()), len(lines))
    return list(lines[:end])


def _block(lines: Sequence[_Line]) -> _Opening | None:
    """Return a block of the fields of a mail; the first one names the sender, and a long one may go on."""
    fields: dict[str, str] = {}
    taken = 0
    for each in lines:
        found = _FIELD.match(each.text)
        name = _NAMED[found["name"].lower()] if found else ""
        if not found or name in fields or (not fields and name != "From"):
            break
        fields[name] = clean_line(found["value"].strip("* "))
        taken += 1
    if len(fields) < LEAST_FIELDS:
        return None
    by = ", ".join(filter(None, (_plain(fields["From"]), fields.get("Date"))))
    return _Opening(taken, by, written(fields))


def _plain(said: str) -> str:
    """Return who wrote without an address, unless nothing else names them."""
    return clean_line(_ADDRESS.sub("", said)).strip(" :*,") or said
