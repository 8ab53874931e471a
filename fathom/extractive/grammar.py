"""Just enough grammar to turn a question into a heading."""

from __future__ import annotations

import re

from fathom.extractive.vocabulary import FINITE, MORE_VERBS, NOMINAL, PREPOSITIONS, PRONOUNS, VERBS
from fathom.extractive.wording import capitalized, is_english, key_terms, strip_lead

_AUXILIARY = re.compile(
    r"(?P<asks>how|why|when|where)\s+(?P<aux>do|does|did|can|could|should|would|will|is|are|was|were)\s+", re.I
)
_YES_NO = re.compile(r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have)\s", re.I)


def statement(question: str) -> str:
    """Return what a question asks about, as a heading would put it.

    "How does Python look up a name?" is "How Python looks up a name", "What is entropy?" is "Entropy".
    """
    text = strip_lead(question)
    plain = re.match(r"(?:what|who)(?:'s| is| are| was| were)\s+(?:meant by\s+)?(.+)", text, re.I)
    if plain and not re.match(r"(?:[a-z]+ed|made|done|said|found|known|built|given|taken)\b", plain[1]):
        return capitalized(plain[1])
    asked = _AUXILIARY.match(text)
    if not asked and (_YES_NO.match(text) or not is_english(text)):
        return f"{capitalized(text)}?"
    if not asked:
        return capitalized(text)
    return _told(text[asked.end() :].split(), asked) or f"{capitalized(text)}?"


def _told(words: list[str], asked: re.Match[str]) -> str:
    """Return "How X does Y" for the words behind "How does", or nothing where their verb is not found."""
    aux, word = asked["aux"].lower(), asked["asks"].capitalize()
    passive = aux in ("is", "are", "was", "were")
    if "be" in words[1:] and not passive and aux != "did":
        be = words.index("be", 1)
        return " ".join([word, *words[:be], aux, *words[be:]])
    at = _verb_at(words, passive=passive)
    if at is None or aux == "did":
        return ""
    subject, verb, rest = words[:at], words[at], words[at + 1 :]
    if len(subject) == 1 and subject[0].lower() in PRONOUNS and word == "How":
        return " ".join(["How to", verb, *rest])
    if aux == "does":
        verb = third_person(verb)
    middle = [verb] if aux in ("do", "does") else [aux, verb]
    return " ".join([word, *subject, *middle, *rest])


def nominal(question: str) -> str:
    """Return a noun phrase for a "How does X do Y" question, or its statement: "Python attribute lookup"."""
    text = strip_lead(question)
    asked = _AUXILIARY.match(text)
    words = text[asked.end() :].split() if asked else []
    at = _verb_at(words, passive=False)
    if not asked or asked["asks"].lower() != "how" or at is None:
        return statement(question)
    verb = " ".join(words[at : at + 2]) if " ".join(words[at : at + 2]) in NOMINAL else words[at]
    after = words[at + len(verb.split()) :]
    end = next((i for i, word in enumerate(after) if word.lower() in PREPOSITIONS), len(after))
    noun = [word for word in after[:end] if word.lower() not in ("a", "an", "the")]
    if verb not in NOMINAL or not 1 <= len(noun) <= 3:
        return statement(question)
    if noun[-1].endswith("s") and not noun[-1].endswith("ss"):
        noun[-1] = noun[-1][:-1]
    subject = [] if words[0].lower() in PRONOUNS else words[:at]
    return capitalized(" ".join([*subject, *noun, NOMINAL[verb], *after[end:]]))


def agent_terms(question: str) -> list[str]:
    """Return the terms of who or what acts in a "How does X do Y" question."""
    text = strip_lead(question)
    asked = _AUXILIARY.match(text)
    words = text[asked.end() :].split() if asked else []
    at = _verb_at(words, passive=False)
    return key_terms(" ".join(words[:at])) if at is not None and at + 1 < len(words) else []


def is_verb(word: str, before: str = "") -> bool:
    """Whether a lowercase word can be the verb of a sentence; not behind "to" or "which"."""
    if before in ("to", "which", "that"):
        return False
    if word in FINITE or word.endswith("n't"):
        return True
    stems = (word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word))
    return any(stem in VERBS or stem in MORE_VERBS for stem in stems) or (word.endswith("ed") and len(word) > 4)


def third_person(verb: str) -> str:
    """Return a verb's form after he, she, it."""
    if verb in ("do", "go"):
        return verb + "es"
    if verb.endswith(("s", "sh", "ch", "x", "z")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2] not in "aeiou" else verb + "s"


def _verb_at(words: list[str], passive: bool) -> int | None:
    """Return the index of the verb behind a subject of one word or more."""
    if passive and (degree := next((i for i, w in enumerate(words) if i and w.lower() in ("so", "such", "too")), None)):
        return degree  # "why was X so deadly"
    for i, word in enumerate(words[1:], 1):
        lower = word.lower().strip(",")
        if passive and re.fullmatch(
            r"\w+(?:ed|en)|made|built|found|held|sold|kept|lost|set|put|done|born|run|read", lower
        ):
            return i
        if not passive and lower in VERBS and words[i - 1].lower() not in ("a", "an", "the", "of", "in", "and"):
            return i
    return None
