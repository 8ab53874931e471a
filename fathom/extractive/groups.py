"""Questions about several things at once: those it names, and those that must be found out first."""

from __future__ import annotations

import re

from fathom.extractive.grammar import is_verb
from fathom.extractive.vocabulary import VERBS
from fathom.extractive.wording import clip, key_terms

FEW_MEMBERS = range(3, 7)  # two are a comparison or a pair; more than six make no readable plan

_COUNT = r"(?:\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)"
_RANK = (
    r"(?:top|first|last|latest|current|present|recent|previous|past|most|least|largest|biggest|smallest|highest|lowest|"
    r"tallest|longest|shortest|oldest|youngest|richest|busiest|deepest|fastest|best|worst)"
)
_GROUP = re.compile(
    rf"(?:\b(?:of|for|in|from|to|did|do|are|were)\s+)(?:all |each of )?(?:the )?"
    rf"(?P<group>(?:(?:{_RANK}|{_COUNT})[ -]){{1,4}}[\w'’-]+.*)",
    re.I,
)
_WHOSE = re.compile(
    r"\b(?:of|for|from)\s+(?:all )?(?:the )?(?P<group>(?:[\w'’-]+ ){1,4}?(?:that|which|who|whose) .+)", re.I
)
_MEMBER = r"(?:the )?[A-Z][\w.'’-]*(?: (?:of |the |and the )?[A-Z][\w.'’-]*){0,3}"
_MEMBERS = re.compile(rf"(?P<list>{_MEMBER}(?:, {_MEMBER})+,? (?:and|or) {_MEMBER})(?=[\s?.,]|$)")


def group_in(question: str) -> str:
    """Return the things that a question is about and does not name, "five largest cities in Peru", or nothing."""
    for pattern in (_GROUP, _WHOSE):
        found = pattern.search(question)
        while found:
            group = _bounded(found["group"].rstrip(" ?."))
            if len(group.split()) > 2 and key_terms(group)[1:] and set(key_terms(question)) - set(key_terms(group)):
                return group
            found = pattern.search(question, found.start() + 1)
    return ""


def _bounded(group: str) -> str:
    """Return a group without what the question says of it."""
    words = group.split()
    told = re.search(r"\b(?:that|which|who|whose)\b", group)
    verb = next((i for i, word in enumerate(words) if i > 1 and _ends_group(words[i - 1], word)), None)
    return clip(" ".join(words if told else words[:verb]), len(words), cut=True)


def _ends_group(before: str, word: str) -> bool:
    """Whether a word is the verb behind a group: "are", or a plain form behind a plural, as in "animals live"."""
    return word in ("is", "are", "was", "were", "has", "have") or (before.endswith("s") and word in VERBS)


def members_of(question: str) -> list[str]:
    """Return the question once for each of the named things that it lists, or nothing."""
    found = _MEMBERS.search(question)
    if not found or re.search(r"\b(?:between|differ|compare|and|or)\b", question[: found.start()], re.I):
        return []
    names = split_list(found["list"])
    if len(names) not in FEW_MEMBERS or any(is_verb(word) for word in question[found.end() :].lower().split()):
        return []
    return [question[: found.start()] + name + question[found.end() :] for name in names]


def split_list(listed: str) -> list[str]:
    """Return the items of a list in words; what stands in brackets stays with its item."""
    items = re.split(r",\s*(?:and |or )?(?![^()]*\))|;\s*|\s+(?:and|or)\s+(?![^()]*\))", listed)
    return [item.strip(" .?") for item in items if key_terms(item) and not item.lower().startswith(("other", "etc"))]
