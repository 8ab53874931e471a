"""Complaints about a claim: statements that its passages do not make, or make differently.

Numbers, dates and names must be in the passage, however they are written. Readers rely on them, and a comparison of
words is most reliable about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from fathom.evidence.passages import SourcePassage
from fathom.evidence.support import spaced_words
from fathom.facts.dates import Date, DateFound
from fathom.facts.extraction import Facts, Name, facts_of
from fathom.facts.opposites import denied_terms, opposed
from fathom.text.terms import language_of, query_terms, terms

STEM = 5  # letters of a name that Germany and German, Austria and Austrian share at least
ENDING = 3


class ClaimComplaint(NamedTuple):
    """An objection to a claim. `grave`: the claim is not supported; otherwise it is weak at most."""

    text: str
    grave: bool


def complaints_of(claim: str, passages: Sequence[SourcePassage]) -> list[ClaimComplaint]:
    """Return the complaints about a claim that some passages, the best first, have to support together."""
    own, quoted = facts_of(claim), facts_of(" | ".join(passage.words for passage in passages))
    found = [*_numbers(own, quoted), *_dates(own, quoted), *_names(claim, own, passages)]
    first, words = passages[0], spaced_words(claim)
    only_whole = words in spaced_words(first.words) and words not in spaced_words(first.best.text)
    sentence = first.words if only_whole else first.best.text
    return list(dict.fromkeys([*found, *doubts(claim, sentence)]))


def doubts(claim: str, sentence: str) -> list[ClaimComplaint]:
    """Return the points that only one of a claim and a source's sentence denies, or where one says the opposite."""
    found = list(_denials(claim, sentence))
    if pair := opposed(claim, sentence):
        quoted_word = f"“{pair[1]}”" if pair[1] else "nothing of the kind"
        found.append(ClaimComplaint(f"the claim says “{pair[0]}”, the quote {quoted_word}", grave=False))
    return found


def agreeing(claim: str, quotes: Sequence[str]) -> list[str]:
    """Return the numbers and dates of a claim that some quotes have too, as the claim writes them."""
    own, quoted = facts_of(claim), facts_of(" | ".join(quotes))
    numbers = [n.text for n in own.numbers if any(n.agrees(other) for other in quoted.numbers)]
    return [*numbers, *(dated.text for dated in own.dates if _dated(dated.date, quoted.dates))]


def _numbers(own: Facts, quoted: Facts) -> Iterator[ClaimComplaint]:
    for number in own.numbers:
        years = number.unit in ("", "decade") and any(dated.date.year in number.values for dated in quoted.dates)
        if years or any(number.agrees(other) for other in quoted.numbers):
            continue
        units = [other.text for other in quoted.numbers if number.values & other.values]
        others = [other.text for other in quoted.numbers if number.kind and other.kind == number.kind]
        if units:
            yield ClaimComplaint(f"{number.text} is {units[0]} in the source", grave=True)
        else:
            instead = f"; it says {others[0]}" if others else ""
            # A number word may be the writer's own counting: "three reasons".
            grave = not number.spelled or bool(others)
            yield ClaimComplaint(f"the number {number.text} is not in the quote{instead}", grave)


def _dates(own: Facts, quoted: Facts) -> Iterator[ClaimComplaint]:
    for date, text, *_ in own.dates:
        bare = not date.month and any(date.year in number.values and not number.unit for number in quoted.numbers)
        if not bare and not _dated(date, quoted.dates):
            instead = f"; it says {quoted.dates[0].text}" if len(quoted.dates) == 1 else ""
            yield ClaimComplaint(f"the date {text} is not in the quote{instead}", grave=True)


def _dated(date: Date, dates: Sequence[DateFound]) -> bool:
    """Whether some dates contain a date, or two of them its parts: "in May of that year"."""
    others = [dated.date for dated in dates]
    return any(date.within(other) for other in others) or (
        bool(date.year and date.month)
        and any(date._replace(year=0).within(other) and not other.year for other in others)
        and any(other.year == date.year for other in others)
    )


