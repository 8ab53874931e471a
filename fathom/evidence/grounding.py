"""Keeping notes to their sources: a bullet stays unless it has a fact that no text has, and ids stay in their places.

So additions by the compressing model never enter the context, and its paraphrases are not lost. The list of paraphrased
bullets is kept beside the note and not written into it: a writer condenses, so most bullets are paraphrases.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from fathom.evidence.claims import behind, is_head
from fathom.evidence.likeness import nearest, nearest_rows
from fathom.evidence.passages import Search
from fathom.evidence.stored import texts_of
from fathom.evidence.support import ENOUGH, spaced_words
from fathom.evidence.words import PART_CHARS, facts_nowhere, says_nothing
from fathom.models import Note, SourceText
from fathom.text.blocks import Kind
from fathom.text.citations import cited_ids, split_at_citations, without_citations
from fathom.text.languages import language_tag
from fathom.text.sentences import fenced_code, split_markdown
from fathom.text.terms import count_words, query_terms, terms

CLEARLY = 2  # times as near to a bullet as the source it cites is one that replaces that
LABEL_WORDS = 12  # maximum words around a quotation
_LEFT_OUT = re.compile(r"\s*(?:[\[(]?(?:…|\.\.\.)[\])]?|\(address left out\))\s*")
_LABELLED = re.compile(
    r"(?P<label>.{1,150}?)[:：][\s*_]*(?P<quoted>[\"'“”„‟«»‹›‘’‚「『].+[\"'“”‟«»‹›‘’」』])(?P<after>[^\"“”„«»「」]*)\Z",
    re.DOTALL,
)
_ABOVE_BLOCKS = re.compile(r"(?P<label>[^\n]{1,150}[:：]\**)\s*\n\s*(?P<blocks>(?:```|~~~|\|).+)\Z", re.DOTALL)
_QUOTATION = re.compile(
    r"\"([^\"]+)\"|[“„‟]([^“”„‟]+)[“”‟]|[«‹]([^»›]+)[»›]|[»›]([^«‹]+)[«‹]|[「『]([^」』]+)[」』]|[‘‚]([^‘‚]+)[’‘]"
)
_BLOCKS: frozenset[Kind] = frozenset(("item", "table", "code"))


class Grounded(NamedTuple):
    """A note that keeps to its sources, the bullets that were dropped, and the kept bullets that are paraphrases."""

    note: Note
    dropped: list[str]
    paraphrased: list[str]


def ground(note: Note, texts: Sequence[SourceText]) -> Grounded:
    """Return a note with only the bullets that may come from the given texts, each with the right source ids.

    A bullet whose words are in a text, word for word and in order, is a quotation. Case, white space, quotation marks
    and other punctuation do not count, and an ellipsis replaces any words. So does the end of a line where a bullet
    quotes rows, items or code: a header may be apart from its row, but lines of code are together. A row may also have
    its cells from one row of a table. A short label before what is quoted in quotation marks may be the note's own. If
    a bullet cites in several places, the text before each place is looked up by itself.

    Any other bullet is a paraphrase. It is dropped only if it has a number, date, name or piece of code that none of
    the texts has, or if its origin is unknown: no text has a word of its topic. If only the label above quoted rows or
    code has such a fact, only the label is dropped.
    """
    call = _Call(texts)
    kept: list[str] = []
    dropped: list[str] = []
    paraphrased: list[str] = []
    for bullet in note.extraction:
        grounded, is_quoted = call.grounded(bullet)
        (kept if grounded else dropped).append(grounded or bullet)
        if grounded and not is_quoted:
            paraphrased.append(grounded)
    return Grounded(note.model_copy(update={"extraction": kept}), dropped, paraphrased)


class _Call:
    """The texts of a call, in which its note's bullets are looked up."""

    def __init__(self, texts: Sequence[SourceText]) -> None:
        self._search = Search(texts_of(texts))
        self._words = [(text.source_id, spaced_words(text.text)) for text in texts]
        self._ids = list(dict.fromkeys(text.source_id for text in texts))

    @cached_property
    def _topics(self) -> dict[str, frozenset[str]]:
        """The terms of each source's texts."""
        return {one: frozenset(terms("\n".join(self._search.whole([one])))) for one in self._ids}

    @cached_property
    def _languages(self) -> set[str]:
        """The languages of the texts, empty of one in which it is not clear."""
        return {language_tag(text[:PART_CHARS]) for text in self._search.whole(self._ids)}

    def grounded(self, bullet: str) -> tuple[str, bool]:
        """Return a bullet as the note keeps it, empty if it does not, and whether all of it is quoted."""
        parts = [(text, [one for one in ids if one in self._ids]) for text, ids in split_at_citations(bullet)]
        if sum(bool(count_words(text)) for text, _ in parts) > 1 and any(ids for _, ids in parts):
            return self._of_parts(bullet, parts)
        text, cited = without_citations(bullet).rstrip(), cited_ids(bullet)
        holders = self._quoted_from(text)
        known = [one for one in cited if one in self._ids]
        own = self._of_quotation(text, known, holders) if holders else self._sources(text, known)
        if not own:
            return self._of_blocks(text)
        return bullet if cited == own else behind(text, _citations(own)), bool(holders)

    def _of_blocks(self, text: str) -> tuple[str, bool]:
        """Return the code or rows of a bullet if a text has them word for word, without the label above them."""
        blocks = found["blocks"] if (found := _ABOVE_BLOCKS.match(text)) else ""
        holders = self._holders(_fragments(blocks)) if blocks else []
        return (behind(blocks, _citations(holders[:1])), True) if holders else ("", False)

    def _of_quotation(self, text: str, cited: Sequence[str], holders: Sequence[str]) -> list[str]:
        """Return the sources of a quotation: the cited sources that have it, and the ones that may paraphrase it."""
        if not set(cited) & set(holders):
            return list(holders[:1])
        topic = set(query_terms(text))
        return [
            one
            for one in cited
            if one in holders or (2 * len(topic & self._topics[one]) >= len(topic) and not self._nowhere(text, [one]))
        ]

    def _of_parts(self, bullet: str, parts: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, bool]:
        """Return a bullet that cites in several places, with the right ids in each place."""
        if self._nowhere(without_citations(bullet), self._ids):
            return "", False
        said, is_quoted = "", True
        for text, cited in parts:
            words = count_words(text)
            holders = self._quoted_from(text) if words else cited
            is_quoted = is_quoted and bool(holders or not words)
            own = [one for one in cited if one in holders] or cited
            if cited and not set(own) & set(holders):
                # Fewer words are in another source by chance.
                own = holders[:1] if words >= ENOUGH and holders else self._sources(text, cited) or cited
            said = behind(f"{said}{text}", _citations(own)) if own else f"{said}{text}"
        return said, is_quoted

    def _quoted_from(self, text: str) -> list[str]:
        """Return the sources that have all of a text word for word, or all cells of each of its rows in one row."""
        return self._holders(_fragments(text)) or self._holders_of_quotation(text) or self._holders_of_rows(text)

    def _holders_of_rows(self, text: str) -> list[str]:
        rows = _rows(text)
        found = [nearest_rows(row, self._search) for row in rows]
        having = [
            {passage.text.source.source_id for passage in one.passages} for one in found if one and not one.missing
        ]
        every = set.intersection(*having) if rows and len(having) == len(rows) else set[str]()
        return [source_id for source_id in self._ids if source_id in every]

    def _holders(self, fragments: Sequence[str]) -> list[str]:
        """Return the sources that have some words in order, each piece word for word."""
        return list(dict.fromkeys(source_id for source_id, words in self._words if _holds(words, fragments)))

    def _holders_of_quotation(self, text: str) -> list[str]:
        """Return the sources that have all the text behind a label, and all facts of the label."""
        for label, quotations in _labelled(text):
            holding = [self._holders(_fragments(quotation)) for quotation in quotations]
            holders = [one for one in holding[0] if all(one in others for others in holding)]
            if found := [one for one in holders if not self._nowhere(label, [one])]:
                return found
        return []

    def _sources(self, text: str, cited: Sequence[str]) -> list[str]:
        """Return the sources of a paraphrase; none if it has a fact that no text has, or comes from none of them.

        They are the cited sources, or else the closest one; if these lack a fact, a source that has it is added.
        """
        topic = set(query_terms(text))
        sharing = [one for one in self._ids if topic & self._topics[one]]
        if not sharing and (not cited or (self._is_of_their_language(text) and not says_nothing(text))):
            return []
        own = list(cited) or self._nearest(text, sharing)
        lacking = set(self._nowhere(text, own))
        if not lacking:
            return own
        missing = {one: lacking.intersection(self._nowhere(text, [one], translated=False)) for one in self._ids}
        if set.intersection(*missing.values()):
            return []
        others = self._nearest(text, [one for one in self._ids if not missing[one]])
        instead = others and not self._nowhere(text, others)
        if instead and self._likeness(text, others) > CLEARLY * self._likeness(text, own):
            return others
        return [*own, *others]

    def _nearest(self, text: str, ids: Sequence[str]) -> list[str]:
        """Return the source that has most of a text close together, or else most of its words; none without ids."""
        passages = nearest(text, self._search, ids).passages if len(ids) > 1 else []
        topic = set(query_terms(text))
        most = sorted(ids, key=lambda one: -len(topic & self._topics[one]))
        return [passage.text.source.source_id for passage in passages][:1] or most[:1]

    def _likeness(self, text: str, ids: Collection[str]) -> float:
        return nearest(text, self._search, ids).score

    def _nowhere(self, text: str, ids: Collection[str], *, translated: bool = True) -> list[str]:
        return facts_nowhere(text, self._search, ids, translated=translated)

    def _is_of_their_language(self, text: str) -> bool:
        """Whether a text is clearly of a language that was read: else it may share no word with what it says."""
        return (language_tag(text) or None) in self._languages


