"""The verdict of a comparison of words, which claims no more than words can show.

`supported`: a cited source says the claim word for word in a sentence that says no more, its amounts perhaps in other
units, or has every cell of a row in one row below the same heads, or the claim is computed from what cited sources
state (`computed.py`). `not_stated`: a number, date, name or piece of code of the claim stands nowhere in any cited
source, its title and address included. All else is `not_checked`: a comparison of words is near chance on sentences in
other words (docs/evidence.md has the figures).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from itertools import product, takewhile
from typing import NamedTuple

from fathom.evidence.claims import ClaimSentence
from fathom.evidence.complaints import named_in, words_of
from fathom.evidence.computed import computed_from
from fathom.evidence.likeness import MAX_PASSAGES, is_whole, nearest, rows_said, same_amounts, verbatim
from fathom.evidence.passages import Search, SourcePassage
from fathom.facts.code import code_spans, has_identifier, identifiers, lines_nowhere, pieces_nowhere, without_code
from fathom.facts.dates import MONTHS, Date
from fathom.facts.extraction import Facts, Name, facts_of
from fathom.facts.numbers import UNITS, Number, has_share
from fathom.models import Verdict
from fathom.text.blocks import Kind
from fathom.text.languages import language_tag
from fathom.text.sentences import fences, split_sentences
from fathom.text.terms import query_terms, terms

CITES_NOTHING = "it cites nothing"
PART_CHARS = 4_000  # of a text whose figures are read at once
BEFORE = 30  # characters before a number that show whether it is rounded
SAME_COUNT = 0.6  # share of a claim's words that a sentence has which counts the same
OWN_COUNT = 100  # from which a number in words is not the writer's own counting
ABOUT = Decimal("0.1")  # share of a number that "about" and "more than" leave open
NOUNS_WITH_CAPITALS = "de"  # the language in which a capital makes no name
_NOUN = re.compile(r"(?:ung|heit|keit|schaft|ion|tät|nis|ismus)(?:s|en|e)?\Z")
_NUMBERING = re.compile(r"\(\d{1,2}\)")
_WORKED_OUT = re.compile(
    r"\b(?:totals?|sum|together|combined|altogether|average|mean|median|difference|times|twice|doubled?|half|halved|"
    r"ratio|remaining|insgesamt|zusammen|summe|durchschnitt\w*|differenz|doppelt|halb\w*|\d+(?:x|-?fold|-?fach|-?mal))\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"[\s-]*(?:\w+\s+){0,2}(?:later|earlier|older|younger|more|less|fewer|longer|shorter|higher|lower|larger|smaller|"
    r"greater|heavier|lighter|faster|slower|cheaper|than|after|before|ago|apart|between|später|früher|älter|jünger|mehr|"
    r"weniger|länger|kürzer|höher|niedriger|größer|kleiner|schwerer|leichter|teurer|billiger|als|nach|vor|danach|zuvor)\b",
    re.IGNORECASE,
)
# "fell by 13": how far, from a value that a source states to another one.
_CHANGED_BY = re.compile(
    r"\b(?:(?P<up>rose|rises?|risen|grew|grows?|grown|increased?|increases|climbed|gained)|"
    r"(?P<down>fell|falls?|fallen|dropp?(?:ed|s)?|decreased?|decreases|declined?|declines|shrank|sank))\b[^.;]{0,20}?\bby\s+\Z",
    re.IGNORECASE,
)
STATED_TOGETHER = 200  # characters between two values of which a claim gives the difference
_CENTURY = re.compile(r"(?:st|nd|rd|th|\.)?[\s-]*(?:centur|jahrhundert|jh\b)", re.IGNORECASE)
_AT_OPENING = re.compile(r"[(\"“„‘«–—/]\s*\S+\Z")
_ROUNDED = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.|roughly|nearly|almost|circa|ca\.|some|over|under|above|below|(?:more|"
    r"less|fewer) than|at (?:least|most)|up to|close to|rund|etwa|ungefähr|fast|knapp|gut|über|unter|"
    r"(?:mehr|weniger) als|mindestens|höchstens|bis zu)|[~≈<>≤≥])\s*\Z",
    re.IGNORECASE,
)
_SAYS = (
    r"(?:mention(?:s|ed)?|says?|said|stated?|specif(?:y|ies|ied)|discuss(?:es|ed)?|address(?:es|ed)?|explain(?:s|ed)?|"
    r"reported|indicated?|tells?|told|give[ns]?|described?|quoted?|information|erwähn\w*|nenn\w*|genannt|sagt?|gesagt|"
    r"angegeben|angaben?|beschr(?:eib|ieb)\w*)"
)
_SILENT = re.compile(
    r"(?:\b(?:not|no|nor|neither|never|nothing|nowhere|none|nicht|kein\w*|nichts|nirgends|weder)|n['’]t)\b[^.;]{0,40}?"
    rf"\b{_SAYS}\b|\b(?:{_SAYS}|contain\w*|names?|offers?|provides?|gibt|enthält|macht)\s+(?:no|nothing|kein\w*|nichts)\b",
    re.IGNORECASE,
)


class ByWords(NamedTuple):
    """The verdict of words, the share of the claim's words that the closest passages have, and these passages."""

    verdict: Verdict
    score: float
    passages: list[SourcePassage]
    complaints: list[str]  # the facts that stand nowhere in the cited sources, or that it cites none


