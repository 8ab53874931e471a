"""The dates of a sentence: those that say when something happened once, and those it is about.

"Founded in 1998" and "founded in 1996" exclude each other; "400 employees in 2019" and "450 in 2020" do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fathom.text import terms

__all__ = ["Date", "Event", "events_of", "times_of", "without_dates"]

REACH = 45  # characters that may lie between what happened and its date
SLACK = 2  # years that "around 1900" leaves open

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NAMED = "|".join(month.title() for month in _MONTHS)
_YEAR = r"(?:1[0-9]|20)\d\d"
_DATE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? )?(?P<month>{_NAMED})\b"
    rf"(?: (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?! ?%))?,?"
    rf"(?: (?P<year>{_YEAR})\b)?|(?<![\w.,$€£-])(?P<alone>{_YEAR})(?![\w%]|[.,]\d|-\d)"
)
_SPAN = re.compile(rf"\b{_YEAR}\s?[-–—/]\s?(?:{_YEAR}|\d\d)\b|\b{_YEAR}s\b")
_ROUGH = re.compile(r"\b(?:around|about|circa|c\.|ca\.|approximately|roughly|early|late|mid)[\s-]*\Z", re.I)
_WHEN = re.compile(r"(?:in|on|around|about|circa|early|late|mid|the|spring|summer|autumn)\b|[,(-]|\d", re.I)
# What happens to a thing once. What may happen every year (won, published, held) is not here.
_ONCE = re.compile(
    r"\b(?P<be>(?:was|were|been|being|is|are)\s+(?:\w+ly\s+)?)?"
    r"(?P<verb>founded|established|incorporated|born|died|opened|launched|released|commissioned|inaugurated|completed|"
    r"discovered|invented|signed|ratified|introduced|constructed|built|created|abolished|dissolved|closed|crashed|landed|sank|"
    r"entered (?:service|force|into force)|came into (?:force|effect)|took effect|premiered|acquired|merged|"
    r"assassinated|demolished|destroyed|arrested|married|independence|ordered|delivered|began|begun|started|ended|patented|unveiled|"
    r"approved|decommissioned|retired|adopted|enacted|repealed)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"((?:[A-Z][\w'’-]* )*[A-Z][\w'’-]*),? ?\(?\Z")


class Date(NamedTuple):
    """A date as far as it is told; 0 where it is not."""

    year: int
    month: int = 0
    day: int = 0
    slack: int = 0  # years left open

    def agrees(self, other: Date) -> bool:
        """Whether both can be the same day: "March 2024" and "12 March 2024" can."""
        slack = max(self.slack, other.slack)
        if self.year and other.year and abs(self.year - other.year) > slack:
            return False
        if slack:
            return True
        parts = zip(self[1:3], other[1:3], strict=True)
        return all(not (mine and yours) or mine == yours for mine, yours in parts)


class Event(NamedTuple):
    """When something happened, and the name right before the verb, as terms, if there is one."""

    date: Date
    subject: frozenset[str]


def events_of(sentence: str) -> Mapping[tuple[str, bool], Event]:
    """Return what happened once, by the verb's stems and whether it was done to the subject.

    A date belongs to the verb right before it, or, opening the sentence, to the first verb; a verb with two dates is
    left out.
    """
    verbs = list(_ONCE.finditer(sentence))
    found: dict[tuple[str, bool], list[Event]] = {}
    for match in _DATE.finditer(_SPAN.sub(lambda span: " " * len(span[0]), sentence)):
        if not (date := _date(match, sentence)):
            continue
        before = [verb for verb in verbs if verb.end() <= match.start()]
        opens = bool(re.fullmatch(r"(?:(?:In|On|By)\s)?(?:the )?(?:\w+ of )?", sentence[: match.start()]))
        verb = before[-1] if before else verbs[0] if verbs and opens else None
        if verb is None or (before and match.start() - verb.end() > REACH):
            continue
        done_to = bool(verb["be"]) or bool(_WHEN.match(sentence[verb.end() :].lstrip()))
        happened = (" ".join(terms(verb["verb"])), done_to)
        name = _SUBJECT.search(sentence, 0, verb.start())
        found.setdefault(happened, []).append(Event(date, frozenset(terms(name[1]) if name else ())))
    return {happened: events[0] for happened, events in found.items() if len(set(events)) == 1}


def times_of(sentence: str) -> frozenset[str]:
    """Return the years a sentence names; a span of years is one."""
    spans = {re.sub(r"\s", "", span) for span in _SPAN.findall(sentence)}
    dates = _DATE.finditer(_SPAN.sub(" ", sentence))
    return frozenset(spans | {year for found in dates if (year := found["year"] or found["alone"])})


def without_dates(sentence: str) -> str:
    """Return a sentence with its dates blanked, everything else in its place."""
    blanked = _SPAN.sub(lambda span: " " * len(span[0]), sentence)
    return _DATE.sub(lambda found: " " * len(found[0]), blanked)


def _date(found: re.Match[str], sentence: str) -> Date | None:
    """Return a date; a month without day or year is none, being as often a verb or a name: May, March."""
    day = int(found["day"] or found["day2"] or 0)
    year = int(found["year"] or found["alone"] or 0)
    month = _MONTHS.index(found["month"].lower()) + 1 if found["month"] else 0
    if day > 31 or not (year or (month and day)):
        return None
    return Date(year, month, day, SLACK if _ROUGH.search(sentence[: found.start()]) else 0)
