"""How good sources are, where they contradict each other, and what a reader should be warned of.

Pure functions of their arguments: no network, no clock, no model. `docs/sources.md` states every rule and weight.
"""

from fathom.quality.contradictions import Said, find_contradictions
from fathom.quality.dates import parse_date, published_on
from fathom.quality.domains import Rating, rate
from fathom.quality.recency import Topic, topic_of
from fathom.quality.rules import SourceRules, admitted, good_enough, reading_bonus, usable
from fathom.quality.scoring import score_sources
from fathom.quality.warnings import report_warnings

__all__ = [
    "Rating",
    "Said",
    "SourceRules",
    "Topic",
    "admitted",
    "find_contradictions",
    "good_enough",
    "parse_date",
    "published_on",
    "rate",
    "reading_bonus",
    "report_warnings",
    "score_sources",
    "topic_of",
    "usable",
]