def check(statement: ClaimSentence, search: Search) -> ByWords:
    """Check a claim against the texts of the sources that have to say it, or all if it has none."""
    ids = statement.checked_against or None
    if said := said_in(statement, search):
        return ByWords(Verdict.supported, 1.0, said[:MAX_PASSAGES], [])
    near = nearest(statement.sentence, search, ids, statement.kind)
    nowhere = facts_nowhere(statement.sentence, search, ids, statement.kind) if ids or search.whole(None) else []
    verdict = Verdict.not_stated if nowhere else Verdict.not_checked
    whose = "its sources" if ids else "any source"
    complaints = [f"{what} stands nowhere in {whose}" for what in nowhere]
    return ByWords(verdict, near.score, near.passages, complaints if ids else [CITES_NOTHING, *complaints])


def said_in(statement: ClaimSentence, search: Search) -> list[SourcePassage]:
    """Return the places where sources say a claim word for word, or have its row; then words support it."""
    ids = statement.checked_against or None
    if (computed := computed_from(statement.sentence, search, ids)) is not None:
        return computed
    if statement.kind == "table":
        return rows_said(statement.sentence, statement.head, search, ids)
    said = verbatim(statement.sentence, search, ids, statement.kind)
    if statement.kind == "code":
        return said
    return list(filter(is_whole, said)) or same_amounts(statement.sentence, search, ids)


def facts_nowhere(
    claim: str, search: Search, ids: Collection[str] | None, kind: Kind = "prose", *, translated: bool = True
) -> list[str]:
    """Return the numbers, dates, names and pieces of code of a claim that stand nowhere in some sources, or in any.

    A source's title, address and date are a part of it. Some facts need not stand there: a number that follows from
    others ("27 years later", "in total"), a small number in words where no source says how many, which may be the
    writer's own counting, and anything that a claim calls unmentioned. `translated`: names need not stand there either,
    if a source is in another language.
    """
    read = search.whole(ids)
    if kind == "code":
        return [f"`{piece}`" for piece in pieces_nowhere(claim, read)]
    found = [f"`{line}`" for fence in fences(claim) for line in lines_nowhere(fence.code, read)]
    for fence in reversed(list(fences(claim))):
        claim = f"{claim[: fence.start]}\n{claim[fence.end :]}"
    language = _language(claim, read, translated=translated)
    for sentence in split_sentences(claim):
        if sentence.kind != "rule" and not says_nothing(sentence.text):
            found += _of_sentence(sentence.clean, read, language)
    return list(dict.fromkeys(found))


def says_nothing(sentence: str) -> bool:
    """Whether a sentence says that sources do not mention something; its names need not stand in a source."""
    return bool(_SILENT.search(sentence))


def _of_sentence(sentence: str, read: Sequence[str], language: str | None) -> Iterator[str]:
    said = without_code(_NUMBERING.sub("", sentence))
    facts = facts_of(said)
    yield from _numbers_nowhere(facts, read)
    for found in facts.dates:
        if not any(_has_date(text, found.date) for text in read):
            yield found.text
    for span in code_spans(sentence):
        yield from (f"`{piece}`" for piece in pieces_nowhere(span.replace("\\|", "|"), read))
    for word in identifiers(said):
        if not any(has_identifier(text, word) for text in read):
            yield f"`{word}`"
    if language is not None:
        yield from _names_nowhere(facts, read, language)


