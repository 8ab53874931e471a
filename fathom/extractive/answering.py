"""Answering in at most 140 characters without a model: the quotations that answer best, and how likely they are right.

A cut can make a true sentence false, so it runs along the borders of clauses, and what is left out may not hold a
negation, a condition or a doubt. Of a row the cells that are asked for stay, of code whole lines, of a list all items
or what names them. Beside the best one stands what is worth nearly as much, if it fits; of two questions both are
answered.

How likely a quoted answer is right, by what the ranking knows of it. The weights are those of a logistic regression
on every other question of two public sets whose questions one passage answers (XQuAD, COVID-QA), a sixth of which are
asked of pages without an answer. `python -m benchmarks.calibration` fits them again and measures them on the other
half, and on sets whose questions need two passages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise, product
from typing import NamedTuple

from fathom.evidence.computed import without_names
from fathom.extractive.citing import Quoted, announces, split_blocks
from fathom.extractive.computing import computed_answer
from fathom.extractive.hops import second_hop
from fathom.extractive.listing import LIMITING, list_forms
from fathom.extractive.questions import is_verb, questions_of, sides_of
from fathom.extractive.reporter import answered_by, of_today
from fathom.extractive.statements import (
    ANSWERED,
    SUPERSEDED,
    Quotations,
    QuotedStatement,
    Succession,
    asks_list,
    quotations_for,
)
from fathom.facts.ranges import cases_sought, in_range
from fathom.models import Answered, Note
from fathom.retrieval.asked import asks_default, asks_for_steps, states_most
from fathom.retrieval.expansion import is_quantity, states
from fathom.retrieval.kinds import has_kind, kind_of
from fathom.retrieval.relevance import Found
from fathom.roles.reporter import ANSWER_CHARS, ShortAnswer, ShortAnswerRequest
from fathom.text.sentences import split_sentences
from fathom.text.tables import cells_of_row
from fathom.text.terms import is_near_duplicate, terms

CONSIDERED, SORTED = 12, 60  # excerpts whose parts are tried, of so many best ones
SHORT, BREVITY = 80, 0.1  # characters up to which all are short; exponent of the length of longer ones, in their score
OF_KIND = 1.4  # factor for a text that holds the kind of thing that is asked for
CUT = 0.9  # factor for a clause: it says less than its sentence
INNER = 0.8  # further factor for one that does not begin with its sentence
MARKED = 0.75  # factor for a part that is not a clause; an ellipsis marks it
LIMITED = 0.5  # factor for one whose rest limits what it says: only where there is nothing better
LISTED = 2.0  # factor for all of a list where a list is asked
HALF = (ANSWER_CHARS - 2) // 2  # characters of the answer to one of two questions
SHARES = (ANSWER_CHARS, 90, HALF, 50)  # characters that are tried for what is said of one of two things
DENIED = 0.5  # factor for a text that says of what it is not so, where several things are asked for
ONCE = 0.6  # factor for one part that is to answer two questions
OF_EACH = 25  # candidates of each of two questions that are tried beside each other
BESIDE = 0.7  # of the best one's score, from which another stands beside it
HELD = 0.6  # of the score is for what the text itself holds of the question
MIN_CHARS = 25
NOTHING = "The notes hold no sentence that answers this."

# Where a clause with a subject of its own may begin, and where one may end.
_BEGINNING = re.compile(r"; |, (?:and|but|while|whereas) (?=(?:[A-Z]|the |an? |it |they |he |she ))|: (?=[A-Z])")
_ENDING = re.compile(
    r"[,;:](?=\s)|\s[–—-](?=\s)|\s(?=\()"
    r"|\s(?=(?:which|who|whose|where|while|because|whereas|since|after|before|when|during)\s)"
)
_ONLY_CONDITION = re.compile(
    r"(?:if|when|while|where|because|since|after|before|although|though|unless|until|once|whereas)\b[^,]*", re.I
)
_DEFAULT = re.compile(r"\bdefaults?\b|\b(?:unless|if|when) (?:not|un|none|no\b|absent|missing|omitted)", re.IGNORECASE)
_ENUMERATED = re.compile(r"[^\s,;:]+(?: [^\s,;:]+){0,4}(?:, [^\s,;:]+(?: [^\s,;:]+){0,4})+,? (?:and|or) \w")
"""At least three things of at most five words each."""
_ANNOUNCES = re.compile(r"[:?]\s*\Z|\b(?:following|these)\b", re.IGNORECASE)
_DENIES = re.compile(r"\b(?:not|never|cannot)\b|n['’]t\b", re.IGNORECASE)
_RULE = re.compile(r"^\|(?:-+\|)+$", re.MULTILINE)


class _Candidate(NamedTuple):
    score: float
    text: str
    number: int  # of the text that it is quoted from
    share: float  # of the question's terms, by worth, that its excerpt holds
    held: float  # share of the question's terms that it holds itself
    of_kind: bool  # it holds the kind of thing that is asked for
    whole: str  # with what else fits if nothing stands beside it
    is_code: bool


class ChosenAnswer(NamedTuple):
    """The quotation that answers best, and what tells how likely it is right."""

    parts: Sequence[tuple[str, tuple[str, ...]]]  # each with its sources
    signs: Signs

    @property
    def text(self) -> str:
        """The answer without its citations."""
        return _joined([text for text, _ in self.parts])


def write_answer(request: ShortAnswerRequest) -> ShortAnswer:
    """Return the quotation that answers best, at most 140 characters, with its citations."""
    chosen = choose_answer(request)
    if chosen is None:
        cited = "".join(f"[{i}]" for note in request.notes for i in note.source_ids)
        return ShortAnswer(answer=f"{NOTHING} {cited}", confidence=0.0)
    parts = (f"{text} {''.join(f'[{source}]' for source in sources)}" for text, sources in chosen.parts)
    return ShortAnswer(answer=" ".join(parts), confidence=chosen.signs.confidence())


def choose_answer(request: ShortAnswerRequest) -> ChosenAnswer | None:
    """Return the quotation that answers best, with others that fit beside it; None if there is none."""
    quotations = quotations_for(request.notes, request.passages)
    quoted = bool(quotations.sources)
    if not quoted:
        quotations = Quotations.of_statements(_summaries(request.notes))
    query = of_today(quotations, request)
    computed = computed_answer(quotations, query)
    if computed and computed.is_all:
        for sentence in (computed.sentence, without_names(computed.sentence)):
            if sentence and _fits([sentence]):
                return ChosenAnswer([(sentence, computed.sources)], Signs(1.0, 1.0, of_kind=True, bears=True))
    hop = second_hop(quotations, query)
    described = _Candidates(quotations, hop.asked, hop.found) if hop else None
    whole = described if described and described.best else _Candidates(quotations, query)
    if not whole.best:
        return None
    parts = [] if whole is described else _of_both(quotations, query) or _of_sides(quotations, query)
    parts = parts or whole.filled()
    bears = quoted and answered_by(quotations, query) is not Answered.no
    closed = [*(part._replace(text=_stopped(part.text)) for part in parts[:-1]), parts[-1]]
    return ChosenAnswer([(part.text, quotations.sources[part.number]) for part in closed], whole.signs(bears))


def _of_both(quotations: Quotations, query: str) -> list[_Candidate]:
    """Return the best answers to two questions that fit beside each other; nothing if the query has not two."""
    questions = questions_of(query)
    if len(questions) != 2:
        return []
    firsts, seconds = (_Candidates(quotations, each, chars=(ANSWER_CHARS, HALF)).best_first() for each in questions)
    fitting: dict[float, list[_Candidate]] = {}
    for a, b in product(firsts[:OF_EACH], seconds[:OF_EACH]):
        if not _differ(a.text, b.text):
            fitting[ONCE * a.score * b.score] = [max(a, b, key=lambda each: len(each.text))]
        elif _fits([a.text, b.text]):
            fitting[a.score * b.score] = [a, b]
    return fitting[max(fitting)] if fitting else []


def _of_sides(quotations: Quotations, query: str) -> list[_Candidate]:
    """Return the best that is said of each of two things that are compared, if both fit; nothing without two."""
    sides = sides_of(query)
    if not sides:
        return []
    a, b = (terms(side) for side in sides)
    names = [next((term for term in mine if term not in other), "") for mine, other in ((a, b), (b, a))]
    if not all(names):
        return []
    said: list[list[_Candidate]] = []
    for name, other in (names, names[::-1]):
        question = " ".join(word for word in query.split() if terms(word) != [other])
        found = _Candidates(quotations, question, chars=SHARES).best_first()
        whole = (each for each in found if not each.is_code and "…" not in each.text)
        of_one = (each for each in whole if name in (own := terms(each.text)) and other not in own)
        said.append(list(islice(of_one, OF_EACH)))
    fitting = {x.score * y.score: [x, y] for x, y in product(*said) if _fits([x.text, y.text])}
    return fitting[max(fitting)] if fitting else []


def _stopped(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":", "…", "。")) else f"{text}."


def _fits(texts: Sequence[str]) -> bool:
    return len(_joined(texts)) <= ANSWER_CHARS


def _joined(texts: Sequence[str]) -> str:
    return " ".join([*map(_stopped, texts[:-1]), *texts[-1:]])


def _differ(a: str, b: str) -> bool:
    """Whether neither of two texts says the other again, or a sentence of it."""
    said = {sentence.text for sentence in split_sentences(a)}
    repeats = any(sentence.text in said for sentence in split_sentences(b))
    return not (repeats or a in b or b in a or is_near_duplicate(a, b))


class _Candidates:
    """The parts of excerpts that may answer a question, and what each is worth."""

    def __init__(
        self,
        quotations: Quotations,
        question: str,
        found: Sequence[Found] | None = None,
        *,
        chars: Sequence[int] = (ANSWER_CHARS,),
    ) -> None:
        self._question = question
        self._chars = chars  # that a part may have
        self._kind = kind_of(question)
        self._words = frozenset(terms(question))
        self._worth = quotations.worth(question)
        self._total = sum(self._worth.values()) or 1.0
        self._several = asks_list(question)
        self._steps = asks_for_steps(question)
        self._listed = self._several or self._steps
        self._default = asks_default(question)
        self._succession = Succession(quotations, question)
        considered = _shorter_first(self._succession.found if found is None else found, quotations)
        self._leads = tuple(_joined(_clauses(quotations.says(f))) for f in considered if f.excerpt.announces)
        self._found = list(self._of(considered, quotations))
        self.best = max(self._found, key=lambda each: each.score, default=None)

    def best_first(self) -> list[_Candidate]:
        """Return them, the best first, the same text only once."""
        unique: dict[str, _Candidate] = {}
        for each in sorted(self._found, key=lambda each: -each.score):
            unique.setdefault(each.text, each)
        return list(unique.values())

    def signs(self, bears: bool) -> Signs:
        """Return what tells how likely the best one is right."""
        assert self.best
        return Signs(self.best.share, self.best.held, self.best.of_kind, bears)

    def filled(self) -> list[_Candidate]:
        """Return the best one, or what replaces it, with what fits beside it and is worth nearly as much."""
        assert self.best
        best = self.best
        if instead := self._succession.instead(Quoted(best.number, best.text)):
            replacing = self._parts(instead, best.score, best.share)
            return [max(replacing, key=lambda each: each.score, default=best)]
        parts = [best]
        for other in () if best.is_code else self.best_first():
            if other.score < BESIDE * best.score:
                break
            fits = other.of_kind >= best.of_kind and _fits([part.text for part in [*parts, other]])
            if fits and all(_differ(part.text, other.text) for part in parts):
                parts.append(other)
        return parts if len(parts) > 1 else [best._replace(text=best.whole or best.text)]

    def _of(self, found: Iterable[Found], quotations: Quotations) -> Iterator[_Candidate]:
        for each in found:
            quoted = Quoted(each.text, quotations.markdown(each, self._question))
            if "|" in quoted.markdown and len(each.excerpt.units) > 1:  # each of its rows is an excerpt, too
                continue
            trust = SUPERSEDED if "|" in quoted.markdown and self._succession.instead(quoted) else 1.0
            yield from self._parts(quoted, trust * each.score, each.share)

    def _parts(self, quoted: Quoted, score: float, share: float) -> Iterator[_Candidate]:
        """Yield the parts of an excerpt that may be the answer."""
        for part in (part for chars in self._chars for part in _parts(quoted.markdown, self._held, chars)):
            if not part.text or part.text.endswith((":", "?")):  # it only announces or asks
                continue
            if part.short and self._steps:
                continue
            held, fits = self._held(part.text), has_kind(self._kind, part.text, self._question)
            if part.text.endswith(self._leads) and not (self._kind and fits):  # its list is the answer
                continue
            if part.row and self._words.issuperset(part.row):
                held = max(held, share)  # its columns say the rest
            told = bool(_ANNOUNCES.search(part.above)) and (above := self._held(part.above)) >= ANSWERED
            if told:
                held, fits = max(held, above), fits or not (self._kind and self._kind.is_thing)
            needed = bool(self._kind and self._kind.needed)
            worth = score * part.factor * (1 - HELD + HELD * held) * (OF_KIND if fits else 1.0)
            if self._is_list(part, told=told) and (fits or not needed):
                worth *= LISTED
            if self._several and _DENIES.search(f"{part.above} {part.text}"):
                worth *= DENIED
            if (self._default and _DEFAULT.search(part.text)) or states_most(part.text, self._question):
                worth *= OF_KIND
            of_kind = self._kind is not None and fits
            yield _Candidate(worth, part.text, quoted.number, share, held, of_kind, part.whole, part.code)

    def _is_list(self, part: _Part, *, told: bool) -> bool:
        """Whether a part is a list where one is asked or announced by what is asked, or a sentence that is one."""
        asked = self._listed or (told and not (self._kind and self._kind.is_thing))
        return (asked and part.listed) or (self._several and bool(_ENUMERATED.search(part.text)))

    def _held(self, text: str) -> float:
        """Return the share of the question's terms, by worth, that a text holds."""
        said = set(terms(text))
        return sum(worth for words, worth in self._worth.items() if _says(text, said, words)) / self._total


