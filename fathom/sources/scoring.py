"""The scores of each source: credibility, relevance, recency, and corroboration by others.

The weights of credibility and the decay of recency come from the Research engine (9.2 and 9.3); it names no
weights for the overall score, so these are Fathom's own. `docs/sources.md` lists every rule. Publication dates are read
as vendors and pages write them. `today` is always given: a replay of a run reads "3 days ago" as the run did. How dates
are written in full is in `fathom.facts.dates`; here are the forms of vendors and bylines, and one day for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from fathom.config.groups import SourceRules
from fathom.contradictions.finding import Said
from fathom.facts.dates import Date, find_dates
from fathom.models import Contradiction, PlanStep, Source, SourceText, described
from fathom.models.evidence import Confidence, SourceFlag, SourceQuality
from fathom.retrieval.asked import asks_for_newest, compares, read_asked
from fathom.retrieval.identifiers import identifiers_of
from fathom.retrieval.ranking import Passage
from fathom.retrieval.relevance import RankedExcerpts
from fathom.sources.corroboration import corroborate, site, standing_of
from fathom.sources.domains import DOCUMENT_AUTHORITY, UNKNOWN_AUTHORITY, Rating, rate
from fathom.sources.signals import Signals, author_authority, content_score, read_signals
from fathom.text.boilerplate import asks_of_orders, orders
from fathom.text.parsed import parse
from fathom.text.terms import query_terms, terms
from fathom.text.urls import canonical_url

_YEAR_MONTH = re.compile(r"(?<!\d)(?P<year>\d{4})[-/](?P<month>\d{1,2})(?!\d)")
_AGO = re.compile(r"(?<!\d)(?P<count>\d{1,5}|\ban?) (?P<unit>minute|hour|day|week|month|year)s? ago", re.IGNORECASE)
_DAYS = {"minute": 0.0, "hour": 0.0, "day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_STAMP = re.compile(r"\d{10}(?:\d{3})?(?:\.\d+)?\Z")
_IN_ADDRESS = re.compile(r"/((?:19|20)\d\d[/-](?:0?[1-9]|1[0-2])(?:[/-](?:0?[1-9]|[12]\d|3[01]))?)(?=[/?#-]|\Z)")
_BYLINE = re.compile(
    r"\b(?:published|posted|updated|last (?:modified|updated|edited|reviewed)|date)\b(?: on)?:? {0,2}"
    r"(?P<date>[\w ,./-]{4,30})",
    re.IGNORECASE,
)
_BYLINE_CHARS = 2_500
_OPENING_CHARS, _OPENING_LINES, _MARKUP = 600, 4, " \t#*_()"
LONGEST = 100  # characters in which a date is searched


def parse_date(text: str, today: date) -> date | None:
    """Read a date as vendors and pages write it; None if there is none, or if it is in the future.

    Knows ISO 8601, RFC 2822, seconds since 1970, "5 March 2024", "March 5, 2024", "05.03.2024", "3 days ago". In
    "3/5/2024" the month comes first unless it cannot. A month is read as its middle, a year as its 1 July.
    """
    text = text[:LONGEST]
    found = _relative(text, today) or _stamp(text) or _rfc(text) or _written(text, today)
    return found if found and found <= today + timedelta(days=1) else None  # a time zone may be ahead of ours


class Published(NamedTuple):
    """When a source was published: a day, and what it states, which may be a month or year with this as its middle."""

    day: date
    written: str

    @property
    def stated(self) -> str:
        """The day as YYYY-MM-DD, or the month as YYYY-MM or year as YYYY if nothing closer is stated."""
        whole, dates = self.day.isoformat(), [found.date for found in find_dates(self.written)]
        if self.written and whole.startswith(self.written):
            return self.written
        return whole if not dates or any(found.day for found in dates) else whole[: 7 if dates[0].month else 4]


def published_on(source: Source, text: str, today: date) -> Published | None:
    """Return the publication date of a source: from the vendor, else the page's address, else its first lines."""
    dated = _IN_ADDRESS.search(source.url) if source.kind == "web" else None
    bylines = [byline["date"] for byline in _BYLINE.finditer(text[:_BYLINE_CHARS])]
    if dated and not parse_date(source.published, today):
        bylines = [dated[1]]
    written = filter(None, (source.published, *bylines, *_date_lines(text)))
    return next((Published(day, each) for each in written if (day := parse_date(each, today))), None)


def _date_lines(text: str) -> Iterator[str]:
    """Yield the dates at the end of short lines that a text begins with: "Port office, 3 March 2025" is no sentence."""
    lines = (line.strip(_MARKUP) for line in text[:_OPENING_CHARS].splitlines())
    for line in islice(filter(None, lines), _OPENING_LINES):
        dates = find_dates(line) if len(line) <= LONGEST and ":" not in line else []
        if dates and dates[-1].date.month and line.endswith(dates[-1].text):
            yield dates[-1].text


