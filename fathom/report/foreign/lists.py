"""The lists of sources in another system's report: their places, and the source of each entry.

A list stands below a heading such as "References", below a line such as `**Sources:**`, at the end without a heading,
or consists of footnotes anywhere. A report may have one after each section, whose numbers then begin at 1 again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from fathom.text.plain import clean_line
from fathom.text.urls import canonical_url

_KINDS = (
    r"sources?|references?|bibliography|works cited|citations?|links|footnotes|endnotes|"
    r"quellen(?:verzeichnis|angaben)?|literatur(?:verzeichnis)?|einzelnachweise|références|bibliographie|"
    r"sources? consultées|fuentes|referencias|"
    r"bibliograf[ií]a|fonti|riferimenti|источники|参考(?:文献|资料)?|来源|出典"
)
_KIND_OF_LIST = re.compile(
    r"(?:\W*\d+[.)]?\s+)?\W*"
    r"(?:(?:key|main|primary|selected|full|all|cited|used|external|online|web|list of|verwendete)\s+)?"
    rf"(?:{_KINDS})"
    rf"(?:\W+(?:and|und|cited|used|consulted|list|notes|further|reading|{_KINDS}))*\W*\Z",
    re.IGNORECASE,
)
_HEADING = re.compile(
    rf"^(#{{1,6}})\s+(.*?)\s*#*\s*$|^\*\*([^*\n]{{3,60}}):?\*\*:?\s*$|^({_KINDS})(?:[ \t]*\(\d+\))?:?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_IN_LINE = re.compile(
    r"^[ \t]*([-*+>][ \t]+)?[*_(\[]{0,3}(?:sources?|references?|quellen?|citations?|via)(?: used| cited)?"
    r"[*_]{0,3}[:：][*_]{0,3}[ \t]*(\S[^\n]*)$",
    re.MULTILINE | re.IGNORECASE,
)
LIKE_A_LIST = 0.6  # share of the lines below a heading that does not announce a list
MOST_BESIDE = 25  # characters beside the link of such a line
URL = r"https?://[^\s<>\"'`\]】]+"
IN_LINK = r"https?://(?:[^\s<>\"'`()]|\([^\s()]*\))++"  # parentheses in pairs
TEXT = r"(?:[^\[\]\n\\]|\\.|\[[^\[\]\n]*\]){0,500}+"
LINK = re.compile(rf"\[({TEXT})\]\(\s*<?({IN_LINK})>?(?:\s+\"[^\"]*\")?\s*\)")
OF_A_CITATION = re.compile(
    r"\W*(?:\d{1,3}|[⁰¹²³⁴-⁹]+|source|link|here|ref|(?:www\.)?[\w-]+(?:\.[\w-]+)+(?:/\S*)?(?:\s*\+\d+)?)?\W*\Z",
    re.IGNORECASE,
)
"""The text of a link that only cites: a number, "source", or the name of a site."""
_ADDRESS = re.compile(rf"{LINK.pattern}|<?({URL})>?")
_ELSE = re.compile(
    r"\b(?:doi:\s*|(?<![/.])doi\.org/)(10\.\d{4,9}/[^\s<>\"'\])]+)|\barXiv:\s*(\d{4}\.\d{4,5})"
    r"|(?<![/.@\w])(www\.[\w-]+\.[^\s<>\"'\])]+)",
    re.IGNORECASE,
)
_FOOTNOTE = re.compile(r"^ {0,3}\[(\^[^\]\s]+|[^\]\s]+)\]:[ \t]*([^\n]*(?:\n(?:[ ]{2,}|\t)\S[^\n]*)*)\n?", re.MULTILINE)
_DEFINED = re.compile(rf"^ {{0,3}}\[([^\]\n^][^\]\n]*)\]:[ \t]*<?({URL})>?[^\n]*\n?", re.MULTILINE)
_NUMBER = re.compile(
    r"[ \t]*(?:>[ \t]*)?(?:[-*+•][ \t]+)?(?:\*\*|__)?"
    r"(?:\[{1,2}\^?(\d{1,3}|[A-Z]{1,3}-?\d{1,3})\]{1,2}|(\d{1,3})[.):\]]|【(\d{1,3})】|\((\d{1,3})\))(?:\*\*|__)?(?=[\s:(.*–—-]|\Z)"
)
_BULLET = re.compile(r"[ \t]*[-*+•][ \t]+")
_ROW = re.compile(r"[ \t]*\|[ \t]*\[?(\d{1,3})\]?[.)]?[ \t]*\|(.*)\|[ \t]*\Z")
_SEVERAL = re.compile(r"(?<=\S)[ \t]+(?=\[\d{1,3}\][ \t:])")
_RULE = re.compile(r"[\s|:*_=-]*\Z")
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b|\bn\.d\.")
_DATED = re.compile(
    r"\((?:\d{4}[^()\n]{0,20}|n\.d\.)\)[.,]\s+(\S.{3,300}?)(?:[.?!]?[*_]?[.?!]?\s*\Z|[.?!*_]{1,2}\s+)", re.DOTALL
)
_RETRIEVED = re.compile(
    r"\W{0,9}\b(?:retrieved|accessed|available|abgerufen|verfügbar|zugriff)\b(?: (?:from|at|on|am|unter))?.*\Z",
    re.IGNORECASE | re.DOTALL,
)
_JOIN = "\ufdd4"  # no text has it
_EDGE = ' \t\n.,;:–—-*_()[]<>|"“”'


class ListedSource(NamedTuple):
    """A list's entry of one source: its addresses, perhaps none, its title, and the whole entry on one line."""

    urls: tuple[str, ...]
    title: str
    text: str


