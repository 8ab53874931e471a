"""Identifiers: what names one document and no other, PEP 572, RFC 9110, CVE-2024-1234, E1002, `--max-usd`, v3.12.

Ranking by words cannot tell the document that is PEP 572 from those that mention it. An identifier is a token with a
digit in it, joined to the word before it or after that word; a flag; or a dotted or underscored name. Zeros that only
fill up a number do not count. A document bears the identifiers of its title, of its file's name, and,
as the second best, of its headings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from fathom.text.terms import STOP_WORDS
from fathom.text.urls import ENDING, file_of

Key = TypeVar("Key")

IN_NAME, IN_HEADING = 2, 1
MOST_BEARERS = 5  # documents; an identifier that more of them bear tells none from the others
MAX_CHARS = 100

_FLAG = re.compile(r"(?<![\w-])--([a-z0-9]+(?:[-_][a-z0-9]+)*)(?!\w)", re.IGNORECASE)
_JOINED = re.compile(r"(?<![\w.-])([^\W\d_]+)[-_]?(\d\w*(?:[-_.]\d\w*)*)((?:[-_][^\W_]+)*)(?![\w-])")
_SPACED = re.compile(r"(?<![\w-])([^\W\d_]{2,})[ ]+(?:[Nn]o\.? ?|#)?(\d+(?:\.\d+)*)(?![\w%]|[.,-]\d|:\d)")
_FURTHER = re.compile(r"(?:\s*,\s*|\s*,?\s+(?:and|or|und|oder|vs\.?|&)\s+)(\d+(?:\.\d+)*)(?![\w%]|[.,-]\d)")
_DOTTED = re.compile(r"(?<![\w./@-])[^\W\d]\w+(?:\.[^\W\d]\w+)+(?![\w/@])")
_SNAKE = re.compile(r"(?<![\w./-])_*[^\W_]+(?:_+[^\W_]+)+(?![\w/])")
_PLAIN_STEM = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\Z")
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_OF_VERSIONS = frozenset({"v", "ver", "version", "release"})
LONG = 4  # digits, from which a number names something: not so a year


class Identifier(NamedTuple):
    """An identifier in the form in which two spellings agree; `sure`: it is written as one, not as a mere count."""

    name: str
    sure: bool


class Borne(NamedTuple):
    """An identifier that a document bears, and how: `IN_NAME` or `IN_HEADING`."""

    identifier: Identifier
    weight: int


def identifiers_of(text: str) -> list[Identifier]:
    """Return the identifiers in a line of text, each once."""
    found: dict[str, bool] = {}
    for name, sure in _found(text):
        if len(name) <= MAX_CHARS:
            found[name] = sure or found.get(name, False)
    return [Identifier(name, sure) for name, sure in found.items()]


def identifiers_of_file(address: str) -> list[Identifier]:
    """Return the identifiers of a file's name; a number at its start belongs to the word of the folder: adr/0012-x."""
    folder, name = file_of(address)
    stem = ENDING.sub("", name)
    found = [Identifier(name.lower(), sure=True)] if name != stem else []
    if _PLAIN_STEM.match(stem):
        found.append(Identifier(f"--{stem.replace('_', '-')}", sure=True))  # a file for each flag
    word = re.search(r"([^\W\d_]+)\Z", folder)
    if word and (number := re.match(r"\d{1,6}(?=[-_. ]|\Z)", stem)) and not _YEAR.match(number[0]):
        found.append(Identifier(f"{_word(word[1].lower().removesuffix('s'))} {_number(number[0])}", sure=True))
    return [*found, *identifiers_of(re.sub(r"(?<=\d)[-_](?=[^\W\d_]{2})", " ", stem))]


def borne_by(title: str, address: str, headings: Iterable[str] = ()) -> list[Borne]:
    """Return the identifiers that a document bears, each with its best place."""
    own = [*identifiers_of_file(address), *_with_versions(identifiers_of(title))]
    further = (one for heading in dict.fromkeys(headings) for one in identifiers_of(heading) if one.sure)
    best: dict[str, Borne] = {}
    for each in (*(Borne(one, IN_NAME) for one in own), *(Borne(one, IN_HEADING) for one in further)):
        kept = best.get(each.identifier.name)
        if not kept or (each.weight == kept.weight and each.identifier.sure):
            best[each.identifier.name] = each
    return list(best.values())


def naming(query: str, bearers: Iterable[tuple[Key, Borne]]) -> dict[Key, int]:
    """Return the documents that bear an identifier which a query names, by their keys; a higher value goes first.

    A bare number, such as a year or a count, names no document, nor does an identifier that many of them bear.
    """
    asked = {one.name: one.sure for one in identifiers_of(query)}
    found: defaultdict[tuple[str, int], set[Key]] = defaultdict(set)
    for document, (identifier, weight) in bearers:
        if identifier.name in asked and (identifier.sure or asked[identifier.name]):
            found[identifier.name, weight].add(document)
    named: defaultdict[Key, int] = defaultdict(int)
    for (_, weight), documents in found.items():
        for document in documents if len(documents) <= MOST_BEARERS else ():
            named[document] += weight
    return dict(named)


def _found(text: str) -> Iterator[tuple[str, bool]]:
    for match in _FLAG.finditer(text):
        yield f"--{match[1].lower().replace('_', '-')}", True
    for match in _JOINED.finditer(text):
        parts = [_number(part) for part in re.split(r"[-_]", match[2].lower())]
        name = " ".join([_word(match[1]), *parts])
        yield name, True
        if rest := [_number(part) for part in re.split(r"[-_]", match[3].lower()) if part]:
            yield " ".join([name, *rest]), True
    for match in _SPACED.finditer(text):
        if match[1].lower() not in STOP_WORDS:
            yield from _after_word(text, match)
    for match in (*_DOTTED.finditer(text), *_SNAKE.finditer(text)):
        yield match[0].lower(), True


def _after_word(text: str, match: re.Match[str]) -> Iterator[tuple[str, bool]]:
    """Yield the word with the number after it, and with further numbers: "PEPs 572 and 577"."""
    upper = match[1].removesuffix("s").isupper()
    word = _word(match[1])
    named = upper or word == "v"
    yield f"{word} {_number(match[2])}", named or _is_telling(match[2])
    further = _FURTHER.match(text, match.end())
    while further and (named or _is_telling(further[1])):
        yield f"{word} {_number(further[1])}", True
        further = _FURTHER.match(text, further.end())


def _is_telling(number: str) -> bool:
    """Whether a number itself shows that it is no count: it is a version, filled up with zeros, or long and no year."""
    return "." in number or number.startswith("0") or (len(number) >= LONG and not _YEAR.match(number))


def _word(word: str) -> str:
    plain = word.removesuffix("s") if word[:-1].isupper() and len(word) > 2 else word
    return "v" if plain.lower() in _OF_VERSIONS else plain.lower()


def _number(number: str) -> str:
    return (number.lstrip("0") or "0") if number.isdigit() else number


def _with_versions(found: Sequence[Identifier]) -> list[Identifier]:
    """Return identifiers with the mere version of each product: "Python 3.12" is also v3.12."""
    versions = (one.name.split(" ")[1] for one in found if re.fullmatch(r"\w+ \d+(?:\.\d+)+", one.name))
    return [*found, *(Identifier(f"v {version}", sure=True) for version in versions)]
