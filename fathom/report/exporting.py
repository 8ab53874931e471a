"""The formats that a finished run's report is exported to, each made from files that the run has stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError

from fathom.errors import InvalidInput, StoreError
from fathom.evidence.provenance import PROVENANCE, read
from fathom.models import Report
from fathom.report.bibliography import Reference, bibtex, references, ris
from fathom.report.docx import render_docx
from fathom.report.pdf import render_pdf
from fathom.storage.store import REPORT, REPORT_PAGE, REPORT_TEXT

Files = Mapping[str, bytes]

FORMATS: dict[str, tuple[list[str], Callable[[Files], bytes]]] = {
    "md": ([REPORT_TEXT], lambda files: files[REPORT_TEXT]),
    "html": ([REPORT_PAGE], lambda files: files[REPORT_PAGE]),
    "json": ([REPORT], lambda files: files[REPORT]),
    "docx": ([REPORT], lambda files: render_docx(_report(files))),
    "pdf": ([REPORT], lambda files: render_pdf(_report(files))),
    "bib": ([REPORT, PROVENANCE], lambda files: bibtex(_references(files)).encode()),
    "ris": ([REPORT, PROVENANCE], lambda files: ris(_references(files)).encode()),
}
"""The formats by file extension: which files of the run each is made from, and how."""


def check_formats(wanted: str) -> list[str]:
    """Return the formats of a comma-separated list, each once.

    Raises:
        InvalidInput: a format is not known, or none is named.
    """
    names = list(dict.fromkeys(name.strip().lower().lstrip(".") for name in wanted.split(",") if name.strip()))
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        message = f"The format {unknown[0]!r} does not exist." if unknown else "No format was given."
        raise InvalidInput(message, next_step=f"choose from {', '.join(FORMATS)}")
    return names


def files_for(formats: Sequence[str]) -> list[str]:
    """Return the names of the run's files that the formats are made from."""
    return list(dict.fromkeys(name for wanted in formats for name in FORMATS[wanted][0]))


def export(files: Files, formats: Sequence[str]) -> tuple[dict[str, bytes], dict[str, InvalidInput]]:
    """Return the report by format, and why it cannot be written in others: a library that they need is not installed.

    `files` are those that `files_for` names.

    Raises:
        StoreError: a file of the run is damaged.
    """
    written: dict[str, bytes] = {}
    failed: dict[str, InvalidInput] = {}
    for wanted in formats:
        try:
            written[wanted] = FORMATS[wanted][1](files)
        except InvalidInput as error:
            failed[wanted] = error
    return written, failed


def _report(files: Files) -> Report:
    try:
        return Report.model_validate_json(files[REPORT])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise StoreError(f"{REPORT} is damaged: {place} {first['msg']}.", next_step="restore the file") from error


def _references(files: Files) -> list[Reference]:
    record, _ = read(files[PROVENANCE])
    latest_first = sorted(record.calls, key=lambda call: call.retrieved, reverse=True)
    return references(_report(files), {i: call.retrieved for call in latest_first for i in call.source_ids})
