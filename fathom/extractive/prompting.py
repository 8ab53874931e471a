"""A prompt of several sentences: what it asks, what it tells, and what it says about the form of the answer only."""

from __future__ import annotations

import re
from typing import NamedTuple

from fathom.extractive.grammar import is_verb
from fathom.extractive.vocabulary import FORM_TERMS, PREPOSITIONS
from fathom.extractive.wording import key_terms, keywords, shorten, strip_lead
from fathom.text.sentences import split_sentences

SUBJECT_WORDS = 9
FORM_SHARE = 0.6  # of a sentence's terms: it is about the answer's form, not about the matter

_NUMBERED = re.compile(r"\s*(?<![\w.])\(?\d{1,2}[.)]\s+(?=[A-Z])")
_JOINED = re.compile(
    r",? and (?=(?:how(?: (?:many|much|long|old|far|often|large)(?: \w+){0,3})?|why|when|where|who|"
    r"(?:(?:in|at|for) )?(?:what|which)(?: \w+)?)"
    r" (?:is|are|was|were|do|does|did|can|could|should|would|will)\b)"
    r"|,? and (?=(?:is|are|was|were) there\b)",
    re.I,
)
_SETTING = re.compile(
    r"(?P<when>(?:(?:from|in|between|since|during|by|as of|over|within|for) (?:the )?[^,?]{0,30}\d{2,4}s?)|"
    r"in (?:the )?\w+(?: \w+)?),\s*(?P<rest>(?:how|what|why|when|where|who|which|is|are|do|does|did|can)\b.+)",
    re.I,
)
_QUESTION = re.compile(
    r"(?:(?:in|at|for|of|by|on|to) )?(?:how|why|when|where|who|whom|whose|what|which|is|are|was|were|do|does|did|can|"
    r"could|should|would|will|has|have)\b",
    re.I,
)
_BASIS = re.compile(r"based on (?P<basis>.+), (?=please\b)", re.I)
_PRONOUN = re.compile(r"\b(?:it|they|he|she|them)\b", re.I)
_POSSESSIVE = re.compile(
    r"\b(?:their|its|his|her)\s+|\b(?:these|those|this)\s+(?!(?:from|of|in|by|that|who)\b)(?=[a-z])",
    re.I,
)
_MANY = re.compile(
    r"how (?:many|much|old|long|tall|big|large|far|high|often)(?: of)?(?: the)? ?(?P<x>.*?) ?"
    r"\b(?:will|are|were|is|was|did|do|does|have|has|can)\b(?: there)?(?: be)?(?P<rest>.*)",
    re.I,
)
_ASKS_FOR = re.compile(r"(?:who|what|which)(?:'s| is| are| was| were)?\s+(?:of )?(?:the )?(?P<x>.+)", re.I)
_DOES = re.compile(r"how \w+ [\w ]*?\b(?:do|does|did)\b", re.I)
_HAD = re.compile(
    r"(?:what|which) (?P<x>\w+(?: \w+)?) (?:do|does|did|will|can) (?P<who>.+?) "
    r"(?:have|make|cause|face|take|give|use|offer|bring|show)\b ?(?P<rest>.*)",
    re.I,
)
_REASON = re.compile(r"(?:why|when|where|how) (?:is|are|was|were|do|does|did|can|will|should) (?:the )?(?P<x>.+)", re.I)
_WHO_DID = re.compile(r"who (?!is\b|are\b|was\b|were\b)", re.I)
_AFTER = re.compile(r"\s*(?:\(|, |;|\b(?:including|that|which|who|along with|and (?:what|how|who|where|when|why))\b)")


class Asked(NamedTuple):
    """The questions of a prompt, and the sentence that says what they are about where one does."""

    questions: list[str]
    context: str


def asked_in(prompt: str) -> Asked:
    """Return what a prompt asks, one question or topic each, without requests and rules of form."""
    told: list[str] = []
    asked: list[str] = []
    for raw in _sentences(prompt):
        basis = _BASIS.match(raw)
        plain = strip_lead(raw[basis.end() :] if basis else raw)
        question = raw.rstrip().endswith(("?", "？")) or bool(_QUESTION.match(plain))
        if _is_form(plain):
            continue
        if not question and not asked and plain == raw.strip(" .?!") and any(map(is_verb, plain.split())):
            told.append(plain)
        elif len(key_terms(plain)) >= 2 or (key_terms(plain) and _PRONOUN.search(plain)):
            asked.append(_with_setting_last(plain))
    if not asked:
        return Asked(told or [strip_lead(prompt)], "")
    return Asked(asked, told[0] if told else "")


