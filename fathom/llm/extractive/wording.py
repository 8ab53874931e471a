"""Words for titles and queries: a text's key words, and cuts that leave no loose end."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fathom.llm.extractive.vocabulary import FRAME_TERMS, LOOSE, META_TERMS, PREPOSITIONS, RELATED
from fathom.text import query_terms
from fathom.text.stopwords import STOP_WORDS

__all__ = [
    "capitalized",
    "clip",
    "decapitalized",
    "is_english",
    "key_terms",
    "keywords",
    "shorten",
    "strip_lead",
    "topic_terms",
    "with_related",
]

RELATED_WEIGHT = 0.5  # of a term that stands for another

_WORD = re.compile(
    r"(?:and|as|for|from|if|in|is|not|or|while|with)[ -](?:statement|clause|loop|keyword|operator|expression|block)s?\b"
    r"|[^\W_][\w'’+#-]*(?:\.\w+)*|__\w+__"
)
_LEAD = re.compile(
    r"(?:please|could you|can you|would you|i(?: would|'d) like (?:you )?to|"
    r"i (?:want|need) to (?:know|understand)(?: about)?|help me (?:to )?understand|tell me(?: about)?|"
    r"explain(?: to me)?|describe|discuss|summari[sz]e|outline|research(?:ing)?|investigat(?:e|ing)|analy[sz]e|examine|"
    r"explore|(?:write|give|prepare|create|provide|produce)(?: me)? (?:an?|the) (?:[\w-]+ ){0,3}"
    r"(?:report|overview|summary|analysis|review|article|essay|introduction)(?: (?:on|about|of|to|for))?|"
    r"what do we know about|what can you tell me about)\b[\s,:]*",
    re.IGNORECASE,
)
_PHRASAL = re.compile(r"\b(look|set|start|clean|back|build|shut|break|log)(?:s|ed|ing)? (up|down|in|out)\b")


def keywords(text: str) -> list[str]:
    """Return the words of a text that carry its topic, as written, each once."""
    seen: set[str] = set()
    words = []
    for word in _WORD.findall(_PHRASAL.sub(r"\1\2", strip_lead(text))):
        if (found := key_terms(word)) and not set(found) <= seen:
            seen.update(found)
            words.append(word)
    return words


def key_terms(text: str) -> list[str]:
    """Return the terms of a text that carry its topic; nothing when there are only function words."""
    return [] if all(word.lower() in STOP_WORDS for word in _WORD.findall(text)) else query_terms(text)


def topic_terms(text: str, *, frame: bool = False) -> list[str]:
    """Return the key terms without those of asking; with `frame`, also without those of a step's description."""
    found = key_terms(text)
    left_out = FRAME_TERMS if frame else META_TERMS
    return [term for term in found if term not in left_out] or found


def with_related(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weighted terms with those that texts use in their place, at a fraction of the weight."""
    extended = dict(weights)
    for term, weight in weights.items():
        for other in RELATED.get(term, ()):
            extended.setdefault(other, RELATED_WEIGHT * weight)
    return extended


def strip_lead(query: str) -> str:
    """Return a query without the request around it: "Please write a report on X" is "X"."""
    query = " ".join(query.split())
    while (lead := _LEAD.match(query)) and query[lead.end() :].strip(" .?!"):
        query = query[lead.end() :]
    return query.strip(" .?!？。，、;:")


def clip(text: str, words: int) -> str:
    """Return the first words of a text, without a loose end: no article, preposition or open bracket stays last."""
    parts = text.split()
    if len(parts) == 1 and len(text) > 6 * words:
        return text[: 3 * words]  # writing without spaces
    cut = len(parts) > words
    parts = parts[:words]
    while cut and len(parts) > 1 and (parts[-1].lower().strip(",;:.") in LOOSE or parts[-1] in ("-", "–", "&", "/")):
        parts.pop()
    clipped = " ".join(parts).strip(" ,;:–-.")
    for opening, closing in (("(", ")"), ("[", "]"), ("“", "”"), ('"', '"')):
        if opening != closing and clipped.count(opening) > clipped.count(closing):
            clipped = clipped[: clipped.rindex(opening)].strip(" ,;:–-")
        elif opening == closing and clipped.count(opening) % 2:
            clipped = clipped.replace(opening, "")
    return clipped


def shorten(text: str, words: int) -> str:
    """Return a heading of at most so many words, cut before a phrase rather than within one."""
    parts = text.split()
    if len(parts) > words and parts[0].lower() in ("a", "an", "the"):
        parts = [capitalized(parts[1]), *parts[2:]]
    if len(parts) <= words:
        return " ".join(parts).strip(" ,;:")
    for end in range(words, 2, -1):
        if parts[end].lower() in PREPOSITIONS or parts[end - 1][-1] in ",;:" or parts[end].lower() in ("and", "of"):
            return clip(" ".join(parts[:end]), words)
    return clip(" ".join(parts), words)


def is_english(text: str) -> bool:
    """Whether English words may be added to a query: it is ASCII and does not open with a German question word."""
    return text.isascii() and not re.match(
        r"(?:wie|was|wer|wann|warum|wo|welche[rs]?|worin|wozu|wodurch)\b", text, re.I
    )


def capitalized(text: str) -> str:
    """Return the text with its first letter a capital."""
    return text[:1].upper() + text[1:]


def decapitalized(text: str, original: str) -> str:
    """Return the text with a small first letter, unless its first word is written with a capital in the original."""
    first = text.split(maxsplit=1)[0] if text else ""
    inside = re.search(rf"(?<=\w ){re.escape(first)}\b", original)
    return text if inside or first[1:].lower() != first[1:] else text[:1].lower() + text[1:]