def _relative(text: str, today: date) -> date | None:
    if re.fullmatch(r"\s*(?:today|yesterday|just now)\s*", text, re.IGNORECASE):
        return today - timedelta(days="yesterday" in text.lower())
    if not (ago := _AGO.search(text)):
        return None
    count = int(ago["count"]) if ago["count"].isdigit() else 1
    days = count * _DAYS[ago["unit"].lower()]
    return today - timedelta(days=round(days)) if days < 100_000 else None


def _stamp(text: str) -> date | None:
    if not (stamp := _STAMP.match(text.strip())):
        return None
    seconds = float(stamp[0]) / (1000 if len(stamp[0].split(".")[0]) == 13 else 1)
    return datetime.fromtimestamp(seconds, UTC).date()


def _rfc(text: str) -> date | None:
    if "," not in text or ":" not in text:  # it would take "5 March 24" for the time of day
        return None
    try:
        return parsedate_to_datetime(text.strip()).date()
    except ValueError:
        return None


def _written(text: str, today: date) -> date | None:
    dates = [found.date for found in find_dates(text) if found.date.year]
    months = (Date(int(m["year"]), int(m["month"])) for m in _YEAR_MONTH.finditer(text))
    days = [d for d in dates if d.day]
    given = [*days, *(d._replace(day=0) for d in days), *(d for d in dates if d.month and not d.day), *months, *dates]
    return next((made for found in given if (made := _made(found, today))), None)


def _made(found: Date, today: date) -> date | None:
    """Return a day for a date; of a month or year that is not over, today at the latest."""
    try:
        made = date(found.year, found.month or 7, found.day or (15 if found.month else 1))
    except ValueError:
        return None
    rough = not found.day and (made.year, made.month if found.month else 0) <= (today.year, today.month)
    return min(made, today) if rough else made


UNKNOWN = 0.5  # the score of a source without a date
OUTDATED_DAYS = 730  # decay of a topic that changes quickly
QUICK = 0.008  # decay from which a topic does


class Topic(StrEnum):
    """The topic of a question, by how quickly the answers change."""

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
"""Decay a day, from the Research engine (9.3); the score halves every ln 2 / decay days."""

# Words that show the topic of a question. If two topics have equally many, the first of them is taken.
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
    """Return exp(-decay x age in days), 0.5 without a date (Research engine, 9.3)."""
    return math.exp(-DECAY[topic] * max(0, (today - published).days)) if published else UNKNOWN


def is_outdated(published: date | None, topic: Topic, today: date) -> bool:
    """Whether a source is older than two years and its topic changes quickly."""
    return published is not None and DECAY[topic] >= QUICK and (today - published).days > OUTDATED_DAYS


DOMAIN, AUTHOR, CONTENT, VALIDATION = 0.4, 0.2, 0.2, 0.2  # parts of credibility
OVERALL: Mapping[str, float] = {"credibility": 0.4, "relevance": 0.3, "recency": 0.15, "corroboration": 0.15}
VALIDATION_START = 0.5  # the document gives steps without a start: from here all steps up together make 1
CREDIBLE = 0.45
"""Least credibility of a source that can verify or contradict a claim, and below which a reader is warned of it.

An unknown domain needs two of these: a named author, references, figures with a source; a forum one of the last two; a
hoax site stays below with all three. `docs/sources.md` has the measured scale.
"""
AUTHORITATIVE = 0.7  # authority from which another source's link or contradiction counts
NEWER_DAYS = 365
ORDERING = 0.3  # share of its score that is left to a page that gives orders to language models
SAME_SUBJECT, LEAST_SUBJECT = 0.6, 2  # share and number of a title's words that a title on the same subject has
STEP = 0.5  # weight of the words of a step's title beside the question's
_OF_SERIES = frozenset({"status", "replaces", "obsoletes", "supersedes", "updates", "amends"})
"""Header fields, in lower case, of a document that holds until another one takes its place."""
FIRST_HAND = frozenset({"academic", "government", "standards", "documentation"})  # of what they say of themselves
INSTITUTIONS = frozenset({"academic", "government", "standards"})
# Neither brackets nor other than ASCII: a page could else write an address that `urlsplit` refuses to read.
_LINK = re.compile(r"https?://[^\s<>\"'`()\[\]\x80-\U0010ffff]+")


class RatedSource(NamedTuple):
    """A source with all that its scores rest on but contradictions, which may be found later."""

    source_id: str
    site: str
    rating: Rating
    signals: Signals
    cited: bool  # by credible sources of other sites
    scores: Mapping[str, float]  # but credibility
    flags: list[SourceFlag]
    published: str


