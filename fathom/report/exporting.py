"""The formats that a finished run's report is exported to: PDF, BibTeX and RIS here, the others beside.

Typst lays out the PDF from the same structure as the Word document. It comes as one wheel without system libraries; at
34 MB it is an extra.

The references of a report are written for reference managers: BibTeX, as biblatex reads it, and RIS. Titles and names
come from the open web: a brace, a `%` or a line end in one must neither break the file nor be typeset as a command.
Neither format has a type for every kind of source. Authors, DOI, journal and licence come from a catalogue; without
one, none are made up.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from fathom.errors import InvalidInput, NotThere, StoreError, UserError
from fathom.evidence.provenance import PROVENANCE, read
from fathom.models import Bibliographic, Report
from fathom.models.evidence import SourceType
from fathom.report.chapters import address_in_words
from fathom.report.document import document_of
from fathom.report.docx import render_docx
from fathom.report.tables import render_csv, render_xlsx
from fathom.sources.corroboration import origin_of
from fathom.storage.store import REPORT, REPORT_PAGE, REPORT_TEXT
from fathom.text.plain import clean_line
from fathom.text.urls import web_address
from fathom.text.wording import ENGLISH

Files = Mapping[str, bytes]

FORMATS: dict[str, tuple[list[str], Callable[[Files], bytes]]] = {
    "md": ([REPORT_TEXT], lambda files: files[REPORT_TEXT]),
    "html": ([REPORT_PAGE], lambda files: files[REPORT_PAGE]),
    "json": ([REPORT], lambda files: files[REPORT]),
    "docx": ([REPORT], lambda files: render_docx(_report(files))),
    "pdf": ([REPORT], lambda files: render_pdf(_report(files))),
    "xlsx": ([REPORT], lambda files: render_xlsx(_report(files))),
    "csv": ([REPORT], lambda files: render_csv(_report(files))),
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
    """Return the names of the run's files from which the formats are made."""
    return list(dict.fromkeys(name for wanted in formats for name in FORMATS[wanted][0]))


def export(files: Files, formats: Sequence[str]) -> tuple[dict[str, bytes], dict[str, UserError]]:
    """Return the report by format, and the reasons why other formats failed: a library is missing, or all tables are.

    `files` holds the files that `files_for` names.

    Raises:
        StoreError: a file of the run is damaged.
    """
    written: dict[str, bytes] = {}
    failed: dict[str, UserError] = {}
    for wanted in formats:
        try:
            written[wanted] = FORMATS[wanted][1](files)
        except (InvalidInput, NotThere) as error:
            failed[wanted] = error
    return written, failed


def _report(files: Files) -> Report:
    try:
        return Report.model_validate_json(files[REPORT])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise StoreError(f"{REPORT} is damaged: {place} {first['msg']}.", next_step="restore the file") from error


def _references(files: Files) -> list[BibliographyEntry]:
    record, _ = read(files[PROVENANCE])
    latest_first = sorted(record.calls, key=lambda call: call.retrieved, reverse=True)
    return references(_report(files), {i: call.retrieved for call in latest_first for i in call.source_ids})


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


_ENTRIES: dict[SourceType, str] = {"academic": "article", "code": "software", "documentation": "manual"}
_RIS_TYPES: dict[SourceType, str] = {
    "academic": "JOUR",
    "blog": "BLOG",
    "code": "COMP",
    "document": "GEN",
    "encyclopedia": "ENCYC",
    "government": "GOVDOC",
    "news": "NEWS",
    "standards": "STAND",
}
_LATEX = str.maketrans(
    {
        # Not `\{`: BibTeX counts braces without looking at the backslash.
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{char: f"\\{char}" for char in "$&%#_"},
    }
)

_NOT_LITERAL = re.compile(r"[{}%\\]")  # in a DOI, which is read literally; its address has it then
_SPLITS = re.compile(r"\band\b|\Aothers\Z|,.*,", re.IGNORECASE)  # BibTeX would see several authors, or parts of one


