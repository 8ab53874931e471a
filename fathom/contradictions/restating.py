"""Whether a later sentence says anew what an earlier one says: "from now on visitors park in the yard".

Both begin alike, with what is spoken of and what it does, and end otherwise, with a place, a time, an address or what
it is. The later one says that this is new. Without such a word, meetings at two places are two meetings.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from fathom.facts.dates import find_dates
from fathom.text.terms import query_terms

_SINCE = r"(?:from|as of|starting|effective|since|ab|seit|vom)(?: (?:the|dem|den))?"
_DAY = "¤"  # stands for a date
_ON = "(?:on|onwards?|an)"
_ANEW = re.compile(
    r"\b(?:instead of|statt|anstelle von) (?P<former>(?:[^,;.]|\.(?=\w))+)"
    rf"|\b{_SINCE} (?:{_DAY}|(?:today|tomorrow|now|heute|morgen)\b)(?:,? {_ON}\b)?"
    r"|\b(?:now|no longer|any ?more|instead|ab sofort|von nun an|jetzt|nun|künftig|nicht mehr)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"\A[^,:;.]{2,60}[,:] (?=\w+ \w)")  # "Change of plan, we meet at 8"
_NUMBER = re.compile(r"\d")
_ALSO = re.compile(r"\b(?:also|too|additionally|as well|second|another|auch|zusätzlich|außerdem|weiter\w*)\b", re.I)
_WHOM = re.compile(r"\b(?:for|für|if|when|wenn|falls|except|außer)\b.*")
_WORD = re.compile(rf"[\w@.:+-]*\w|{_DAY}")
_ARTICLE = frozenset(["a", "the", "der", "die", "das", "den", "dem", "ein", "eine", "einen", "our", "unser", "unsere"])
_IS = frozenset(["is", "are", "ist", "sind", "lautet", "heißt", "cost", "costs", "kostet", "kosten"])
_PLACED = re.compile(
    r"in|on|at|to|by|from|via|with|behind|under|near|until|after|before|am|an|auf|bei|beim|bis|im|ins|mit|nach|um|"
    r"unter|vo[mn]|zu[mr]?|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|täglich"
)


class _Said(NamedTuple):
    words: tuple[str, ...]  # without articles, and without what says that something is new
    behind_lead: tuple[str, ...]  # the same, behind "change of plan,"
    is_new: bool
    whom: str  # "for children"
    former: frozenset[str]  # terms of what it names as gone: "instead of the car park"


def restates(later: str, earlier: str) -> bool:
    """Whether the later of two sentences says with a word of change something else of the same thing."""
    new, old = _said(later), _said(earlier)
    if not new.is_new or _ALSO.search(later) or new.whom != old.whom:
        return False
    same, words = max((_alike(words, old.words), words) for words in (new.words, new.behind_lead))
    opening, its, own = old.words[:same], old.words[same:], words[same:]
    if not its or not own or {*its} <= {*own}:
        return False
    placed = all(any(map(_PLACED.fullmatch, (*opening[-1:], rest[0]))) for rest in (its, own))
    counted = all(_NUMBER.search(" ".join(rest)) for rest in (its, own))
    is_value = not _IS.isdisjoint(opening) and (placed or counted)
    names_it = bool(new.former) and new.former.issubset(query_terms(" ".join(its)))
    told = len(query_terms(" ".join(opening)))
    return (placed or is_value) and told >= (1 if is_value or names_it else 2)


@lru_cache(maxsize=2048)
def _said(text: str) -> _Said:
    for found in reversed(find_dates(text)):
        text = text[: found.start] + _DAY + text[found.end :]
    news = list(_ANEW.finditer(text))
    plain = _ANEW.sub(" ", text).lower().strip()
    whom = _WHOM.search(plain)
    return _Said(
        words=_words(plain),
        behind_lead=_words(_LEAD.sub("", plain)),
        is_new=bool(news),
        whom=whom[0] if whom else "",
        former=frozenset(query_terms(" ".join(found["former"] or "" for found in news))),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in _WORD.findall(text) if word not in _ARTICLE)


def _alike(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """Return with how many of the same words both begin, in any order: "ist das Training", "das Training ist"."""
    most = min(len(a), len(b))
    return next((n for n in range(most, 0, -1) if {*a[:n]} == {*b[:n]}), 0)
