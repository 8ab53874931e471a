"""A report as PDF, laid out by Typst from the same structure as the Word document.

Typst comes as one wheel without libraries of the system; at 34 MB it is an extra.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from fathom.errors import InvalidInput
from fathom.models import Report
from fathom.report.document import document_of

_LAYOUT = Path(__file__).parent / "templates" / "report.typ"


def render_pdf(report: Report) -> bytes:
    """Return a report as the bytes of a tagged PDF file, with links and bookmarks; nothing is fetched.

    Raises:
        InvalidInput: typst is not installed, or cannot lay the report out.
    """
    try:
        import typst
    except ImportError:
        raise InvalidInput(
            "PDF needs typst, which is not installed.",
            next_step=f"install it where fathom runs: {sys.executable} -m pip install typst",
        ) from None
    data = json.dumps(asdict(document_of(report)), ensure_ascii=False)
    try:
        return bytes(typst.compile(_LAYOUT.read_bytes(), sys_inputs={"report": data}))
    except typst.TypstError as error:
        raise InvalidInput(f"The report cannot be laid out as PDF: {error}.", next_step="export it as docx") from error
