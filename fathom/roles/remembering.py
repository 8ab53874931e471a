"""Working memory as a role is shown it: notes whole, or a step's brief in their place."""

from __future__ import annotations

from operator import not_
from typing import Any

from pydantic import Field

from fathom.models import Brief, Note, noted, untold
from fathom.roles.base import Answer, Request
from fathom.text.citations import cited_ids


class Remembering(Request):
    """The useful notes, and the briefs that stand for some of them.

    A role is shown the briefs and the notes for which none stands. `notes` has the others too, for who answers without
    a model, and for a role that wants to read them.
    """

    notes: list[Note]
    briefs: list[Brief] = Field([], exclude_if=not_)
    whole: list[str] = Field([], exclude_if=not_)  # files of notes that are shown although a brief stands for them

    @property
    def shown(self) -> list[Note]:
        """The notes that are shown whole."""
        own = untold(self.notes, self.briefs)
        return [note for note in self.notes if note in own or note.artifact_file in self.whole]

    @property
    def known(self) -> set[str]:
        """The ids of the sources that may be cited."""
        return noted(self.notes) | {source_id for brief in self.briefs for source_id in cited_ids(brief.text)}

    def overview_schema(self, answer: type[OverviewAnswer]) -> dict[str, Any]:
        """Return the schema of an answer, in which whole notes may be wanted once, where briefs stand for them."""
        schema = answer.new_schema()
        if self.whole or not self.briefs:
            del schema["properties"]["read_whole"]
        return schema


class OverviewAnswer(Answer):
    """An answer about the research as a whole, by a role that may want some of its notes first."""

    read_whole: list[str] = Field(
        [],
        description="Names of the notes' files that you must read whole before you can answer; usually none. If there "
        "are any, you get them, and are asked again.",
    )
