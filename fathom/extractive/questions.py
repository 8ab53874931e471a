"""What a prompt asks: its questions, each complete by itself, and the sides, aspects or items that a question lists."""

from __future__ import annotations

import re
from itertools import groupby
from typing import NamedTuple

from fathom.extractive.verbs import is_verb
from fathom.extractive.wording import capitalized, clip, key_terms, keywords, strip_lead, topic_terms
from fathom.text.sentences import split_sentences
from fathom.text.terms import query_terms

SUBJECT_WORDS = 6
ITEM_WORDS = 8
FORM_SHARE = 0.6  # of a sentence's terms: it is about the form of the answer

_FORM = """
provide ensure include suggest make sure cite format structure present content keyword image example reference
comprehensive report paper output document answer response section overview detailed reader table figure citation word
length page overall complete support language english style tone academic depth clear
"""
_FORM_TERMS = frozenset(query_terms(_FORM))
_NUMBERED = re.compile(r"\s*(?<![\w.])\(?\d{1,2}[.)]\s+(?=[A-Z])")
_JOINED = re.compile(
    r",? and (?=(?:how(?: (?:many|much|long|old|far|often|large)(?: \w+){0,3})?|why|when|where|who|"
    r"(?:(?:in|at|for) )?(?:what|which)(?: \w+)?)"
    r" (?:is|are|was|were|do|does|did|can|could|should|would|will)\b)"
    r"|,? and (?=(?:is|are|was|were) there\b)",
    re.I,
)
_QUESTION = re.compile(
    r"(?:[^,]*, |(?:in|at|for|of|by|on|to|from|after|until|since|above|under) )?"
    r"(?:how|why|when|where|who|whom|whose|what|which|is|are|was|were|do|does|did|can|could|may|should|would|will|has|"
    r"have)\b",
    re.I,
)
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|he|him|his|she|her|this|these|those)\b", re.I)
_PAIRS = [
    re.compile(pattern, re.I)
    for pattern in (
        r".*?\bdifferences? between (?P<a>.+?) and (?P<b>.+)",
        r"how (?:do|does|did|is|are) (?P<a>.+?) (?:differ(?:ent|s)? from|compare (?:to|with)) (?P<b>.+)",
        r"how (?:do|does|is|are) (?P<a>.+?) and (?P<b>.+?) (?:interact|relate|work together|related|connected)\b",
        r"compare (?P<a>.+?) (?:with|to|and|against) (?P<b>.+)",
        r"(?P<a>.+?) (?:vs\.?|versus) (?P<b>.+)",
        r"(?:which is \w+|should (?:i|we|one) \w+|is it better to \w+)[:,]? (?P<a>.+?),? or (?P<b>.+)",
    )
]
_ASPECTS = re.compile(
    r"(?:what (?:is|are|were|was) )?(?:the )?(?P<list>(?:[\w-]+, )*[\w-]+,? and [\w-]+) (?P<matter>(?:of|in|for) .+)",
    re.I,
)
_LISTED = re.compile(
    r"(?:,? (?:including|such as|covering|considering|in terms of|with (?:a )?focus on)|:)\s+(?P<list>.+)", re.I
)
_SEPARATOR = re.compile(r",?\s+(?:and|or)\s+|[,;]\s*")


class Part(NamedTuple):
    """A side, an aspect or an item that a question names: its title, and the queries for it."""

    title: str
    queries: list[str]


def is_question(text: str) -> bool:
    """Whether a text, or what follows its first comma, opens like a question."""
    return bool(_QUESTION.match(text))


def questions_of(prompt: str) -> list[str]:
    """Return what a prompt asks, without requests and without rules for the form of the answer; at least one text.

    Where a later question does not say what it is about, the key words of the first one, or of a statement before it,
    are added in brackets: "When was it sold (Faust)".
    """
    told: list[str] = []
    asked: list[str] = []
    for sentence in _sentences(prompt):
        plain = strip_lead(sentence)
        if not key_terms(plain) or _is_form(plain):
            continue
        requested = plain != sentence.strip(" .") or is_question(plain)
        (asked if asked or requested else told).append(plain)
    found = asked or told or [strip_lead(prompt)]
    subject = subject_of((told or found)[0])
    alone = 0 if asked and told else 1
    return [*found[:alone], *(_complete(question, subject) for question in found[alone:])]


def parts_of(question: str) -> list[Part]:
    """Return the two sides of a comparison, or the aspects or items that a question lists."""
    if sides := _sides(question):
        a, b = sides
        return [
            Part(f"About {side}", [f"{side} compared with {other}", f"{side} properties", f"{side} use"])
            for side, other in ((a, b), (b, a))
        ]
    if aspects := _ASPECTS.fullmatch(question):
        names = _SEPARATOR.split(aspects["list"])
        return [Part(capitalized(f"{name} {aspects['matter']}"), [f"{name} {aspects['matter']}"]) for name in names]
    if listed := _LISTED.search(question):
        items = [item.strip() for item in _SEPARATOR.split(listed["list"]) if key_terms(item)]
        matter = " ".join(keywords(question[: listed.start()])[:SUBJECT_WORDS])
        if len(items) > 1 and matter and all(len(item.split()) <= ITEM_WORDS for item in items):
            return [Part(capitalized(item), [f"{item} {matter}"]) for item in items]
    return []


def sides_of(prompt: str) -> tuple[str, str] | None:
    """Return the two things that a prompt compares, as it names them; None if it compares nothing."""
    return next(filter(None, map(_sides, questions_of(prompt))), None)


def _sides(question: str) -> tuple[str, str] | None:
    pair = next((m for pattern in _PAIRS if (m := pattern.match(question))), None)
    if not pair:
        return None
    listed = _LISTED.search(pair["b"])  # aspects of both
    return pair["a"].strip(" ,"), (pair["b"][: listed.start()] if listed else pair["b"]).strip(" ,")


def subject_of(text: str) -> str:
    """Return the key words of a text, neighbouring ones as one phrase: "elderly people, Japan"."""
    words = text.replace(",", " , ").split()
    phrases = [" ".join(run) for key, run in groupby(words, _names_something) if key]
    return clip(", ".join(phrases), SUBJECT_WORDS)


def _names_something(word: str) -> bool:
    return bool(topic_terms(word)) and not (word.islower() and is_verb(word))


def _sentences(prompt: str) -> list[str]:
    """Return the sentences of a prompt, joined questions and numbered items apart."""
    sentences = (sentence.clean for sentence in split_sentences(_NUMBERED.sub("\n\n", prompt)))
    return [part for sentence in sentences for part in _JOINED.split(sentence)]


def _is_form(sentence: str) -> bool:
    found = key_terms(sentence)
    return sum(term in _FORM_TERMS for term in found) >= FORM_SHARE * len(found)


def _complete(question: str, subject: str) -> str:
    own, wanted = set(key_terms(question)), set(key_terms(subject))
    if wanted <= own or (own & wanted and not _PRONOUN.search(question)):
        return question
    return f"{question} ({subject})"
