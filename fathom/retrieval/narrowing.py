"""Fitting what was read into a window: the best passages of long texts, and the notes that matter most."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from fathom.models import Brief, Model, Note, NoteMessage, SourceText, noted, untold
from fathom.retrieval.chunking import GAP, MAX_INDENT, chunks_of, headings_above, opening_of
from fathom.retrieval.ranking import TITLE_WEIGHT, Passage, bm25, count_in, rank_passages
from fathom.text.blocks import open_fence
from fathom.text.parsed import ParsedText, parse
from fathom.text.terms import query_terms, terms
from fathom.text.tokens import count_tokens

PASSAGE_BYTES = 600  # about 150 tokens of English
LONGEST = 4_000
"""Bytes up to which a row, an item or a fence stays whole, if it takes no more than a fourth of the room."""
ABOVE = 8  # of the room, the headings above a passage take one part in so many at most
SHARE = 0.85  # a text's next passage counts for so much less with each one taken, so that others get their turn
GAP_TOKENS = count_tokens(GAP)
_NOT_BLANK = re.compile(r"\S")


class Narrowed(NamedTuple):
    """Texts that fit, and how much was left out of them."""

    texts: list[SourceText]
    left_out_tokens: int


class Piece(NamedTuple):
    """A stretch of a text, from `start` to `end` as character offsets, and what must be shown with it."""

    text: int  # its number
    start: int
    end: int
    sentences: range  # their numbers in the parsed text
    tokens: int
    beside: Mapping[int, int]  # sentences to be shown with it, each with its tokens


def narrow(
    texts: Sequence[SourceText],
    query: str,
    max_tokens: int,
    *,
    fill: bool = False,
    needed: Callable[[str], bool] | None = None,
) -> Narrowed:
    """Return the texts as they are when they fit together, else their passages that answer the query best.

    Passages keep their order, sentences are whole, and every text with a relevant passage gets a share as far as the
    room goes. `[...]` on a line of its own marks what was left out of a text; a text without any passage is left out.
    A passage is shown below its headings, a row below its table's header, code within its fences, and items and code
    below the line that leads to them, though what is between may be left out. Rows, items and fences are whole unless
    they are long, a heading has what follows it, and every text that is shown has its front matter or title. `fill`:
    passages without a word of the query, in reading order, take what room is left. `needed` tells which sentences
    somebody lacks: passages without one are left out, even if there is room for them.
    """
    parsed = [parse(text.text) for text in texts]
    total = sum(text.tokens for text in parsed)
    if total <= max_tokens and not needed:
        return Narrowed(list(texts), 0)
    pieces = [
        piece
        for i, text in enumerate(texts)
        for piece in _pieces(i, text.text, parsed[i], max_tokens)
        if not needed or any(map(needed, _said(parsed[i], piece)))
    ]
    kept = _choose(pieces, _scores(query, texts, parsed, pieces), max_tokens, fill=fill)
    narrowed = [
        text.model_copy(update={"text": body, "full": False})
        for i, text in enumerate(texts)
        if (body := assemble(text.text, parsed[i], [p for p in kept if p.text == i]))
    ]
    return Narrowed(narrowed, max(0, total - sum(count_tokens(text.text) for text in narrowed)))


def _said(parsed: ParsedText, piece: Piece) -> Iterator[str]:
    """Yield the sentences of a passage but for headings and rules."""
    sentences = map(parsed.sentence, piece.sentences)
    yield from (sentence.text for sentence in sentences if sentence.kind not in ("heading", "rule"))


def _pieces(number: int, text: str, parsed: ParsedText, room: int) -> Iterator[Piece]:
    """Cut a text into passages of whole sentences, rows, items and fences; a heading begins one.

    What takes more than a fourth of the room, in tokens of four bytes, or is longer than `LONGEST` is cut at its lines.
    """
    chunks = chunks_of(parsed)
    sentences = chunks.sentences
    companions = chunks.companions()
    opening = opening_of(sentences)
    above = headings_above(sentences)
    tokens: dict[int, int] = {}  # of what is shown beside a passage

    def size_of(other: int) -> int:
        return tokens.setdefault(other, count_tokens(sentences[other].text) + 1 + GAP_TOKENS)

    def headings(number: int) -> Iterator[int]:
        left = room // ABOVE
        for heading in reversed(above[number]):
            left -= size_of(heading)
            if left < 0:
                return
            yield heading

    costs = [len(sentence.text.encode("utf-8", "replace")) for sentence in sentences]

    def piece(own: range) -> Piece:
        start, end = line_start(text, sentences[own[0]].start), sentences[own[-1]].end
        needed = (other for n in own for other in companions[n])
        beside = {other: size_of(other) for other in sorted({*opening, *headings(own[0]), *needed}.difference(own))}
        return Piece(number, start, end, own, count_tokens(text[start:end]) + 1, beside)

    first = size = 0
    for unit in chunks.units():
        kinds = [sentences[n].kind for n in unit]
        limit = LONGEST if kinds[-1] == "table" else min(LONGEST, room)
        whole = sum(costs[n] for n in unit) <= limit and next((k for k in kinds if k != "heading"), "") != "prose"
        for part in [unit] if whole else chunks.lines(unit):
            cost = sum(costs[n] for n in part)
            stranded = part[0] and sentences[part[0] - 1].kind == "heading"  # it would end the piece, and head nothing
            full = size > PASSAGE_BYTES if stranded else size + cost > PASSAGE_BYTES
            if part[0] > first and (full or (sentences[part[0]].kind == "heading" and not stranded)):
                yield piece(range(first, part[0]))
                first, size = part[0], 0
            size += cost
    if sentences:
        yield piece(range(first, len(sentences)))


def _scores(
    query: str, texts: Sequence[SourceText], parsed: Sequence[ParsedText], pieces: Sequence[Piece]
) -> list[float]:
    """Return the BM25 score of each passage, 0 where it shares no term with the query."""
    wanted = dict.fromkeys(query_terms(query), 1.0)
    titles = [terms(f"{text.title} {text.location}") for text in texts]
    counts: list[dict[str, int]] = []
    for piece in pieces:
        title, found = titles[piece.text], parsed[piece.text].occurrences
        counts.append({})
        for term in wanted:
            n = count_in(found.get(term, ()), piece.sentences) + TITLE_WEIGHT * title.count(term)
            if n:
                counts[-1][term] = n
    lengths = [parsed[p.text].length(p.sentences) + TITLE_WEIGHT * len(titles[p.text]) for p in pieces]
    return bm25(wanted, counts, lengths)


def line_start(text: str, start: int) -> int:
    """Return where the line's indentation begins, if there is nothing else before the sentence: code needs it."""
    line = text.rfind("\n", max(0, start - MAX_INDENT), start) + 1
    return line if line and not text[line:start].strip() else start


