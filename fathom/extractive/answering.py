"""Answering in at most 140 characters without a model: the quotation that answers best, and how likely it is right.

A cut can make a true sentence false, so it runs along the borders of clauses, and what is left out may not hold a
negation, a condition or a doubt. Of a row the cells that are asked for stay, of code whole lines.

How likely a quoted answer is right, by what the ranking knows of it. The weights are those of a logistic regression
on every other question of five public sets (HotpotQA, MuSiQue, 2WikiMultihopQA, XQuAD, COVID-QA), a sixth of which
are asked of pages without an answer. `python -m benchmarks.calibration` fits them again and measures them on the
other half.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from fathom.extractive.computing import computed_answer
from fathom.extractive.questions import is_verb
from fathom.extractive.statements import Quotations, Quoted, QuotedStatement, Succession, asked_by, quotations_for
from fathom.models import Note
from fathom.retrieval.asked import QuestionTerms, has_kind, kind_of
from fathom.roles.reporter import ANSWER_CHARS, AnswerRequest, ShortAnswer
from fathom.text.sentences import split_sentences
from fathom.text.terms import terms

CONSIDERED = 12  # excerpts
OF_KIND = 1.6  # factor for a text that holds the kind of thing that is asked for
CUT = 0.9  # factor for a clause: it says less than its sentence
INNER = 0.8  # further factor for one that does not begin with its sentence
MARKED = 0.75  # factor for a part that is not a clause; an ellipsis marks it
LIMITED = 0.5  # factor for one whose rest limits what it says: only where there is nothing better
SUPERSEDED = 0.5  # factor for rows of which a later document has others; of a sentence, what replaces it is known
HELD = 0.3  # of the score is for what the text itself holds of the question
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
_RULE = re.compile(r"\|(?:-+\|)+\Z")


class _Candidate(NamedTuple):
    score: float
    text: str
    number: int  # of the text that it is quoted from
    share: float  # of the question's terms, by worth, that its excerpt holds
    held: float  # share of the question's terms that it holds itself
    of_kind: bool  # it holds the kind of thing that is asked for


class ChosenAnswer(NamedTuple):
    """The quotation that answers best, and what tells how likely it is right."""

    text: str
    sources: tuple[str, ...]
    signs: Signs


def write_answer(request: AnswerRequest) -> ShortAnswer:
    """Return the quotation that answers best, at most 140 characters, with its citations."""
    chosen = choose_answer(request)
    if chosen is None:
        cited = "".join(f"[{i}]" for note in request.notes for i in note.source_ids)
        return ShortAnswer(answer=f"{NOTHING} {cited}", confidence=0.0)
    cited = "".join(f"[{source}]" for source in chosen.sources)
    return ShortAnswer(answer=f"{chosen.text} {cited}", confidence=chosen.signs.confidence())


def choose_answer(request: AnswerRequest) -> ChosenAnswer | None:
    """Return the quotation that answers best; None if there is none."""
    quotations = quotations_for(request.notes, request.passages)
    if not quotations.sources:
        quotations = Quotations.of_statements(_summaries(request.notes))
    computed = computed_answer(quotations, request.query)
    if computed and computed.is_all and computed.sentence and _fits(computed.sentence):
        return ChosenAnswer(computed.sentence, computed.sources, Signs(1.0, 1.0, of_kind=True, rival=0.0))
    succession = Succession(quotations, request.query)
    candidates: list[_Candidate] = []
    for found in succession.found[:CONSIDERED]:
        quoted = Quoted(found.text, quotations.markdown(found, request.query))
        trust = SUPERSEDED if "|" in quoted.markdown and succession.instead(quoted) else 1.0
        candidates += _candidates(quoted, trust * found.score, found.share, request.query)
    best = _best(candidates)
    if best is None:
        return None
    rival = _best(each for each in candidates if each.number != best.number)
    signs = Signs(best.share, best.held, best.of_kind, rival.score / best.score if rival else 0.0)
    if instead := succession.instead(Quoted(best.number, best.text)):
        best = _best(_candidates(instead, best.score, best.share, request.query)) or best
    return ChosenAnswer(best.text, quotations.sources[best.number], signs)


def _best(candidates: Iterable[_Candidate]) -> _Candidate | None:
    return max(candidates, key=lambda candidate: candidate.score, default=None)


def _candidates(quoted: Quoted, worth: float, share: float, question: str) -> Iterator[_Candidate]:
    """Yield the parts of an excerpt that may be the answer."""
    asked, kind = asked_by(question), kind_of(question)
    for text, factor in _short(quoted.markdown, asked):
        if text.endswith((":", "?")):  # it only announces or asks
            continue
        held, fits = _share(text, asked), has_kind(kind, text, question)
        score = worth * factor * (1 - HELD + HELD * held) * (OF_KIND if fits else 1.0)
        yield _Candidate(score, text, quoted.number, share, held, kind is not None and fits)


def _summaries(notes: Sequence[Note]) -> list[QuotedStatement]:
    """Return the summaries of notes without any quotation, as a model may write them, with all their sources."""
    return [
        QuotedStatement(note.summary, tuple(note.source_ids), "", n, 0) for n, note in enumerate(notes) if note.summary
    ]


def _share(text: str, asked: QuestionTerms) -> float:
    """Return the share of the question's terms that a text holds."""
    held = set(terms(text))
    return sum(not held.isdisjoint(said) for said in asked.terms.values()) / (len(asked.terms) or 1)


