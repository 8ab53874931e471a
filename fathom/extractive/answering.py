"""Answering in one sentence without a model: the quotation that says most of what is asked, cut where it may be cut.

A cut can make a true sentence false, so it runs along the borders of clauses, and what is left out may not hold a
negation, a condition or a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fathom.extractive.kinds import has_kind, kind_of
from fathom.extractive.statements import Relevance, Statement, statements_of
from fathom.extractive.verbs import is_verb
from fathom.models import Note
from fathom.roles import Text
from fathom.roles.reporter import ANSWER_CHARS, AnswerRequest
from fathom.text.sentences import split_sentences

OF_KIND = 1.6  # factor for a sentence that holds the kind of thing that is asked for
AROUND = 0.3  # weight of the statement that a sentence is part of
CUT = 0.9  # factor for a clause: it says less than its sentence
INNER = 0.8  # further factor for one that does not begin with its sentence
MARKED = 0.75  # factor for a part that is not a clause; an ellipsis marks it
LIMITED = 0.5  # factor for one whose rest limits what it says: only where there is nothing better
MIN_CHARS = 25
NOTHING = "The notes hold no sentence that answers this."

# Where a clause with a subject of its own may begin, and where one may end.
_BEGINNING = re.compile(r"; |, (?:and|but|while|whereas) (?=(?:[A-Z]|the |an? |it |they |he |she ))|: (?=[A-Z])")
_ENDING = re.compile(
    r"[,;:](?=\s)|\s[–—-](?=\s)|\s(?=\()"
    r"|\s(?=(?:which|who|whose|where|while|because|whereas|since|after|before|when|during)\s)"
)
_LIMITING = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|unless|except|excluding|only|if|but|however|although|though|until|"
    r"may|might|could|would|should|allegedly|reportedly|claim\w*|den(?:y|ied|ies)|false\w*|wrong\w*|disput\w*|"
    r"instead|rather|unlike|than|cannot|planned|proposed|expected|rumou?r\w*)\b|n['’]t\b",
    re.I,
)


class _Candidate(NamedTuple):
    score: float
    text: str
    statement: Statement


def write_answer(request: AnswerRequest) -> Text:
    """Return the sentence or clause that answers best, at most 140 characters, with its citations."""
    statements = statements_of(request.notes) or _summaries(request.notes)
    kind = kind_of(request.query)
    relevance = Relevance(request.query, [statement.text for statement in statements])
    best: _Candidate | None = None
    for statement in statements:
        around = AROUND * relevance.score(statement.text)
        for sentence in split_sentences(statement.text):
            for text, factor in _spans(sentence.clean):
                score = factor * (relevance.score(text) + around)
                score *= OF_KIND if has_kind(kind, text, request.query) else 1.0
                if best is None or score > best.score:
                    best = _Candidate(score, text, statement)
    sources = best.statement.sources if best else (source for note in request.notes for source in note.source_ids)
    cited = "".join(f"[{source}]" for source in dict.fromkeys(sources))
    return Text(text=f"{best.text if best else NOTHING} {cited}")


def _summaries(notes: Sequence[Note]) -> list[Statement]:
    """Return the summaries of notes without any quotation, as a model may write them, with all their sources."""
    return [Statement(note.summary, tuple(note.source_ids), n, 0) for n, note in enumerate(notes) if note.summary]


def _spans(sentence: str) -> Iterator[tuple[str, float]]:
    """Yield a sentence if it is short enough, else the runs of its clauses that are."""
    if len(sentence) <= ANSWER_CHARS:
        yield sentence, 1.0
        return
    yield from _shortened(sentence)
    starts = [0, *(m.end() for m in _BEGINNING.finditer(sentence))]
    ends = [*(m.start() for m in _ENDING.finditer(sentence)), len(sentence)]
    for start in starts:
        for end in sorted((end for end in ends if MIN_CHARS <= end - start <= ANSWER_CHARS), reverse=True):
            text = sentence[start:end].strip(" ,;:–—-")
            if _reads(text) and not _LIMITING.search(sentence[:start] + sentence[end:]):
                yield text, CUT * (INNER if start else 1.0)
                break


def _reads(clause: str) -> bool:
    """Whether a clause has a verb behind a subject, and no bracket is left open."""
    words = clause.lower().split()
    verbs = [i for i, word in enumerate(words) if is_verb(word.strip(",.;:"), words[i - 1] if i else "")]
    return bool(verbs) and verbs[0] > 0 and clause.count("(") == clause.count(")") and clause.count('"') % 2 == 0


def _shortened(sentence: str) -> Iterator[tuple[str, float]]:
    """Yield the sentence's beginning and its last clauses, each marked as a part."""
    first = sentence[: ANSWER_CHARS - 2].rsplit(maxsplit=1)[0].rstrip(" ,;:–—-")
    yield f"{first} …", LIMITED if _LIMITING.search(sentence.removeprefix(first)) else MARKED
    tails = (sentence[m.end() :].strip() for m in _ENDING.finditer(sentence))
    last = next((tail for tail in tails if MIN_CHARS <= len(tail) <= ANSWER_CHARS - 2), "")
    if last and not _LIMITING.search(sentence.removesuffix(last)):
        yield f"… {last}", MARKED
