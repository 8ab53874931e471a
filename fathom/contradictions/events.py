"""The dates of a sentence: those that say when something happened once, and those it is about.

"Founded in 1998" and "founded in 1996" exclude each other; "400 employees in 2019" and "450 in 2020" do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fathom.facts.dates import Date
from fathom.facts.extraction import Facts
from fathom.text.terms import terms

REACH = 45  # characters that may lie between what happened and its date
SLACK = 2  # years that "around 1900" leaves open

_ROUGH = re.compile(r"\b(?:around|about|circa|c\.|ca\.|approximately|roughly|early|late|mid)[\s-]*\Z", re.I)
_RIGHT_BEFORE = re.compile(r",? ?\(?")
_SETTING = re.compile(r"(?:(?:In|On|By)\s)?(?:the )?(?:\w+ of )?")
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


class Event(NamedTuple):
    """When something happened."""

    date: Date
    slack: int  # years by which it may be wrong
    subject: frozenset[str]  # the name right before the verb, as terms, if there is one

    def agrees(self, other: Event) -> bool:
        """Whether both can be on the same day."""
        if slack := max(self.slack, other.slack):
            return not (self.date.year and other.date.year) or abs(self.date.year - other.date.year) <= slack
        return self.date.agrees(other.date)


def events_of(facts: Facts) -> Mapping[tuple[str, bool], Event]:
    """Return what happened once, by the verb's stems and whether it was done to the subject.

    A date belongs to the verb right before it, or, opening the sentence, to the first verb; a verb with two dates is
    left out.
    """
    sentence = facts.text
    verbs = list(_ONCE.finditer(sentence))
    found: dict[tuple[str, bool], list[Event]] = {}
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
        found.setdefault(happened, []).append(Event(dated.date, slack, subject))
    return {happened: events[0] for happened, events in found.items() if len(set(events)) == 1}
