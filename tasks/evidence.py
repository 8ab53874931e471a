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
from fathom.sources.scoring import score_sources
from tasks.results import Scored


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
    new = on_question(_engine.start.question, notes, find_contradictions(said))
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
