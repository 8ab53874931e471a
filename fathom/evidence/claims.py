"""The claims of a report: finding them with the sources that they cite, removing them, marking them.

A citation belongs to the sentence it ends. A sentence without citations takes the citations of the next sentence in its
paragraph or list item that has some, because a citation at the end of a paragraph may cover everything before it. It
may also cover its own sentence alone, so the sentence without citations is checked against what its paragraph, list and
section cite, too. A sentence that goes on after its last citation, such as "The order says 30 % [S1a2b3c], so 20 % is
left", is also checked against what its paragraph or list cites. A table row has only its own citations. Fenced code has
the citations that end the line of text before it. A sentence still without citations is checked against the citations
of the others in its paragraph, list or table; in a paragraph of its own it cites nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from textwrap import shorten
from typing import NamedTuple

from fathom.facts.extraction import facts_of, plain
from fathom.models import Corroboration, ReportSection, Verdict
from fathom.text.blocks import Kind
from fathom.text.citations import cited_ids, in_last_cell, without_citations
from fathom.text.sentences import Sentence, fenced_code, fences, split_markdown
from fathom.text.tables import BAR, filled_cells
from fathom.text.terms import query_terms
from fathom.text.wording import Wording

CONTEXT_CHARS = 160  # characters of each part of a claim's context
BEFORE_CHARS = 640  # of the sentences before one that cites nothing: it may follow from them
BESIDE = 12  # sources that a sentence without a citation may rest on
FEW_TERMS = 2  # a sentence with no more words of topic, without a number, name or citation, only connects others
MARKS: dict[Verdict | Corroboration, str] = {
    Verdict.contradicted: "*(the source cited says otherwise)*",
    Verdict.not_stated: "*(not found in the sources cited)*",
    Corroboration.contradicted: "*(another source says otherwise)*",
    Corroboration.unverified: "*(no source found for it)*",
    Corroboration.single_source: "(no second source says so)",
}
"""The mark behind a sentence that was objected to and not corrected, that another source contradicts, that cites
nothing and that no source states, or that lacks the second source it must have.

