"""Searching the local documents, and choosing the part of each that is returned.

A document of ordinary length is returned whole, a longer one as its best passages. Passages end at the end of text that
belongs together (`fathom.retrieval.chunking`); if such text was too long for one passage, its other passages are added
as far as there is room, or else the lines that the passage needs are repeated.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Self

from fathom.config.groups import AccessScope
from fathom.config.settings import ResearchSettings
from fathom.models import AbsentWord, Document, Holdings, SourceText, Survey, ToolOutput, UnreadFile
from fathom.retrieval.chunking import GAP, headings_above
from fathom.retrieval.expansion import meant_by
from fathom.retrieval.identifiers import borne_by, naming
from fathom.retrieval.ranking import Passage, path_words
from fathom.retrieval.relevance import ExcerptPlace, best_places
from fathom.text.languages import language_tag
from fathom.text.messages import is_quotation
from fathom.text.parsed import parse
from fathom.text.tokens import count_tokens
from fathom.text.urls import source_ids
from fathom.tools.base import RunContext, Tool
from fathom.tools.documents.corpus import UPLOADED, UploadedCorpora, open_corpus
from fathom.tools.documents.files import File
from fathom.tools.documents.index import Index, StoredDocument
from fathom.tools.documents.index import IndexedPassage as StoredPassage

WHOLE = 1.5  # weight of a document's score in the index relative to the score of its best excerpt
CANDIDATES = 4  # documents of the index that are ranked by their best excerpt, for each that is returned
HEADINGS = 3
EMBEDDED = "the Python language reference"
SHIPPED = f"{EMBEDDED}, which comes with Fathom"
"""What people are told is searched, where models are told `EMBEDDED`."""


class DocumentsTool(Tool):
    """Searches the user's documents, or the Python reference when there are none."""

    name = "documents"
    searches = True
    scope = AccessScope.documents

    def __init__(
        self,
        paths: Sequence[str],
        cache: Path,
        max_results: int,
        corpora: UploadedCorpora | None = None,
    ) -> None:
        self._paths = tuple(paths)
        self._corpora = corpora
        self._uploads = [f"{UPLOADED}{name}" for name in corpora.names] if corpora else []
        self._cache = cache
        self._max_results = max_results
        names = [*(Path(path).expanduser().resolve().name for path in paths), *(corpora.names if corpora else [])]
        what = f"the user's documents in {', '.join(names)}" if names else EMBEDDED
        self.description = (
            f"Searches {what} and reads the closest ones. Input: one search query of a few specific words."
        )

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search the run's documents."""
        settings = run.settings
        return cls(settings.docs, run.environment.cache, settings.max_results, run.corpora)

    @classmethod
    def is_useful(cls, settings: ResearchSettings, query: str, configured: Collection[type[Tool]]) -> bool:
        """Return whether the user has documents, or nothing else can be searched."""
        return bool(settings.docs or settings.corpora) or not any(
            tool.searches for tool in configured if tool is not cls
        )

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the best documents: whole if they are of ordinary length, else as their best passages."""
        return await asyncio.to_thread(self._search, await self._uploaded(), tool_input)

    async def survey(self, query: str, limit: int) -> Survey:
        """Return the names and best headings of the documents closest to a query, and the files left out."""
        return await asyncio.to_thread(self._survey, await self._uploaded(), query, limit)

    async def holdings(self, words: Sequence[str]) -> Holdings:
        """Return the places and number of the documents, their languages, and the words that none of them has."""
        return await asyncio.to_thread(self._holdings, await self._uploaded(), words)

    async def _uploaded(self) -> Sequence[File]:
        return await self._corpora.files(self._cache) if self._corpora else []

    def _open(self, uploaded: Sequence[File]) -> Index:
        return open_corpus(self._paths, self._cache, uploaded, self._uploads)

    def _search(self, uploaded: Sequence[File], query: str) -> ToolOutput:
        index = self._open(uploaded)
        matches = index.search(query, CANDIDATES * self._max_results)
        documents = [index.document(match.document) for match in matches]
        ids = source_ids(document.url for document in documents)
        places = best_places(query, [Passage(d.text, f"{d.title} {path_words(d.url)}") for d in documents])
        best = max((found[0].score for found in places.values()), default=1.0)
        first = max((match.hits[0].score for match in matches), default=1.0) or 1.0
        own = {number: found[0].score / best for number, found in places.items()}
        worth = {n: own.get(n, 0.0) + WHOLE * match.hits[0].score / first for n, match in enumerate(matches)}
        chosen = sorted(worth, key=lambda number: (-matches[number].named, -worth[number]))[: self._max_results]
        results = []
        for number, room in zip(chosen, rooms([documents[number].text for number in chosen]), strict=True):
            passages = index.passages(matches[number].document)
            shown = _with_named(query, passages, places.get(number, []))
            results.append(_source_text(documents[number], passages, shown, ids, room))
        return ToolOutput(results=results)

    def _survey(self, uploaded: Sequence[File], query: str, limit: int) -> Survey:
        index = self._open(uploaded)
        documents: list[Document] = []
        for match in index.search(query, limit):
            title = index.document(match.document).title
            headings = {p.id: p.heading for p in index.passages(match.document)}
            best = dict.fromkeys(headings[hit.passage] for hit in match.hits)
            documents.append(
                Document(
                    title=title, headings=[h for h in best if h not in ("", title) and not is_quotation(h)][:HEADINGS]
                )
            )
        unread = [UnreadFile(path=url, reason=reason) for url, reason in index.skipped.items()]
        return Survey(documents=documents, unread=unread)

    def _holdings(self, uploaded: Sequence[File], words: Sequence[str]) -> Holdings:
        index = self._open(uploaded)
        absent = [word for word in words if not index.has(word)]
        known = index.vocabulary() if absent else {}
        found = Counter(filter(None, map(language_tag, index.beginnings())))
        languages = [tag for tag, _ in found.most_common()]
        return Holdings(
            tool=self.name,
            where=[*(str(Path(path).expanduser().resolve()) for path in self._paths), *self._uploads] or [SHIPPED],
            documents=index.size,
            language=next(iter(languages), ""),
            other_languages=languages[1:],
            absent=[AbsentWord(word=word, nearby=meant_by(word, known)) for word in absent],
        )


def _with_named(query: str, passages: Sequence[StoredPassage], places: Sequence[ExcerptPlace]) -> list[ExcerptPlace]:
    """Return the places of a document that bear on a query, and before them what it names by an identifier.

    That stands below a heading with the identifier, and may have no other word of the query.
    """
    named = naming(query, ((n, borne) for n, passage in enumerate(passages) for borne in borne_by(passage.heading, "")))
    score = places[0].score if places else 0.0
    first = sorted(named, key=named.__getitem__, reverse=True)
    return [*(ExcerptPlace(passages[number].start, score) for number in first), *places]


def _source_text(
    document: StoredDocument,
    passages: Sequence[StoredPassage],
    places: Sequence[ExcerptPlace],
    ids: Mapping[str, str],
    room: int | None,
) -> SourceText:
    """Return a document as a source: with `room` in tokens, its best passages; else the whole."""
    starts = [passage.start for passage in passages]
    best = [max(0, bisect_right(starts, place.start) - 1) for place in places] or [0]
    first = passages[best[0]]
    return SourceText(
        source_id=ids[document.url],
        url=document.url,
        title=document.title,
        kind="document",
        location=f"page {first.page}" if first.page else first.heading,
        published=document.date,
        fields=document.fields,
        file_sha256=document.digest,
        score=round(places[0].score, 3) if places else 0.0,
        full=room is None,
        text=document.text if room is None else excerpt(document.text, passages, best, room),
    )


WHOLE_TOKENS = 6_000  # tokens up to which a document is of ordinary length; of a longer one this much is returned
OUTPUT_TOKENS = 24_000  # tokens of all documents that one search returns
LEAST_TOKENS = 1_500  # tokens for each document, if so many fit in an output


def rooms(texts: Sequence[str]) -> list[int | None]:
    """Return how many tokens of each text to return, the best text first; None for one that is returned whole."""
    least = min(LEAST_TOKENS, OUTPUT_TOKENS // max(1, len(texts)))
    sizes = [count_tokens(text) for text in texts]
    left = OUTPUT_TOKENS
    found: list[int | None] = []
    for number, size in enumerate(sizes):
        kept = sum(min(least, later) for later in sizes[number + 1 :])
        room = min(WHOLE_TOKENS, left - kept)
        found.append(None if size <= room else room)
        left -= min(size, room)
    return found


def excerpt(text: str, passages: Sequence[StoredPassage], best: Sequence[int], max_tokens: int) -> str:
    """Return the best passages with their neighbours, in reading order, in about so many tokens.

    `best` are the numbers of passages, the best first. A heading is shown with something below it or not at all.
    """
    chosen: set[int] = set()
    left = max_tokens
    costs = [count_tokens(text[passage.start : passage.stop]) for passage in passages]
    groups = _together(passages, costs, max_tokens)
    for at in dict.fromkeys(best):
        own = groups[at]
        beside = (groups[number] for number in (own.stop, own.start - 1) if 0 <= number < len(passages))
        for wanted in (own, range(at, at + 1), *beside):
            more = [number for number in wanted if number not in chosen]
            cost = sum(costs[number] for number in more)
            if cost <= left:
                chosen.update(more)
                left -= cost
    return GAP.join(_stretches(text, passages, _with_content(text, passages, chosen) or sorted(chosen)))


def _together(passages: Sequence[StoredPassage], costs: Sequence[int], max_tokens: int) -> list[range]:
    """Return for each passage the passages that belong together with it; it alone, if they exceed `max_tokens`."""
    found: list[range] = []
    while (start := len(found)) < len(passages):
        stop = start + 1
        while stop < len(passages) and passages[stop].opening:
            stop += 1
        run = range(start, stop)
        fits = sum(costs[start:stop]) <= max_tokens
        found += [run if fits else range(number, number + 1) for number in run]
    return found


def _with_content(text: str, passages: Sequence[StoredPassage], chosen: Collection[int]) -> list[int]:
    """Return the chosen passages in reading order, without headings that have nothing below them."""
    kept: list[int] = []
    for number in sorted(chosen, reverse=True):
        below = number + 1 in kept[-1:] and passages[number + 1].opening
        if below or _line(text, passages[number]) != text[passages[number].start : passages[number].stop]:
            kept.append(number)
    return kept[::-1]


def _line(text: str, passage: StoredPassage) -> str:
    """Return the line of the heading that a passage begins with; empty if it begins below its heading."""
    line = text[passage.start : passage.stop].split("\n", 1)[0]
    return line if passage.heading and line.lstrip("#").strip() == passage.heading else ""


def _stretches(text: str, passages: Sequence[StoredPassage], chosen: Sequence[int]) -> Iterator[str]:
    """Yield the runs of chosen passages, each below its headings and with the lines it needs from omitted passages."""
    sentences = parse(text).sentences
    starts = [sentence.start for sentence in sentences]
    above = headings_above(sentences)
    shown: set[int] = set()  # headings
    for first, last in _runs(chosen):
        begins, ends = passages[first].start, passages[last].stop
        opening = passages[first].opening
        number = bisect_left(starts, begins)
        path = above[number] if number < len(above) else ()
        lines = [sentences[n].text for n in path if n not in shown and sentences[n].text not in opening.split("\n\n")]
        if lines:
            yield "\n\n".join(lines)
        shown.update((*path, *range(number, bisect_left(starts, ends))))
        yield opening + text[begins:ends] + passages[last].closing


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of the numbers that follow each other."""
    first = None
    for number, after in zip_longest(numbers, numbers[1:]):
        first = number if first is None else first
        if after != number + 1:
            yield first, number
            first = None