def _choose(pieces: list[Piece], scores: list[float], room: int, *, fill: bool) -> list[Piece]:
    """Take the best passage of each text first, then the best of the rest; return them in reading order."""
    order = sorted(range(len(pieces)), key=lambda i: (-scores[i], i))
    relevant = [i for i in order if fill or scores[i] > 0] or order
    first: dict[int, int] = {}
    for i in relevant:
        first.setdefault(pieces[i].text, i)
    taken = Counter[int]()
    later = []
    for i in relevant:
        later.append((-scores[i] * SHARE ** taken[pieces[i].text], i))
        taken[pieces[i].text] += 1
    kept: list[int] = []
    shown: set[tuple[int, int]] = set()  # sentences beside the kept passages
    for i in dict.fromkeys([*first.values(), *(i for _, i in sorted(later))]):
        beside = {(pieces[i].text, n): tokens for n, tokens in pieces[i].beside.items()}
        cost = pieces[i].tokens + GAP_TOKENS + sum(tokens for n, tokens in beside.items() if n not in shown)
        if cost <= room:
            room -= cost
            kept.append(i)
            shown.update(beside)
    return [pieces[i] for i in sorted(kept)]


def assemble(text: str, parsed: ParsedText, kept: Sequence[Piece]) -> str:
    """Join passages of one text, with what must be beside them: unchanged where they touch, with a mark elsewhere."""
    if not kept:
        return ""
    own = {number for piece in kept for number in piece.sentences}
    beside = {number for piece in kept for number in piece.beside} - own
    alone = (parsed.sentence(number) for number in beside)
    slices = [(piece.start, piece.end) for piece in kept] + [(line_start(text, s.start), s.end) for s in alone]
    parts: list[str] = []
    position = 0
    for start, end in sorted(slices):
        parts += [GAP if _NOT_BLANK.search(text, position, start) else text[position:start], text[start:end]]
        position = end
    if _NOT_BLANK.search(text, position):
        parts.append(GAP)
    return _closed("".join(parts).strip("\n"))


