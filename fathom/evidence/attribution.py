"""Citations that a model left out, where the check of claims finds the source that says it.

Small models forget to cite. A sentence that stands in a source is as true with a citation that was found as with one
that was written; the check of claims then judges it like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from fathom.evidence.claims import claim_text
from fathom.evidence.stored import StoredText
from fathom.evidence.verify import check_claims
from fathom.models import Report, ReportSection
from fathom.text.citations import cited_ids
from fathom.text.fences import split_markdown


def attributed(markdown: str, texts: Sequence[StoredText]) -> str:
    """Return a section in which sentences without a citation cite the source that says the same, if there is one."""
    section = ReportSection(heading="", markdown=markdown)
    draft = Report(title="", query="", extractive=False, sections=[section], sources=[])
    found = {
        claim.sentence: claim.corroborating[0].source_id
        for claim in check_claims(draft, texts, {})
        if claim.corroborating and not claim.source_ids
    }
    for part in reversed(split_markdown(markdown)):
        source_id = found.get(claim_text(part)) if part.kind in ("prose", "item") else None
        if source_id and not cited_ids(part.text):
            markdown = f"{markdown[: part.end]} [{source_id}]{markdown[part.end :]}"
    return markdown
