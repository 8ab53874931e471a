"""How much the age of a source matters: how quickly the answers to a question change."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum

from fathom.text.terms import terms

UNKNOWN = 0.5  # the score of a source without a date
OUTDATED_DAYS = 730  # of a topic that changes quickly
QUICK = 0.008  # decay from which a topic does


class Topic(StrEnum):
    """What a question is about, by how quickly the answers change."""

    current_events = "current_events"
    technology = "technology"
    business = "business"
    science = "science"
    history = "history"
    reference = "reference"


DECAY: Mapping[Topic, float] = {
    Topic.current_events: 0.02,
    Topic.technology: 0.01,
    Topic.business: 0.008,
    Topic.science: 0.002,
    Topic.history: 0.0005,
    Topic.reference: 0.001,
}
"""Decay a day, from the engine design (001, section 9.3); the score halves every ln 2 / decay days."""

# Words that say what a question is about. Where two topics have as many, the first of them is taken.
_TOPICAL = {
    Topic.history: """
        history historical historian century medieval ancient empire emperor dynasty revolution colonial prehistoric
        antiquity renaissance wartime archaeology biography origin
        """,
    Topic.current_events: """
        latest news today currently recent recently breaking election ongoing crisis announced protest sanctions
        ceasefire
        """,
    Topic.technology: """
        technology software hardware app api programming python javascript java rust linux windows android ios cloud
        kubernetes docker database framework library compiler browser algorithm computer gpu chip semiconductor ai llm
        transformer chatbot robot robotics blockchain crypto cybersecurity internet smartphone
        startup server open-source benchmark quantum
        """,
    Topic.business: """
        business market company companies revenue profit sales stock shares price prices economy economic investment
        investor bank finance financial inflation trade industry startup merger acquisition budget cost costs forecast
        gdp tax wage customer brand retail supply
        """,
    Topic.science: """
        science scientific study studies research disease cancer virus vaccine drug therapy treatment patient clinical
        gene genome protein brain species evolution climate ecology physics chemistry biology astronomy planet
        galaxy particle molecule mathematics theorem psychology medicine health diet vitamin symptom
        """,
}
_PAST_YEAR = re.compile(r"\b(?:1[0-8]\d\d|19[0-8]\d)\b|\b\d{3,4} ?BCE?\b")


def topic_of(query: str) -> Topic:
    """Guess a question's topic: the one most of whose words it has; a year before 1990 counts twice for history.

    Without any such word it is `reference`.
    """
    asked = set(terms(query))
    counts = {topic: len(asked.intersection(terms(words))) for topic, words in _TOPICAL.items()}
    counts[Topic.history] += 2 * bool(_PAST_YEAR.search(query))
    best = max(counts, key=lambda topic: counts[topic])
    return best if counts[best] else Topic.reference


def recency(published: date | None, topic: Topic, today: date) -> float:
    """Return exp(-decay x age in days), 0.5 without a date (001, section 9.3)."""
    return math.exp(-DECAY[topic] * max(0, (today - published).days)) if published else UNKNOWN


def is_outdated(published: date | None, topic: Topic, today: date) -> bool:
    """Whether a source is older than two years and its topic changes quickly."""
    return published is not None and DECAY[topic] >= QUICK and (today - published).days > OUTDATED_DAYS
