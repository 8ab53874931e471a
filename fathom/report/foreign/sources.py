"""The sources of another system's report, found among the files of a folder or read from the web.

A file belongs to a source if it names the source's address in its first lines, its front matter or its head; if its
name is the address, the title or the number in the report's list; or if it has the source's title. A report of Fathom's
names the files that it cites.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from fathom.errors import FathomError, InvalidInput
from fathom.evidence.stored import StoredText
from fathom.models import Source
from fathom.report.foreign.lists import URL, clean_url, comparable
from fathom.telemetry.progress import phase
from fathom.tools.documents.files import KINDS, File, find_files
from fathom.tools.documents.header import readable
from fathom.tools.documents.index import LaidOut
from fathom.tools.documents.pool import read_files
from fathom.tools.documents.readers import UnreadableFile
from fathom.tools.pages import WebPage, is_page, read_each

HEAD_BYTES, HEAD_LINES = 65_536, 12
AT_ONCE = 4  # pages
LEAST_WORDS = 20  # of a page that can be read: with fewer it is a notice, a wall or an error
SURE, NAMED, NUMBERED, TITLED, LIKELY = 5, 4, 3, 2, 1
_ANY = re.compile(URL)
_LABELLED = re.compile(
    r"\W*(?:(?:source|original|page|web)?[ _-]*(?:url|link|address)|source|quelle|canonical|website|permalink|from|via|"
    rf"retrieved from|saved from)\W*[:=]\W*({URL})|\W*({URL})\W*\Z",
    re.IGNORECASE,
)
_IN_HEAD = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"<link\b[^<>]{0,300}\brel=[\"']?canonical\b[^<>]{0,300}?\bhref=[\"']?(https?://[^\"'\s<>]+)",
        r"<link\b[^<>]{0,300}\bhref=[\"']?(https?://[^\"'\s<>]+)[^<>]{0,300}?\brel=[\"']?canonical\b",
        r"<meta\b[^<>]{0,300}\bog:url\b[^<>]{0,100}?\bcontent=[\"']?(https?://[^\"'\s<>]+)",
        r"<!--\s*saved from url=(?:\(\d+\))?(https?://\S+)",
        r"<!--\s*Page saved with [^<>]{0,200}?\burl:\s*(https?://\S+)",
    )
]
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?:(?:source|src|ref|reference|page|doc|document|quelle|s)[-_ ]*)?\[?0*(\d{1,3})\]?", re.IGNORECASE
)
_FIRST_NUMBER = re.compile(r"\[?0*(\d{1,3})\]?[-_. )]+\D")
_FILE = re.compile(r"`docs:([^`]+)`")  # in the list of a report of Fathom's
_SITE = re.compile(r"\s+[|–—·»-]\s+")


class NumberedSource(NamedTuple):
    """A source of the report, with the numbers that the report's lists give it."""

    source: Source
    numbers: tuple[str, ...] = ()


class Looked(NamedTuple):
    """The result of a search: the texts, the origin of each source's text, and the reasons for missing ones."""

    texts: list[StoredText]
    places: dict[str, list[str]]  # by source id
    reasons: dict[str, str]  # by source id
    unused: list[str]  # files that are no source of the report
    unread: dict[str, str]  # why files could not be read


def in_folder(folder: Path, wanted: Sequence[NumberedSource], report: bytes = b"") -> Looked:
    """Return the sources found in a folder; the report itself and its copies do not count.

    Raises:
        InvalidInput: it does not exist, or has no file of a kind that is read.
    """
    if not folder.is_dir():
        raise InvalidInput(
            f"The folder {str(folder)!r} does not exist.", next_step="give a folder of sources as --sources"
        )
    files = [file for file in find_files([str(folder)]) if not report or not _is_copy(file.path, report)]
    if not files:
        raise InvalidInput(f"{folder} contains no readable file.", next_step=f"give files of these kinds: {KINDS}")
    found = Looked([], {}, {}, [], {})
    for file, read in sorted(read_files(files), key=lambda pair: pair[0].url):
        name = file.path.relative_to(folder.expanduser().absolute()).as_posix()
        if isinstance(read, UnreadableFile):
            found.unread[name] = str(read)
            for one in _meant(file, name, None, wanted):
                found.reasons[one.source.source_id] = f"{name} cannot be read: {read}"
            continue
        owners = _meant(file, name, read, wanted)
        for one in owners:
            own = read.title if read.title != readable(file.path.name) else ""
            source = one.source.model_copy(update={"title": own, "published": read.date})
            found.texts.append(stored(source, _without_address(read.text), name))
            found.places.setdefault(one.source.source_id, []).append(name)
        if not owners:
            found.unused.append(name)
    for one in wanted:
        if one.source.source_id not in found.places:
            found.reasons.setdefault(one.source.source_id, f"not found in {folder}")
    return found