class ListPart(NamedTuple):
    """A part of a report, and the list of sources behind it: all entries, and the numbered entries by number."""

    text: str
    entries: Sequence[ListedSource] = ()
    numbered: Mapping[str, ListedSource] = {}


def take_lists(text: str) -> tuple[list[ListPart], dict[str, ListedSource]]:
    """Return a report, whose code is masked, without its lists of sources, and its footnotes by name."""
    notes: dict[str, ListedSource] = {}

    def of_footnote(found: re.Match[str]) -> str:
        entry = entry_of(found[2])
        if not entry.urls and not found[1].startswith("^"):
            return found[0]
        notes.setdefault(found[1].removeprefix("^"), entry)
        return ""

    def of_definition(found: re.Match[str]) -> str:
        notes.setdefault(found[1], entry_of(found[2]))
        return ""

    text = _DEFINED.sub(of_definition, _FOOTNOTE.sub(of_footnote, text))
    parts: list[ListPart] = []
    position = 0
    found = headings(text)
    named = [bool(_KIND_OF_LIST.match(title_of(heading))) for heading in found]
    for number, heading in enumerate(found):
        ends = [one.start() for one in found[number + 1 :]]
        below = (one.start() for one in found[number + 1 :] if level_of(one) <= level_of(heading))
        end = next(below, len(text))
        body = text[heading.end() : end if named[number] else next(iter(ends), len(text))]
        if heading.start() < position or not (named[number] or (not any(named) and _is_list(body, text))):
            continue
        if not named[number]:
            end = heading.end() + len(body)
        elif not heading[1]:
            end = min(end, _end_of_list(text, heading.end()))
        entries, numbered = _entries(text[heading.end() : end])
        if not entries and not heading[1]:
            continue
        parts.append(ListPart(text[position : heading.start()], entries, numbered))
        position = end
    rest = text[position:]
    begin = _end_list(rest)
    parts.append(ListPart(rest[:begin], *_entries(rest[begin:])))
    return parts, notes


def in_lines(text: str, cite: re.Pattern[str]) -> str:
    """Return a text in which the citations of "Source: ..." lines are moved to the line before them."""

    def joined(found: re.Match[str]) -> str:
        cited = "".join(one[0] for one in cite.finditer(found[2]))
        if not cited or (found[1] and re.search(r"\w", cite.sub("", found[2]))):
            return found[0]  # "- Source: a spring" is a fact
        last = text[: found.start()].rstrip("\n").rpartition("\n")[2].strip()
        beside = bool(last) and not last.startswith(("|", "#", "```")) and not last.endswith("|")
        return f"{_JOIN}{cited}" if beside else cited

    return re.sub(rf"(?<!\s)\s*{_JOIN}", " ", _IN_LINE.sub(joined, text))


def headings(text: str) -> list[re.Match[str]]:
    """Return the headings of a text, including lines in bold and lines that introduce a list of sources."""
    return list(_HEADING.finditer(text))


def title_of(heading: re.Match[str]) -> str:
    """Return the text of a heading."""
    return str(heading[2] or heading[3] or heading[4] or "")


def level_of(heading: re.Match[str]) -> int:
    """Return the depth of a heading, from 1; 7 for a line that is not a heading in Markdown."""
    return len(heading[1]) if heading[1] else 7


def comparable(url: str) -> str:
    """Return an address as it is compared: what one system writes as `%28`, another writes as a parenthesis."""
    return canonical_url(unquote(url))


def clean_url(url: str) -> str:
    """Return an address without the punctuation that follows it in a text."""
    url = url.rstrip(".,;:!?*_")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:")
    return url


def entry_of(text: str) -> ListedSource:
    """Return the source in an entry, given without its number."""
    found = list(_ADDRESS.finditer(text))
    urls = [clean_url(one[2] or one[3]) for one in found]
    if not urls and (other := _ELSE.search(text)):
        where = zip(("https://doi.org/", "https://arxiv.org/abs/", "https://"), other.groups(), strict=True)
        urls = [f"{site}{clean_url(name)}" for site, name in where if name]
    return ListedSource(tuple(dict.fromkeys(urls)), _title(text, found), clean_line(text))