def rate_sources(
    texts: Iterable[SourceText],
    facts: Sequence[Said],
    *,
    query: str,
    steps: Sequence[PlanStep] = (),
    today: date,
    rules: SourceRules | None = None,
) -> list[RatedSource]:
    """Rate every source once, in the order of first appearance; parts of one document are read as one.

    `facts` are the notes' quotations; relevance is measured against `query` and `steps`.
    """
    merged = _merged(texts)
    ratings = {text.source_id: rate(text, rules.scores if rules else None) for text in merged}
    cited, agreement = _cited(merged, ratings), corroborate(merged, facts)
    topic, about_orders = topic_of(query), asks_of_orders(query_terms(query))
    dated = {text.source_id: published_on(text, text.text, today) for text in merged}
    rated: list[RatedSource] = []
    for text, relevance in zip(merged, _relevance(query, steps, merged), strict=True):
        rating, signals, shared = ratings[text.source_id], read_signals(text), agreement.get(text.source_id, [])
        if text.reference and text.reference.authors:
            signals = signals._replace(byline=True)
        found = dated[text.source_id]
        published = found.day if found else None
        old = is_outdated(published, topic, today)
        holds = _is_standard(text, rating) and not _is_changed(text, merged)
        scores = {
            "relevance": relevance,
            "recency": UNKNOWN if holds else recency(published, topic, today),
            "corroboration": sum(1 - 0.5**others for others in shared) / (len(shared) or 1),
        }
        flags: dict[SourceFlag, bool] = {
            "outdated": old and not holds and (asks_for_newest(query) or _has_newer(text, merged, dated)),
            "single_source": bool(shared) and not any(shared),
            "low_authority": rating.authority <= UNKNOWN_AUTHORITY,
            "paywalled": signals.paywalled and text.kind == "web",
            "possibly_machine_made": signals.machine_made and text.kind == "web",
            "potential_bias": signals.interested or _is_on_itself(text, rating, query),
            "gives_orders": text.kind == "web" and not about_orders and bool(orders(parse(text.text))),
        }
        raised = [flag for flag, is_raised in flags.items() if is_raised]
        is_cited, day = text.source_id in cited, found.stated if found else ""
        rated.append(RatedSource(text.source_id, site(text), rating, signals, is_cited, scores, raised, day))
    return rated


def score_sources(rated: Sequence[RatedSource], contradictions: Sequence[Contradiction] = ()) -> list[SourceQuality]:
    """Score rated sources, some of which others contradict."""
    contradicted = _contradicted(rated, contradictions)
    qualities: list[SourceQuality] = []
    for one in rated:
        credibility = _credibility(one.rating, one.signals, one.cited, one.source_id in contradicted)
        scores = {"credibility": credibility, **one.scores}
        overall = sum(OVERALL[name] * score for name, score in scores.items())
        qualities.append(
            SourceQuality(
                source_id=one.source_id,
                type=one.rating.type,
                **{name: round(score, 3) for name, score in scores.items()},
                overall=round(overall * (ORDERING if "gives_orders" in one.flags else 1), 3),
                published=one.published,
                flags=one.flags,
                peer_reviewed=one.rating.reviewed,
            )
        )
    return qualities


def trust(quality: SourceQuality) -> float:
    """Return how far a source can be trusted, 0 to 1: its overall score without the relevance to the question.

    A page that gives orders to language models can be right, but somebody wants to deceive by it, or has broken into
    it: however recent or repeated it is, others come first.
    """
    parts = {name: weight for name, weight in OVERALL.items() if name != "relevance"}
    share = sum(weight * float(getattr(quality, name)) for name, weight in parts.items()) / sum(parts.values())
    return share * (ORDERING if "gives_orders" in quality.flags else 1)


def trusted(qualities: Iterable[SourceQuality], contradictions: Iterable[Contradiction]) -> dict[str, float]:
    """Return the trust in each source, 0 to 1, by id: in one that is corrected or withdrawn, no more than in what
    does so."""
    found = {quality.source_id: trust(quality) for quality in qualities}
    for refuted in (refuted for one in contradictions if one.settled for refuted in one.refuted):
        most = min((found[i] for i in refuted.by_source_ids if i in found), default=1.0)
        found |= {i: min(found[i], most) for i in refuted.source_ids if i in found}
    return found


def confidence(
    source_ids: Iterable[str], sources: Mapping[str, Source], qualities: Mapping[str, SourceQuality]
) -> Confidence:
    """Return how sure is what rests on some sources.

    It is high if credible sources of two parties say it, or one whose credibility is `AUTHORITATIVE`; low if none is
    credible.
    """
    credible = [i for i in source_ids if i in qualities and qualities[i].credibility >= CREDIBLE]
    parties = {site(sources[i]) for i in credible}
    if len(parties) > 1 or any(qualities[i].credibility >= AUTHORITATIVE for i in credible):
        return "high"
    return "medium" if parties else "low"


