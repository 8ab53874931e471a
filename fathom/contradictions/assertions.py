"""Sentences in a form that can be compared: what they are about, and what they say about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fathom.contradictions.events import Event, events_of
from fathom.facts.extraction import Figure, blanked, facts_of, figures_of, part_of_name
from fathom.text.terms import STOP_WORDS, query_terms, terms

MOST_WORDS, LEAST_WORDS = 60, 4

_CITED = re.compile(r"\s*\[[^\]]{1,80}\]")
# What the sentence is about is said elsewhere, unless a name comes first.
_PRONOUN = re.compile(r"\b(?:this|these|it|its|they|their|he|she|his|her|we|our|i|my)\b", re.IGNORECASE)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|whether|suppose|imagine|for example|for instance|e\.g\.|would|could|might|may (?=[a-z]))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
_COUNTED = re.compile(r"\b([a-z]{3,}) (?:(?:about|around|some|over) )?\d[\d,]* ([a-z]{3,})")
_CONDITION = re.compile(
    r"\b(?:at|after|within|beyond|for|among) (?:about |around |over |under )?[$€£]?\Z", re.IGNORECASE
)
_UNNAMED = re.compile(r"^(?:The|A|An)(?: [a-z][\w'’-]*){3}|^(?:The|A|An) [a-z][\w'’-]* [a-z]+s? [^A-Z]*$")
_RUBBLE = re.compile(r"^[A-Z][\w ]{0,30}: |https?:|\bdoi\b|\blicen[sc]e:|©|\bISBN\b", re.IGNORECASE)
# Words that say which part, time or state of a thing is meant. Where only one sentence has one, both may be true.
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
    """What a sentence says, ready to be compared."""

    text: str
    said: str  # the text without citations and emphasis
    source_ids: tuple[str, ...]
    title: frozenset[str]  # terms of the source's title; empty: not known
    terms: frozenset[str]  # content words, without figures and dates
    names: frozenset[str]  # as terms
    numbered: frozenset[str]  # "python 3": a number that is part of a name
    qualifiers: frozenset[str]  # words that say which part, time or state is meant
    changes: frozenset[str]  # words that make a figure the change of one
    unnamed: bool  # its subject is "the company" or "the population", named elsewhere
    counted: frozenset[tuple[str, str]]  # the word before a number and what it counts: ("employ", "people")
    times: frozenset[str]  # years and decades
    figures: tuple[Figure, ...]
    conditions: frozenset[str]  # kinds of the figures that are conditions: "at 2,000 metres"
    events: Mapping[tuple[str, bool], Event]


def assertion_of(text: str, source_ids: tuple[str, ...], title: str = "") -> Assertion | None:
    """Read a sentence; None where it cannot be compared: a question, a supposition, "it" or "they"."""
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
    return Assertion(
        text=text,
        said=said,
        source_ids=source_ids,
        title=frozenset(query_terms(title)) if title else frozenset(),
        terms=frozenset(query_terms(re.sub(r"\d+", " ", plain))),
        names=frozenset(terms(" ".join(word for name in facts.names for word in name.words))),
        numbered=frozenset(part_of_name(number, undated) for number in facts.numbers) - {""},
        qualifiers=lower & _QUALIFYING,
        changes=lower & _CHANGING,
        unnamed=bool(_UNNAMED.match(said)),
        counted=frozenset(("".join(terms(a)), "".join(terms(b))) for a, b in counted),
        times=frozenset(years | {number.text for number in facts.numbers if number.unit == "decade"}),
        figures=figures,
        conditions=frozenset(kind for f in figures if _CONDITION.search(undated[: f.start]) for kind in f.kinds),
        events=events_of(facts),
    )
