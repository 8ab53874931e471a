"""The weights of the text engine, one set for each shape of input.

Ten short passages on different things, one long page and a transcript need different readers: with passages the
question is which of them to read at all, on a page where on it to look, in a meeting who says anything of substance.
The values come from coordinate search on public data; what each one buys is in `docs/extractive.md`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fathom.retrieval.ranking import B

SHORT_CHARS = 2_500  # texts shorter than this on average are read as passages
FEW = 3  # texts at least, to be read as passages
TURNS = 0.6  # share of lines that open with a speaker's name
TURN_LINES = 10
SAMPLE_LINES = 400
_TURN = re.compile(r"[A-Z][\w .'’-]{0,30}: ")


class Weights(NamedTuple):
    """How much each sign of relevance counts. A sentence's own score, at most 1, is the unit."""

    own: float  # the terms the sentence itself holds
    passage: float  # its passage
    kind: float = 0.0  # a date where "when" is asked, a name where "who" is
    window: tuple[float, float] = (0.0, 0.0)  # the sentences one and two places away
    lead: float = 0.0  # the beginning of a passage
    first: float = 0.0  # its very first sentence
    early: float = 0.0  # the beginning of a page: abstracts and preambles say what it is about
    link: float = 0.0  # a sentence that names another relevant passage
    density: float = 0.0  # how many words of substance it has
    decay: float = 1.0  # of a term's worth with each chosen sentence that holds it
    passage_decay: float = 1.0  # of a passage's worth with each sentence chosen from it
    brevity: float = B  # the `b` of BM25 for sentences: how far one without other words is better
    length: float = 0.0  # exponent: how far long sentences must be better
    named: float = 0.0  # passages: its title occurs in the question
    bridge: float = 0.0  # passages: its title occurs in a relevant passage
    entity: float = 0.0  # passages: it shares a rare name with a relevant one
    whole: bool = False  # passages are whole texts, not parts of them


PASSAGES = Weights(
    own=0.6,
    passage=2.0,
    kind=0.4,
    lead=0.3,
    first=0.3,
    link=0.8,
    decay=0.4,
    passage_decay=0.6,
    length=0.25,
    named=1.0,
    bridge=0.8,
    entity=0.7,
    whole=True,
)
PAGES = Weights(own=1.3, passage=0.65, kind=0.25, window=(0.1, 0.25), early=0.6, brevity=0.3)
TALK = Weights(own=1.6, passage=0.3, window=(0.0, 0.15), density=5.0, decay=0.85)


def weights_for(texts: Sequence[str]) -> Weights:
    """Return the weights for the shape of some texts."""
    if len(texts) >= FEW and sum(map(len, texts)) <= SHORT_CHARS * len(texts):
        return PASSAGES
    lines = [line for text in texts for line in text[:100_000].split("\n", SAMPLE_LINES)[:SAMPLE_LINES] if line.strip()]
    turns = sum(bool(_TURN.match(line)) for line in lines)
    return TALK if len(lines) >= TURN_LINES and turns >= TURNS * len(lines) else PAGES