def _short(markdown: str, asked: QuestionTerms) -> Iterator[tuple[str, float]]:
    """Yield parts of an excerpt that fit, each with a factor."""
    lines = [line for line in markdown.split("\n") if line.strip()]
    if any(line.startswith("```") for line in lines):
        yield from _of_code([line for line in lines if not line.startswith("```")], asked)
    elif any(_RULE.match(line) for line in lines):
        yield from _of_rows(lines, asked)
    else:
        yield from _of_items([line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- ")])
        sentences = [sentence.clean for line in lines for sentence in split_sentences(line)]
        yield from ((text, 1.0) for text in (" ".join(sentences), *map(" ".join, pairwise(sentences))) if _fits(text))
        for sentence in sentences:
            yield from _spans(sentence)


def _fits(text: str) -> bool:
    return len(text) <= ANSWER_CHARS


def _of_items(items: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield a list's items as far as they fit."""
    text = ""
    for item in items:
        longer = f"{text}; {item.rstrip('.;,')}" if text else item.rstrip(".;,")
        if not _fits(longer):
            break
        text = longer
    if text and len(items) > 1:
        yield text, 1.0


def _of_code(lines: Sequence[str], asked: QuestionTerms) -> Iterator[tuple[str, float]]:
    whole = " ".join(line.strip() for line in lines)
    if len(whole) <= ANSWER_CHARS:
        yield whole, 1.0
    code = [line.strip() for line in lines[-20:]]
    for first in range(len(code)):
        run = code[first]
        for last in range(first + 1, len(code) + 1):
            run = " ".join(code[first:last])
            if len(run) > ANSWER_CHARS:
                break
            yield run, CUT


def _of_rows(lines: Sequence[str], asked: QuestionTerms) -> Iterator[tuple[str, float]]:
    """Yield each row as its first cell and the cells that are asked for, with the names of their columns."""
    rule = next(i for i, line in enumerate(lines) if _RULE.match(line))
    header = _cells(lines[rule - 1])
    for line in lines[rule + 1 :]:
        cells = _cells(line)
        named = [(name, cell) for name, cell in zip(header[1:], cells[1:], strict=False) if cell]
        pairs = [(f"{name}: {cell}" if name else cell, name) for name, cell in named]
        pairs.sort(key=lambda pair: -_share(pair[1], asked))
        text = cells[0]
        for part, _ in pairs:
            if len(text) + len(part) + 2 > ANSWER_CHARS:
                break
            text = f"{text}; {part}" if text else part
        if len(text) <= ANSWER_CHARS:
            yield text, 1.0


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


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
        yield f"… {last}", MARKED * INNER**2


CONSTANT = -2.46
WEIGHTS = (0.91, 2.17, 0.55, -1.22)  # of the signs, in their order


class Signs(NamedTuple):
    """What tells a right answer from a wrong one; each from 0 to 1."""

    share: float  # of the question's terms, by worth, that the excerpt or its surroundings hold
    held: float  # share of the question's terms that the answer itself holds
    of_kind: bool  # the question tells what kind of thing it asks for, and the answer holds one
    rival: float  # score of the best answer from another text, as a share of this one's

    def confidence(self) -> float:
        """Return the probability that the answer is right, with two decimals."""
        logit = CONSTANT + sum(weight * sign for weight, sign in zip(WEIGHTS, self, strict=True))
        return round(1 / (1 + math.exp(-logit)), 2)