def _numbers_nowhere(facts: Facts, read: Sequence[str]) -> Iterator[str]:
    if _WORKED_OUT.search(facts.text):
        return
    for number in facts.numbers:
        one = number.spelled and max(number.values) <= 1
        if one or _is_own_count(number, facts.text, read) or _COMPARED.match(facts.text, number.end):
            continue
        changed = _CHANGED_BY.search(facts.text[max(0, number.start - STATED_TOGETHER) : number.start])
        if changed and any(_is_change(number, text, up=bool(changed["up"])) for text in read):
            continue
        if not any(stands_in(number, facts.text, text) for text in read):
            yield number.text


def stands_in(number: Number, claim: str, text: str) -> bool:
    """Whether a text has a number of a claim, rounded where the claim says so, or the year or the share that it is."""
    about = bool(_ROUNDED.search(claim[max(0, number.start - BEFORE) : number.start]))
    return _has_number(text, number, about) or _is_within(number, claim, text)


def _is_own_count(number: Number, claim: str, read: Sequence[str]) -> bool:
    """Whether a number in words may be the writer's own counting: a small one where no source says how many."""
    if not number.spelled or number.unit or max(number.values) >= OWN_COUNT:
        return False
    counting = (text for text in read if number.counted and any(each.kind == number.kind for each in _facts(text)[0]))
    return not any(_counts(text, number, claim) for text in counting)


def _counts(text: str, number: Number, claim: str) -> bool:
    """Whether a sentence of a text counts the same as a number of a claim, and has most of the claim's words."""
    said = set(query_terms(claim))
    return any(
        any(other.kind == number.kind for other in facts_of(sentence.text).numbers)
        and len(said.intersection(terms(sentence.text))) >= SAME_COUNT * len(said)
        for part in _parts(text)
        for sentence in split_sentences(part)
    )


def _is_change(change: Number, text: str, *, up: bool) -> bool:
    """Whether a text has two values near each other of which a number is the difference, or its share of the first."""
    for part in _parts(text):
        numbers = facts_of(part).numbers
        near = ((a, b) for n, a in enumerate(numbers) for b in takewhile(partial(_near, a), numbers[n + 1 :]))
        for a, b in near:
            for x, y in product(a.values, b.values) if a.unit == b.unit else ():
                old = min(x, y) if up else max(x, y)
                share = round(100 * abs(x - y) / old) if old else None
                if abs(x - y) in change.values and change.unit in ("", a.unit):
                    return True
                if change.unit == "%" and share is not None and share in change.values:
                    return True
    return False


def _near(a: Number, b: Number) -> bool:
    return b.start - a.end <= STATED_TOGETHER


def _has_number(text: str, number: Number, about: bool) -> bool:
    numbers, dates = _facts(text)
    if any(number.agrees(other) or _comes_near(number, other, about) for other in numbers):
        return True
    if not number.unit and any(not date.month and date.year in number.values for date in dates):
        return True  # 1,140 of "1140 visitors", which is read as a year
    if any(number.values & other.values and _differ(number.unit, other.unit) for other in numbers):
        return False
    written = re.search(r"\d[\d.,’']*\d|\d", number.text)
    bounded = rf"(?<!\d)(?<!\d[.,])0*{re.escape(written[0])}(?!\d|[.,]\d{{3}}(?!\d))" if written else r"\Z."
    return bool(re.search(bounded, text))