def _shorter_first(found: Sequence[Found], quotations: Quotations) -> list[Found]:
    """Return the best excerpts, longer ones with lower scores: a report quotes them whole, an answer a part."""
    lengths = (max(SHORT, len(quotations.says(each))) for each in found[:SORTED])
    weighed = [each._replace(score=each.score * n**-BREVITY) for each, n in zip(found, lengths, strict=False)]
    return sorted(weighed, key=lambda each: -each.score)[:CONSIDERED]


def _says(text: str, said: Collection[str], words: Collection[str]) -> bool:
    return any(
        word in said or (is_quantity(word) and states(word, text)) or in_range(cases_sought(word), text, "")
        for word in words
    )


def _summaries(notes: Sequence[Note]) -> list[QuotedStatement]:
    """Return the summaries of notes without any quotation, as a model may write them, with all their sources."""
    return [
        QuotedStatement(note.summary, tuple(note.source_ids), "", n, 0) for n, note in enumerate(notes) if note.summary
    ]


class _Part(NamedTuple):
    """A part of an excerpt that fits."""

    text: str
    factor: float
    listed: bool = False  # all items of a list, or as many as fit
    whole: str = ""  # with what else fits if nothing stands beside it
    code: bool = False
    short: bool = False  # its items are cut: of a step, what was cut is missed
    above: str = ""  # what stands before a list, or the question that is answered
    row: frozenset[str] = frozenset()  # terms of its first cell


