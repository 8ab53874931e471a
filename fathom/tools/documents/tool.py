"""Searching the local documents."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Self

from fathom.config.settings import ResearchSettings
from fathom.models import AbsentWord, Document, Holdings, SourceText, Survey, ToolOutput, UnreadFile
from fathom.retrieval.expansion import meant_by
from fathom.retrieval.ranking import Passage, path_words
from fathom.retrieval.relevance import Place, best_places
from fathom.text.languages import language_tag
from fathom.text.urls import source_ids
from fathom.tools.base import RunContext, Tool
from fathom.tools.documents.corpus import UPLOADED, open_corpus
from fathom.tools.documents.embedding import hybrid_search
from fathom.tools.documents.excerpt import excerpt, rooms
from fathom.tools.documents.files import File
from fathom.tools.documents.index import Index, StoredDocument
from fathom.tools.documents.index import Passage as StoredPassage
from fathom.tools.documents.uploaded import UploadedCorpora

WHOLE = 1.5  # weight of a document's score in the index beside that of its best excerpt
CANDIDATES = 4  # documents of the index that are ranked by their best excerpt, for each that is returned
HEADINGS = 3
EMBEDDED = "the Python language reference"


class DocumentsTool(Tool):
    """Searches the user's documents, or the Python reference when there are none."""

    name = "documents"
    searches = True

    def __init__(
        self,
        paths: Sequence[str],
        cache: Path,
        max_results: int,
        embed_model: str | None = None,
        corpora: UploadedCorpora | None = None,
    ) -> None:
        self._paths = tuple(paths)
        self._corpora = corpora
        self._uploads = [f"{UPLOADED}{name}" for name in corpora.names] if corpora else []
        self._cache = cache
        self._max_results = max_results
        self._embed_model = embed_model
        names = [*(Path(path).expanduser().resolve().name for path in paths), *(corpora.names if corpora else [])]
        what = f"the user's documents in {', '.join(names)}" if names else EMBEDDED
        self.description = (
            f"Searches {what} and reads the closest ones. Input: one search query of a few specific words."
        )

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search the run's documents."""
        settings = run.settings
        return cls(settings.docs, run.environment.cache, settings.max_results, settings.embed_model, run.corpora)

    @classmethod
    def is_useful(cls, settings: ResearchSettings, query: str, configured: Collection[type[Tool]]) -> bool:
        """Return whether the user has documents, or nothing else can be searched."""
        return bool(settings.docs or settings.corpora) or not any(
            tool.searches for tool in configured if tool is not cls
        )

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the best documents: those of ordinary length whole, longer ones as their best passages."""
        return await asyncio.to_thread(self._search, await self._uploaded(), tool_input)

    async def survey(self, query: str, limit: int) -> Survey:
        """Return the names and best headings of the documents closest to a query, and the files left out."""
        return await asyncio.to_thread(self._survey, await self._uploaded(), query, limit)

    async def holdings(self, words: Sequence[str]) -> Holdings:
        """Return where the documents are and how many, their language, and the words that none of them has."""
        return await asyncio.to_thread(self._holdings, await self._uploaded(), words)

    async def _uploaded(self) -> Sequence[File]:
        return await self._corpora.files(self._cache) if self._corpora else []

    def _open(self, uploaded: Sequence[File]) -> Index:
        return open_corpus(self._paths, self._cache, uploaded, self._uploads)

    def _search(self, uploaded: Sequence[File], query: str) -> ToolOutput:
        index = self._open(uploaded)
        if self._embed_model:
            matches = hybrid_search(index, self._embed_model, self._cache, query, self._max_results)
        else:
            matches = index.search(query, CANDIDATES * self._max_results)
        documents = [index.document(match.document) for match in matches]
        ids = source_ids(document.url for document in documents)
        places = best_places(query, [Passage(d.text, f"{d.title} {path_words(d.url)}") for d in documents])
        if self._embed_model:
            order = list(range(len(documents)))
        else:
            best = max((found[0].score for found in places.values()), default=1.0)
            first = max((match.hits[0].score for match in matches), default=1.0) or 1.0
            own = {number: found[0].score / best for number, found in places.items()}
            worth = {n: own.get(n, 0.0) + WHOLE * match.hits[0].score / first for n, match in enumerate(matches)}
            order = sorted(worth, key=lambda number: (-matches[number].named, -worth[number]))
        chosen = order[: self._max_results]
        results = []
        for number, room in zip(chosen, rooms([documents[number].text for number in chosen]), strict=True):
            passages = index.passages(matches[number].document)
            results.append(_source_text(documents[number], passages, places.get(number, []), ids, room))
        return ToolOutput(results=results)

    def _survey(self, uploaded: Sequence[File], query: str, limit: int) -> Survey:
        index = self._open(uploaded)
        documents: list[Document] = []
        for match in index.search(query, limit):
            title = index.document(match.document).title
            headings = {p.id: p.heading for p in index.passages(match.document)}
            best = dict.fromkeys(headings[hit.passage] for hit in match.hits)
            documents.append(Document(title=title, headings=[h for h in best if h and h != title][:HEADINGS]))
        unread = [UnreadFile(path=url, reason=reason) for url, reason in index.skipped.items()]
        return Survey(documents=documents, unread=unread)

    def _holdings(self, uploaded: Sequence[File], words: Sequence[str]) -> Holdings:
        index = self._open(uploaded)
        absent = [word for word in words if not index.has(word)]
        known = index.vocabulary() if absent else {}
        return Holdings(
            tool=self.name,
            where=[*(str(Path(path).expanduser().resolve()) for path in self._paths), *self._uploads] or [EMBEDDED],
            documents=index.size,
            language=language_tag(index.beginnings()),
            absent=[AbsentWord(word=word, nearby=meant_by(word, known)) for word in absent],
        )


def _source_text(
    document: StoredDocument,
    passages: Sequence[StoredPassage],
    places: Sequence[Place],
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
        score=round(places[0].score, 3) if places else 0.0,
        full=room is None,
        text=document.text if room is None else excerpt(document.text, passages, best, room),
    )