def _closed(text: str) -> str:
    """Return what is shown of a text, with a fence behind it if it ends in code that nothing closes."""
    fence = ""
    for above, line in pairwise(["", *text.split("\n")]):
        fence = open_fence(fence, line, above)
    return f"{text}\n{fence}" if fence else text


UNKNOWN_AUTHORITY = 0.5
REPEATED = 0.5  # of a note's worth that is left when earlier ones say all of it


class Memory(Model):
    """Useful notes, and the briefs that stand for some of them."""

    notes: list[Note]
    briefs: list[Brief] = []

    @property
    def shown(self) -> list[Note]:
        """The notes for which no brief stands."""
        return untold(self.notes, self.briefs)

    @property
    def cited(self) -> set[str]:
        """The ids of the sources that the notes quote; without any quotation, all of the notes'."""
        return {source_id for note in self.notes for source_id in note.cited} or noted(self.notes)

    def of(self, notes: Sequence[Note]) -> Memory:
        """Return the memory with other notes in the place of its own, and the briefs whose notes have not changed."""
        same = {note.artifact_file for note in self.notes if note in notes}
        return Memory(notes=list(notes), briefs=[b for b in self.briefs if same.issuperset(b.files)])

    def within(self, max_tokens: int, focus: str, authority: Mapping[str, float] | None = None) -> Memory:
        """Return the memory as a role may see it: briefs first, and whole notes as far as the tokens go."""
        left = max_tokens - sum(count_tokens(brief.text) for brief in self.briefs)
        kept = within_budget(self.shown, focus, max(0, left), authority)
        left_out = {note.artifact_file for note in self.shown} - {note.artifact_file for note in kept}
        return self.model_copy(update={"notes": [n for n in self.notes if n.artifact_file not in left_out]})


def message_tokens(message: NoteMessage) -> int:
    """Return the estimated tokens of an injected message."""
    return count_tokens(message.model_dump_json())


def within_budget(
    notes: Sequence[Note], focus: str, max_tokens: int, authority: Mapping[str, float] | None = None
) -> list[Note]:
    """Return the notes that fit, in their own order: the most relevant ones, that say something new, of good sources.

    Notes are taken one at a time, the one with the greatest relevance to the focus x novelty x authority first. Novelty
    is the share of its terms that no taken note has, and counts for half. At least one note is kept, so that a budget
    smaller than any note does not blind the role. `authority` is the quality of sources by id, 0 to 1; else it is 0.5.
    """
    if not notes or sum(note.tokens for note in notes) <= max_tokens:
        return list(notes)
    texts = ["\n".join([note.summary, *note.extraction]) for note in notes]
    scores = rank_passages(focus, [Passage(title=n.summary_title, text=t) for n, t in zip(notes, texts, strict=True)])
    held = [set(terms(text)) for text in texts]
    known = authority or {}
    trust = [fmean([known.get(i, UNKNOWN_AUTHORITY) for i in n.source_ids] or [UNKNOWN_AUTHORITY]) for n in notes]
    kept: set[int] = set()
    said: set[str] = set()
    left = max_tokens
    waiting = list(range(len(notes)))
    while waiting:
        worth = {i: scores[i] * trust[i] * (1 - REPEATED * len(held[i] & said) / (len(held[i]) or 1)) for i in waiting}
        best = max(waiting, key=lambda i: (worth[i], -i))
        waiting.remove(best)
        if notes[best].tokens <= left or not kept:
            kept.add(best)
            said |= held[best]
            left -= notes[best].tokens
    return [note for index, note in enumerate(notes) if index in kept]