Held = Callable[[str], float]


def _parts(markdown: str, held: Held, chars: int) -> Iterator[_Part]:
    """Yield the parts of an excerpt: of prose, rows, and lists and code below what announces them."""
    lead, above, prose, alone = "", "", list[str](), False
    for block in split_blocks(markdown):
        lines = block.split("\n")
        if block.startswith("```"):
            yield from _below(lead, _of_code(lines[1:-1], chars), chars)
            continue
        if _RULE.search(block):
            yield from _of_rows(lines, held, chars)
            continue
        said = [_ITEM.sub("", line.strip(), count=1) for line in lines]
        if _ITEM.match(block.lstrip()):
            yield from (part._replace(above=above) for part in _below(lead, _of_items(said, chars), chars))
            prose = prose[:-1] if alone and len(said) > 1 else prose  # with the first item it is no answer
        sentences = [sentence.clean for line in said for sentence in split_sentences(line)]
        if above.endswith("?") and sentences and not announces(block):
            yield from (part._replace(above=above) for part in _spans(sentences[0], chars))
        lead, above = sentences[-1] if announces(block) and sentences else "", block
        alone = len(sentences) == 1
        prose += sentences
    for text in map(_joined, (prose, *pairwise(prose))):
        if len(text) <= chars:
            yield _Part(text, 1.0)
    for sentence in prose:
        yield from _spans(sentence, chars)