class BibliographyEntry(NamedTuple):
    """A source in the form of a bibliography; unknown fields are empty."""

    key: str  # the source id, the same in every report
    type: SourceType
    title: str
    address: str
    web: bool  # whether `address` leads to the source; the address of a local document only names it
    year: str  # of publication
    retrieved: str  # the day on which it was first read, ISO 8601
    location: str  # a heading or page inside the document
    known: Bibliographic  # its catalogue entry


def references(report: Report, retrieved: Mapping[str, str]) -> list[BibliographyEntry]:
    """Return the references of a report in the order of their numbers.

    `retrieved` holds the time when each source was first read, ISO 8601, by source id.
    """
    qualities = {quality.source_id: quality for quality in report.qualities}
    found = []
    for source in report.sources:
        address, quality = web_address(source.url), qualities.get(source.source_id)
        found.append(
            BibliographyEntry(
                key=source.source_id,
                type="document" if source.kind == "document" else quality.type if quality else "unknown",
                title=clean_line(source.title) or clean_line(source.url),
                address=address or address_in_words(origin_of(source), ENGLISH),
                web=bool(address),
                year=quality.published[:4] if quality else "",
                retrieved=retrieved.get(source.source_id, "")[:10],
                location=clean_line(source.location),
                known=_clean(source.reference or Bibliographic()),
            )
        )
    return found


def _clean(known: Bibliographic) -> Bibliographic:
    names = [name for name in map(clean_line, known.authors) if name]
    lines = {name: clean_line(value) for name, value in known if isinstance(value, str)}
    return Bibliographic.model_validate({**lines, "authors": names})


def bibtex(listed: Sequence[BibliographyEntry]) -> str:
    """Return references as a `.bib` file in UTF-8, for BibTeX and biblatex."""
    return "\n".join(map(_entry, listed))


def _entry(reference: BibliographyEntry) -> str:
    kind = _ENTRIES.get(reference.type, "online" if reference.web else "misc")
    address, known = reference.address if reference.web else "", reference.known
    fields = {
        "author": " and ".join(map(_author, known.authors)),
        # A second pair of braces keeps the capitals, which styles would lower.
        "title": f"{{{reference.title.translate(_LATEX)}}}",
        "journal" if kind == "article" else "organization": known.venue.translate(_LATEX),
        "year": reference.year.translate(_LATEX),
        "doi": "" if _NOT_LITERAL.search(known.doi) else known.doi,
        "url": address,  # read literally
        "urldate": reference.retrieved.translate(_LATEX) if address else "",
        "howpublished": "" if address else reference.address.translate(_LATEX),
        "note": _note(reference).translate(_LATEX),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{reference.key},", *lines, "}\n"])


def _author(name: str) -> str:
    written = name.translate(_LATEX)
    # A person's name has no character to escape; some readers lose the one that stands beside an `and`.
    return f"{{{written}}}" if written != name or _SPLITS.search(name) else written


def _note(reference: BibliographyEntry) -> str:
    known = reference.known
    archived = f"archived at {known.full_text}" if known.archived else ""
    return ", ".join(filter(None, [reference.location, f"licence: {known.licence}" if known.licence else "", archived]))


def ris(listed: Sequence[BibliographyEntry]) -> str:
    """Return references as an RIS file in UTF-8."""
    return "\r\n".join(map(_record, listed)) + "\r\n"


def _record(reference: BibliographyEntry) -> str:
    known = reference.known
    tags = [
        ("TY", _RIS_TYPES.get(reference.type, "ELEC" if reference.web else "GEN")),
        ("ID", reference.key),
        *(("AU", author) for author in known.authors),
        ("TI", reference.title),
        ("T2", known.venue),
        ("PY", reference.year),
        ("DO", known.doi),
        ("UR", reference.address.replace(";", "%3B") if reference.web else ""),  # readers split the field there
        ("Y2", reference.retrieved.replace("-", "/")),
        ("N1", ", ".join(filter(None, ["" if reference.web else reference.address, _note(reference)]))),
    ]
    return "\r\n".join([*(f"{tag}  - {value}" for tag, value in tags if value), "ER  - "])