def _is_within(number: Number, claim: str, text: str) -> bool:
    """Whether a number is the decade or the century of a year that a text has, or a share that it names in words."""
    years = [date.year for date in _facts(text)[1]]
    if _CENTURY.match(claim, number.end):
        return any(Decimal((year + 99) // 100) in number.values for year in years)
    if number.unit == "decade":
        return any(Decimal(10 * (year // 10)) in number.values for year in years)
    return has_share(text, number)


def _comes_near(number: Number, other: Number, about: bool) -> bool:
    """Whether a number is another number rounded to at least two digits, or about that."""
    if _differ(number.unit, other.unit, of_one_kind=False):
        return False
    own, its = UNITS.get(number.unit.lower()), UNITS.get(other.unit.lower())
    factor = its.factor / own.factor if own and its else Decimal(1)
    return any(_is_near(value, its_value * factor, about) for value in number.values for its_value in other.values)


def _differ(unit: str, other: str, *, of_one_kind: bool = True) -> bool:
    """Whether two numbers have different units; `of_one_kind`: metres and kilometres count as different, too."""
    own, its = UNITS.get(unit.lower()), UNITS.get(other.lower())
    return bool(own and its and (own != its if of_one_kind else own.dimension != its.dimension))


def _is_near(value: Decimal, exact: Decimal, about: bool) -> bool:
    _, digits, exponent = value.normalize().as_tuple()
    half = Decimal((0, (5,), int(exponent) - 1))
    return (len(digits) > 1 and abs(value - exact) <= half) or (about and abs(value - exact) <= ABOUT * abs(value))


def _has_date(text: str, date: Date) -> bool:
    numbers, dates = _facts(text)
    if any(date.within(other) for other in dates):
        return True
    if not date.month:
        return str(date.year) in text or any(date.year in number.values for number in numbers)
    if not date.year or str(date.year) not in text:
        return False
    return any(date._replace(year=0).within(other) and not other.year for other in dates) or _in_other_words(text, date)


def _in_other_words(text: str, date: Date) -> bool:
    """Whether a text has a day and a year with a month of another language between them: 3 de mayo de 2021."""
    pattern = rf"(?<!\d)0?{date.day}(?:er|[.º°])?\s+(?:de\s+)?([^\W\d_]+)\.?\s+(?:de\s+)?{date.year}(?!\d)"
    return bool(date.day) and any(month.lower() not in MONTHS for month in re.findall(pattern, text))


def _language(claim: str, read: Sequence[str], *, translated: bool) -> str | None:
    """Return the language of a claim, empty if it is not clear; None if a source may have translated its names."""
    own = language_tag(claim)
    known = {tag for text in read if (tag := language_tag(text[:PART_CHARS]))}
    if translated and len(known | {own} - {""}) > 1:
        return None
    return own or next((tag for tag in known if tag == NOUNS_WITH_CAPITALS), "")


def _names_nowhere(facts: Facts, read: Sequence[str], language: str) -> Iterator[str]:
    """Yield the names that have no word in any source."""
    for name in facts.names:
        if not _is_telling(name, facts.text, language) or any(_is_abbreviated(name, text) for text in read):
            continue
        if not any(named_in(word, words_of(text)) for word in name.words for text in read):
            yield f"the name {' '.join(name.words)}"


def _is_telling(name: Name, text: str, language: str) -> bool:
    """Whether capitalised words are certainly a name; the first word of a sentence and German nouns are not."""
    if not any(word[1:].islower() for word in name.words):
        return False
    if len(name.words) == 1:
        opening = name.opening or _AT_OPENING.search(text[max(0, name.end - 60) : name.end])
        return language not in ("", NOUNS_WITH_CAPITALS) and not opening
    if language == NOUNS_WITH_CAPITALS:
        return not name.opening and not any(_NOUN.search(word) or word.lower() in UNITS for word in name.words)
    return not name.opening or bool(re.match(r"\s+[a-z]", text[name.end : name.end + 9]))


def _is_abbreviated(name: Name, text: str) -> bool:
    initials = "".join(word[0] for word in name.words)
    return len(initials) > 1 and bool(re.search(rf"\b{re.escape(initials)}\b", text))


@lru_cache(maxsize=256)
def _facts(text: str) -> tuple[tuple[Number, ...], tuple[Date, ...]]:
    """Return the numbers and dates of a text, read in parts, so that the time is linear in its length."""
    numbers: list[Number] = []
    dates: list[Date] = []
    for part in _parts(text):
        found = facts_of(part)
        numbers += found.numbers
        dates += [dated.date for dated in found.dates]
    return tuple(numbers), tuple(dict.fromkeys(dates))


def _parts(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + PART_CHARS) if len(text) - start > PART_CHARS else len(text)
        end = end if end > start else start + PART_CHARS
        yield text[start:end]
        start = end