def _is_copy(path: Path, data: bytes) -> bool:
    return path.stat().st_size == len(data) and path.read_bytes() == data


async def on_the_web(sources: Sequence[Source], page: Callable[[str], Awaitable[WebPage]], now: str) -> Looked:
    """Return the sources that can be read from the web; `page` reads an address, and `now` is the time, ISO 8601."""
    found = Looked([], {}, {}, [], {})
    urls = {source.url: source for source in sources if is_page(source.url)}
    found.reasons.update({one.source_id: "the report gives no address" for one in sources if one.url not in urls})
    begun, answers = count(1), dict[str, WebPage]()

    async def read(url: str) -> WebPage:
        phase(f"reading page {next(begun)} of {len(urls)}: {url}")
        answers[url] = await page(url)
        return answers[url]

    _, failed = await read_each([*urls], read, AT_ONCE)
    for url, source in urls.items():
        if not (one := answers.get(url)):
            continue
        if len(one.whole.split()) < LEAST_WORDS and len(one.whole) < 8 * LEAST_WORDS:
            found.reasons[source.source_id] = "the page has next to no text"
            continue
        known = source.model_copy(update={"title": one.title, "published": one.published, "reference": one.reference})
        found.texts.append(stored(known, one.whole, url, one.kept_since or now))
        found.places[source.source_id] = [url]
    for url, error in failed.items():
        found.reasons[urls[url].source_id] = _why(error, url)
    return found


def stored(source: Source, text: str, place: str, retrieved: str = "") -> StoredText:
    """Return a text of a source; its place in a file is its place in the text as it was read."""
    return StoredText(source, text, place, hashlib.sha256(text.encode()).hexdigest(), retrieved)


def _why(error: FathomError, url: str) -> str:
    said = error.message.removeprefix(f"{url}: ")
    return f"{said} ({error.next_step})" if error.next_step else said


def _meant(file: File, name: str, read: LaidOut | None, wanted: Sequence[NumberedSource]) -> list[NumberedSource]:
    """Return the sources to which a file belongs: the highest-ranked ones, unless the file only resembles several."""
    rated = _Marks(file, name, read, {comparable(one.source.url) for one in wanted})
    ranks = [rated.rank(one) for one in wanted]
    best = max(ranks, default=0)
    found = [one for one, rank in zip(wanted, ranks, strict=True) if rank == best and rank]
    return found if len(found) == 1 or best >= NAMED else []


class _Marks:
    """The marks of a file's origin."""

    def __init__(self, file: File, name: str, read: LaidOut | None, known: Collection[str]) -> None:
        self._name = name
        stem = file.path.name[: -len(file.path.suffix)] if file.path.suffix else file.path.name
        self._stem, self._stems = stem, {_slug(stem), _slug(file.path.name), _slug(name), _slug(_unnumbered(stem))}
        number, first = _NUMBER.fullmatch(stem), _FIRST_NUMBER.match(stem)
        self._number, self._first = number[1] if number else "", first[1] if first else ""
        self._title = read.title if read and read.title != readable(file.path.name) else ""
        strong, weak = _addresses(_head(file.path), read.text if read else "")
        self._sure = {url for url in map(comparable, strong) if url in known}
        likely = {url for url in map(comparable, weak) if url in known}
        self._likely = likely if len(likely) == 1 and not strong else set()

    def rank(self, one: NumberedSource) -> int:
        """Return the strength of the evidence for a source, 0 for none."""
        source = one.source
        key = comparable(source.url)
        if key in self._sure:
            return SURE
        if cited := _FILE.search(source.title):
            return NAMED if f"/{cited[1]}".endswith(f"/{self._name}") else 0
        full, parts = _slugs(source)
        if self._stems & full or self._stem.casefold() == source.source_id.casefold():
            return NAMED
        if self._number and self._number in one.numbers:
            return NUMBERED
        if source.title and (_same(self._title, source.title) or _same(self._stem, source.title)):
            return TITLED
        near = key in self._likely or bool(self._stems & parts) or (self._first and self._first in one.numbers)
        return LIKELY if near and not self._sure else 0


