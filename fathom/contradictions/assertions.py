"""Sentences in a comparable form: their subject, their statement about it, and its time.

A sentence has two kinds of dates: the time of an event that happened once, and the time that the sentence is about.
"Founded in 1998" and "founded in 1996" exclude each other; "400 employees in 2019" and "450 in 2020" do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from fathom.contradictions.titles import Named, Title, title_of
from fathom.facts.dates import Date
from fathom.facts.extraction import Facts, Figure, Name, blanked, facts_of, figures_of, part_of_name
from fathom.retrieval.asked import REFERRING
from fathom.text.terms import STOP_WORDS, query_terms, terms

MOST_WORDS, LEAST_WORDS = 60, 4

_CITED = re.compile(r"(?<!\s)\s*\[[^\]]{1,80}\]")
# The subject of such a sentence is named elsewhere, unless a name comes first.
_PRONOUN = re.compile(rf"\b(?:{REFERRING}|we|our|i|my)\b", re.IGNORECASE)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|whether|suppose|imagine|for example|for instance|e\.g\.|would|could|might|may (?=[a-z]))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
_SMALL = re.compile(r"(?<![\w'’-])[^\W\dA-Z][\w'’-]*")
_COUNTED = re.compile(r"\b([a-z]{3,}) (?:(?:about|around|some|over) )?\d[\d,]* ([a-z]{3,})")
_CONDITION = re.compile(
    r"\b(?:at|after|within|beyond|for|among) (?:about |around |over |under )?[$€£]?\Z", re.IGNORECASE
)
_UNNAMED = re.compile(r"^(?:The|A|An)(?: [a-z][\w'’-]*){3}|^(?:The|A|An) [a-z][\w'’-]* [a-z]+s? [^A-Z]*$")
_PLURAL = re.compile(r"\w+[^\W\ds]s\b(?!['’])")  # "Dealers", "Ships of some size"
_RUBBLE = re.compile(r"^[A-Z][\w ]{0,30}: |https?:|\bdoi\b|\blicen[sc]e:|©|\bISBN\b", re.IGNORECASE)
# Words that say which part, time or state of a thing is meant. If only one sentence has such a word, both may be true.
_QUALIFYING_WORDS = """
north northern south southern east eastern west western left right inner outer top bottom
first second third fourth last next previous former latter new old original originally initial initially final
finally revised current currently former formerly previously early earlier late later until before after since
planned plan expected expect estimated estimate projected projection forecast predicted target targeted proposed
proposal budgeted potential maximum minimum max min average mean median typical typically peak total overall
net gross annual annually yearly monthly weekly daily quarterly quarter half hourly
male female men women boys girls children adults elderly young older younger urban rural
spring summer autumn winter monday tuesday wednesday thursday friday saturday sunday weekday weekend day night
morning evening afternoon domestic foreign international national regional local global worldwide
public private civilian military other another additional further extra alone including excluding
direct indirect part partial partly full-time part-time most many few remaining rest respectively
control placebo group subgroup baseline q1 q2 q3 q4 h1 h2
brother sister father mother son daughter wife husband seed series
"""
_QUALIFYING = frozenset(_QUALIFYING_WORDS.split())
# "Sales rose by 40" and "sales were 400" are no contradiction.
_CHANGES = "increase increased decrease decreased rose rise fell fall grew grow growth dropped drop reduced reduction"
_CHANGING = frozenset(_CHANGES.split())


class Assertion(NamedTuple):
    """The content of a sentence, ready to be compared."""

    text: str
    said: str  # the text without citations and emphasis
    source_ids: tuple[str, ...]
    title: Title  # of its source
    terms: frozenset[str]  # content words, without figures and dates
    names: frozenset[str]  # as terms
    named: tuple[Named, ...]  # the same, name by name
    ordinary: frozenset[str]  # terms of its words in small letters
    numbered: frozenset[str]  # "python 3": a number that is part of a name
    qualifiers: frozenset[str]  # words that say which part, time or state is meant
    changes: frozenset[str]  # words that make a figure a change: "rose by 40"
    unnamed: bool  # its subject is "the company" or "it", named elsewhere
    counted: frozenset[tuple[str, str]]  # the word before a number and what it counts: ("employ", "people")
    times: frozenset[str]  # years and decades
    figures: tuple[Figure, ...]
    conditions: frozenset[str]  # kinds of the figures that are conditions: "at 2,000 metres"
    events: Mapping[tuple[str, bool], DatedEvent]


@lru_cache(maxsize=512)
def assertion_of(text: str, source_ids: tuple[str, ...], title: str = "") -> Assertion | None:
    """Read a sentence; None if it cannot be compared: a question, a supposition, "it" or "they"."""
    facts = facts_of(_CITED.sub("", text).strip())
    said, undated = facts.text, facts.undated
    if not LEAST_WORDS <= len(said.split()) <= MOST_WORDS or said.endswith(("?", ":")):
        return None
    pronoun = _PRONOUN.search(said)
    unclear = pronoun and not any(name.end <= pronoun.start() for name in facts.names)
    if unclear or _RUBBLE.search(said) or _SUPPOSED.search(said):
        return None
    lower = frozenset(word.lower() for word in _WORD.findall(said))
    figures = tuple(figures_of(facts))
    plain = blanked(undated, ((figure.start, figure.end) for figure in figures))
    years = {str(found.date.year) for found in facts.dates if found.date.year}
    counted = {(m[1], m[2]) for m in _COUNTED.finditer(said) if not {m[1], m[2]} & STOP_WORDS}
    unnamed = bool(_UNNAMED.match(said)) or _opens_only(facts.names, said, bool(pronoun))
    return Assertion(
        text=text,
        said=said,
        source_ids=source_ids,
        title=title_of(title),
        terms=frozenset(query_terms(re.sub(r"\d+", " ", plain))),
        names=frozenset(terms(" ".join(word for name in facts.names for word in name.words))),
        named=tuple(Named(frozenset(terms(" ".join(name.words))), sure=not unnamed) for name in facts.names),
        ordinary=frozenset(terms(" ".join(_SMALL.findall(said)))),
        numbered=frozenset(part_of_name(number, undated) for number in facts.numbers) - {""},
        qualifiers=lower & _QUALIFYING,
        changes=lower & _CHANGING,
        unnamed=unnamed,
        counted=frozenset(("".join(terms(a)), "".join(terms(b))) for a, b in counted),
        times=frozenset(years | {number.text for number in facts.numbers if number.unit == "decade"}),
        figures=figures,
        conditions=frozenset(kind for f in figures if _CONDITION.search(undated[: f.start]) for kind in f.kinds),
        events=events_of(facts),
    )


def _opens_only(names: Sequence[Name], said: str, pronoun: bool) -> bool:
    """Whether the only name may be none: the first word, which has a capital anyway, in the plural or before "it"."""
    if not names or not all(name.opening and len(name.words) == 1 for name in names):
        return False
    return pronoun or bool(_PLURAL.match(said))


REACH = 45  # characters that may lie between what happened and its date
SLACK = 2  # years of uncertainty in "around 1900"

_ROUGH = re.compile(r"\b(?:around|about|circa|c\.|ca\.|approximately|roughly|early|late|mid)[\s-]*\Z", re.I)
_RIGHT_BEFORE = re.compile(r",? ?\(?")
_SETTING = re.compile(r"(?:(?:In|On|By)\s)?(?:the )?(?:\w+ of )?")
_WHEN = re.compile(r"(?:in|on|around|about|circa|early|late|mid|the|spring|summer|autumn)\b|[,(-]|\d", re.I)
# Events that happen to a thing once. Events that may happen every year (won, published, held) are left out.
_ONCE = re.compile(
    r"\b(?P<be>(?:was|were|been|being|is|are)\s+(?:\w+ly\s+)?)?"
    r"(?P<verb>founded|established|incorporated|born|died|opened|launched|released|commissioned|inaugurated|completed|"
    r"discovered|invented|signed|ratified|introduced|constructed|built|created|abolished|dissolved|closed|crashed|landed|sank|"
    r"entered (?:service|force|into force)|came into (?:force|effect)|took effect|premiered|acquired|merged|"
    r"assassinated|demolished|destroyed|arrested|married|independence|ordered|delivered|began|begun|started|ended|patented|unveiled|"
    r"approved|decommissioned|retired|adopted|enacted|repealed)\b",
    re.IGNORECASE,
)


class DatedEvent(NamedTuple):
    """An event with its date."""

    date: Date
    slack: int  # years of uncertainty
    subject: frozenset[str]  # the name right before the verb, as terms, if there is one

    def agrees(self, other: DatedEvent) -> bool:
        """Whether both can be on the same day."""
        if slack := max(self.slack, other.slack):
            return not (self.date.year and other.date.year) or abs(self.date.year - other.date.year) <= slack
        return self.date.agrees(other.date)


def events_of(facts: Facts) -> Mapping[tuple[str, bool], DatedEvent]:
    """Return the events that happen once, by the verb's stem and whether the verb is passive.

    A date belongs to the verb right before it, or, opening the sentence, to the first verb; a verb with two dates is
    left out.
    """
    sentence = facts.text
    verbs = list(_ONCE.finditer(sentence))
    found: dict[tuple[str, bool], list[DatedEvent]] = {}
    for dated in facts.dates:
        before = [verb for verb in verbs if verb.end() <= dated.start]
        opens = bool(_SETTING.fullmatch(sentence, 0, dated.start))
        verb = before[-1] if before else verbs[0] if verbs and opens else None
        if verb is None or (before and dated.start - verb.end() > REACH):
            continue
        done_to = bool(verb["be"]) or bool(_WHEN.match(sentence[verb.end() :].lstrip()))
        happened = (" ".join(terms(verb["verb"])), done_to)
        slack = SLACK if _ROUGH.search(sentence[: dated.start]) else 0
        names = (name for name in facts.names if _RIGHT_BEFORE.fullmatch(sentence, name.end, verb.start()))
        subject = next((frozenset(terms(" ".join(name.words))) for name in names), frozenset[str]())
        found.setdefault(happened, []).append(DatedEvent(dated.date, slack, subject))
    return {happened: events[0] for happened, events in found.items() if len(set(events)) == 1}