def _fragments(text: str) -> list[str]:
    """Return the pieces that must be in a source in order: each line of a bullet with blocks, but code as one piece."""
    parts = [part for part in split_markdown(text) if part.kind != "rule"]
    if {part.kind for part in parts} & _BLOCKS:
        quoted = [fenced_code(part.text) or part.text for part in parts]
    else:
        quoted = text.split("\n\n")  # a heading may be apart from what stands below it
    words = (spaced_words(piece) for part in quoted for piece in _LEFT_OUT.split(part))
    return [piece for piece in words if piece.strip()]


def _rows(text: str) -> list[str]:
    """Return the rows of a text that is one table, or one row, but for the row that names the columns."""
    parts = split_markdown(text)
    if not parts or any(part.kind not in ("table", "rule") for part in parts):
        return []
    return [part.text for number, part in enumerate(parts) if part.kind == "table" and not is_head(parts, number)]


def _holds(words: str, fragments: Sequence[str]) -> bool:
    position = 0
    for fragment in fragments:
        found = words.find(fragment, position)
        if found < 0:
            return False
        position = found + len(fragment) - 1  # the space between two words is of both
    return bool(fragments)


def _labelled(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the ways to split a text into a short label and a quotation: at the last mark, at quotes, at blocks."""
    ways: list[tuple[str, list[str]]] = []
    if found := _LABELLED.match(text):
        quoted = found["quoted"]
        ways.append((f"{found['label']} {found['after']}", [quoted]))
        between = f"{found['label']} {_QUOTATION.sub(' ', quoted)} {found['after']}"
        ways.append((between, ["".join(one) for one in _QUOTATION.findall(quoted)]))
    if found := _ABOVE_BLOCKS.match(text):
        ways.append((found["label"], [found["blocks"]]))
    yield from (way for way in ways if way[1] and count_words(way[0]) <= LABEL_WORDS)


def _citations(ids: Sequence[str]) -> str:
    return "".join(f"[{source_id}]" for source_id in ids)
