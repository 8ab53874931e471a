"""Where a text has a claim word for word: the words in order, whatever stands between them.

Case, white space, punctuation and Markdown's marks do not count; signs that change what is said, such as `%`, `-5` or
`!=`, do. The time is linear in the text but for the few places at which it begins as the claim does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TRIES = 100  # places in a text that begin as the claim does
HEAD = 8  # words of the claim by which a place is found
ENOUGH = 5  # words that are said together by no chance; fewer must be all of a clause, cell or line

_SIGN = r"[%$€£<>=]|!(?==)|(?<!\w)-(?=\d)"
_TOKEN = re.compile(rf"\w+(?:[.,]\d+)*|{_SIGN}")
_BETWEEN = rf"(?:(?!{_SIGN})\W)*+"
_MARKS = " \t*_`~#>+•\\\"'“”„‘’«»([{)]}-"
_ENDS = frozenset("\n.!?…;:,|–—。！？；：，、")


def places(claim: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a text has a claim, as character offsets; for a claim of a few words, where nothing else is said.

    What the claim has before its first and behind its last word, such as a bracket, belongs to a place that has it too.
    """
    lowered = _lowered(text)
    words = list(_TOKEN.finditer(_lowered(claim)))
    tokens = [word[0] for word in words]
    if not words or any(token not in lowered for token in sorted(set(tokens), key=len)[-HEAD:]):
        return
    for tried, found in enumerate(re.finditer(f"(?={_head(tokens)})", lowered)):  # places may overlap
        if tried == TRIES:
            return
        end = _end(tokens, lowered, found.start())
        if end is None:
            continue
        start = _before(claim[: words[0].start()], text, found.start())
        end = _behind(claim[words[-1].end() :], text, end)
        if len(tokens) >= ENOUGH or _is_bounded(text, start, end):
            yield start, end


def _lowered(text: str) -> str:
    """Return a text in lowercase with all characters in their places: only this one becomes two."""
    return text.replace("İ", "I").lower()


def _head(tokens: list[str]) -> str:
    first = tokens[0]
    left = r"(?<!\w)(?<!\d[.,])" if first[0].isalnum() or first[0] == "_" else ""
    return left + _BETWEEN.join(_whole(token) for token in tokens[:HEAD])


def _whole(token: str) -> str:
    return re.escape(token) + (r"(?!\w|(?<=\d)[.,]\d)" if token[-1].isalnum() or token[-1] == "_" else "")


def _end(tokens: list[str], lowered: str, start: int) -> int | None:
    """Return where some words that a text has from a place on end; None if it has others."""
    end = start
    found = _TOKEN.finditer(lowered, start)
    for token in tokens:
        word = next(found, None)
        if word is None or word[0] != token:
            return None
        end = word.end()
    return end


def _before(lead: str, text: str, start: int) -> int:
    for character in reversed("".join(lead.split())):
        place = start - 1
        while place > 0 and text[place].isspace():
            place -= 1
        if place < 0 or text[place] != character:
            break
        start = place
    return start


def _behind(tail: str, text: str, end: int) -> int:
    for character in "".join(tail.split()):
        place = end
        while place < len(text) - 1 and text[place].isspace():
            place += 1
        if text[place : place + 1] != character:
            break
        end = place + 1
    return end


def _is_bounded(text: str, start: int, end: int) -> bool:
    """Whether a sentence, clause, cell or line begins and ends with a place."""
    before = text[max(0, start - 40) : start].rstrip(_MARKS)
    after = text[end : end + 40].lstrip(_MARKS)
    return (start == 0 or not before or before[-1] in _ENDS) and (
        not after or after[0] in _ENDS or text[end - 1] in _ENDS - {","}
    )
