"""The values in which two wordings of one sentence differ: numbers, dates, names, negations, single words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from fathom.changes.model import Difference
from fathom.evidence.likeness import cells_of
from fathom.evidence.support import spaced_words
from fathom.facts.dates import Date
from fathom.facts.extraction import Facts, Name, facts_of
from fathom.facts.opposites import denied_terms, opposed, side_of
from fathom.text.terms import STOP_WORDS, language_of, query_terms, terms

ALIKE = 0.6  # share of common words: in less similar sentences a "not" may deny something else
SPELLING = 0.75  # likeness of two words that are one, spelled differently
MOST_WORDS = 4  # words that stand in one place and are exchanged
_TIME = re.compile(
    r"\b(?:[01]?\d|2[0-3])[:.][0-5]\d(?=\s?(?:[ap]\.?m\b|Uhr\b|h\b))|\b(?:[01]?\d|2[0-3]):[0-5]\d\b", re.IGNORECASE
)
_ORDINAL = re.compile(r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)\b", re.IGNORECASE)

_WORD = re.compile(r"\w+(?:[.,'’-]\w+)*|[^\w\s]")
T = TypeVar("T")


def differences(old: str, new: str) -> list[Difference]:
    """Return the values in which a sentence differs from its former wording; nothing if it says the same in other
    words.

    A date that became more exact and a number in another unit or notation are the same.
    """
    times = list(_exchanged(_TIME, old, new))
    before, after = (facts_of(_TIME.sub(" ", text)) for text in (old, new))
    found = [*times, *_numbers(before, after), *_dates(before, after), *_names(old, new, before, after)]
    if _alike(old, new):
        found += [*_exchanged(_ORDINAL, old, new), *_denials(old, new), *_opposites(old, new)]
        found = found or list(_words(old, new))
    return found


def row_differences(old: str, new: str) -> list[Difference]:
    """Return the cells in which a row differs from its former version; a cell with other words has another value."""
    cells, others = cells_of(old), cells_of(new)
    if len(cells) != len(others):
        return differences(old, new)
    return [found for cell, other in zip(cells, others, strict=True) for found in _cell(cell, other)]


def _cell(old: str, new: str) -> Iterator[Difference]:
    before, after = spaced_words(old), spaced_words(new)
    if before == after or not (before.strip() and after.strip()):
        return
    found = differences(old, new)
    facts = facts_of(old), facts_of(new)
    if found or all(fact.numbers or fact.dates for fact in facts):  # else the same number, written in another way
        yield from found
    elif not _same_words(before.split(), after.split()):
        yield Difference(about="words", before=old, after=new)


def figures_differ(old: str, new: str) -> bool:
    """Whether two sentences have different numbers or dates."""
    before, after = facts_of(old), facts_of(new)
    return any(True for _ in _numbers(before, after)) or any(True for _ in _dates(before, after))


def names_apart(old: str, new: str) -> bool:
    """Whether both sentences contain names, and the names differ."""
    return any(found.before and found.after for found in _names(old, new, facts_of(old), facts_of(new)))


def _numbers(before: Facts, after: Facts) -> Iterator[Difference]:
    mine, yours = _unmatched(before.numbers, after.numbers, lambda a, b: a.agrees(b))
    for a, b in _paired(mine, yours, lambda a, b: a.unit == b.unit and (a.counted == b.counted or bool(a.unit))):
        one = a or b
        if (a and b) or (one and not one.spelled):  # "one of them" may come and go
            yield Difference(about="number", before=a.text if a else "", after=b.text if b else "")


def _dates(before: Facts, after: Facts) -> Iterator[Difference]:
    mine, yours = _unmatched(before.dates, after.dates, lambda a, b: a.date.agrees(b.date))
    for a, b in _paired(mine, yours, lambda a, b: _exactness(a.date) == _exactness(b.date)):
        yield Difference(about="date", before=a.text if a else "", after=b.text if b else "")


def _exchanged(pattern: re.Pattern[str], old: str, new: str) -> Iterator[Difference]:
    """Yield the matches of a pattern that only one of two sentences has, if the other has as many of its own."""
    mine, yours = _unmatched(pattern.findall(old), pattern.findall(new), lambda a, b: a.lower() == b.lower())
    if len(mine) == len(yours):
        yield from (Difference(about="number", before=a, after=b) for a, b in zip(mine, yours, strict=True))


def _exactness(date: Date) -> tuple[bool, ...]:
    return tuple(map(bool, date))


def _names(old: str, new: str, before: Facts, after: Facts) -> Iterator[Difference]:
    """Yield the names that were exchanged; one that only came or went is a detail, and may be another wording."""
    nouns_have_capitals = language_of([old, new]) == "german"

    def telling(name: Name) -> bool:
        one_word = len(name.words) == 1
        return not (one_word and (name.opening or (nouns_have_capitals and name.words[0][1:].islower())))

    mine, yours = set(map(str.lower, re.findall(r"\w+", old))), set(map(str.lower, re.findall(r"\w+", new)))
    left = [name for name in before.names if telling(name) and not yours & _parts(name)]
    came = [name for name in after.names if telling(name) and not mine & _parts(name)]
    for one, other in zip(left, came, strict=False):
        yield Difference(about="name", before=" ".join(one.words), after=" ".join(other.words))


def _parts(name: Name) -> set[str]:
    return set(re.findall(r"\w+", " ".join(name.words).lower()))


def _alike(old: str, new: str) -> bool:
    """Whether two sentences have most of their words in common; of short ones, most words in their order."""
    mine, yours = set(query_terms(old)), set(query_terms(new))
    if 2 * len(mine & yours) >= ALIKE * (len(mine) + len(yours)):
        return True
    return SequenceMatcher(None, _lowered(old), _lowered(new), autojunk=False).ratio() >= ALIKE


def _lowered(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _denials(old: str, new: str) -> Iterator[Difference]:
    denied, denying = denied_terms(old), denied_terms(new)
    said, says = set(terms(old)), set(terms(new))
    lost = [word for term, word in denied.items() if term in says and not denying]
    won = [word for term, word in denying.items() if term in said and not denied]
    for word in lost[:1]:
        yield Difference(about="negation", before=f"not {word}", after=word)
    for word in won[:1]:
        yield Difference(about="negation", before=word, after=f"not {word}")
    if denied and denying and set(query_terms(old)) == set(query_terms(new)):  # all else is the same
        own, its = denied_terms(old, 1), denied_terms(new, 1)
        for word in [word for term, word in own.items() if term not in denying][:1]:
            yield Difference(about="negation", before=f"not {word}", after=word)
        for word in [word for term, word in its.items() if term not in denied][:1]:
            yield Difference(about="negation", before=word, after=f"not {word}")


def _opposites(old: str, new: str) -> Iterator[Difference]:
    pair = opposed(old, new)
    if pair and pair[1]:
        yield Difference(about="opposite", before=pair[0], after=pair[1])


def _words(old: str, new: str) -> Iterator[Difference]:
    """Yield the words that stand in the place of others, between the same function words, where all else is the same.

    Such a word is what the sentence says of its subject: "the default is blue". A verb or an adjective before its noun
    stands between words of topic, and another one is often only another wording.
    """
    mine, yours = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, _lowered(old), _lowered(new), autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal" and _says(mine, yours, code)]
    if len(changes) != 1 or changes[0][0] != "replace":
        return
    _, first, last, start, stop = changes[0]
    left, came = mine[first:last], yours[start:stop]
    if first and all(word[0].isupper() for word in (*left, *came)) and len(left) == len(came):
        yield Difference(about="name", before=" ".join(left), after=" ".join(came))
        return
    bounded = (first == 0 or _is_function(mine[first - 1])) and (last == len(mine) or _is_function(mine[last]))
    if bounded and max(len(left), len(came)) <= MOST_WORDS and not _same_words(left, came):
        yield Difference(about="words", before=" ".join(left), after=" ".join(came))


def _says(mine: Sequence[str], yours: Sequence[str], code: tuple[str, int, int, int, int]) -> bool:
    """Whether a differing stretch has more than punctuation and function words."""
    _, first, last, start, stop = code
    return not all(map(_is_function, [*mine[first:last], *yours[start:stop]]))


def _is_function(word: str) -> bool:
    return not word[0].isalnum() or word.lower() in STOP_WORDS


def _same_words(left: Sequence[str], came: Sequence[str]) -> bool:
    mine, yours = terms(" ".join(left)), terms(" ".join(came))
    sides = {side_of(term) for term in mine} & {side_of(term) for term in yours} - {None}
    one, other = "".join(left).lower(), "".join(came).lower()
    return set(mine) == set(yours) or bool(sides) or SequenceMatcher(None, one, other).ratio() >= SPELLING


def _unmatched(mine: Sequence[T], yours: Sequence[T], same: Callable[[T, T], bool]) -> tuple[list[T], list[T]]:
    """Return the values of two lists that have no equal in the other list, each counted once."""
    rest = list(yours)
    left: list[T] = []
    for one in mine:
        if _taken(rest, one, same) is None:
            left.append(one)
    return left, rest


def _taken(rest: list[T], one: T, alike: Callable[[T, T], bool]) -> T | None:
    """Remove and return the first value of a list that is like another value; None if there is none."""
    found = next((other for other in rest if alike(one, other)), None)
    if found is not None:
        rest.remove(found)
    return found


def _paired(
    mine: Sequence[T], yours: Sequence[T], comparable: Callable[[T, T], bool]
) -> Iterator[tuple[T | None, T | None]]:
    """Pair removed values with added ones: comparable values first, then in order; the rest stay unpaired."""
    rest = list(yours)
    alone: list[T] = []
    for one in mine:
        if (other := _taken(rest, one, comparable)) is None:
            alone.append(one)
        else:
            yield one, other
    for number in range(max(len(alone), len(rest))):
        yield (alone[number] if number < len(alone) else None), (rest[number] if number < len(rest) else None)
