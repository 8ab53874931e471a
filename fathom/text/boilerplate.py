"""Sentences of a page that say nothing about its subject: calls to subscribe, stuffed key words, orders to models.

Each is a pattern a person can check. They know English only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from fathom.text.parsed import ParsedText
from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import terms

STUFFED_TERMS = 8  # of a sentence at least, to tell stuffed key words from a short line
STUFFED_TIMES = 4  # that one term is repeated
STUFFED_SHARE = 0.25  # of the sentence that it makes up

_CALL = re.compile(
    r"\b(?:subscribe (?:to (?:our|the|my)|now|today|from|here|for)|sign up (?:to|for) (?:our|the|my) (?:\w+ )?"
    r"(?:newsletter|mailing list|updates)|our (?:\w+ )?newsletter|affiliate links?|click (?:here|through)|"
    r"to (?:read on|continue reading|keep reading)|read on (?:until|to find)|follow us on|"
    r"share this (?:article|post|page)|(?:accept (?:all )?|we use )cookies|you (?:will not|won['’]t) believe)\b",
    re.IGNORECASE,
)
_CALLING = frozenset(terms("subscribe sign newsletter affiliate click read follow share cookies believe"))
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget) (?:\w+ ){0,6}?(?:instructions?|prompts?)\b"
    r"|\b(?:notes?|instructions?|messages?|attention|important)\b[^.?!]{0,30}? (?:to|for) (?:all )?(?:ai|llms?|"
    r"(?:large )?language models?|chatbots?|(?:ai )?(?:agents?|assistants?))\b(?=[^.?!]{0,20}[:,])"
    r"|\b(?:print|reveal|show|repeat|output) (?:your|the) system prompt\b"
    r"|\Ayou are now (?:in \w+ mode|an? (?:\w+ )?(?:ai|assistant|model))\b"
    r"|\[\[/?\w+\]\]|<\|\w+\|>",
    re.IGNORECASE,
)
_ORDERING = frozenset(terms("instruction prompt ai llm model chatbot agent assistant mode tool_result im_start"))


def orders(parsed: ParsedText) -> set[int]:
    """Return the numbers of the paragraphs that hold an order to a language model."""
    near = {number for term in _ORDERING for number in parsed.occurrences.get(term, ())}
    return {parsed.paragraphs[number] for number in near if _ORDER.search(parsed.sentence(number).text)}


def asks_of_orders(asked: Sequence[str]) -> bool:
    """Whether a question, given as its terms, is about such orders: then they are what it is about."""
    return not _ORDERING.isdisjoint(asked)


def is_boilerplate(sentence: str, found: Sequence[str]) -> bool:
    """Whether a sentence, with its terms, only calls on the reader, or repeats key words for search engines."""
    if not _CALLING.isdisjoint(found) and _CALL.search(sentence):
        return True
    if len(found) - len(set(found)) < STUFFED_TIMES - 1:
        return False
    said = [term for term in found if term not in STOP_WORDS]
    if len(said) < STUFFED_TERMS:
        return False
    [(_, times)] = Counter(said).most_common(1)
    return times >= STUFFED_TIMES and times >= STUFFED_SHARE * len(said)