def _sentences(prompt: str) -> list[str]:
    """Return the sentences of a prompt, joined questions and numbered items apart."""
    text = _NUMBERED.sub("\n\n", prompt)
    sentences = (sentence.clean for sentence in split_sentences(text))
    return [part for sentence in sentences for part in _JOINED.split(sentence) if part.strip(" .:")]


def _is_form(sentence: str) -> bool:
    """Whether a sentence says what the answer should look like and nothing of the matter."""
    found = key_terms(sentence)
    return bool(found) and sum(term in FORM_TERMS for term in found) >= FORM_SHARE * len(found)


def _with_setting_last(question: str) -> str:
    """Return "How many people will there be from 2020 to 2050" for "From 2020 to 2050, how many ..."."""
    found = _SETTING.fullmatch(question)
    return f"{found['rest']} {found['when'][0].lower()}{found['when'][1:]}" if found else question


def subject_of(question: str) -> str:
    """Return a noun phrase for what a question is about."""
    plain = strip_lead(question)
    if many := _MANY.match(plain):
        rest = many["rest"].strip()
        if not many["x"] or _DOES.search(plain):
            return shorten(_up_to_verb(re.sub(r"^the\s+", "", rest).split()), SUBJECT_WORDS)
        inside = rest if rest.split(maxsplit=1)[:1] and rest.split()[0].lower() in PREPOSITIONS else ""
        return shorten(f"{many['x']} {inside}".strip(), SUBJECT_WORDS)
    if had := _HAD.match(plain):
        return shorten(f"{had['x']} of {had['who']} {had['rest']}".strip(), SUBJECT_WORDS)
    found = _ASKS_FOR.match(plain) or _REASON.match(plain)
    phrase = found["x"] if found else re.sub(r"^(?:how (?:many|much) (?:of )?)?(?:the|an?)\s+", "", plain, flags=re.I)
    phrase = _AFTER.split(phrase, maxsplit=1)[0].strip()
    words = phrase.split()
    if len(words) > 1 and (_QUESTION.match(phrase) or _WHO_DID.match(plain)):
        words = words[1:]  # "who wrote X" is about X
    while len(words) > 1 and (is_verb(words[0].lower()) or words[0].lower() in ("to", "the", "a", "an")):
        words = words[1:]  # "what is planned to reduce X" too
    phrase = _up_to_verb(words)
    return shorten(phrase, SUBJECT_WORDS) if key_terms(phrase) else " ".join(keywords(plain)[:4])


def standalone(query: str) -> list[str]:
    """Return the questions of a query, the later ones naming what they are about."""
    asked = asked_in(query)
    subject = subject_of(asked.context or asked.questions[0])
    questions: list[str] = []
    for number, question in enumerate(asked.questions):
        said, leans = resolved(question, subject) if number or asked.context else (question, False)
        questions.append(f"{said} {subject}" if leans else said)
    return questions


def _up_to_verb(words: list[str]) -> str:
    verb = next((i for i, word in enumerate(words) if i and word.islower() and _ends(word, words[i - 1])), None)
    return " ".join(words[:verb])


def _ends(word: str, before: str) -> bool:
    """Whether a noun phrase ends before a word: at its verb, which a participle need not be."""
    return is_verb(word, before) and not word.endswith("ed")


def resolved(question: str, subject: str) -> tuple[str, bool]:
    """Return a question with the subject for its pronoun, and whether it still leans on the subject.

    "Where were they born" names the subject afterwards; "What is their size" becomes "What is the size" and leans.
    """
    if not subject or set(key_terms(subject)) <= set(key_terms(question)):
        return question, False
    if _PRONOUN.search(question) and not _POSSESSIVE.search(question):
        return _PRONOUN.sub(f"the {subject}" if subject[0].islower() else subject, question, count=1), False
    if _POSSESSIVE.search(question):
        return _POSSESSIVE.sub(lambda m: "the " if m.end() < len(question) else "", question, count=1), True
    return question, not set(key_terms(subject)) & set(key_terms(question))
