"""Words for titles and queries: a text's key words, and cuts that leave no loose end."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fathom.extractive.vocabulary import FRAME_TERMS, LOOSE, MANNER, META_TERMS, ORDERING, PREPOSITIONS, RELATED
from fathom.retrieval.related import related_terms
from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import query_terms

RELATED_WEIGHT = 0.5  # of a term that stands for another

_WORD = re.compile(
    r"(?:[Mm]ost|[Ll]east) [^\W\d_]+"
    r"|(?:and|as|for|from|if|in|is|not|or|while|with)[ -]"
    r"(?:statement|clause|loop|keyword|operator|expression|block)s?\b"
    r"|[^\W_][\w'’+#-]*(?:\.\w+)*|__\w+__"
)
_WORK = (
    r"(?:report|overview|summary|analysis|review|article|essay|introduction|paper|study|notes|guide|survey|research|"
    r"assessment|briefing|document|explanation|discussion|description|account)"
)
_LEAD = re.compile(
    r"(?:please|could you|can you|would you|also|then|finally|specifically|additionally|furthermore|moreover|"
    r"in addition|"
    r"i(?: would|'d) like (?:you )?to|i(?: would|'d) like|"
    r"i (?:want|need)(?: to (?:know|understand)(?: about)?| (?:help|assistance)(?: with)?)?|"
    r"help me (?:to )?understand|tell me(?: about)?|"
    r"(?:act|acting) as [^,.]{3,80},|as an? (?:\w+ ){0,4}(?:teacher|manager|researcher|expert|analyst|student|engineer|"
    r"consultant|investor|developer)[^,.]{0,120},|"
    r"explain(?: to me)?|describe|discuss|summari[sz]e|outline|research(?:ing)?(?: (?:and|on|into|about))?(?= [a-z])|"
    r"investigat(?:e|ing)(?: and)?|analy[sz]e(?: and)?|exam?ine|explor(?:e|ing)|"
    r"(?:find|collect|gather) (?:data|evidence|information|facts|sources)(?: (?:and|or) \w+)?(?: (?:to|that))? "
    r"(?:support|refute|test)(?: or (?:support|refute))? (?:the )?(?:hypothesis|claim|idea|statement) that|"
    r"elaborate on|categori[sz]e,?(?: and)?|evaluate|assess|provide (?:details|information) (?:on|about)|"
    r"(?:cover|focus on|address|consider)(?: (?:aspects|topics|areas|points))?(?: (?:such as|like|including|of))?|"
    r"identify,?|determine|find(?: out)?|list|name(?= the)|give(?= the)|include(?= [a-z])|"
    rf"(?:the|this|these|your|my) (?:[\w-]+ )?{_WORK} (?:should|must|will|needs? to) "
    r"(?:be (?:structured|organi[sz]ed) (?:around|by)|cover|include|address|focus on|discuss|analy[sz]e|explore|"
    r"present|offer|provide)|"
    rf"conduct(?:ing)? (?:an? )?(?:[\w-]+ )?{_WORK} (?:on|about|into|of)|"
    r"what do we know about|what can you tell me about)(?!\w)[\s,:]*",
    re.IGNORECASE,
)
# "Write a detailed market size report on X": what stands before the kind of work may be part of the topic.
_ORDERED = re.compile(
    r"(?:(?:write|writing|give|prepare|create|provide|produce|conduct|draft|make|develop)(?: me)? )?(?:an?|the|some)? ?"
    rf"(?P<kind>(?:[\w'-]+,? (?:and )?){{0,4}}?)(?:{_WORK}(?: {_WORK})*)"
    r"(?: (?:on|about|of|to|for|exploring|into|using|utili[sz]ing))\b[\s:]*",
    re.IGNORECASE,
)
_BARE = frozenset(("find", "list", "name", "include", "give", "research", "outline"))  # nouns, or parts of a name
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
    words = _WORD.findall(text)
    return [] if all(word.lower() in STOP_WORDS and not is_acronym(word) for word in words) else query_terms(text)


def is_acronym(word: str) -> bool:
    """Whether a word is written in capitals, as the name "US" is and the pronoun is not."""
    return len(word) > 1 and word.isupper()


def topic_terms(text: str, *, frame: bool = False) -> list[str]:
    """Return the key terms without those of asking; with `frame`, also without those of a step's description."""
    found = key_terms(text)
    left_out = FRAME_TERMS if frame else META_TERMS
    return [term for term in found if term not in left_out] or found


def with_related(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weighted terms with those that texts use in their place, at a fraction of the weight."""
    extended = dict(weights)
    for term, weight in weights.items():
        for other in (*RELATED.get(term, ()), *related_terms(term)):
            extended.setdefault(other, RELATED_WEIGHT * weight)
    return extended


def strip_lead(query: str) -> str:
    """Return a query without the request around it: "Please write a report on X" is "X"."""
    query = " ".join(query.split())
    while (lead := _LEAD.match(query)) and len(query[lead.end() :].split()) > (lead[0].split()[0].lower() in _BARE):
        query = query[lead.end() :]
    ordered = _ORDERED.match(query)
    if ordered and query[ordered.end() :].strip(" .?!") and _is_order(ordered):
        kind = " ".join(word for word in ordered["kind"].split() if word.lower().strip(",") not in MANNER)
        rest = query[ordered.end() :]
        query = f"{kind} of {rest}" if kind else strip_lead(rest)
    return query.strip(" .?!？。，、;:")


def _is_order(found: re.Match[str]) -> bool:
    """Whether a text that begins so orders a piece of work, rather than asking about one."""
    words = found[0].lower().split()
    return words[0] in ORDERING or (words[0] in ("a", "an") and bool(set(words) & MANNER - {"a", "an", "the", "and"}))


def clip(text: str, words: int, *, cut: bool = False) -> str:
    """Return the first words of a text, without a loose end: no article, preposition or open bracket stays last.

    With `cut`, the text was cut before and may have a loose end although it is short enough.
    """
    parts = text.split()
    if len(parts) == 1 and len(text) > 6 * words:
        return text[: 3 * words]  # writing without spaces
    cut = cut or len(parts) > words
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


def shorten(text: str, words: int, least: int = 0) -> str:
    """Return a heading of at most so many words, cut before a phrase where that leaves enough of it."""
    parts = text.split()
    if len(parts) > words and parts[0].lower() in ("a", "an", "the"):
        parts = [capitalized(parts[1]), *parts[2:]]
    if len(parts) <= words:
        return " ".join(parts).strip(" ,;:")
    for end in range(words, (least or words * 3 // 5) - 1, -1):
        if parts[end].lower() in PREPOSITIONS or parts[end - 1][-1] in ",;:" or parts[end].lower() in ("and", "of"):
            return clip(" ".join(parts[:end]), words, cut=True)
    return clip(" ".join(parts), words)


def is_english(text: str) -> bool:
    """Whether English words may be added to a query: it is ASCII and does not open with a German question word."""
    return text.isascii() and not re.match(
        r"(?:wie|was|wer|wann|warum|wo|welche[rs]?|worin|wozu|wodurch)\b", text, re.I
    )


def capitalized(text: str) -> str:
    """Return the text with its first letter a capital."""
    return text[:1].upper() + text[1:]