def _is_standard(text: SourceText, rating: Rating) -> bool:
    """Whether a source is a standard or another numbered document of a series, such as RFC 9110 or PEP 572.

    The age of such a document says little: it holds, word for word, until another one replaces or amends it, however
    long ago it was published. A page without this promise describes a state that may have passed since.
    """
    if rating.type == "standards":
        return True
    numbered = any(one.sure for one in identifiers_of(text.title))
    return numbered and (rating.type == "documentation" or not _OF_SERIES.isdisjoint(map(str.casefold, text.fields)))


def _is_on_itself(text: SourceText, rating: Rating, query: str) -> bool:
    """Whether a question weighs something against others, and this is a page of who makes or sells it."""
    if text.kind != "web" or rating.type in FIRST_HAND or not compares(query):
        return False
    name = terms(site(text).split(".")[0])
    return bool(name) and set(name) <= set(terms(query))


def _is_changed(text: SourceText, texts: Sequence[SourceText]) -> bool:
    """Whether it says that another document changes it, or another document that was read says so."""
    own = standing_of(text, text.text)
    others = (each for each in texts if each.source_id != text.source_id)
    return bool(own.earlier_than) or any(standing_of(each, each.text).changes(own) for each in others)


def _has_newer(text: SourceText, texts: Sequence[SourceText], dated: Mapping[str, Published | None]) -> bool:
    """Whether a source on the same subject, by its title, is newer by a year or more."""
    own, found = _subject(text), dated[text.source_id]
    return any(
        found
        and (other := dated[each.source_id])
        and (other.day - found.day).days >= NEWER_DAYS
        and len(own & _subject(each)) >= max(LEAST_SUBJECT, SAME_SUBJECT * len(own))
        for each in texts
    )


def _subject(text: SourceText) -> set[str]:
    return {term for term in terms(text.title) if not term.isdigit()}


def _merged(texts: Iterable[SourceText]) -> list[SourceText]:
    """Return each source once, with everything that was read of it."""
    parts: dict[str, list[SourceText]] = {}
    for text in texts:
        parts.setdefault(text.source_id, []).append(text)
    merged: list[SourceText] = []
    for own in parts.values():
        whole = [text for text in own if text.full] or own[:1]
        read = "\n\n".join(dict.fromkeys(text.text for text in whole))
        published = next((text.published for text in own if text.published), "")
        known = {"text": read, "published": published, "reference": described(own)}
        merged.append(whole[0].model_copy(update=known))
    return merged


def _credibility(rating: Rating, signals: Signals, cited: bool, contradicted: bool) -> float:
    """Return the weighted sum of domain, author, content and external validation (Research engine, 9.2)."""
    steps = 0.3 * cited + 0.2 * rating.checks_facts - 0.3 * contradicted
    external = VALIDATION_START + steps
    if rating.type == "document":  # the user chose it: neither its content nor its author counts
        return DOCUMENT_AUTHORITY + VALIDATION * (external - VALIDATION_START)
    author = author_authority(signals, rating.type in INSTITUTIONS)
    return DOMAIN * rating.authority + AUTHOR * author + CONTENT * content_score(signals) + VALIDATION * external


def _cited(texts: Sequence[SourceText], ratings: Mapping[str, Rating]) -> set[str]:
    """Return the sources to which credible sources of other sites link."""
    credible = [text for text in texts if ratings[text.source_id].authority >= AUTHORITATIVE]
    linked = [(site(text), {canonical_url(link) for link in _LINK.findall(text.text)}) for text in credible]
    found = ((text.source_id, site(text), canonical_url(text.url)) for text in texts)
    return {one for one, own, url in found if any(url in links for citing, links in linked if citing != own)}


def _contradicted(rated: Sequence[RatedSource], contradictions: Sequence[Contradiction]) -> set[str]:
    """Return the sources that credible sources of other sites contradict."""
    trusted = {one.source_id: one.site for one in rated if one.rating.authority >= AUTHORITATIVE}
    own = {one.source_id: one.site for one in rated}
    return {
        one
        for sides in (found.source_ids for found in contradictions)
        for one in own.keys() & set(sides)
        if any(trusted.get(other, own[one]) != own[one] for other in sides)
    }


def _relevance(query: str, steps: Sequence[PlanStep], texts: Sequence[SourceText]) -> list[float]:
    """Return how relevant each text is to question and steps beside the others, 0 to 1."""
    asked = read_asked(query, beside={term: STEP for step in steps for term in query_terms(step.title)})
    return RankedExcerpts([Passage(text.text, text.title) for text in texts]).of_texts(asked)