def _below(lead: str, parts: Iterable[_Part], chars: int) -> Iterator[_Part]:
    """Yield parts, those that leave room for it below what announces them, too."""
    for part in parts:
        if lead and len(text := f"{lead} {part.text}") <= chars:
            yield part._replace(text=text)
        yield part


_ITEM = re.compile(r"- (?:\d{1,3}\. )?")


def _of_items(items: Sequence[str], chars: int) -> Iterator[_Part]:
    """Yield the forms of a list that fit; a part of it is worth less."""
    for form in list_forms(items, chars) if len(items) > 1 else ():
        yield _Part(form.text, CUT if form.lacks_items else 1.0, listed=True, short=form.is_cut)


def _of_code(lines: Sequence[str], chars: int) -> Iterator[_Part]:
    code = [line.strip() for line in lines if line.strip()]
    if len(whole := " ".join(code)) <= chars:
        yield _Part(whole, 1.0, listed=len(code) > 1, code=True)
    for first in range(len(code)):
        for last in range(first + 1, len(code) + 1):
            run = " ".join(code[first:last])
            if len(run) > chars:
                break
            if all(run.count(opening) == run.count(closing) for opening, closing in ("()", "[]", "{}")):
                yield _Part(run, CUT, code=True)


def _of_rows(lines: Sequence[str], held: Held, chars: int) -> Iterator[_Part]:
    """Yield each row as its first cell and the cells that are asked for, with the names of their columns."""
    rule = next(i for i, line in enumerate(lines) if _RULE.match(line))
    header = cells_of_row(lines[rule - 1])
    for line in lines[rule + 1 :]:
        cells = cells_of_row(line)
        named = [(name, cell) for name, cell in zip(header[1:], cells[1:], strict=False) if cell]
        named.sort(key=lambda each: (-held(each[0]), -held(each[1])))
        asked = [each for each in named if held(each[0]) >= held(named[0][0])]
        text = _row(cells[0], asked, held, chars)
        if len(text) <= chars:
            yield _Part(text, 1.0, whole=_row(cells[0], named, held, chars), row=frozenset(terms(cells[0])))


