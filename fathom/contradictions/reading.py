"""Statements in a form in which one can be seen to replace another: their fields, owners, decisions and changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from fathom.contradictions.assertions import Assertion, assertion_of
from fathom.facts.dates import MONTHS, WEEKDAYS, Date
from fathom.facts.extraction import Facts, Figure, blanked, facts_of, figures_of
from fathom.text.sentences import Sentence, fences, split_sentences
from fathom.text.terms import query_terms, terms

MOST_WORDS = 60

_CHANGE = re.compile(
    r"\b(?:now|currently|no longer|from now on|instead of|rather than|in place of|"
    r"replac(?:es?|ed|ing)|supersed(?:es?|ed|ing)|takes? over|took over|taking over|hand(?:s|ed) over|"
    r"(?:moved?s?|change[sd]?|switch(?:es|ed)?|raised|reduced|goes|went|lowered|increased|decreased|rises|rose|drops|"
    r"dropped|cut|postponed|delayed|rescheduled|brought forward|pushed back) (?:from|to)|"
    r"revers(?:es?|ed)|revok(?:es?|ed)|overturn(?:s|ed)|new (?:owner|lead|price|date|deadline|limit))\b",
    re.IGNORECASE,
)
_OLD = re.compile(
    r"\b(?:instead of|rather than|in place of|no longer|replac(?:es?|ed|ing)|supersed(?:es?|ed|ing)|"
    r"revers(?:es?|ed)|revok(?:es?|ed)|overturn(?:s|ed))\s+"
    r"(?P<old>[^,;.()]{2,80}?)"
    r"(?=\s+(?:for|in|on|at|as|to|because|since|with|by|is|are|was|were|has|have)\b|[,;.()]|\Z)"
    r"|\bfrom\s+(?P<once>[^,;()]{1,40}?)\s+to\b",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(?:postponed|delayed|rescheduled|brought forward|pushed back|moved|moves|shifted)"
    r"(?: from [^,;.]{3,40}?)? to (?:the )?\Z",
    re.IGNORECASE,
)
_SINCE = re.compile(
    r",?\s*\b(?:as of|from|since|starting|effective(?: from)?|with effect from)\s+(?:the )?\Z", re.IGNORECASE
)
_NOT_TOLD = re.compile(
    r"\b(?:now|currently|new)\b ?|\A(?:decision|decided|agreed|resolved|resolution): +", re.IGNORECASE
)
_PERMITS = re.compile(r"(?<=[a-z] )may(?= [a-z])")
_OPEN = re.compile(
    r"\b(?:if|unless|whether|would|could|might|should we|propos\w+|suggest\w*|consider\w*|discuss\w*|question|maybe|"
    r"perhaps|let's|needs? to|wants? to|meant to|seems?|example|e\.g\.|had been|used to|previously|formerly)\b|\?",
    re.IGNORECASE,
)
_DECISION = re.compile(r"\b(?:decision|decided|agreed|resolved|approved|consensus)\b", re.IGNORECASE)
# Where one of these is decided, the other possibilities are not.
_CHOICE = re.compile(r"\b(?:use|choose|adopt|pick|go with|host|meet|hold|store|move|keep|migrate|run)\b", re.IGNORECASE)
_ROLE = re.compile(
    r"\b(?:own(?:s|ers?|ed)?|lead(?:s|er)?|led|responsible|in charge|maintain(?:s|er|ed)?|manage[sr]|takes? over)\b",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?P<key>[^\W\d][^:.|]{1,60}?)\s*:\s+(?P<value>\S.*)", re.DOTALL)
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_MARKS = re.compile(r"[*_`]+|\{%.*?%\}|\S*/\S*/\S*|^\s*(?:[-*+]|\d{1,3}[.)])\s+|\[[^\]]{0,80}\]")
# Words that say that something changes, who has a thing or how it is told, not what it is about.
_ASIDE_WORDS = """
now currently new longer instead rather place replace supersede take over hand move change switch raise reduce lower
increase decrease rise drop cut go reverse revoke overturn effect effective own owner lead leader led responsible charge
maintain maintainer manage manager decision decide agree resolve approve consensus use choose adopt pick meet hold will
is are be become set stay item today per month year seat previous current start plan schedule postpone delay push due
expect
"""
_PRICES = "price cost costs fee fees priced charge"


class Reading(NamedTuple):
    """One statement: a sentence, or the value of a field or cell under its name."""

    text: str
    key: frozenset[str]  # terms of the field's name; empty for a sentence
    title: frozenset[str]  # terms of the document's title, without dates
    about: frozenset[str]  # content terms, without values and words of change
    names: frozenset[str]
    days: frozenset[str]  # weekdays
    facts: Facts
    figures: tuple[Figure, ...]
    owned: bool  # it says who has something
    decided: bool
    chosen: bool  # it decides among several possibilities
    changes: bool  # it says that something changes
    old: frozenset[str]  # terms of what no longer holds
    moved_to: Date | None  # "postponed to 17 May"
    assertion: Assertion | None  # of a sentence, as what contradicts another is
    open: bool  # it supposes, asks, or tells of the past
    minutes: bool  # of a meeting: only its decisions hold on


@lru_cache(maxsize=4096)
def readings(markdown: str, title: str) -> tuple[Reading, ...]:
    """Return the statements of a quotation: its sentences, items and the cells of its rows; code has none."""
    for fence in reversed(list(fences(markdown))):
        markdown = markdown[: fence.start] + markdown[fence.end :]
    named = frozenset(term for term in query_terms(title) if not term.isdigit()) - _months()
    return tuple(_each(markdown, named))


def content_terms(text: str) -> list[str]:
    """Return the terms of a text that are no function words, those of prices as one."""
    return ["price" if term in _prices() else term for term in query_terms(text)]


def _each(markdown: str, title: frozenset[str]) -> Iterator[Reading]:
    header: list[str] = []
    previous = above = ""
    for sentence in split_sentences(markdown):
        text = sentence.text.strip()
        if sentence.kind in ("table", "rule"):
            if _RULE.fullmatch(text):
                header = _cells(previous)
            elif header:
                yield from _row(header, _cells(text), title)
            previous = text
        elif text.endswith(":"):
            above = text
        elif reading := _sentence(sentence, title, above):
            yield reading


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(row.strip().strip("|"))]


def _row(header: list[str], cells: list[str], title: frozenset[str]) -> Iterator[Reading]:
    for name, cell in zip(header[1:], cells[1:], strict=False):
        if cells[0] and name and cell and not cells[0].isdigit():
            yield _reading(f"{cells[0]} {name}: {cell}", frozenset(content_terms(f"{cells[0]} {name}")), title)


def _sentence(sentence: Sentence, title: frozenset[str], above: str) -> Reading | None:
    text = " ".join(_MARKS.sub("", sentence.clean).split())
    field = _FIELD.fullmatch(text)
    if sentence.kind == "heading" and (not field or sentence.text.startswith("#")):
        return None
    if sentence.kind == "code" or text.endswith((":", "?")) or not 2 <= len(text.split()) <= MOST_WORDS:
        return None
    decided = field and _DECISION.search(field["key"])
    return _reading(
        text, frozenset(content_terms(f"{above} {field['key']}")) if field and not decided else frozenset(), title
    )


def _reading(text: str, key: frozenset[str], title: frozenset[str]) -> Reading:
    facts = facts_of(text)
    figures = tuple(figures_of(facts))
    plain = re.sub(r"\d+", " ", blanked(facts.undated, ((f.start, f.end) for f in figures)))
    days = frozenset(terms(" ".join(word for word in re.findall(r"\w+", plain) if _is_weekday(word))))
    decided = bool(_DECISION.search(text))
    old = frozenset(term for match in _OLD.finditer(text) for term in content_terms(match["old"] or match["once"]))
    return Reading(
        text=text,
        key=key,
        title=title,
        about=frozenset(content_terms(plain)) - _aside(),
        names=frozenset(terms(" ".join(word for name in facts.names for word in name.words))) - days,
        days=days,
        facts=facts,
        figures=figures,
        owned=bool(_ROLE.search(text)),
        decided=decided,
        chosen=decided and bool(_CHOICE.search(text)),
        changes=bool(_CHANGE.search(text)),
        old=old,
        moved_to=next((d.date for d in facts.dates if _MOVED.search(facts.text[: d.start])), None),
        assertion=None if key else assertion_of(_undated(facts), (), " ".join(sorted(title))),
        open=bool(_OPEN.search(text)),
        minutes=not title.isdisjoint(_meetings()),
    )


def _is_weekday(word: str) -> bool:
    return word.lower().removesuffix("s") in WEEKDAYS


def _undated(facts: Facts) -> str:
    """Return a statement without the date from which it holds, and without "now" and the like."""
    text = facts.text
    for found in reversed(facts.dates):
        before = _SINCE.sub("", text[: found.start])
        if before != text[: found.start]:
            text = before + (text[found.end :] if before else text[found.end :].lstrip(", "))
    text = _PERMITS.sub("can", _NOT_TOLD.sub("", text)).strip()
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=1)
def _aside() -> frozenset[str]:
    return frozenset(terms(_ASIDE_WORDS))


@lru_cache(maxsize=1)
def _prices() -> frozenset[str]:
    return frozenset(terms(_PRICES))


@lru_cache(maxsize=1)
def _months() -> frozenset[str]:
    return frozenset(terms(" ".join(MONTHS)))


@lru_cache(maxsize=1)
def _meetings() -> frozenset[str]:
    return frozenset(terms("minutes meeting standup sync retrospective protocol agenda"))
