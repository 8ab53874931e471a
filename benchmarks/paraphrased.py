"""Sentences in other words than their source, and sentences that it does not say: part of `benchmarks.verdicts`.

People's summaries of meetings against their meeting are true in other words; against another meeting, often of the same
project, they are not. A sentence against its page without its paragraph is on the topic, and mostly not said there.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fathom.models import SourceText
from fathom.text.sentences import Sentence, split_sentences

Pairs = list[tuple[SourceText, str]]
"""Sentences with what they are held against."""

PARAGRAPHS = 4  # taken of a page
LEAST_CHARS, SHORT, LONG, PARAGRAPH = 40, 50, 250, 200


def summarized(folder: Path) -> dict[str, Pairs]:
    """Return the sentences of `reference` in `questions.jsonl` with their meeting of `docs.jsonl`, and with another."""
    meetings = {doc["doc_id"]: _source(doc["title"], doc["text"]) for doc in _lines(folder / "docs.jsonl")}
    found: dict[str, Pairs] = {"its own meeting": [], "another meeting": []}
    for question in _lines(folder / "questions.jsonl"):
        (own,) = question["doc_ids"]
        others = [name for name in meetings if name != own]
        for sentence in split_sentences(question["reference"]):
            if sentence.kind == "prose" and len(sentence.text) > LEAST_CHARS:
                other = random.Random(sentence.clean).choice(others)
                found["its own meeting"].append((meetings[own], sentence.clean))
                found["another meeting"].append((meetings[other], sentence.clean))
    return found


def unsaid(pages: Path) -> Pairs:
    """Return sentences of the pages in a `docs.jsonl`, each with its page but for the paragraph it stands in."""
    found: Pairs = []
    for page in _lines(pages):
        paragraphs = [part for part in page["text"].split("\n") if len(part) > PARAGRAPH]
        chance = random.Random(1)
        for number in chance.sample(range(len(paragraphs)), min(PARAGRAPHS, len(paragraphs))):
            if usable := _usable(paragraphs[number]):
                sentence, rest = chance.choice(usable), "\n\n".join(paragraphs[:number] + paragraphs[number + 1 :])
                if sentence.text not in rest:
                    found.append((_source(page["title"], rest), sentence.clean))
    return found


def _usable(text: str) -> list[Sentence]:
    return [sentence for sentence in split_sentences(text) if SHORT < len(sentence.text) < LONG]


def _source(title: str, text: str) -> SourceText:
    return SourceText(source_id="S000000", url="", title=title, kind="web", text=text)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())
