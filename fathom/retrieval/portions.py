"""What requests show a model of a tool's output: all of it, long texts in parts, spread over a few requests.

A part is cut where nothing is spoilt by it, and has what it needs to be understood: the headings above it, the header
of a table that goes on, the fences of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fathom.models import SourceText
from fathom.retrieval.chunking import Chunks, chunks_of, headings_above
from fathom.retrieval.narrowing import GAP_TOKENS, Piece, assemble, line_start, narrow
from fathom.text.parsed import parse
from fathom.text.tokens import count_tokens

MOST_REQUESTS = 6  # for the output of one tool call
FRAME_TOKENS = 40  # of the element around a text, beside its title and the fields of its header
LEAST_TOKENS = 100  # of a part, however much its frame takes
HEADER_CHARS = 2_000  # of a text, in which the fields of its header are looked for
NARROWER = 0.85  # share of the room, each time that what is left does not fit the requests
_MARKUP = re.compile(r"\A[-+*:>\s]+|\*\*|__")  # around the name of a field


class Shown(NamedTuple):
    """The texts of each request, and how many tokens of the output no request has."""

    requests: list[list[SourceText]]
    left_out_tokens: int


def shown(
    texts: Sequence[SourceText], focus: str, *, text_tokens: int, request_tokens: int, most_requests: int
) -> Shown:
    """Spread texts over requests of at most so many tokens, the texts of one source together where they fit.

    A text of more than `text_tokens` is shown in parts. What more than `most_requests` would have to hold is narrowed
    to the passages that answer `focus` best; so much of it that one passage does not fit is shown whole.
    """
    room = float(most_requests * request_tokens)
    kept, left_out = list(texts), 0
    if sum(parse(text.text).tokens for text in texts) > room:
        kept, left_out = narrow(texts, focus, int(room), fill=True)
    while len(requests := _requests(kept, text_tokens, request_tokens)) > most_requests:
        room *= NARROWER
        kept, left_out = narrow(texts, focus, int(room), fill=True)
    return Shown(requests, left_out) if requests else Shown([list(texts)], 0)


def _requests(texts: Sequence[SourceText], text_tokens: int, request_tokens: int) -> list[list[SourceText]]:
    by_source: dict[str, list[tuple[SourceText, int]]] = {}
    for text in texts:
        frame = FRAME_TOKENS + count_tokens(f"{text.title} {text.fields or ''}")
        limit = max(LEAST_TOKENS, min(text_tokens, request_tokens - frame))
        for part in portions(text, limit):
            tokens = parse(text.text).tokens if part is text else count_tokens(part.text)
            by_source.setdefault(text.source_id, []).append((_said_once(part), frame + tokens))
    requests: list[list[SourceText]] = []
    left = 0
    for parts in by_source.values():
        if left < sum(tokens for _, tokens in parts) <= request_tokens:
            left = 0  # they begin a request, so that they are together
        for part, tokens in parts:
            if tokens > left:
                requests.append([])
                left = request_tokens
            requests[-1].append(part)
            left -= tokens
    return requests


def _said_once(part: SourceText) -> SourceText:
    """Return a text without the fields of its header that it begins with itself."""
    lines = [_MARKUP.sub("", line) for line in part.text[:HEADER_CHARS].split("\n")]
    fields = {
        name: value
        for name, value in part.fields.items()
        if not any(line.startswith(f"{name}: {value.removesuffix(' …')}") for line in lines)
    }
    return part.model_copy(update={"fields": fields})


def portions(text: SourceText, max_tokens: int) -> list[SourceText]:
    """Return a text whole if it has at most so many tokens, else its parts in reading order.

    A part ends between paragraphs, rows, items and fences. One of these that is longer is cut at its lines, prose at
    its sentences; only a single one of these makes a part that is longer. `[...]` marks where the text goes on.
    """
    parsed = parse(text.text)
    if parsed.tokens <= max_tokens or not len(parsed):
        return [text]
    chunks = chunks_of(parsed)
    context = _Context(chunks)
    found: list[SourceText] = []
    for own in _cuts(chunks, text.text, context, max_tokens):
        body = assemble(text.text, parsed, [context.piece(text.text, own, max_tokens)])
        found.append(text.model_copy(update={"text": body, "full": False}))
    return found


def _cuts(chunks: Chunks, text: str, context: _Context, max_tokens: int) -> Iterator[range]:
    """Yield the sentences of each part of a text."""
    ends = [0, *(sentence.end for sentence in chunks.sentences)]

    def tokens(own: range) -> int:
        return count_tokens(text[ends[own.start] : ends[own.stop]]) + 1

    room = max_tokens - 2 * GAP_TOKENS  # behind the part, and before the fence that closes it
    first = used = 0
    for unit in chunks.units():
        cost = tokens(unit)
        if used + cost <= room:
            used += cost
            continue
        begins = context.cost(unit[0], max_tokens) + cost <= room
        for part in [unit] if begins else chunks.lines(unit):
            cost = tokens(part)
            if part[0] > first and used + cost > room:
                yield range(first, part[0])
                first, used = part[0], context.cost(part[0], max_tokens)
            used += cost
    yield range(first, len(chunks.sentences))


LEAST_REPEATED = 200  # characters of a stretch that two excerpts of one source share, from which it is shown once


def said_anew(text: SourceText, before: Sequence[str]) -> SourceText | None:
    """Return an excerpt without the stretches that other excerpts of its source have; None if no other is left.

    What is left has what it needs to be understood, as the parts of a text have. A stretch is of whole paragraphs,
    rows, items and fences, and at least `LEAST_REPEATED` characters long.
    """
    if not before:
        return text
    parsed = parse(text.text)
    chunks = chunks_of(parsed)
    sentences, units = chunks.sentences, chunks.units()

    def stretch(first: int, last: int) -> str:
        below = next((n for n in units[first] if sentences[n].kind != "heading"), units[first][0])
        return text.text[sentences[below].start : sentences[units[last][-1]].end]

    new: list[range] = []
    first = 0
    while first < len(units):
        last, step = first - 1, 1
        while step:  # a stretch stands nowhere where its beginning does not: steps double, then halve
            further = min(last + step, len(units) - 1)
            if further > last and any(stretch(first, further) in other for other in before):
                last, step = further, 2 * step
            else:
                step //= 2
        if last >= first and len(stretch(first, last)) >= LEAST_REPEATED:
            first = last + 1
            continue
        if new and new[-1].stop == units[first][0]:
            new[-1] = range(new[-1].start, units[first].stop)
        else:
            new.append(units[first])
        first += 1
    if sum(map(len, new)) == len(sentences):
        return text
    context = _Context(chunks)
    told = [own for own in new if any(sentences[n].kind != "heading" for n in own)]
    pieces = [context.piece(text.text, own, len(text.text)) for own in told]
    body = assemble(text.text, parsed, pieces)
    return text.model_copy(update={"text": body, "full": False}) if body else None


class _Context:
    """What a part of a text needs that stands before it, by the sentence that the part begins with."""

    def __init__(self, chunks: Chunks) -> None:
        self._sentences = chunks.sentences
        self._chunks = chunks
        self._companions = chunks.companions()
        self._above = headings_above(chunks.sentences)

    def of(self, number: int, max_tokens: int) -> list[int]:
        """Return the numbers of the sentences to be shown before one: at most a third of a part's tokens, and a fence.

        Where this is too little, the headings furthest away are left out first.
        """
        before = [n for n in self._companions[number] if n < number]
        fences = [n for n in before if self._chunks.is_opener(n)]
        room = max_tokens // 3
        chosen = fences
        for n in [*(n for n in before if n not in fences), *reversed(self._above[number])]:
            room -= self._tokens(n)
            if room >= 0 and n not in chosen:
                chosen.append(n)
        return chosen

    def piece(self, text: str, own: range, max_tokens: int) -> Piece:
        """Return consecutive sentences of the text with what is to be shown around them."""
        beside = dict.fromkeys([*self.of(own[0], max_tokens), *self.closing(own)], 0)
        first, last = self._sentences[own[0]], self._sentences[own[-1]]
        return Piece(0, line_start(text, first.start), last.end, own, 0, beside)

    def cost(self, number: int, max_tokens: int) -> int:
        """Return the tokens of what is to be shown before a sentence, and of a fence that closes it."""
        return sum(map(self._tokens, [*self.of(number, max_tokens), *self.closing(range(number, number + 1))]))

    def closing(self, own: range) -> list[int]:
        """Return the number of the fence that closes the code in which a part ends; none where it ends elsewhere."""
        return [n for n in self._companions[own[-1]] if n > own[-1]]

    def _tokens(self, number: int) -> int:
        return count_tokens(self._sentences[number].text) + 1 + GAP_TOKENS