def _row(first: str, named: Iterable[tuple[str, str]], held: Held, chars: int) -> str:
    """Return a cell with as many others as fit, each with the name of its column."""
    text = first
    for name, cell in named:
        left = chars - len(text) - 2
        part = f"{name}: {cell}" if name else cell
        if len(part) > left:
            part = max((s for s in _clauses(cell) if len(s) <= left), key=held, default="")
            if not part or not held(part):
                break
        text = f"{text}; {part}" if text else part
    return text


def _clauses(cell: str) -> list[str]:
    return [sentence.clean for sentence in split_sentences(cell)]


def _spans(sentence: str, chars: int) -> Iterator[_Part]:
    """Yield a sentence if it is short enough, else the runs of its clauses that are."""
    if len(sentence) <= chars:
        yield _Part(sentence, 1.0)
        return
    yield from _shortened(sentence, chars)
    starts = [0, *(m.end() for m in _BEGINNING.finditer(sentence))]
    ends = [*(m.start() for m in _ENDING.finditer(sentence)), len(sentence)]
    for start in starts:
        for end in sorted((end for end in ends if MIN_CHARS <= end - start <= chars), reverse=True):
            text = sentence[start:end].strip(" ,;:–—-")
            if _reads(text) and not LIMITING.search(sentence[:start] + sentence[end:]):
                yield _Part(text, CUT * (INNER if start else 1.0))
                break


def _reads(clause: str) -> bool:
    """Whether a clause has a verb behind a subject, is not only a condition, and leaves no bracket open."""
    words = clause.lower().split()
    verbs = [i for i, word in enumerate(words) if is_verb(word.strip(",.;:"), words[i - 1] if i else "")]
    says = bool(verbs) and verbs[0] > 0 and not _ONLY_CONDITION.fullmatch(clause)
    return says and clause.count("(") == clause.count(")") and clause.count('"') % 2 == 0


def _shortened(sentence: str, chars: int) -> Iterator[_Part]:
    """Yield the sentence's beginning and its last clauses, each marked as a part."""
    first = sentence[: chars - 2].rsplit(maxsplit=1)[0].rstrip(" ,;:–—-")
    yield _Part(f"{first} …", LIMITED if LIMITING.search(sentence.removeprefix(first)) else MARKED)
    tails = (sentence[m.end() :].strip() for m in _ENDING.finditer(sentence))
    last = next((tail for tail in tails if MIN_CHARS <= len(tail) <= chars - 2), "")
    if last and not LIMITING.search(sentence.removesuffix(last)):
        yield _Part(f"… {last}", MARKED * INNER**2)


CONSTANT = -4.03
WEIGHTS = (0.35, 2.49, 0.78, 1.87)  # of the signs, in their order


class Signs(NamedTuple):
    """What tells a right answer from a wrong one; each from 0 to 1."""

    share: float  # of the question's terms, by worth, that the excerpt or its surroundings hold
    held: float  # share of the question's terms that the answer itself holds
    of_kind: bool  # the question tells what kind of thing it asks for, and the answer holds one
    bears: bool  # a report would be headed *Answer* or *May answer this*, not *Not answered*

    def confidence(self) -> float:
        """Return the probability that the answer is right, with two decimals."""
        logit = CONSTANT + sum(weight * sign for weight, sign in zip(WEIGHTS, self, strict=True))
        return round(1 / (1 + math.exp(-logit)), 2)
