"""Quotations with their citations, in their own form: behind each sentence, row and item, and above code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fathom.text.sentences import split_sentences

_ENDS_WITH_COLON = re.compile(r"[:：?]\s*\Z")


def merged(excerpts: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return excerpts, each with the number of its source, those together that begin with the same header or lead-in."""
    heads: dict[tuple[int, str], int] = {}
    result: list[tuple[int, str]] = []
    for number, markdown in excerpts:
        head, rest = _head(markdown)
        place = heads.get((number, head)) if head else None
        if place is None:
            if head:
                heads[number, head] = len(result)
            result.append((number, markdown))
        else:
            result[place] = (number, f"{result[place][1]}{rest}")
    return result


def _head(markdown: str) -> tuple[str, str]:
    """Split an excerpt into what others may share, a table's header or a list's lead-in, and the rest."""
    lines = markdown.split("\n")
    for at, line in enumerate(lines):
        if re.fullmatch(r"\|(?:-+\|)+", line):
            return "\n".join(lines[: at + 1]), "\n" + "\n".join(lines[at + 1 :])
        if line.startswith(("- ", "1. ")) and at > 1 and _ENDS_WITH_COLON.search(lines[at - 2]):
            return "\n".join(lines[: at - 1]), "\n" + "\n".join(lines[at:])
    return "", markdown


def cited(markdown: str, sources: Sequence[str]) -> str:
    """Return an excerpt with the citation of its sources wherever the form of its parts needs one."""
    citation = "".join(f"[{source}]" for source in sources)
    return "\n\n".join(_cited_blocks(_split(markdown), citation))


def _split(markdown: str) -> Iterator[str]:
    """Yield the blocks of an excerpt; blank lines inside a fence are part of it."""
    block: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        marker = re.match(r"`{3,}", line)
        if not line.strip() and not fence:
            if block:
                yield "\n".join(block)
            block = []
            continue
        block.append(line)
        if marker and (not fence or line.strip() == fence):
            fence = "" if fence else marker[0]
    if block:
        yield "\n".join(block)


def _cited_blocks(blocks: Iterable[str], citation: str) -> Iterator[str]:
    waiting = ""  # a line that introduces what follows
    for block in blocks:
        if block.startswith("```"):
            yield f"{waiting or 'As it stands there:'} {citation}"
            yield block
            waiting = ""
            continue
        if waiting:
            yield waiting
            waiting = ""
        if block.startswith("|"):
            yield _cited_table(block, citation)
        elif re.match(r"\s*(?:-|\d{1,3}\.) ", block):
            yield "\n".join(f"{line} {citation}" for line in block.split("\n"))
        elif _ENDS_WITH_COLON.search(block):
            waiting = block
        else:
            yield " ".join(f"{_closed(sentence.clean)} {citation}" for sentence in split_sentences(block))
    if waiting:
        yield f"{waiting} {citation}"


def _cited_table(table: str, citation: str) -> str:
    header, rule, *rows = table.split("\n")
    return "\n".join([header, rule, *(f"{row.rstrip().removesuffix('|').rstrip()} {citation} |" for row in rows)])


def _closed(sentence: str) -> str:
    return f"{sentence}." if sentence[-1].isalnum() else sentence
