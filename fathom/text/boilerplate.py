"""Sentences with little content: dependent on another sentence, or without information about the subject.

Each kind is a pattern that a person can check. The patterns know only English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from fathom.text.parsed import ParsedText, parse
from fathom.text.terms import STOP_WORDS, terms

STUFFED_TERMS = 8  # least terms of a sentence, to tell stuffed key words from a short line
STUFFED_TIMES = 4  # times that one term is repeated
STUFFED_SHARE = 0.25  # share of the sentence that it makes up

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
    r"|\b(?:the )?user (?:has|have|had) changed (?:the|their|its|your) (?:task|question|request|instructions?)\b"
    r"|<!--\s*(?:assistant|system|user) ?:\s"
    r"|\Ayou are now (?:in \w+ mode|an? (?:\w+ )?(?:ai|assistant|model))\b"
    r"|\[\[/?\w+\]\]|<\|\w+\|>",
    re.IGNORECASE,
)
_ORDERING = frozenset(terms("instruction prompt ai llm model chatbot agent assistant mode tool_result im_start"))
_NEAR_ORDERS = _ORDERING.union(terms("user system"))


def orders(parsed: ParsedText) -> set[int]:
    """Return the numbers of the paragraphs that hold an order to a language model."""
    near = {number for term in _NEAR_ORDERS for number in parsed.occurrences.get(term, ())}
    return {parsed.paragraphs[number] for number in near if _ORDER.search(parsed.sentence(number).text)}


def without_orders(text: str) -> str:
    """Return a text without the paragraphs that hold an order to a language model."""
    parsed = parse(text)
    ordering = orders(parsed)
    own = [parsed.sentence(n) for n in range(len(parsed)) if parsed.paragraphs[n] in ordering]
    for sentence in reversed(own):
        text = text[: sentence.start] + text[sentence.end :]
    return text


def asks_of_orders(asked: Sequence[str]) -> bool:
    """Whether a question, given as its terms, is about such orders, so that they are its subject."""
    return not _ORDERING.isdisjoint(asked)


_COURTESY = re.compile(
    r"(?:(?:dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|guten (?:tag|morgen)|good (?:morning|afternoon)|"
    r"bonjour|ch(?:er|ère)s?)(?: [\w.'’&-]+){0,8}[,!]"
    r"|(?:(?:(?:with|many|my)? ?(?:best|kind|kindest|warm) )?(?:regards|wishes)|cheers|yours(?: \w+)?|sincerely|best|"
    r"(?:many )?thanks|thank you(?: very much)?|mit (?:freundlichen|besten|herzlichen) grüßen|"
    r"(?:viele|beste|liebe|herzliche|schöne) grüße|gruß|mfg|cordialement)[,.!]?(?:\s+(?-i:[A-ZÀ-Þ])[\w.'’-]*){0,5})\Z",
    re.IGNORECASE,
)
_FIELD = re.compile(r"[-*] \*\*(?P<name>From|To|Cc|Date|Subject)\*\*: ")
_OF_MAIL = frozenset(
    terms(
        "mail mails email address contact message letter subject send sent sender wrote write written receive "
        "recipient reply replied forward"
    )
)


def letterhead(parsed: ParsedText) -> dict[int, str]:
    """Return the fields of mails by their numbers: From, To, Cc, Date and, of one that is quoted, Subject."""
    found = {
        number: field["name"]
        for number, kind in enumerate(parsed.kinds)
        if kind == "item" and (field := _FIELD.match(parsed.sentence(number).text))
    }
    return found if {"From", "Date"}.issubset(found.values()) else {}


def asks_of_letters(asked: Iterable[str]) -> bool:
    """Whether a question, given as its terms, asks who wrote to whom, when or what about: the fields answer that."""
    return not _OF_MAIL.isdisjoint(asked)


_NAME_ALONE = re.compile(r"[A-ZÀ-ÖØ-Þ][\w.'’-]*(?: [A-ZÀ-ÖØ-Þ][\w.'’-]*){0,2},")
_LINK = re.compile(
    r"\W*(?:(?:see|see also|siehe|voir|véase|vedi)\b:?\s*)?\[[^\]\n]{1,100}\]\([^)\s]*\)\W*", re.IGNORECASE
)


def says_nothing(sentence: str) -> bool:
    """Whether a sentence is one link, or the salutation or close of a letter: "Dear all,", "Paul,", "Regards, Ann"."""
    return bool(_COURTESY.match(sentence) or _NAME_ALONE.fullmatch(sentence) or _LINK.fullmatch(sentence))


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


_LEANING = re.compile(
    r"(?:This|These|Those|That|It|Its|They|Their|Them|He|She|His|Her|Such|Both|Neither|Else|Otherwise|Then|Thus|"
    r"Instead|And|Or|So|Here|Because of this|First,|(?:All|Any|Every|Each) other|"
    r"For (?:example|instance|this|these)|As a (?:result|consequence)|On the (?:other hand|contrary)|"
    r"In (?:this|these|that|such|both|either|contrast|addition|other words|particular|"
    r"the (?:above|former|latter|following))|By (?:contrast|this)|"
    r"(?:If|When|Where)\b[^,.]{0,60}\bthere\b|If (?:this|it|they|that|so|not)\b|When (?:this|it|they)\b|"
    r"The (?:former|latter|above|same|following|other|others|second|third|rest)|"
    r"(?:\w+ ){0,3}(?:these|those|this|them|do so|doing so)\b(?! (?:is|are|was|were) (?:a|an|the)\b)|"
    r"Dies|Diese|Dieser|Dieses|Er|Sie|Es|Sein|Seine|Ihr|Ihre|Dabei|Dadurch|Daher|Deshalb|Damit|Danach|Dann|Jedoch|"
    r"Außerdem|Zudem|Aber|Und|Oder|Hier|Dort)\b"
    r"|(?:这|它|他们|她|其|此|因此|但|而且|これ|それ|この|その|しかし|また)"
)
# These words connect to the sentence before, but the sentence can be understood without it.
_CONNECTING = re.compile(
    r"(?:However|But|Also|Hence|Therefore|Moreover|Furthermore|Similarly|Likewise|Conversely|Nevertheless|Consequently|"
    r"Accordingly|Finally|Second|Third|Next)\b"
)

# A pointer to another place says nothing where it is quoted.
_POINTING = re.compile(
    r"\A(?:See|Refer|Compare|Consult|Click|Read more|Siehe|Copyright|Retrieved|For (?:more|further|additional|details|"
    r"information))\b|\b(?:can|may|will) be found in\b|described in (?:dedicated|the|section|detail)\b"
    r"|\b(?:this (?:section|chapter|page|table|figure)|(?:next|previous) section|"
    r"(?:see|described|listed|shown|discussed|mentioned) (?:above|below|later|earlier|in section)|"
    r"(?:examples?|table|figure|code|list|sections?) (?:above|below))\b"
)

_SUBJECTLESS = re.compile(
    r"(?:Called|Returns?|Raised?|Raises|Implements?|Creates?|Defines?|Deletes?|Sets?|Gets?|Performs?|Customizes?|"
    r"Enters?|Exits?|Executes?|Checks?|Converts?|Computes?|Used|Should|Must|Can|May|Is|Are|Invoked|Same|Like)\b"
)


def leans(sentence: str) -> bool:
    """Whether a sentence can only be understood, or only rightly, with the one before."""
    return bool(_LEANING.match(sentence) or _CONNECTING.match(sentence))


def points_elsewhere(sentence: str) -> bool:
    """Whether a sentence only refers the reader to another place."""
    return bool(_POINTING.search(sentence))


def lacks_subject(sentence: str) -> bool:
    """Whether a sentence opens with its verb, as the description of a function does below its signature."""
    return bool(_SUBJECTLESS.match(sentence))