def _names(claim: str, own: Facts, passages: Sequence[SourcePassage]) -> Iterator[ClaimComplaint]:
    quote = " ".join(passage.words for passage in passages)
    there = words_of(" ".join(passage.near for passage in passages)) | words_of(quote)
    nouns_have_capitals = language_of([claim, quote]) == "german"
    for name in own.names:
        one_word = len(name.words) == 1 and name.words[0][1:].islower()
        if nouns_have_capitals and one_word:
            continue
        missing = [word for word in name.words if not named_in(word, there)]
        if not missing or any(_abbreviated(name, text) for p in passages for text in (p.words, p.near)):
            continue
        text, exchanged = " ".join(missing), _exchanged(claim, passages[0].best.text, name)
        if name.opening and one_word and not exchanged:  # any word has a capital there: the sources must show a name
            inside = re.compile(rf"(?<=[a-z,;] ){re.escape(text)}\b")
            if not any(inside.search(passage.text.text) for passage in passages):
                continue
        around = frozenset().union(*(words_of(passage.text.text) for passage in passages))
        if not exchanged and all(_partlynamed_in(word, around) for word in missing):
            yield ClaimComplaint(f"of {text} only a part is named in the source", grave=False)
        elif all(named_in(word, around) for word in missing) and not exchanged:
            yield ClaimComplaint(f"{text} is named elsewhere in the source, not near the quote", grave=False)
        else:
            yield ClaimComplaint(f"the name {text} is not in the {'quote' if exchanged else 'source'}", grave=True)


def _exchanged(claim: str, best: str, name: Name) -> bool:
    """Whether a sentence begins with a different word than the claim, but says nearly all the rest of it."""
    own, its = query_terms(claim), terms(best)
    others = set(own) - set(terms(" ".join(name.words)))
    opening = facts_of(best).names[:1]
    other = bool(opening) and opening[0].opening and not set(terms(opening[0].words[0])) & set(own)
    return other and len(others) > 1 and len(others - set(its)) <= len(others) // 4


@lru_cache(maxsize=128)  # of a source that many claims cite
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in lowercase, abbreviations also without their points."""
    return frozenset(re.findall(r"\w+", text.replace(".", "").casefold())) | set(re.findall(r"\w+", text.casefold()))


def named_in(word: str, words: frozenset[str]) -> bool:
    """Whether some words contain a word of a name, perhaps as adjective or plural; of HIV-positive, HIV is the name."""
    parts = [part for part in re.findall(r"\w+", word.replace(".", "")) if not part.islower() and len(part) > 1]
    return all(_akin(part.casefold(), words) for part in parts)


def _partlynamed_in(word: str, words: frozenset[str]) -> bool:
    """Whether some words contain a part of a compound name and no part with a digit is missing: RANK of RANK-RANKL."""
    parts = [part for part in re.split(r"[-/]", word) if len(part) > 1 and not part.islower()]
    missing = [part for part in parts if not named_in(part, words)]
    return len(missing) < len(parts) and not any(map(str.isdigit, "".join(missing)))


def _akin(part: str, words: frozenset[str]) -> bool:
    derived = (_derived(*sorted((part, word), key=len)) for word in words if word[:STEM] == part[:STEM])
    return part in words or (part.endswith("s") and part[:-1] in words) or any(derived)


def _derived(short: str, long: str) -> bool:
    """Whether a name has another ending: German of Germany, Austrian of Austria."""
    stem = short[:-1] if len(short) > STEM and short[-1] in "aeiouy" else short
    return len(short) >= STEM and len(long) - len(short) <= ENDING and long.startswith(stem)


def _abbreviated(name: Name, text: str) -> bool:
    """Whether a text has the initials for a name of several words, or the words for initials."""
    if len(name.words) > 1:
        initials = "".join(word[0] for word in name.words)
        return bool(re.search(rf"\b{re.escape(initials)}\b", text.replace(".", "")))
    word = name.words[0].replace(".", "")
    if not (word.isupper() and 2 <= len(word) <= 6 and word.isalpha()):
        return False
    between = r"\w*(?:\W+(?:of|for|the|and|de|der|und))*\W+"
    return bool(re.search(r"\b" + between.join(word) + r"\w+", text))


def _denials(claim: str, sentence: str) -> Iterator[ClaimComplaint]:
    denied, denying = denied_terms(claim), denied_terms(sentence)
    said, quoted = set(query_terms(claim)), set(terms(sentence))
    if denied and denying:  # more than a comparison of words can tell, unless all else is the same
        own, its = denied_terms(claim, 1), denied_terms(sentence, 1)
        found = [word for term, word in {**own, **its}.items() if (term in own) != (term in its)]
        if found and said <= quoted:
            yield ClaimComplaint(f"only one of claim and quote denies: {found[0]}", grave=False)
    elif denied:
        yield ClaimComplaint(f"the claim denies, the quote does not: {next(iter(denied.values()))}", grave=False)
    elif found := [word for term, word in denying.items() if term in said]:
        yield ClaimComplaint(f"the quote denies what the claim says: {found[0]}", grave=False)
