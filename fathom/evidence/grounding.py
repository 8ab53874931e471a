"""Notes keep to their sources: a bullet stays only if the text it cites has its words or supports it.

So what a model adds while it compresses never enters the context.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fathom.evidence.claims import claim_text, is_head
from fathom.evidence.passages import Search
from fathom.evidence.stored import texts_of
from fathom.evidence.support import spaced_words
from fathom.evidence.verdict import check
from fathom.models import Note, SourceText, Verdict
from fathom.text.blocks import Kind
from fathom.text.citations import cited_ids, without_citations
from fathom.text.fences import fenced_code, split_markdown

PARAPHRASE = "(paraphrase)"
_LEFT_OUT = re.compile(r"\s*(?:[\[(]?(?:…|\.\.\.)[\])]?|\(address left out\))\s*")

_BLOCKS: frozenset[Kind] = frozenset(("item", "table", "code"))


class Grounded(NamedTuple):
    """A note that keeps to its sources, and the bullets that did not."""

    note: Note
    dropped: list[str]


def ground(note: Note, texts: Sequence[SourceText]) -> Grounded:
    """Return a note with only those bullets whose words are in the given texts, word for word and in order.

    Case, white space, quotation marks and other punctuation do not count, and an ellipsis replaces any words. So does
    the end of a line where a bullet quotes rows, items or code: a header may be apart from its row, but lines of code
    are together. A bullet whose words are in another text than the one it cites gets that one's id. One that its
    sources support in other words is kept and marked as a paraphrase; any other is dropped.
    """
    search = Search(texts_of(texts))
    read = [(text.source_id, spaced_words(text.text)) for text in texts]
    kept: list[str] = []
    dropped: list[str] = []
    for bullet in note.extraction:
        holders = [source_id for source_id, words in read if _holds(words, _fragments(bullet))]
        if holders:
            kept.append(_cited(bullet, holders))
            continue
        marked = _as_paraphrase(bullet, search)
        (kept if marked else dropped).append(marked or bullet)
    return Grounded(note.model_copy(update={"extraction": kept}), dropped)


def _fragments(bullet: str) -> list[str]:
    """Return what must be in a source in order: of a bullet of blocks each line, but of code all lines as one."""
    text = without_citations(bullet)
    parts = [part for part in split_markdown(text) if part.kind != "rule"]
    if {part.kind for part in parts} & _BLOCKS:
        quoted = [fenced_code(part.text) or part.text for part in parts]
    else:
        quoted = text.split("\n\n")  # a heading may be apart from what stands below it
    words = (spaced_words(piece) for part in quoted for piece in _LEFT_OUT.split(part))
    return [piece for piece in words if piece.strip()]


def _holds(words: str, fragments: Sequence[str]) -> bool:
    position = 0
    for fragment in fragments:
        found = words.find(fragment, position)
        if found < 0:
            return False
        position = found + len(fragment) - 1  # the space between two words is of both
    return bool(fragments)


def _cited(bullet: str, holders: Sequence[str]) -> str:
    """Return a bullet that cites those of its sources that hold it, or else the first text that does."""
    ids = cited_ids(bullet)
    right = [source_id for source_id in ids if source_id in holders] or [holders[0]]
    if ids == right:
        return bullet
    return f"{without_citations(bullet).rstrip()} {''.join(f'[{source_id}]' for source_id in right)}"


def _as_paraphrase(bullet: str, search: Search) -> str:
    """Return a bullet with the mark of a paraphrase; empty if its sources do not support it."""
    text, ids = without_citations(bullet).rstrip(), cited_ids(bullet)
    checks = [check(said, search, ids, kind) for said, kind in _said(text)]
    if not checks or any(checked.verdict is not Verdict.supported for checked in checks):
        return ""
    own = dict.fromkeys(passage.text.source.source_id for checked in checks for passage in checked.passages)
    return f"{text} {PARAPHRASE} {''.join(f'[{source_id}]' for source_id in own)}"


def _said(text: str) -> list[tuple[str, Kind]]:
    """Return what a bullet claims: the rows of its table and its code, or else its text as a whole."""
    parts = split_markdown(text)
    blocks = [
        part
        for number, part in enumerate(parts)
        if (part.kind == "table" and not is_head(parts, number)) or (part.kind == "code" and fenced_code(part.text))
    ]
    return [(claim_text(part), part.kind) for part in blocks] or [(text, "prose")]
