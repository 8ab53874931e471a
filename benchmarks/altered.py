"""Sentences of real articles, as they stand and with one thing changed: part of `benchmarks.verdicts`.

An article is the source of its own sentences: as it stands a sentence is supported, and with another number or name, a
negation more or less or the opposite direction it is not.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from fathom.models import SourceText
from fathom.text.sentences import split_sentences

Altered = dict[str, list[tuple[SourceText, str]]]
"""Sentences with the article they come from, by what was changed in them."""

SENTENCES = 40  # of an article
_DIGIT = re.compile(r"(?<![\d.,:-])[2-9](?!\d*[:/-])")
_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]{3,}(?= [a-z])")
_VERB = re.compile(r"\b(?:is|was|were|are|has|had|will|can)\b(?! (?:not|no)\b)")
_TURNED = {
    "more": "less",
    "less": "more",
    "higher": "lower",
    "lower": "higher",
    "increased": "decreased",
    "largest": "smallest",
    "before": "after",
    "after": "before",
}
_DIRECTION = re.compile(rf"\b(?:{'|'.join(_TURNED)})\b")


def _renamed(names: list[str], chance: random.Random, sentence: str) -> str:
    return _NAME.sub(lambda _: chance.choice(names), sentence, count=1)


def altered(path: Path) -> Altered:
    """Return sentences of the articles in a JSONL file with `title` and `content` sections of sentences."""
    chance = random.Random(0)
    articles = [_article(number, json.loads(line)) for number, line in enumerate(path.open(encoding="utf-8"))]
    names = [name for article in articles for name in _NAME.findall(article.text)]
    found: Altered = {}
    for article in articles:
        foreign = [name for name in names if name not in article.text]
        changes: dict[str, Callable[[str], str]] = {
            "as it stands": lambda sentence: sentence,
            "another number": lambda s: _DIGIT.sub(lambda m: str(int(m[0]) - 1), s, count=1),
            "another name": partial(_renamed, foreign, chance),
            "negation added": lambda s: s if " not " in s else _VERB.sub(lambda m: f"{m[0]} not", s, count=1),
            "negation dropped": lambda s: s.replace(" not ", " ", 1) if " not only " not in s else s,
            "direction turned": lambda s: _DIRECTION.sub(lambda m: _TURNED[m[0]], s, count=1),
        }
        for sentence in _sentences(article.text, chance):
            for name, change in changes.items():
                if (said := change(sentence)) != sentence or name == "as it stands":
                    found.setdefault(name, []).append((article, said))
    return found


def _article(number: int, line: dict[str, object]) -> SourceText:
    sections = line["content"]
    assert isinstance(sections, list)
    paragraphs = (" ".join(f"{s['sentence'].rstrip('.')}." for s in part["section_content"]) for part in sections)
    return SourceText(
        source_id=f"S{number:06}",
        url=f"https://articles.example/{number}",
        title=str(line["title"]).replace("_", " "),
        kind="web",
        text="\n\n".join(paragraphs),
    )


def _sentences(text: str, chance: random.Random) -> Sequence[str]:
    usable = [s.text for s in split_sentences(text) if s.kind == "prose" and 50 < len(s.text) < 250]
    return chance.sample(usable, min(SENTENCES, len(usable)))
