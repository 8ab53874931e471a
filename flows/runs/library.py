"""The library: all finished runs of a store, searched by their questions, answers, notes and sources.

Its index lies in the cache of this machine and is brought up to date with the store before each search. Who may read
a run is asked for each run that has a word of the query, and only those that may be read are searched: whoever may
read few runs finds them however many others there are.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fathom.config.environment import Environment, artifact_root
from fathom.errors import FathomError, RunNotFound, StoreError, ToolRejected
from fathom.evidence.claims import claim_text, is_head
from fathom.evidence.stored import StoredText
from fathom.flows.runs.index import RunIndex
from fathom.models import ReadBefore, Source
from fathom.storage.atomic import side_by_side
from fathom.storage.library import Kind, LibraryIndex, LibraryMatch, LibraryText
from fathom.storage.ownership import Owners, Ownership
from fathom.storage.pruning import PRUNED
from fathom.storage.runs import StoredRun, other_stores
from fathom.storage.store import ArtifactStore
from fathom.text.citations import without_citations
from fathom.text.plain import clean_line, counted
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import query_terms, terms
from fathom.tools.earlier import EarlierRun, TextsFor

if TYPE_CHECKING:
    from fathom.client.shapes import LibraryHit

MOST_HITS = 100
CANDIDATES = 200  # texts that are looked at in one search
PIECE = 1_000  # characters of a source that are found together; up to twice as many in a long paragraph
LONGEST_NOTE = 400  # characters of a note that is shown whole, as the rows of a table are; of a list, the closest item
_WORTH_A_WORD = 50  # runs to be read

MayRead = Callable[[str], Awaitable[bool]]
"""Whether whoever asks may read the run with an id."""


async def everything(run_id: str) -> bool:
    """Let somebody read every run: who has the store."""
    return True


class Library:
    """The library of one store. `say` is called with the reason if reading takes long."""

    def __init__(self, store: ArtifactStore, cache: Path, say: Callable[[str], object] = lambda line: None) -> None:
        self._store = store
        self._say = say
        self._runs = RunIndex(store, say)
        name = hashlib.sha256(store.address().encode()).hexdigest()[:32]
        self._index = LibraryIndex(cache / "library" / f"{name}.sqlite")
        self._refreshing = asyncio.Lock()

    async def search(self, query: str, limit: int, may_read: MayRead = everything) -> list[LibraryHit]:
        """Return the closest texts of runs that whoever asks may read; what several runs say, once, of the newest.

        Raises:
            StoreError: the store or the index cannot be read.
        """
        from fathom.client.shapes import LibraryHit  # a run, which only looks up what was read, needs no client

        hits: dict[frozenset[str], LibraryHit] = {}
        runs: defaultdict[frozenset[str], set[str]] = defaultdict(set)
        sentences: dict[str, str] = {}
        async for run, found in self._found(query, may_read):
            kind, text, source_id, title, url = found.text
            if text not in sentences:  # many runs may have read a page
                is_short = kind != "source" and len(text) <= LONGEST_NOTE and "\n- " not in text
                sentences[text] = _on_one_line(text) if is_short else _closest(query, text)
            key = frozenset(terms(sentences[text])) or frozenset((text,))
            known = hits.get(key)
            if not known and len(hits) == limit:
                continue
            runs[key].add(run.run_id)
            if not known or run.started > known.asked:
                hits[key] = LibraryHit(
                    kind=kind,
                    sentence=sentences[text],
                    question=run.query,
                    run_id=run.run_id,
                    asked=run.started,
                    folder=run.folder,
                    source_id=source_id,
                    title=title,
                    url=url,
                )
        return [hit.model_copy(update={"earlier_runs": len(runs[key]) - 1}) for key, hit in hits.items()]

    async def texts(self, query: str, limit: int, may_read: MayRead = everything) -> list[StoredText]:
        """Return the stored texts of the closest sources, the newest reading of each, with the run that read them.

        Raises:
            StoreError: the store or the index cannot be read.
        """
        chosen: dict[str, list[StoredRun]] = {}
        async for run, found in self._found(query, may_read):
            if found.text.url and (found.text.url in chosen or len(chosen) < limit):
                chosen.setdefault(found.text.url, []).append(run)
        texts: list[StoredText] = []
        for url, runs in chosen.items():
            newest = max(runs, key=lambda run: run.started)
            with suppress(ToolRejected):  # its files were removed in the meantime
                own = await EarlierRun(newest.files).texts()
                texts += [_dated(text, newest) for text in own if text.source.url == url]
        return texts

    async def _found(self, query: str, may_read: MayRead) -> AsyncIterator[tuple[StoredRun, LibraryMatch]]:
        stored = await self._refresh()
        folders = [folder for folder in await asyncio.to_thread(self._index.with_words, query) if folder in stored]
        may = await side_by_side(folders, lambda folder: may_read(stored[folder].run_id))
        own = [folder for folder, allowed in zip(folders, may, strict=True) if allowed]
        pruned: dict[str, bool] = {}
        for one in await asyncio.to_thread(self._index.find, query, own, CANDIDATES):
            if one.folder not in pruned:
                pruned[one.folder] = await self._store.exists(f"{one.folder}/{PRUNED}")
            if not (pruned[one.folder] and one.text.kind == "source"):
                yield stored[one.folder], one

    async def _refresh(self) -> dict[str, StoredRun]:
        """Bring the index up to date, and return the runs of the store by their folders."""
        async with self._refreshing:
            stored = {run.folder: run for run in await self._runs.read() if run.folder and not run.damaged}
            known = await asyncio.to_thread(self._index.runs)
            new = [run for folder, run in stored.items() if known.get(folder) != run.run_id]
            if len(new) > _WORTH_A_WORD:
                self._say(f"Reading {len(new):,} runs of {self._store.address()} for the library, which is done once.")
            if gone := [folder for folder in known if folder not in stored]:
                await asyncio.to_thread(self._index.drop, gone)
            for run in new:
                if texts := await _texts_of(run):
                    await asyncio.to_thread(self._index.put, run.folder, run.run_id, texts)
            return stored


async def search_here(
    query: str, limit: int, artifacts: str | None, say: Callable[[str], object] = lambda line: None
) -> list[LibraryHit]:
    """Return the closest texts of the runs on this machine, each with the address of its run.

    These are the runs of the given store; if none is given, of the present store or, if that has nothing, of the others
    that the user has used. `say` is told which store has them, or cannot be read.

    Raises:
        StoreError: the given or present store, or its index, cannot be read.
    """
    environment, root = Environment.read(), artifact_root(artifacts)

    async def found(address: str, most: int) -> list[LibraryHit]:
        store = ArtifactStore(address)
        hits = await Library(store, environment.cache, say).search(query, most)
        return [hit.model_copy(update={"link": store.address(hit.folder)}) for hit in hits]

    hits = await found(root, limit)
    for address in [] if hits or artifacts else other_stores(root, environment):
        try:
            own = await found(address, limit - len(hits)) if len(hits) < limit else []
        except FathomError as error:  # another store may have something
            say(f"{address} cannot be read: {error.message}")
            continue
        if own:
            say(f"{counted(len(own), 'sentence')} found in {address}")
        hits += own
    return hits


def library_of(store: ArtifactStore, cache: Path, tags: Sequence[str]) -> TextsFor:
    """Return the search of a run in earlier ones, from the tags of its flow run, which say who asked."""
    asker, owners = Ownership.of_tags(tags).asker, Owners(store)

    async def may_read(run_id: str) -> bool:
        from fathom.flows.runs.finding import find_run  # imports Prefect, which a search from a shell does without

        if asker.is_admin:
            return True
        try:
            own = await owners.stored(run_id) or Ownership.of_tags((await find_run(store, run_id)).tags)
        except RunNotFound:
            return False
        return own.readable_by(asker)

    return partial(Library(store, cache).texts, may_read=may_read)


async def _texts_of(run: StoredRun) -> list[LibraryText]:
    """Return the texts of a finished run; none of one that has not ended. Damaged files hide no others."""
    folder = run.files
    found = [LibraryText("question", run.query)]
    try:
        if await folder.result() is None:
            return []
        report, notes = await folder.report(), await folder.notes()
    except StoreError:
        return found
    try:
        stored = await EarlierRun(folder).texts()
    except ToolRejected:  # its evidence was removed, or it has none
        stored = []
    sources = {source.source_id: source for source in (report.sources if report else [])}
    sources |= {text.source.source_id: text.source for text in stored}
    for claim in report.claims if report else ():
        found.append(_of(sources, "answer", without_citations(claim.sentence), claim.source_ids))
    for note in notes or ():
        found += [_of(sources, "note", text, ids) for text, ids in note.quotations()]
    for text in stored:
        found += [_of(sources, "source", piece, [text.source.source_id]) for piece in _pieces(text)]
    return found


def _of(sources: Mapping[str, Source], kind: Kind, text: str, ids: Sequence[str]) -> LibraryText:
    source = next((sources[source_id] for source_id in ids if source_id in sources), None)
    own = (source.source_id, clean_line(source.title), source.url) if source else ()
    return LibraryText(kind, text, *own)


def _pieces(text: StoredText) -> Iterator[str]:
    """Yield a source in pieces that end at the ends of paragraphs, or of lines if these are far; first its title."""
    piece = f"{clean_line(text.source.title)}\n"
    for line in text.text.splitlines(keepends=True):
        if len(piece) > 2 * PIECE or (len(piece) > PIECE and not line.strip()):
            yield piece
            piece = ""
        piece += line
    yield piece


def _closest(query: str, text: str) -> str:
    """Return the sentence of a text with the most words of a query; one that announces the next, with that."""
    wanted = set(query_terms(query))
    lines = [claim_text(part) for part, names_columns in _parts(text) if not names_columns] or [text]
    best = max(range(len(lines)), key=lambda at: len(wanted.intersection(terms(lines[at]))))
    return " ".join(lines[best : best + 2]) if lines[best].endswith(":") else lines[best]


def _on_one_line(text: str) -> str:
    """Return a text on one line: of a table, the header before a colon, and the rows between semicolons."""
    line = ""
    for part, names_columns in _parts(text):
        line += claim_text(part) + ("" if part.kind != "table" else ":" if names_columns else ";") + " "
    return line.strip(" ;")


def _parts(text: str) -> Iterator[tuple[Sentence, bool]]:
    """Yield the sentences and rows of a text, and whether each is the head of a table."""
    parts = split_sentences(text)
    for number, part in enumerate(parts):
        if part.kind != "rule":
            yield part, part.kind == "table" and is_head(parts, number)


def _dated(text: StoredText, run: StoredRun) -> StoredText:
    """Return a text with the run that read it, and when; a text that the run had from an earlier one keeps that."""
    before = text.source.before or ReadBefore(run_id=run.run_id, on=(text.retrieved or run.started)[:10])
    return replace(text, source=text.source.model_copy(update={"before": before}))
