"""What a passage needs beside it to be understood: a row its table's header, code its fences, both their lead-in."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.text.blocks import Kind
from fathom.text.sentences import Sentence

_FENCES = ("```", "~~~")
_LONGEST = 1_000  # characters of a header or lead-in that is shown again


def companions_of(sentences: Sequence[Sentence]) -> list[tuple[int, ...]]:
    """Return, for each sentence of a text, the numbers of those that must be shown with it.

    For a row of a table: the row that names the columns, and the rule below it. For an item of a list: the sentence
    before the list, if it ends in a colon. For a line of code: the sentence before the code, and its fences.
    """
    found: list[tuple[int, ...]] = []
    needed: tuple[int, ...] = ()
    fence: tuple[str, int] | None = None  # the open one, and its number
    before: Kind | None = None
    for number, sentence in enumerate(sentences):
        kind = sentence.kind
        if kind == "table":
            ruled = number + 1 < len(sentences) and sentences[number + 1].kind == "rule"
            needed = (number, number + 1) if ruled else needed if before in ("table", "rule") else ()
        elif kind in ("item", "code") and before != kind and not fence:
            needed = _lead_in(sentences, number) if before in ("prose", "item") else ()
        elif kind not in ("item", "code", "rule"):
            needed = ()
        if kind == "code" and sentence.text.startswith(_FENCES):
            if fence is None:
                fence = (sentence.text[:3], number)
                needed = (*needed, number)
            elif sentence.text.startswith(fence[0]):
                found[fence[1]] = (*found[fence[1]], number)
                for inside in range(fence[1] + 1, number):
                    found[inside] = (*found[inside], number)
                fence = None
        found.append(tuple(n for n in needed if n != number and len(sentences[n].text) <= _LONGEST))
        before = kind
    return found


def _lead_in(sentences: Sequence[Sentence], number: int) -> tuple[int, ...]:
    """Return the number of the sentence before a block, if it leads to it."""
    lead = sentences[number - 1]
    leads = lead.kind in ("prose", "item") and (sentences[number].kind == "code" or lead.text.endswith((":", "：")))
    return (number - 1,) if leads else ()
