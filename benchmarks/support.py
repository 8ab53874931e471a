"""Support of a claim by its references, for the engine's `support` operation."""

from __future__ import annotations

from typing import Any

from fathom.evidence.complaints import complaints_of
from fathom.evidence.passages import SourcePassage
from fathom.evidence.stored import StoredText
from fathom.evidence.support import support as covered
from fathom.models import Source
from fathom.text.sentences import Sentence

GRAVE = 0.07  # what a number, date or name that is nowhere in the references costs


def support(request: dict[str, Any]) -> dict[str, float]:
    """Return how far the references support the claim, from 0 to 1, as Fathom's check of a report sees it."""
    claim, references = request["claim"], request["references"]
    whole = "\n".join(references)
    source = Source(source_id="S0", url="", title="", kind="web")
    passage = SourcePassage(StoredText(source, whole), 0, len(whole), Sentence(whole, 0, len(whole)))
    cost = GRAVE if any(complaint.grave for complaint in complaints_of(claim, [passage])) else 0.0
    return {"score": max(0.0, covered(claim, references) - cost)}