def _title(text: str, addresses: Sequence[re.Match[str]]) -> str:
    """Return the title in an entry: the text of its link, or the text before its address, or else behind it."""
    for one in addresses:
        if one[2] and not OF_A_CITATION.match(one[1]) and "://" not in one[1]:
            return clean_line(one[1].replace("\\", ""))[:300]
    before = text[: addresses[0].start()] if addresses else _ELSE.sub("", text)
    if dated := _DATED.search(before):
        before = dated[1]
    said = clean_line(_RETRIEVED.sub("", before)).strip(_EDGE)
    if not said and addresses:
        said = clean_line(_RETRIEVED.sub("", text[addresses[-1].end() :])).strip(_EDGE)
    return said.replace("\\", "")[:300]


def _entries(text: str) -> tuple[list[ListedSource], dict[str, ListedSource]]:
    """Return the entries of a list, and the numbered entries by their number."""
    found = [(number, entry_of(said)) for number, said in _grouped(text.split("\n"))]
    found = [(number, entry) for number, entry in found if number or entry.urls or _YEAR.search(entry.text)]
    numbers = [number for number, _ in found if number]
    if len(numbers) > 1 and set(numbers) == {"1"}:  # Markdown numbers the items of a list itself
        found = [(str(n), entry) for n, (_, entry) in enumerate(found, 1)]
    numbered: dict[str, ListedSource] = {}
    for number, entry in found:
        if number and (number not in numbered or not numbered[number].urls):
            numbered[number] = entry
    return [entry for _, entry in found], numbered


def _grouped(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the number, which may be empty, and the text of each entry; one may go on over several lines."""
    number, said, gap = "", list[str](), False
    for line in (piece for one in lines for piece in (_SEVERAL.split(one) if one.count("://") > 1 else [one])):
        if _RULE.match(line) or line.lstrip().startswith("#"):
            gap = True
            continue
        row, marker = _ROW.match(line), _NUMBER.match(line)
        has_url = any("://" in part or _ELSE.search(part) for part in said)
        indented = bool(said) and line.startswith(("  ", "\t"))
        deeper = indented and bool(number) and not (marker and not has_url)
        begins = bool(row or marker or _BULLET.match(line)) and not deeper
        if said and (begins or (not indented and (has_url or (gap and "://" not in line)))):
            yield number, "\n".join(said)
            number, said = "", []
        if begins and not said:
            number = _zeroless(row[1] if row else next(filter(None, marker.groups()), "") if marker else "")
            said = [row[2] if row else line[_start(line, marker) :]]
        else:
            said.append(line)
        gap = False
    if said:
        yield number, "\n".join(said)


def _start(line: str, marker: re.Match[str] | None) -> int:
    """Return where an entry's text begins; a number that is itself a link belongs to it."""
    if marker:
        return marker.start() if line[marker.end() :].startswith("(http") else marker.end()
    return bullet.end() if (bullet := _BULLET.match(line)) else 0


def _zeroless(number: str) -> str:
    return number.lstrip("0") or number


def _is_list(body: str, text: str) -> bool:
    """Whether lines below a heading that does not announce a list are one: numbered addresses, which are cited."""
    lines = [line for line in body.split("\n") if not _RULE.match(line)]
    markers = [marker for line in lines if (marker := _NUMBER.match(line)) and _only_names(line, marker)]
    if len(markers) < 2 or len(markers) < LIKE_A_LIST * len(lines):
        return False
    names = {_zeroless(next(filter(None, marker.groups()), "")) for marker in markers}
    return any(re.search(rf"(?<!\n)\[\^?{name}[\],]", text) for name in names)


def _only_names(line: str, marker: re.Match[str]) -> bool:
    """Whether a numbered line only names a source: in brackets, or as an address with a title."""
    if "://" not in line or marker[1] or marker[3]:
        return "://" in line
    beside = LINK.sub("", line[marker.end() :])
    return (
        len(beside.strip()) <= MOST_BESIDE if beside != line[marker.end() :] else bool(re.search(rf"{URL}\W*\Z", line))
    )


def _end_of_list(text: str, start: int) -> int:
    """Return the end of a list without a Markdown heading: before the first paragraph that is not an entry."""
    position = start
    for line in text[start:].splitlines(keepends=True):
        entry = _NUMBER.match(line) or _BULLET.match(line) or "://" in line or line.startswith((" ", "\t", "|"))
        if not entry and not _RULE.match(line):
            return position
        position += len(line)
    return position


def _end_list(text: str) -> int:
    """Return the start of a numbered list of sources that ends a text without a heading; else the text's length."""
    begin, numbers, position, sure = len(text), set[str](), len(text), True
    for line in reversed(text.splitlines(keepends=True)):
        position -= len(line)
        marker = _NUMBER.match(line)
        entry = line if "://" in line else line.rstrip() + text[position + len(line) : begin]  # its address may follow
        if marker and not _BULLET.match(line) and _only_names(entry.rstrip(), marker):
            numbers.add(_zeroless(next(filter(None, marker.groups()), "")))
            sure &= bool(marker[1] or marker[3])
            begin = position
        elif not _RULE.match(line) and not re.match(rf"[ \t]*<?{URL}", line):
            break
    cited = any(re.search(rf"\[\^?{number}\]", text[:begin]) for number in numbers)
    return begin if cited or (sure and len(numbers) > 1) else len(text)