def _addresses(head: str, text: str) -> tuple[list[str], list[str]]:
    """Return the addresses that a file states as its origin, and the others in its first lines."""
    if _HTML.search(head[:3_000]):
        return [clean_url(found) for pattern in _IN_HEAD for found in pattern.findall(head)], []
    strong: list[str] = []
    weak: list[str] = []
    for line in _first_lines(text if "\x00" in head else head):
        if found := _LABELLED.match(line):
            strong.append(clean_url(found[1] or found[2]))
        weak += map(clean_url, _ANY.findall(line))
    return strong, weak


def _first_lines(text: str) -> Iterator[str]:
    """Yield the first lines with text, all of the front matter among them."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    matter = lines.index("---", 1) if lines[:1] == ["---"] and "---" in lines[1:60] else 0
    yield from lines[: matter + HEAD_LINES]


def _without_address(text: str) -> str:
    """Return a text without the first line if that is the source's address, or the one below its title."""
    lines = text.split("\n", HEAD_LINES)
    own = [number for number, line in enumerate(lines[:HEAD_LINES]) if _LABELLED.match(line)][:1]
    return "\n".join(line for number, line in enumerate(lines) if number not in own).strip("\n")


def _head(path: Path) -> str:
    """Return the beginning of a file as text; empty if the file is not text."""
    try:
        with path.open("rb") as stream:
            data = stream.read(HEAD_BYTES)
    except OSError:
        return ""
    return "\x00" if data.lstrip()[:5] == b"%PDF-" or data[:2] == b"PK" else data.decode("utf-8", "replace")


def _slugs(source: Source) -> tuple[set[str], set[str]]:
    """Return possible file names of a source: from its whole address, and from a part of the address."""
    if not is_page(source.url):  # the address is the list's entry instead
        entry = source.url
        files = re.findall(r"[\w./-]+\.\w{2,5}\b", entry)
        names = {_slug(part) for file in files for part in (file, file.rpartition("/")[2])}
        return {_slug(entry)}, {*names, _slug(source.title)}
    try:
        parts = urlsplit(unquote(source.url))
    except ValueError:
        return set(), set()
    host = parts.netloc.removeprefix("www.")
    whole = [f"{host}{parts.path}", f"{parts.netloc}{parts.path}", f"{host}{parts.path}?{parts.query}", source.url]
    last = parts.path.rstrip("/").rpartition("/")[2]
    pieces = [last, last.rpartition(".")[0], parts.path, host if not last else ""]
    return set(filter(None, map(_slug, whole))), {slug for slug in map(_slug, pieces) if len(slug) > 3}


def _slug(text: str) -> str:
    return re.sub(r"[\W_]+", "-", unquote(text).casefold()).strip("-")


def _unnumbered(stem: str) -> str:
    return re.sub(r"\A\[?\d{1,3}\]?[-_. )]+", "", stem)


def _same(title: str, other: str) -> bool:
    """Whether two titles are the same, apart from the name of a site or a part that is cut off."""
    return any(a == b or _within(a, b) or _within(b, a) for a in _forms(title) for b in _forms(other))


def _forms(title: str) -> Iterable[str]:
    first = _SITE.split(title)[0]
    return {slug for slug in (_slug(title), _slug(first) if len(first.split()) > 2 else "") if slug}


def _within(part: str, whole: str) -> bool:
    return len(part) >= 20 and part.count("-") >= 3 and f"-{part}-" in f"-{whole}-"
