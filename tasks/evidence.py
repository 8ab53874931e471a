"""What the report rests on: the stored texts, and how good their sources are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import date

from fathom.contradictions.finding import Said, find_contradictions
from fathom.evidence.stored import StoredText, stored_texts
from fathom.extractive.statements import on_question
from fathom.models import Contradiction, Note, Plan, ToolResult
from fathom.run.engine import Engine
from fathom.sources.corroboration import standing_of
from fathom.sources.scoring import score_sources
from fathom.tasks.results import Scored


async def read_texts(engine: Engine, results: Iterable[ToolResult]) -> list[StoredText]:
    """Return every stored text of the run, with its place in the artifacts."""
    found = [result for result in results if result.artifact_file]
    names = list(dict.fromkeys(result.artifact_file for result in found))
    files = await asyncio.gather(*map(engine.run_folder.load, names))
    return await asyncio.to_thread(stored_texts, dict(zip(names, files, strict=True)), found)


async def score_retrieved(
    plan: Plan, notes: list[Note], found: list[Contradiction], _texts: Sequence[StoredText], _engine: Engine
) -> Scored:
    """Score every source, and find contradictions besides those that the critic found."""
    titles = {text.source.source_id: text.source.title for text in _texts}
    said = [
        Said(quoted, source_ids, titles.get(source_ids[0], "") if source_ids else "")
        for note in notes
        for quoted, source_ids in note.quotations()
    ]
    # The critic was asked for those that matter; these were found by their words alone.
    disagreeing = [one for one in find_contradictions(said) if not _is_change(one, _texts)]
    new = on_question(_engine.start.question, notes, disagreeing)
    contradictions = [*found, *(one for one in new if one not in found)]
    qualities = await asyncio.to_thread(
        score_sources,
        [text.source_text() for text in _texts],
        said,
        query=_engine.start.question,
        steps=plan.steps,
        contradictions=contradictions,
        today=date.fromisoformat(_engine.start.today),
        rules=_engine.settings.sources,
    )
    return Scored(qualities=qualities, contradictions=contradictions)


def _is_change(found: Contradiction, texts: Sequence[StoredText]) -> bool:
    """Whether each source of one side says that it changes each of the other, or is changed by it: they agree then."""
    standings = {text.source.source_id: standing_of(text.source, text.text) for text in reversed(texts)}
    known = [source_id for source_id in found.source_ids if source_id in standings]
    other = [source_id for source_id in known if source_id in found.other_source_ids]
    one = [source_id for source_id in known if source_id not in other]
    return bool(one and other) and all(standings[a].related(standings[b]) for a in one for b in other)
