"""Reading a Jupyter notebook: its cells in order, the code between fences, each with the text that it printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fathom.tools.documents.html import fragment_blocks
from fathom.tools.documents.markdown import read_markdown
from fathom.tools.documents.normal import Outline, ReadDocument, fence

LONGEST_LEAD = 100  # characters of a statement


def read_notebook(text: str) -> ReadDocument:
    """Return a notebook; one of another shape raises various errors."""
    notebook = json.loads(text)
    language = notebook["metadata"].get("language_info", {}).get("name", "")
    outline = Outline()
    for cell in notebook["cells"]:
        source = _joined(cell["source"])
        if cell["cell_type"] == "markdown":
            for section in read_markdown(source)[1]:
                outline.heading(section.heading, section.level)
                outline.add(section.text)
        else:
            outline.add(fence(source, language if cell["cell_type"] == "code" else ""))
            shown = [block for output in cell.get("outputs", []) for block in _output(output)]
            outline.add(*([_lead(source), *shown] if any(shown) else []))
    return ReadDocument("", outline.sections())


def _lead(source: str) -> str:
    """Return the line above an output; with the cell's last statement, it says what the output is of."""
    last = source.rstrip().rpartition("\n")[2].strip()
    return f"Output of `{last}`:" if last and "`" not in last and len(last) <= LONGEST_LEAD else "Output:"


def _output(output: Any) -> Iterator[str]:
    """Yield what a cell printed or returned, tables as such; pictures are left out."""
    data = output.get("data", {})
    html = _joined(data.get("text/html", ""))
    if "<table" in html:
        yield from fragment_blocks(html)
    elif output["output_type"] == "error":
        yield fence(f"{output['ename']}: {output['evalue']}")
    else:
        yield fence(_joined(output.get("text") or data.get("text/plain", "")))


def _joined(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