The last one has no emphasis, because it also stands behind quotations, which are plain text.
"""
_OF_THE_REPORT = re.compile(
    r"(?:this|the (?:following|next|previous)|these|below|above|in (?:this|the following))\b"
    r"(?:\W+\w+){0,3}?\W+(?:section|report|chapter|table|list|overview|summary|answer|points?|findings)\b",
    re.IGNORECASE,
)
_CELL_RULE = re.compile(r"[\s|:-]+\Z")
_NUMBERED = re.compile(r"(?<!\s)\s*\[(?:S[0-9a-f]{6,64}|\d{1,4})\]")
_CITED_LAST = re.compile(r"\[S[0-9a-f]{6,64}\][.:]?\Z")
_CLAUSE_CITED = re.compile(r"(?s)(.+)\[S[0-9a-f][0-9a-fS;, ]{5,}\]\s*[,;:–—]((?:(?!\[S[0-9a-f]).)+)\Z")
_ENUMERATOR = re.compile(r"\(?\d{1,3}\\?[.)]")
_REFERS = re.compile(
    r"\b(?:its|their|this|that|same|former|latter|successor|predecessor|dessen|deren|diese\w*)\b", re.IGNORECASE
)
_RUN_IN = re.compile(r"(\*\*|__)[^*_]+\1[.:]?")  # a heading at the beginning of a paragraph or item
_ITEM_MARKER = re.compile(r"(?:[-*+]|\d+[.)])[ \t]+")


class ClaimSentence(NamedTuple):
    """A sentence that claims something, without its citations, and the position of its section, from 0."""

    section: int
    sentence: str
    source_ids: tuple[str, ...]  # its citations, or else the next citations in its paragraph or item
    kind: Kind
    context: str = ""  # heading above it, with the sentence before it, its table's head or the line before code
    beside: tuple[str, ...] = ()  # for a sentence that is cited only in part: ids cited around it, the nearest first
    head: str = ""  # of a row: the names of the columns in which it has a cell
    before: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The part directly before it in its paragraph, list or table, if there is one, with the ids that it cites."""
    behind: tuple[tuple[str, tuple[str, ...]], ...] = ()  # the same of the part behind it
    block: int = 0  # the first part of its paragraph, list or table

    @property
    def neighbours(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The parts directly before and behind it."""
        return self.before + self.behind

    @property
    def checked_against(self) -> tuple[str, ...]:
        """The ids of the sources; at least one must say it."""
        return self.source_ids + self.beside


def claims_of(sections: Sequence[ReportSection]) -> list[ClaimSentence]:
    """Return the claims of a report's sections in reading order; headings and code that cites nothing do not count.

    A sentence that has no citation of its own and only connects others does not count either: it ends in a colon or
    question mark, is about the report itself ("This section ..."), or has at most two words of topic and no number or
    name. The line that leads to cited code is a claim if it says something besides that.
    """
    return [found for n, section in enumerate(sections) for found in _statements(n, section)]


def claim_text(sentence: Sentence) -> str:
    """Return the text of a claim on one line, without citations: a sentence, the cells of a row, or lines of code."""
    text = _unmarked(sentence.text)
    if sentence.kind == "code":
        return " ".join((fenced_code(text) or text).split())
    if sentence.kind != "table":
        return without_citations(sentence._replace(text=text).clean).strip()
    cells = (cell.strip() for cell in re.split(r"(?<!\\)[|\t]", without_citations(text)))
    return " | ".join(cell for cell in cells if cell)


def lead_ins(parts: Sequence[Sentence]) -> dict[int, int]:
    """Return, for each fenced code of a section, the sentence that leads to it and cites its sources."""
    found: dict[int, int] = {}
    last = -1  # sentence of text
    for number, part in enumerate(parts):
        if part.kind == "code" and fenced_code(part.text):
            lead = _unmarked(parts[last].text).rstrip() if last >= 0 else ""
            if _CITED_LAST.search(lead):
                found[number] = last
        elif _unmarked(part.text):
            last = number
    return found


def without(markdown: str, claims: Collection[str]) -> str:
    """Return a section without some claims, given as `claims_of` returns them, and without parts that this leaves
    empty.

    Code is removed with the line that cites its source, so that no code is left without a citation.
    """
    parts = split_markdown(markdown)
    leads = lead_ins(parts)
    gone = _making(parts, leads, claims)
    gone |= {code for code, lead in leads.items() if lead in gone}
    for number in range(len(parts) - 1, -1, -1):  # from the end, so that what follows is known
        if number not in gone and _is_left_empty(parts, number, gone):
            gone.add(number)
    return _joined(markdown, parts, [number for number in range(len(parts)) if number not in gone])


def marked(markdown: str, claims: Mapping[str, Verdict | Corroboration]) -> str:
    """Return a section with `MARKS` behind the sentences of some claims; for code, behind the line before it."""
    parts = split_markdown(markdown)
    leads = lead_ins(parts)
    doubtful = {
        leads.get(number, number): claims[claim_text(parts[number])] for number in _making(parts, leads, claims)
    }
    for number, verdict in sorted(doubtful.items(), reverse=True):
        sentence = parts[number]
        if _unmarked(sentence.text) != sentence.text or is_mark(markdown[sentence.end :]):
            continue
        said = in_last_cell(sentence.text, f" {MARKS[verdict]}") if sentence.kind == "table" else ""
        markdown = (
            f"{markdown[: sentence.start]}{said or behind(sentence.text, MARKS[verdict])}{markdown[sentence.end :]}"
        )
    return markdown


def with_marks_in(words: Wording, markdown: str) -> str:
    """Return a section with its marks in the language of a report; they are stored in English."""
    for mark in MARKS.values():
        markdown = markdown.replace(mark, words(mark))
    return markdown


def behind(text: str, mark: str) -> str:
    """Return a text with a mark or citations behind it: in the last cell of a row, below a fence that ends the text."""
    last = text.rstrip()
    if last.endswith(("```", "~~~")):
        return f"{last}\n{mark}"
    parts = split_markdown(last)
    if parts and parts[-1].kind == "table":
        return f"{last[: parts[-1].start]}{in_last_cell(parts[-1].text, f' {mark}')}"
    return f"{last} {mark}"


def as_written(markdown: str, claims: Collection[str]) -> dict[str, str]:
    """Return some claims of a section in its own Markdown, with their citations and without marks."""
    parts = split_markdown(markdown)
    return {claim_text(parts[n]): _unmarked(parts[n].text).strip() for n in _making(parts, lead_ins(parts), claims)}


def is_mark(text: str) -> bool:
    """Whether a text begins with one of `MARKS`, perhaps after a space."""
    return text.removeprefix(" ").startswith(tuple(MARKS.values()))


def with_replacements(markdown: str, replacements: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return a section with some claims reworded, and the claims that could not be replaced.

    A replacement keeps the item's marker, and the citations of the sentence if it has none of its own. The replacement
    of a row must have as many cells, and the replacement of code must be a fence.
    """
    parts = split_markdown(markdown)
    leads = lead_ins(parts)
    left = set(replacements)
    for number in sorted(_making(parts, leads, replacements), reverse=True):
        part = parts[number]
        claim = claim_text(part)
        if said := _in_place_of(part, replacements[claim].strip()):
            markdown = f"{markdown[: part.start]}{said}{markdown[part.end :]}"
            left.discard(claim)
    return markdown, [claim for claim in replacements if claim in left]


def _in_place_of(part: Sentence, said: str) -> str:
    """Return a text as a replacement of a sentence; empty if it cannot replace it."""
    if part.kind == "code":
        fence = next(fences(without_citations(said)), None)
        return without_citations(said)[fence.start : fence.end] if fence and fence.closed else ""
    if "\n" in said or not said or said.startswith(("#", "```")):
        return ""
    if part.kind == "table":
        row, before = (f"| {in_last_cell(one, '').strip('| ')} |" for one in (said, part.text))
        if len(BAR.findall(row)) != len(BAR.findall(before)):
            return ""
        own = " ".join(f"[{source_id}]" for source_id in cited_ids(part.text))
        return row if cited_ids(row) or not own else in_last_cell(row, f" {own}")
    marker = _ITEM_MARKER.match(part.text)
    said = said[found.end() :] if (found := _ITEM_MARKER.match(said)) else said
    own = "".join(f"[{source_id}]" for source_id in cited_ids(part.text))
    return f"{marker[0] if marker else ''}{said}{f' {own}' if own and not cited_ids(said) else ''}"


def comparable(text: str) -> str:
    """Return a text without citations, layout and escapes, so that a sentence is found again in the rendered report."""
    return " ".join(re.sub(r"[|\s]+", " ", _NUMBERED.sub("", text.replace("\\", ""))).split())


def _statements(section: int, of: ReportSection) -> Iterator[ClaimSentence]:
    parts = split_markdown(of.markdown)
    leads = lead_ins(parts)
    context = _contexts(of.heading, parts, leads)
    blocks: list[int] = []
    for number, part in enumerate(parts):
        goes_on = number and _goes_with(parts[number - 1], part, of.markdown)
        blocks.append(blocks[-1] if goes_on else number)

    def statement(number: int, own: Sequence[str], later: Sequence[str] = ()) -> ClaimSentence:
        said = claim_text(parts[number])
        beside = () if own and not _goes_on(parts[number]) else _beside(parts, number, of.markdown, own, later)
        head = _names(parts, number) if parts[number].kind == "table" else ""
        before, behind = _neighbours(parts, number, of.markdown)
        around = context(number, cites_nothing=not (own or later or beside))
        told = (around, beside, head, before, behind, blocks[number])
        return ClaimSentence(section, said, tuple(own or later), parts[number].kind, *told)

    for number, part in enumerate(parts):
        own, text = cited_ids(part.text), claim_text(part)
        if part.kind == "code":
            if number in leads:
                yield statement(number, cited_ids(parts[leads[number]].text))
        elif part.kind == "rule" or (part.kind == "heading" and not _is_loose(part)):
            continue
        elif part.kind == "table":
            if text and not is_head(parts, number):
                yield statement(number, own)
        elif re.search(r"\w", text) and not _ENUMERATOR.fullmatch(text) and (own or not _connects(text)):
            if number in leads.values() and _only_leads(text):
                continue
            later = (cited_ids(s.text) for s in parts[number + 1 :] if s.paragraph == part.paragraph)
            yield statement(number, own, next(filter(None, later), ()))


def _goes_on(part: Sentence) -> bool:
    """Whether a sentence says more after its last citation, which ends a clause of its own.

    In "The manual [S1a2b3c] says 30 %" the citation is of the whole sentence.
    """
    cited = _CLAUSE_CITED.match(part.text) if part.kind in ("prose", "item") else None
    return all(len(query_terms(without_citations(said))) > FEW_TERMS for said in cited.groups()) if cited else False


def _beside(
    parts: Sequence[Sentence], number: int, markdown: str, own: Sequence[str], later: Sequence[str]
) -> tuple[str, ...]:
    """Return up to `BESIDE` sources on which a part may rest, besides its `own` citations, or else the ones `later`.

    They are the sources cited in its paragraph, list or table: first before it, the nearest first. If it has no
    citations, and a later sentence of its paragraph has some, the sources of the whole section follow.
    """
    first = last = number
    while first and _goes_with(parts[first - 1], parts[first], markdown):
        first -= 1
    while last + 1 < len(parts) and _goes_with(parts[last], parts[last + 1], markdown):
        last += 1
    order = [*reversed(parts[first:number]), *parts[number + 1 : last + 1]]
    around = [source_id for part in order for source_id in cited_ids(part.text)]
    found = dict.fromkeys([*around, *(cited_ids(markdown) if later and not own else ())])
    return tuple(source_id for source_id in found if source_id not in (own or later))[:BESIDE]


def _neighbours(
    parts: Sequence[Sentence], number: int, markdown: str
) -> Iterator[tuple[tuple[str, tuple[str, ...]], ...]]:
    """Yield the parts directly before and behind a part in its paragraph, list or table, with the ids they cite."""
    before = [parts[number - 1]] if number and _goes_with(parts[number - 1], parts[number], markdown) else []
    behind = [part for part in parts[number + 1 : number + 2] if _goes_with(parts[number], part, markdown)]
    for each in (before, behind):
        yield tuple((claim_text(part), tuple(cited_ids(part.text))) for part in each)


def _goes_with(part: Sentence, following: Sentence, markdown: str) -> bool:
    """Whether two parts next to each other are of one paragraph, list or table."""
    kinds = {part.kind, following.kind}
    if kinds == {"item"} or part.paragraph == following.paragraph:
        return True
    together = kinds <= {"table", "rule"} or kinds <= {"prose", "item"}
    return together and markdown.count("\n", part.end, following.start) == 1


def _contexts(heading: str, parts: Sequence[Sentence], leads: Mapping[int, int]) -> Callable[..., str]:
    """Return the context of each part, to which "it" and "there" may refer.

    A part that cites nothing may follow from those before it, so they are in its context.
    """

    def context(number: int, *, cites_nothing: bool) -> str:
        part, titled = parts[number], heading
        said: list[str] = []
        for other in reversed(parts[:number]):
            if other.kind == "heading" and _level(other):
                titled = other.clean
                break
            told = part.kind not in ("table", "code") and other.kind not in ("rule", "code") and _unmarked(other.text)
            if told and sum(map(len, said)) < (BEFORE_CHARS if cites_nothing else 1):
                said.insert(0, claim_text(other))
        if part.kind == "table":
            said = _above(parts, number)
        elif part.kind == "code" and number in leads:
            said = [claim_text(parts[leads[number]])]
        titles = [titled] if part.kind == "table" or not said else []  # a continuation needs no title
        return "\n".join(shorten(text, CONTEXT_CHARS, placeholder=" …") for text in [*titles, *said] if text)

    return context


def _above(parts: Sequence[Sentence], number: int) -> list[str]:
    """Return the head of a row's table, and the row above the row if the row refers to it."""
    head, above = _head_above(parts, number), parts[number - 1]
    said = [claim_text(head)] if head else []
    if above.kind == "table" and above != head and _REFERS.search(parts[number].text):
        said.append(f"The row above: {claim_text(above)}")
    return said


def _head_above(parts: Sequence[Sentence], number: int) -> Sentence | None:
    """Return the row that names the columns of a row's table."""
    above = takewhile(lambda n: parts[n].kind in ("table", "rule"), range(number - 1, -1, -1))
    head = next((n for n in above if parts[n].kind == "table" and is_head(parts, n)), None)
    return None if head is None else parts[head]


def _names(parts: Sequence[Sentence], number: int) -> str:
    """Return the names of the columns in which a row has a cell; empty if its table has no head."""
    if (head := _head_above(parts, number)) is None:
        return ""
    filled = filled_cells(*(without_citations(_unmarked(row.text)) for row in (head, parts[number])))
    return claim_text(head) if filled is None else " | ".join(name for name, _ in filled if name)


def _only_leads(text: str) -> bool:
    """Whether a line only announces the part that follows: "Install it with:"."""
    return text.endswith((":", "：")) and len(query_terms(text)) <= FEW_TERMS


def _unmarked(text: str) -> str:
    for mark in MARKS.values():
        text = text.replace(mark, "")
    return text


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
    """Whether a row names the columns, or is the rule below such a row."""
    following = sentences[number + 1].text if number + 1 < len(sentences) else ""
    return any(_CELL_RULE.match(text) and "-" in text for text in (sentences[number].text, following))


def _connects(sentence: str) -> bool:
    if (
        _RUN_IN.fullmatch(sentence)
        or sentence.endswith((":", "?", "：", "？"))
        or _OF_THE_REPORT.match(plain(sentence))
    ):
        return True
    facts = facts_of(sentence)
    telling = facts.numbers or facts.dates or any(not name.opening for name in facts.names)
    return len(query_terms(sentence)) <= FEW_TERMS and not telling


def _is_left_empty(parts: Sequence[Sentence], number: int, gone: Collection[int]) -> bool:
    """Whether a part has lost its content; `gone` holds the removed parts, decided for all parts behind it."""
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
    """Return the parts that are kept, with the original space between them; across removed parts, the largest."""
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
