"""Words for titles and queries: a text's key words, and cuts that leave no loose end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fathom.retrieval.expansion import related_terms
from fathom.text.terms import STOP_WORDS, query_terms, terms

RELATED_WEIGHT = 0.5  # of a term that texts use in place of another

ANY_OF = "Find what is said on any part of this:"
"""Beginning of the description of a step that asks for several things, of which each is worth a note."""

_WORD = re.compile(r"[^\W_][\w'’+#-]*(?:\.\w+)*|__\w+__")
_WORK = r"(?:report|overview|summary|analysis|review|article|essay|introduction|paper|study|guide|survey|research)"
_LEAD = re.compile(
    r"(?:please|(?:could|can|would) you|also|i(?: would|'d) like(?: (?:you )?to)?|"
    r"i (?:want|need)(?: to (?:know|understand)(?: about)?)?|help me (?:to )?understand|tell me(?: about)?|"
    r"acting as [^,.]{3,80},|explain(?: to me)?|describe|discuss|summari[sz]e|investigate|analy[sz]e|examine|explore|"
    r"evaluate|assess|find out|(?:write|give|prepare|create|provide|produce|conduct|draft|make)(?: me)?"
    rf"(?: (?:an? |the )?(?:(?:comprehensive|detailed|short|brief|full) )?{_WORK} (?:on|about|of|into|for)"
    rf"|(?= (?:[\w-]+ ){{1,6}}{_WORK}\b)))(?!\w)[\s,:]*",
    re.IGNORECASE,
)
_LOOSE_WORDS = """
a an the of in on at to for from by with and or as that which who is are was were be its their this these when where
while if than then into over about between how why what do does did can so such very too not no und oder der die das
des dem den ein eine von mit zu im für auf
"""
_LOOSE = frozenset(_LOOSE_WORDS.split())
# Terms of asking, and of the sentences in which a plan describes its steps: they say nothing about the subject.
_ASKED = "define interact relate choose work happen now nowadays currently today mean meant"
_META_TERMS = frozenset(query_terms(_ASKED))
_FRAME_TERMS = _META_TERMS | frozenset(query_terms("answer find follow passage read say state question"))


def keywords(text: str) -> list[str]:
    """Return the words of a text that name its topic, as written, each once."""
    seen: set[str] = set()
    words = []
    for word in _WORD.findall(strip_lead(text)):
        if (found := key_terms(word)) and not set(found) <= seen:
            seen.update(found)
            words.append(word)
    return words


def key_terms(text: str) -> list[str]:
    """Return the terms of a text that name its topic; nothing when there are only function words."""
    words = _WORD.findall(text)
    return query_terms(text) if any(_is_acronym(word) or word.lower() not in STOP_WORDS for word in words) else []


def _is_acronym(word: str) -> bool:
    """Whether a word is in capitals, as the name "US" is and the pronoun is not."""
    return len(word) > 1 and word.isupper()


def topic_terms(text: str, *, frame: bool = False) -> list[str]:
    """Return the key terms without those of asking; with `frame`, also without those of a step's description."""
    found = key_terms(text)
    left_out = _FRAME_TERMS if frame else _META_TERMS
    return [term for term in found if term not in left_out] or found


def with_related(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weighted terms with those that texts use in their place, at half the weight."""
    extended = dict(weights)
    for term, weight in weights.items():
        for other in related_terms(term):
            extended.setdefault(other, RELATED_WEIGHT * weight)
    return extended


def families(found: Iterable[str]) -> list[set[str]]:
    """Return each term with those that texts use in its place."""
    return [{term, *related_terms(term)} for term in found]


def broader(title: str, query: str) -> str:
    """Return a query of at most three words, those that a step's title shares with the question where it has two."""
    words = keywords(title)
    shared = [word for word in words if set(terms(word)) & set(topic_terms(query))]
    return " ".join((shared if len(shared) >= 2 else list(dict.fromkeys([*words, *keywords(query)])))[:3])


def strip_lead(query: str) -> str:
    """Return a query without the request around it: "Please write a report on X" is "X"."""
    query = " ".join(query.split())
    while (lead := _LEAD.match(query)) and query[lead.end() :].strip(" .?!"):
        query = query[lead.end() :]
    return query.strip(" .?!？。，、;:")


def clip(text: str, words: int) -> str:
    """Return at most this number of words from the start of a text, without an article or preposition left last."""
    parts = text.split()
    if len(parts) == 1 and len(text) > 6 * words:
        return text[: 3 * words]  # writing without spaces
    if len(parts) > words:
        parts = parts[:words]
        while len(parts) > 1 and parts[-1].lower().strip(",;:.") in _LOOSE:
            parts.pop()
    clipped = " ".join(parts).strip(" ,;:–-.")
    for opening, closing in (("(", ")"), ("[", "]"), ("“", "”")):
        if clipped.count(opening) > clipped.count(closing):
            clipped = clipped[: clipped.rindex(opening)].strip(" ,;:–-")
    return clipped


def capitalized(text: str) -> str:
    """Return the text with its first letter a capital."""
    return text[:1].upper() + text[1:]
