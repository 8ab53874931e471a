"""The sentences of a report that claim something: found with the sources they cite, taken out, or marked.

A citation belongs to the sentence it ends. A sentence without one takes those of the next sentence of its paragraph or
list item that has some: a citation at the end of a paragraph is for all that was said since the one before it. A row
of a table has only its own. Code in a fence has those that end the line of text before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from fathom.facts.extraction import facts_of, plain
from fathom.models import ReportSection
from fathom.text.blocks import Kind
from fathom.text.citations import cited_ids, without_citations
from fathom.text.fences import fenced_code, split_markdown
from fathom.text.sentences import Sentence
from fathom.text.terms import query_terms

FEW_TERMS = 2  # a sentence with no more words of topic, without a number, name or citation, only connects others
MARK = "*(not supported by the sources)*"
_OF_THE_REPORT = re.compile(
    r"(?:this|the (?:following|next|previous)|these|below|above|in (?:this|the following))\b"
    r"(?:\W+\w+){0,3}?\W+(?:section|report|chapter|table|list|overview|summary|answer|points?|findings)\b",
    re.IGNORECASE,
)
_CELL_RULE = re.compile(r"[\s|:-]+\Z")
_NUMBERED = re.compile(r"\s*\[(?:S[0-9a-f]{6,64}|\d{1,4})\]")
_CITED_LAST = re.compile(r"\[S[0-9a-f]{6,64}\][.:]?\Z")
_ENUMERATOR = re.compile(r"\(?\d{1,3}\\?[.)]")
_ITEM_MARKER = re.compile(r"(?:[-*+]|\d+[.)])[ \t]+")


class Statement(NamedTuple):
    """A sentence that claims something, without its citations, and the position of its section, from 0."""

    section: int
    sentence: str
    source_ids: tuple[str, ...]
    kind: Kind


def claims_of(sections: Sequence[ReportSection]) -> list[Statement]:
    """Return the claims of a report's sections in reading order; headings and code that cites nothing do not count.

    Neither is a sentence that has no citation of its own and only connects others: it ends in a colon or question
    mark, is about the report itself ("This section ..."), or has at most two words of topic and no number or name.
    The line that leads to cited code and ends in a colon is no claim either.
    """
    return [Statement(n, *found) for n, section in enumerate(sections) for found in _statements(section.markdown)]


def claim_text(sentence: Sentence) -> str:
    """Return what a sentence of a report claims, on one line without citations: the cells of a row, lines of code."""
    text = sentence.text.replace(MARK, "")
    if sentence.kind == "code":
        return " ".join((fenced_code(text) or text).split())
    if sentence.kind != "table":
        return without_citations(sentence._replace(text=text).clean).strip()
    cells = (cell.strip() for cell in re.split(r"(?<!\\)[|\t]", without_citations(text)))
    return " | ".join(cell for cell in cells if cell)


def lead_ins(parts: Sequence[Sentence]) -> dict[int, int]:
    """Return, of the sentences of a section, which one leads to each fenced code that it cites sources for."""
    found: dict[int, int] = {}
    last = -1  # sentence of text
    for number, part in enumerate(parts):
        if part.kind == "code" and fenced_code(part.text):
            lead = parts[last].text.replace(MARK, "").rstrip() if last >= 0 else ""
            if _CITED_LAST.search(lead):
                found[number] = last
        elif part.text != MARK:
            last = number
    return found


def without(markdown: str, claims: Collection[str]) -> str:
    """Return a section without some claims, given as `claims_of` returns them, and without what that leaves empty.

    Code goes with the line that cites its source: none is left that cites nothing.
    """
    parts = split_markdown(markdown)
    leads = lead_ins(parts)
    gone = _making(parts, leads, claims)
    gone |= {code for code, lead in leads.items() if lead in gone}
    for number in range(len(parts) - 1, -1, -1):  # from the end, so that what follows is known
        if number not in gone and _is_left_empty(parts, number, gone):
            gone.add(number)
    return _joined(markdown, parts, [number for number in range(len(parts)) if number not in gone])


def marked(markdown: str, claims: Collection[str]) -> str:
    """Return a section with a mark behind the sentences that make some claims, for code behind the line before it."""
    parts = split_markdown(markdown)
    leads = lead_ins(parts)
    doubtful = {leads.get(number, number) for number in _making(parts, leads, claims)}
    for sentence in (parts[number] for number in sorted(doubtful, reverse=True)):
        if MARK in sentence.text or markdown[sentence.end :].startswith(f" {MARK}"):
            continue
        end = sentence.start + len(sentence.text.rstrip(" |")) if sentence.kind == "table" else sentence.end
        markdown = f"{markdown[:end]} {MARK}{markdown[end:]}"
    return markdown


def comparable(text: str) -> str:
    """Return a text without citations, layout and escapes, so that a sentence is found again in the rendered report."""
    return " ".join(re.sub(r"[|\s]+", " ", _NUMBERED.sub("", text.replace("\\", ""))).split())


def _statements(markdown: str) -> Iterator[tuple[str, tuple[str, ...], Kind]]:
    parts = split_markdown(markdown)
    leads = lead_ins(parts)
    leading = set(leads.values())
    for number, part in enumerate(parts):
        own, text = cited_ids(part.text), claim_text(part)
        if part.kind == "code":
            if number in leads:
                yield text, tuple(cited_ids(parts[leads[number]].text)), part.kind
        elif part.kind == "rule" or (part.kind == "heading" and not _is_loose(part)):
            continue
        elif part.kind == "table":
            if text and not is_head(parts, number):
                yield text, tuple(own), part.kind
        elif re.search(r"\w", text) and not _ENUMERATOR.fullmatch(text) and (own or not _connects(text)):
            if number in leading and text.endswith((":", "：")):
                continue
            later = (cited_ids(s.text) for s in parts[number + 1 :] if s.paragraph == part.paragraph)
            yield text, tuple(own or next(filter(None, later), ())), part.kind


def _making(parts: Sequence[Sentence], leads: Collection[int], claims: Collection[str]) -> set[int]:
    """Return which parts make some claims."""
    may = (
        n for n, part in enumerate(parts) if n in leads or part.kind in ("prose", "item", "table") or _is_loose(part)
    )
    return {n for n in may if claim_text(parts[n]) in claims}


def _is_loose(part: Sentence) -> bool:
    """Whether a line only looks like a heading, being short and without a full stop: it cites a source."""
    return (
        part.kind == "heading"
        and not part.text.startswith("#")
        and "\n" not in part.text
        and bool(cited_ids(part.text))
    )


def is_head(sentences: Sequence[Sentence], number: int) -> bool:
    """Whether a row names the columns, or is the rule below those."""
    following = sentences[number + 1].text if number + 1 < len(sentences) else ""
    return any(_CELL_RULE.match(text) and "-" in text for text in (sentences[number].text, following))


def _connects(sentence: str) -> bool:
    if sentence.endswith((":", "?", "：", "？")) or _OF_THE_REPORT.match(plain(sentence)):
        return True
    facts = facts_of(sentence)
    telling = facts.numbers or facts.dates or any(not name.opening for name in facts.names)
    return len(query_terms(sentence)) <= FEW_TERMS and not telling


def _is_left_empty(parts: Sequence[Sentence], number: int, gone: Collection[int]) -> bool:
    """Whether a part has lost all that it is there for; `gone` are the parts that go, all those behind it decided."""
    part = parts[number]
    following = next((n for n in range(number + 1, len(parts)) if n not in gone), len(parts))
    if level := _level(part):  # a heading with nothing below it, not even a heading of a lower level
        return following == len(parts) or 0 < _level(parts[following]) <= level
    if number + 1 == len(parts) or following == number + 1:
        return False
    if "|" in part.text and is_head(parts, number):  # of a table without rows
        return following == len(parts) or parts[following].kind != "table" or is_head(parts, following)
    led_to = parts[number + 1].kind
    if led_to in ("item", "table", "code") and led_to != part.kind and claim_text(part).endswith((":", "：")):
        return following == len(parts) or parts[following].kind != led_to
    return False


def _joined(markdown: str, parts: Sequence[Sentence], kept: Sequence[int]) -> str:
    """Return the parts that are kept, with the space that was between them, or the most that there was on the way."""
    texts: list[str] = []
    for before, number in pairwise([-1, *kept]):
        part = parts[number]
        if before >= 0:
            texts.append(_space([markdown[parts[n].end : parts[n + 1].start] for n in range(before, number)]))
        if part.kind == "item" and (before < 0 or parts[before].paragraph != part.paragraph):
            first = next(other for other in parts if other.paragraph == part.paragraph)
            if first is not part and (marker := _ITEM_MARKER.match(first.text)):
                texts.append(marker[0])
        texts.append(part.text)
    return "".join(texts).strip()


def _space(spaces: Sequence[str]) -> str:
    lines = max(space.count("\n") for space in spaces)
    if not lines:
        return max(spaces, key=len)
    return "\n" * lines + next(space.rpartition("\n")[2] for space in reversed(spaces) if "\n" in space)


def _level(sentence: Sentence) -> int:
    return len(sentence.text) - len(sentence.text.lstrip("#")) if sentence.kind == "heading" else 0
