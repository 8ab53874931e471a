"""Saying a list in little room: whole, without what explains its items, with its items cut, or as many as fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from fathom.extractive.questions import is_verb
from fathom.text.terms import STOP_WORDS

LIMITING = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|unless|except|excluding|only|if|but|however|although|though|until|"
    r"may|might|could|would|should|allegedly|reportedly|claim\w*|den(?:y|ied|ies)|false\w*|wrong\w*|disput\w*|"
    r"instead|rather|unlike|than|cannot|planned|proposed|expected|rumou?r\w*)\b|n['’]t\b",
    re.I,
)
"""Words of a limit, a condition or a doubt: what is cut off may not hold one."""
_DETAIL = re.compile(r"\s[–—-]\s|:\s|\s\(|[.;]\s")
_PHRASE_WORDS = """
of for with from by in on at to as about into over under between which that who whose where when and
"""
_PHRASE = frozenset(_PHRASE_WORDS.split())


class ListForm(NamedTuple):
    """A list as one line."""

    text: str
    is_cut: bool = False  # some of its items are cut
    lacks_items: bool = False


def list_forms(items: Sequence[str], chars: int) -> Iterator[ListForm]:
    """Yield the fullest form of a list that fits into so many characters; unless all items fit, the first ones, too."""
    plain = [item.rstrip(".;,") for item in items]
    names = [_name(item).rstrip(".;,") for item in items]
    if len({re.sub(r"\d+", "", name) for name in names}) < len(names):  # "Step 1" names nothing
        names = plain
    whole = next((text for text in map("; ".join, (plain, names)) if len(text) <= chars), "")
    if whole:
        yield ListForm(whole)
        return
    cut = next((text for text in map("; ".join, _cut(names, chars)) if len(text) <= chars), "")
    if cut:
        yield ListForm(cut, is_cut=True)
    for form in (plain, names):
        some = accumulate(form, lambda text, item: f"{text}; {item}")
        first = [*takewhile(lambda text: len(text) <= chars - len("; …"), some)]
        if first:
            yield ListForm(f"{first[-1]}; …", lacks_items=True)
            return


def _cut(names: Sequence[str], chars: int) -> Iterator[list[str]]:
    """Yield items cut before a phrase or verb, each marked, the longest first; none that loses a number or a limit."""
    if len("a; ") * len(names) > chars:
        return
    forms = [[name, *_beginnings(name, chars)] for name in names]
    for most in range(chars, 0, -1):
        cut = [next((text for text in form if len(text) <= most), form[-1]) for form in forms]
        if len(set(cut)) == len(cut):
            yield cut


def _beginnings(name: str, chars: int) -> Iterator[str]:
    """Yield the beginnings of an item that may fit, marked, the longest first, without losing a number or a limit."""
    words = name.split()
    lengths = [*accumulate(len(word) + 1 for word in words)]
    for n in range(len(words) - 1, 0, -1):
        if words[n][:1].isdigit() or LIMITING.search(words[n]):
            return
        if lengths[n - 1] > chars:
            continue
        text = " ".join(words[:n])
        verb = words[n].islower() and is_verb(words[n], words[n - 1])
        if (verb or words[n] in _PHRASE or text.endswith(",")) and words[n - 1].lower() not in STOP_WORDS:
            yield f"{text.rstrip(',')} …"


def _name(item: str) -> str:
    """Return an item without what explains it."""
    detail = next((m for m in _DETAIL.finditer(item) if item[: m.start()].count("`") % 2 == 0), None)
    return item[: detail.start()] if detail else item
