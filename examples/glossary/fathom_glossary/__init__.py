"""A tool for Fathom: looks terms up in the CSV file that `GLOSSARY_FILE` names, with the columns term and meaning."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Self

from fathom.errors import ToolRejected
from fathom.models import SourceText, ToolOutput
from fathom.text.urls import source_ids
from fathom.tools.base import RunContext, Tool


class GlossaryTool(Tool):
    """Returns every term whose words occur in the query."""

    name = "glossary"
    description = "Looks up what our own terms mean. Input: a query that names them."
    variables = ("GLOSSARY_FILE",)
    setup = "GLOSSARY_FILE to a CSV file with the columns term and meaning"
    searches = True

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Make one for a run; the file is read when the tool is called."""
        return cls(run.variable("GLOSSARY_FILE"))

    async def run(self, tool_input: str) -> ToolOutput:
        """Return one text for each term, cited as a document."""
        try:
            with self._file.open(newline="", encoding="utf-8") as file:
                meanings = {row["term"]: row["meaning"] for row in csv.DictReader(file)}
        except (OSError, UnicodeError, KeyError) as error:
            how = "it needs the columns term and meaning, in UTF-8"
            raise ToolRejected(f"{self._file.name} cannot be read: {type(error).__name__}.", next_step=how) from error
        asked = set(tool_input.casefold().split())
        found = [_source(term, meanings[term]) for term in meanings if asked & set(term.casefold().split())]
        return ToolOutput(results=found)


def _source(term: str, meaning: str) -> SourceText:
    url = f"glossary:{term}"
    source_id = source_ids([url])[url]
    return SourceText(source_id=source_id, url=url, title=term, kind="document", text=f"{term}: {meaning}")
