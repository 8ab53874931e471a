"""Signs in a text of who wrote it, what it is based on, its tone, and whether it is complete.

Each sign is a pattern a person can check. They know English best; a text in another language shows fewer of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fathom.models import SourceText
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words

HEAD = 2_000  # characters in which a text says who wrote it
MAX_CHARS = 60_000  # of a text that are read
AUTHOR_START = 0.4  # 001 gives steps without a start: from here all steps up together make 1
CONTENT_START = 0.5
REFERENCES = 3  # least number that counts as citing
SOURCED = 2  # least number of figures with a source
VOICES = 2  # least number of different words of balance
SHORT_WORDS = 500  # a longer text is not what a paywall leaves
REPEATED = 0.3  # share of sentences said before from which a text looks assembled
LEAST_SENTENCES = 20

_NAME = r"[A-Z][\w'’.-]+(?: [A-Z][\w'’.-]*){1,3}"
_BYLINE = re.compile(
    rf"(?m)(?:^|[.|·] ?)[*_]*(?:[Bb]y|BY|[Ww]ritten by|[Aa]uthors?:|[Rr]eviewed by|[Vv]on)[*_]* \[?{_NAME}"
)
_EXPERT = re.compile(rf"\b(?:Dr\.?|Prof\.?|Professor) {_NAME}|{_NAME},? (?:Ph\.?D|M\.?D|MSc|DPhil)\b\.?")
_AFFILIATION = re.compile(
    r"\b(?:University|Universität|Université|Universidad|Department|Faculty|School|Institute|Institut|Laboratory|Hospital|"
    r"Academy|Centre|Center) (?:of|for|de|für)\b|\b[A-Z]\w+ (?:University|Institute|Laboratory|College)\b"
)
_REFERENCE = re.compile(
    r"\[\d{1,3}\]|\bdoi\.org/|\bdoi: ?10\."
    r"|\b[A-Z][\w'’-]{1,40} (?:et al\.,?|(?:and|&) [A-Z][\w'’-]{1,40},?) \(?(?:19|20)\d\d"
    r"|\([A-Z][\w'’-]{1,40},? (?:19|20)\d\d[a-z]?\)|\]\(https?://|(?<!\()https?://"
)
_BIBLIOGRAPHY = re.compile(
    r"(?mi)^\W{0,4}(?:references|bibliography|works cited|sources|literatur|einzelnachweise)\W{0,4}$"
)
_ATTRIBUTION = re.compile(
    r"\b(?:according to|source:|reported by|data from|figures from|survey (?:by|of)|study (?:by|in|from)|"
    r"report (?:by|from)|laut|nach Angaben)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"(?<![\[\w/.-])\d+(?:[.,]\d+)*(?![\]\w/-])")
_BALANCE = re.compile(
    r"\b(?:however|on the other hand|in contrast|by contrast|critics|limitations?|although|nevertheless|conversely|"
    r"trade-?offs?|drawbacks?|caveats?|disagree|jedoch|allerdings|hingegen)\b",
    re.IGNORECASE,
)
_SENSATION = re.compile(
    r"\b(?:shocking|you won'?t believe|miracle|mind-?blowing|jaw-?dropping|bombshell|doctors hate|what happens next|"
    r"the truth about|they don'?t want you to|exposed|secret (?:trick|they)|must-?see|unbelievable|insane)\b",
    re.IGNORECASE,
)
_PAYWALL = re.compile(
    r"\b(?:subscribe (?:now )?(?:to|for) (?:continue|read|unlimited|full|keep)|subscribers? only|subscriber-only|"
    r"for subscribers|already a subscriber|to (?:continue|keep) reading|read the full (?:article|story)|"
    r"(?:sign|log) in to (?:read|continue)|create (?:a free|an) account to|unlock (?:this|the full) (?:article|story)|"
    r"buy (?:this )?article|purchase access|access through your institution|"
    r"jetzt abonnieren|mit .{0,12}abo (?:weiter)?lesen)\b",
    re.IGNORECASE,
)
_MACHINE = re.compile(
    r"(?<![\"'“‘„«])\b(?:as an AI (?:language )?model|as a large language model|(?:as of|since) my last (?:knowledge )?"
    r"(?:update|training)|my knowledge cut-?off|I cannot fulfill (?:this|that|your) request|regenerate response|"
    r"(?:written|generated|created) (?:by|with|using) (?:ChatGPT|an? AI|artificial intelligence|GPT-\d)|"
    r"certainly! here (?:is|are)|\[insert [a-z ]{3,30}\])",
    re.IGNORECASE,
)


class Signals(NamedTuple):
    """The signs in a text."""

    expert: bool  # a name with a title or degree
    affiliation: bool
    byline: bool
    references: bool
    sourced_data: bool
    balanced: bool
    sensational: bool
    unsourced: bool  # neither a reference nor an attribution anywhere
    paywalled: bool
    machine_made: bool


def read_signals(source: SourceText) -> Signals:
    """Look for the signs; nothing is concluded from what an excerpt lacks."""
    text, head = source.text[:MAX_CHARS], source.text[:HEAD]
    references, bibliography = len(_REFERENCE.findall(text)), bool(_BIBLIOGRAPHY.search(text))
    expert = bool(_EXPERT.search(head))
    signs = [*_ATTRIBUTION.finditer(text), *_REFERENCE.finditer(text)]
    around = (text[max(0, sign.start() - 150) : sign.start()] + text[sign.end() : sign.end() + 100] for sign in signs)
    return Signals(
        expert=expert,
        affiliation=bool(_AFFILIATION.search(head)),
        byline=expert or bool(_BYLINE.search(head)),
        references=references >= REFERENCES or bibliography,
        sourced_data=sum(bool(_FIGURE.search(near)) for near in around) >= SOURCED,
        balanced=len({found.lower() for found in _BALANCE.findall(text)}) >= VOICES,
        sensational=_is_sensational(source.title, text),
        unsourced=source.full and not (references or bibliography or _ATTRIBUTION.search(text)),
        paywalled=bool(_PAYWALL.search(text)) and count_words(text) < SHORT_WORDS,
        machine_made=bool(_MACHINE.search(text)) or _repeats(text),
    )


def author_authority(signals: Signals, institutional: bool) -> float:
    """Return the author's part of credibility; `institutional`: the site itself is the institution behind its pages."""
    return AUTHOR_START + 0.3 * signals.expert + 0.2 * (signals.affiliation or institutional) + 0.1 * signals.byline


def content_score(signals: Signals) -> float:
    """Return the content's part of credibility."""
    up = 0.2 * signals.references + 0.2 * signals.sourced_data + 0.1 * signals.balanced
    return CONTENT_START + up - 0.2 * signals.sensational - 0.1 * signals.unsourced


def _is_sensational(title: str, text: str) -> bool:
    """Whether a title is sensational, or a text is for its length."""
    if _SENSATION.search(title) or title.count("!") > 1 or (title.isupper() and len(title.split()) > 3):
        return True
    cries = len(_SENSATION.findall(text)) + len(re.findall(r"\w!(?=\s|\Z)", text)) / 2
    return cries > 2 and cries * 300 > count_words(text)


def _repeats(text: str) -> bool:
    """Whether a text says many of its sentences more than once."""
    said = [s.clean.casefold() for s in split_sentences(text) if s.kind == "prose" and len(s.text) > 40]
    return len(said) >= LEAST_SENTENCES and 1 - len(set(said)) / len(said) > REPEATED
