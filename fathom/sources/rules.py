"""The user's rules for sources: which pages are read, which of them first, and which notes are used."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.config.groups import SourceRules
from fathom.models import Note, Source
from fathom.models.evidence import SourceQuality
from fathom.sources.domains import rate
from fathom.sources.hosts import matching
from fathom.text.citations import cited_ids
from fathom.text.urls import host_of

PREFERRED = 0.25  # added to a page's relevance, which is 0 to 1
AUTHORITY = 0.3  # weight of the distance between a domain's authority and the middle: less than preference


def admitted(source: Source, rules: SourceRules) -> bool:
    """Whether a source may be read, by its address; the user's own documents always may."""
    if source.kind == "document":
        return True
    host = host_of(source.url)
    return not matching(host, rules.block) and (not rules.allow or bool(matching(host, rules.allow)))


def reading_bonus(source: Source, rules: SourceRules) -> float:
    """Return what to add to a result's relevance, 0 to 1: authority decides between about equally relevant pages."""
    preferred = bool(matching(host_of(source.url), rules.prefer))
    return AUTHORITY * (rate(source, rules.scores).authority - 0.5) + PREFERRED * preferred


def usable(notes: Sequence[Note], qualities: Sequence[SourceQuality], rules: SourceRules) -> list[Note]:
    """Return the notes without the bullets from sources that are not good enough."""
    poor = {quality.source_id for quality in qualities if not good_enough(quality, rules)}
    if not poor:
        return list(notes)
    kept: list[Note] = []
    for note in notes:
        bullets = [b for b in note.extraction if not (ids := cited_ids(b)) or not poor.issuperset(ids)]
        ids = [source_id for source_id in note.source_ids if source_id not in poor]
        if ids and bullets:
            kept.append(note.model_copy(update={"extraction": bullets, "source_ids": ids}))
    return kept


def good_enough(quality: SourceQuality, rules: SourceRules) -> bool:
    """Whether a scored source may be used."""
    return quality.type == "document" or quality.overall >= rules.min_quality
