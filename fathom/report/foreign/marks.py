"""The citations in another system's report: all their forms, and the source of each.

A citation becomes a place: the number of its source between two characters that no text has. The ids of the sources
replace the places once all are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from fathom.report.foreign.lists import (
    IN_LINK,
    LINK,
    OF_A_CITATION,
    TEXT,
    URL,
    ListedSource,
    ListPart,
    clean_url,
    comparable,
    headings,
    in_lines,
)
from fathom.text.plain import clean_line

LISTED = "listed:"
"""Begins the address of a source that a list names without one."""
_WITHIN = re.compile(rf"\[({TEXT})\]\(#[^()\s]*\)")
_IMAGE = re.compile(rf"!\[{TEXT}\]\([^)\n]*\)")
_GROUP = re.compile(  # brackets that are not a link's address, with the links in them
    rf"(?<!\])\((?:{LINK.pattern}|{IN_LINK}|\[[^\[\]\n]*+\]|(?!https?://)[^()\[\]\n])*+\)"
)
_BARE = re.compile(rf"<?({URL})>?")
_REFERENCE = re.compile(rf"\[({TEXT})\](?:\[([^\[\]\n]{{0,80}})\])?(?![\[(:])")
SOME = r"\d{1,3}(?:\s*(?:[,;&，、；–—~-]|,?\s(?:and|und))\s*\d{1,3})*"
_MARKER = re.compile(
    rf"\[\^?({SOME})(?:,? (?:pp?\.|S\.|§)[^\]\n]{{1,20}})?\](?!\([^()\s]*\))"
    rf"|【({SOME})(?:[†:][^】]*)?】|\[\^([^\]\s]+)\]"
    rf"|[\[(](?:sources?|refs?\.?|references?|quellen?|doc(?:ument)?s?|cite)\s*[:#]?\s*({SOME})[\])]",
    re.IGNORECASE,
)
_LETTERED = re.compile(r"\[([A-Z]{1,3}-?\d{1,3}(?:\s*[,;]\s*[A-Z]{1,3}-?\d{1,3})*)\](?!\([^()\s]*\))")
_FROM_TO = re.compile(r"\[(\d{1,3})\]\s?[–-]\s?\[(\d{1,3})\](?!\()")
_RAISED = re.compile(rf"(?<!\bm)(?<!\b[cdkm]m)(?<!\bft)<sup>\s*\[?({SOME})\]?\s*</sup>", re.IGNORECASE)
_TOPLACE = re.compile(r"\[\\?\[?\^?(\d{1,3})\\?\]?\]\(#[^()\s]*\)")
_OF_CHATS = re.compile(
    r"\ue200[^\ue201\n]{0,300}\ue201|:contentReference\[oaicite:\d+\](?:\{index=\d+\})?|【[^】\n]{0,60}(?:†|oaicite|turn\d|source)[^】\n]{0,60}】"
    r"|\[cite(?:_start|_end|:[^\]\n]{0,40})?\]|\[(?:web|attached_file|memory|image|page):\d+\]"
    r"|(?:cite|navlist|filecite)?(?:turn\d+(?:search|view|news|fetch|file|academia|product|image|forecast)\d+)+"
)
_DATED = r"[^()\[\]\n;]{2,100}?,?\s+(?:\d{4}[a-z]?|n\.d\.)(?:,\s*pp?\.\s*[\d–-]+)?"
_AUTHORS = re.compile(rf"\(((?:see |cf\. |e\.g\.,? )?{_DATED}(?:\s*;\s*{_DATED})*)\)")
_AUTHOR = re.compile(r"\b([A-Z][\w'’-]+(?: et al\.| (?:and|&) [A-Z][\w'’-]+)?) \((\d{4}[a-z]?)\)")
_YEAR = re.compile(r"\d{4}[a-z]?|n\.d\.")
_AFTER = (  # numbers without brackets, tried if the text has none in brackets
    re.compile(r"(?<=[^\d\s(\[][.,;:!?])(\d{1,3}(?:,\s?\d{1,3})*)(?=\s|\Z)"),
    re.compile(r"(?:(?<=[^\W\d_]{3})|(?<=[)\]”\"*%]))(\d{1,3}(?:,\s?\d{1,3})*)(?=[.,;:!?](?:\s|\Z))"),
    re.compile(r"(?<=[\w.,;:!?)”\"])(?<!\bm)(?<!\b[cdkm]m)([⁰¹²³⁴-⁹]+(?:[,⁻˒ ]+[⁰¹²³⁴-⁹]+)*)"),
    re.compile(rf"\s\(({SOME})\)(?=[.,;:]|\s*$)", re.MULTILINE),
)
_AFTER_DIGITS = re.compile(r"(?<=\d[.!?])(\d{1,3}(?:,\s?\d{1,3})*)(?=\s+[^\W\da-z]|\s*\n|\s*\Z)")
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_BESIDE = re.compile(  # the text beside a link that only cites
    r"see|via|cf|sources?|and|et|al|from|by|in|on|at|e|g|i|also|accessed|retrieved|updated|published|n|d|nd|the|of|for|"
    r"per|according|to|as|reported|siehe|vgl|quellen?|laut|abgerufen|am|u|a|und",
    re.IGNORECASE,
)
_MOST_BESIDE = 12  # words
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # around the number of a source until all are known; no text has them
PLACE = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_GONE = "\ufdd5"  # replaces a marker that leads to no source
_BRACKETED = re.compile(rf"\(\s*((?:{PLACE.pattern}[\s,;]*)+)\)|\[\s*((?:{PLACE.pattern}[\s,;]*)+)\]|\(\s*[,;]?\s*\)")


class Marks:
    """The parts of a report while their citations are read; a source is named by its comparable address."""

    def __init__(self, parts: Sequence[ListPart], notes: Mapping[str, ListedSource], *, generous: bool) -> None:
        self._parts = parts
        self._notes = notes
        self._generous = generous
        self._marked = False  # a number in brackets leads to a source
        self.used: dict[str, str] = {}  # how the report spells each address
        self.titles: dict[str, str] = {}
        self.numbers: dict[str, str] = {}
        self.dangling: list[str] = []
        self.uncited = False
        for entry in [*notes.values(), *(entry for part in parts for entry in part.entries)]:
            if entry.title and entry.urls:
                self.titles.setdefault(comparable(clean_url(entry.urls[0])), entry.title)

    def texts(self) -> list[str]:
        """Return the parts with the places of their citations."""
        found = [self._with_places(number, part.text) for number, part in enumerate(self._parts)]
        if not self._marked:
            found = [self._with_bare_numbers(number, text) for number, text in enumerate(found)]
        if self._generous and not any(map(PLACE.search, found)):
            self.uncited = any(part.entries for part in self._parts) or bool(self._notes)
            found = [self._citing_all(number, text) for number, text in enumerate(found)]
        return [_BRACKETED.sub(lambda one: one[1] or one[3] or "", in_lines(_joined(text), PLACE)) for text in found]

    def use_all(self) -> None:
        """Also treat list entries that the text does not cite as sources."""
        for part in self._parts:
            numbers = {entry: number for number, entry in part.numbered.items()}
            for entry in part.entries:
                self._of_entry(entry, numbers.get(entry, ""))

    def _with_places(self, number: int, text: str) -> str:
        def of_group(found: re.Match[str]) -> str:
            urls = list(dict.fromkeys(re.findall(IN_LINK, found[0])))
            beside = LINK.sub(" ", found[0])
            for one in LINK.finditer(found[0]):
                self._named(one[2], one[1])
            if not urls or not _only_cites(re.sub(IN_LINK, " ", beside)):
                return found[0]
            return "".join([*map(self._cite, urls), *(marker[0] for marker in _MARKER.finditer(beside))])

        def of_link(found: re.Match[str]) -> str:
            # A title that stands in the sentence is a part of it.
            self._named(found[2], found[1])
            cited = self._cite(found[2])
            return cited if OF_A_CITATION.match(found[1]) or _is_apart(text, *found.span()) else f"{found[1]} {cited}"

        def of_reference(found: re.Match[str]) -> str:
            named = found[2] is not None or not found[1].isdigit()
            entry = self._notes.get(found[2] or found[1]) if named and not found[1].startswith("^") else None
            return f"[{found[1]}]({entry.urls[0]})" if entry and entry.urls else found[0]

        def of_marker(found: re.Match[str]) -> str:
            names = list(_names(found[1] or found[2] or found[4] or "")) or [found[3]]
            cited = [self._cited(number, name) for name in names]
            if found[4] and not all(cited):
                return found[0]
            self._marked |= any(cited)
            self.dangling += [
                n for n, one in zip(names, cited, strict=True) if not one and not (found[3] or "").isalpha()
            ]
            return "".join(cited) or _GONE

        text = _IMAGE.sub("", text)
        text = _REFERENCE.sub(of_reference, text) if self._notes else text
        text = _GROUP.sub(of_group, text)
        text = LINK.sub(of_link, text)
        text = _BARE.sub(lambda found: self._cite(found[1]), text)
        text = _RAISED.sub(
            lambda found: self._all_cited(number, found[1]) or found[0], _WITHIN.sub(r"\1", _TOPLACE.sub(r"[\1]", text))
        )
        text = _LETTERED.sub(lambda found: self._all_cited(number, found[1]) or found[0], text)
        text = _MARKER.sub(of_marker, _FROM_TO.sub(r"[\1-\2]", text))
        text = re.sub(rf"(?<![ \t])[ \t]*{_GONE}", "", _OF_CHATS.sub(self._of_chat, text))
        return _AUTHOR.sub(self._of_author, _AUTHORS.sub(self._of_authors, text))

    def _with_bare_numbers(self, number: int, text: str) -> str:
        """Return a part with citations for the bare numbers behind its sentences, if its list has these numbers."""
        found = {
            pattern: sum(bool(self._all_cited(number, one[1], only_look=True)) for one in pattern.finditer(text))
            for pattern in _AFTER
        }
        best = max(_AFTER, key=lambda pattern: found[pattern])
        if found[best] < min(2, len(self._parts[number].numbered) or 2):
            return text
        for pattern in [best, _AFTER_DIGITS] if best is _AFTER[0] else [best]:
            text = pattern.sub(lambda marker: self._all_cited(number, marker[1]) or marker[0], text)
        return text

    def _citing_all(self, number: int, text: str) -> str:
        """Return a part in which each section ends with citations of its whole list."""
        entries = self._parts[number].entries or [*self._notes.values()]
        cited = "".join(self._of_entry(entry, str(n)) for n, entry in enumerate(entries, 1))
        borders = [0, *(found.start() for found in headings(text)), len(text)]
        pieces = [text[start:end].rstrip() for start, end in pairwise(borders)]
        return "\n\n".join(f"{piece}\n\n{cited}" if _says(piece) else piece for piece in pieces if piece)

    def _of_chat(self, found: re.Match[str]) -> str:
        self.dangling.append(clean_line(re.sub(r"[\ue200-\ue202]+", " ", found[0])).strip("【】 "))
        return _GONE

    def _of_authors(self, found: re.Match[str]) -> str:
        names = re.split(r"\s*;\s*", found[1])
        cited = [self._by_author(name) for name in names]
        if any(cited):
            self.dangling += [name for name, one in zip(names, cited, strict=True) if not one]
        return "".join(cited) if any(cited) else found[0]

    def _of_author(self, found: re.Match[str]) -> str:
        cited = self._by_author(f"{found[1]}, {found[2]}")
        return f"{found[1]} {cited}" if cited else found[0]

    def _by_author(self, said: str) -> str:
        """Return the citation of an author with a year, if exactly one entry of the lists begins with them."""
        said = re.sub(r"\A(?:see|cf\.|e\.g\.,?) ", "", said)
        year, first = _YEAR.search(said), re.match(r"[\w'’.-]+", said)
        if not year or not first:
            return ""
        found = {
            entry: None
            for entry in (entry for part in self._parts for entry in part.entries)
            if entry.text.casefold().startswith(first[0].casefold()) and year[0] in entry.text
        }
        return self._of_entry(next(iter(found)), "") if len(found) == 1 else ""

    def _all_cited(self, number: int, some: str, *, only_look: bool = False) -> str:
        """Return the citations of some numbers, if all of them are listed."""
        names = list(_names(some.translate(_RAISED_DIGITS)))
        if not names or not all(self._entry(number, name) for name in names):
            return ""
        self._marked |= not only_look
        return some if only_look else "".join(self._cited(number, name) for name in names)

    def _cited(self, number: int, name: str) -> str:
        entry = self._entry(number, name)
        return self._of_entry(entry, name) if entry else ""

    def _entry(self, number: int, name: str) -> ListedSource | None:
        """Return the entry that a marker of a part means; the list behind the part comes first."""
        lists = [part.numbered for part in (*self._parts[number:], *reversed(self._parts[:number]))]
        return next((found for one in (self._notes, *lists) if (found := one.get(name))), None)

    def _of_entry(self, entry: ListedSource, name: str) -> str:
        if entry.urls:
            if name:
                self.numbers.setdefault(name, comparable(clean_url(entry.urls[0])))
            return "".join(map(self._cite, entry.urls if entry in self._notes.values() else entry.urls[:1]))
        if not self._generous or not entry.text:
            return ""
        key = f"{LISTED}{entry.text[:200]}"
        self.titles.setdefault(key, entry.title)
        if name:
            self.numbers.setdefault(name, key)
        return self._place(key, key)

    def _cite(self, url: str) -> str:
        return self._place(comparable(clean_url(url)), clean_url(url))

    def _place(self, key: str, spelled: str) -> str:
        self.used.setdefault(key, spelled)
        return f"{_OPEN}{[*self.used].index(key)}{_CLOSE}"

    def _named(self, url: str, title: str) -> None:
        if not OF_A_CITATION.match(title):
            self.titles.setdefault(comparable(clean_url(url)), clean_line(title.replace("\\", ""))[:300])


def _joined(text: str) -> str:
    """Return a text without the commas between citations."""
    return re.sub(rf"(?<={_CLOSE})\s?(?:[,;&]|and|und)\s?(?={_OPEN})", "", text)


def _only_cites(said: str) -> bool:
    """Whether the text beside links in brackets names only the author, place and date."""
    words = re.findall(r"[^\W_]+", _MARKER.sub(" ", said))
    return len(words) <= _MOST_BESIDE and all(w[0].isupper() or w.isdigit() or _BESIDE.fullmatch(w) for w in words)


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether a link stands behind the end of a sentence, or alone in the last cell of a row."""
    before, after = text[max(0, start - 20) : start], text[end : end + 20]
    if re.search(r"\|\s*\Z", before):
        return bool(re.match(r"\s*\|[ \t]*(?:\n|\Z)", after))
    goes_on = re.match(r"\s*(?:[^\W\dA-ZÄÖÜÉÈÀ_]|[,;:.!?)]|['’]s\b)", after)
    return bool(re.search(r"[.!?。][\"”»)]?[ \t]*\Z", before)) and not goes_on


def _says(text: str) -> bool:
    """Whether a part of a text has more than a heading."""
    first, _, rest = text.partition("\n")
    return bool(re.search(r"\w", rest if headings(first) else text))


def _names(text: str) -> Iterator[str]:
    """Yield the numbers of a marker such as `1, 3-5`."""
    for part in re.split(r"\s*(?:[,;&，、；]|,?\s(?:and|und)\s|[˒ ]+(?=\d))\s*", text.strip()):
        if span := re.fullmatch(r"(\d+)\s*[–—~⁻-]\s*(\d+)", part):
            first, last = sorted((int(span[1]), int(span[2])))
            yield from map(str, range(first, last + 1))
        elif part:
            yield part.lstrip("0") or part
