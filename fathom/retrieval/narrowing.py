"""Fitting long texts into a window: the best passages in reading order, never a text cut off at its end."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fathom.models import SourceText
from fathom.retrieval.ranking import TITLE_WEIGHT, bm25
from fathom.text.parsed import ParsedText, parse
from fathom.text.sentences import Sentence
from fathom.text.terms import query_terms, terms
from fathom.text.tokens import count_tokens

OMISSION = "[...]"
PASSAGE_BYTES = 600  # about 150 tokens of English
MAX_INDENT = 40
SHARE = 0.85  # a text's next passage counts for so much less with each one taken, so that others get their turn
_GAP = f"\n\n{OMISSION}\n\n"
_GAP_TOKENS = count_tokens(_GAP)


class Narrowed(NamedTuple):
    """Texts that fit, and how much was left out of them."""

    texts: list[SourceText]
    left_out_tokens: int


class _Piece(NamedTuple):
    text: int
    start: int
    end: int
    sentences: range  # their numbers in the parsed text
    tokens: int


def narrow(texts: Sequence[SourceText], query: str, max_tokens: int) -> Narrowed:
    """Return the texts as they are when they fit together, else their passages that answer the query best.

    Passages keep their order, sentences are whole, and every text with a relevant passage gets a share as far as the
    room goes. `[...]` on a line of its own marks what was left out of a text; a text without any passage is left out.
    """
    total = sum(count_tokens(text.text) for text in texts)
    if total <= max_tokens:
        return Narrowed(list(texts), 0)
    parsed = [parse(text.text) for text in texts]
    pieces = [piece for i, text in enumerate(texts) for piece in _pieces(i, text.text, parsed[i])]
    kept = _choose(pieces, _scores(query, texts, parsed, pieces), max_tokens)
    narrowed = [
        text.model_copy(update={"text": body, "full": False})
        for i, text in enumerate(texts)
        if (body := _assemble(text.text, [p for p in kept if p.text == i]))
    ]
    return Narrowed(narrowed, max(0, total - sum(count_tokens(text.text) for text in narrowed)))


def _pieces(number: int, text: str, parsed: ParsedText) -> Iterator[_Piece]:
    """Cut a text into passages of whole sentences; a heading begins one."""
    sentences = parsed.sentences
    first = size = 0
    for i, sentence in enumerate(sentences):
        cost = len(sentence.text.encode("utf-8", "replace"))
        heading = sentence.kind == "heading" and any(kind != "heading" for kind in parsed.kinds[first:i])
        if i > first and (size + cost > PASSAGE_BYTES or heading):
            yield _piece(number, text, sentences, range(first, i))
            first, size = i, 0
        size += cost
    if sentences:
        yield _piece(number, text, sentences, range(first, len(sentences)))


def _piece(number: int, text: str, sentences: Sequence[Sentence], own: range) -> _Piece:
    start, end = _line_start(text, sentences[own[0]].start), sentences[own[-1]].end
    return _Piece(number, start, end, own, count_tokens(text[start:end]) + 1)


def _scores(
    query: str, texts: Sequence[SourceText], parsed: Sequence[ParsedText], pieces: Sequence[_Piece]
) -> list[float]:
    """Return the BM25 score of each passage, 0 where it shares no term with the query."""
    wanted = dict.fromkeys(query_terms(query), 1.0)
    titles = [terms(f"{text.title} {text.location}") for text in texts]
    counts: list[dict[str, int]] = []
    for piece in pieces:
        title, found = titles[piece.text], parsed[piece.text].occurrences
        counts.append({})
        for term in wanted:
            n = _between(found.get(term, ()), piece.sentences) + TITLE_WEIGHT * title.count(term)
            if n:
                counts[-1][term] = n
    lengths = [parsed[p.text].length(p.sentences) + TITLE_WEIGHT * len(titles[p.text]) for p in pieces]
    return bm25(wanted, counts, lengths)


def _between(numbers: Sequence[int], sentences: range) -> int:
    """Return how many of some numbers, in order, are of a run of sentences."""
    return bisect_left(numbers, sentences.stop) - bisect_left(numbers, sentences.start)


def _line_start(text: str, start: int) -> int:
    """Return where the line's indentation begins, if there is nothing else before the sentence: code needs it."""
    line = text.rfind("\n", max(0, start - MAX_INDENT), start) + 1
    return line if line and not text[line:start].strip() else start


def _choose(pieces: list[_Piece], scores: list[float], room: int) -> list[_Piece]:
    """Take the best passage of each text first, then the best of the rest; return them in reading order."""
    order = sorted(range(len(pieces)), key=lambda i: (-scores[i], i))
    relevant = [i for i in order if scores[i] > 0] or list(range(len(pieces)))
    first: dict[int, int] = {}
    for i in relevant:
        first.setdefault(pieces[i].text, i)
    taken = Counter[int]()
    later = []
    for i in relevant:
        later.append((-scores[i] * SHARE ** taken[pieces[i].text], i))
        taken[pieces[i].text] += 1
    kept: list[int] = []
    for i in dict.fromkeys([*first.values(), *(i for _, i in sorted(later))]):
        cost = pieces[i].tokens + _GAP_TOKENS
        if cost <= room:
            room -= cost
            kept.append(i)
    return [pieces[i] for i in sorted(kept)]


def _assemble(text: str, kept: list[_Piece]) -> str:
    """Join passages of one text: unchanged where they touch, with a mark where something is missing."""
    if not kept:
        return ""
    parts = [OMISSION + "\n\n"] if text[: kept[0].start].strip() else []
    position = kept[0].start
    for piece in kept:
        between = text[position : piece.start]
        parts += [_GAP if between.strip() else between, text[piece.start : piece.end]]
        position = piece.end
    if text[position:].strip():
        parts.append("\n\n" + OMISSION)
    return "".join(parts)
