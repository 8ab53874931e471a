"""The references of a report for reference managers: BibTeX, as biblatex reads it, and RIS.

Titles and names come from the open web: a brace, a `%` or a line end in one must neither break the file nor be typeset
as a command. Neither format has a type for every kind of source. Authors, DOI, journal and licence are what a catalogue
said; where none did, none are made up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fathom.models import Bibliographic, Report
from fathom.models.evidence import SourceType
from fathom.report.chapters import cited_sources
from fathom.text.plain import clean_line
from fathom.text.urls import web_address

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


class Reference(NamedTuple):
    """A source as a bibliography lists it; what is not known is empty."""

    key: str  # the source id, the same in every report
    type: SourceType
    title: str
    address: str
    web: bool  # whether `address` leads to the source; that of a local document only names it
    year: str  # of publication
    retrieved: str  # the day on which it was first read, ISO 8601
    location: str  # a heading or page inside the document
    known: Bibliographic  # what a catalogue says of it


def references(report: Report, retrieved: Mapping[str, str]) -> list[Reference]:
    """Return the references of a report in the order of their numbers.

    `retrieved` tells when each source was first read, ISO 8601, by source id.
    """
    qualities = {quality.source_id: quality for quality in report.qualities}
    found = []
    for source in cited_sources(report):
        address, quality = web_address(source.url), qualities.get(source.source_id)
        found.append(
            Reference(
                key=source.source_id,
                type="document" if source.kind == "document" else quality.type if quality else "unknown",
                title=clean_line(source.title) or clean_line(source.url),
                address=address or clean_line(source.url),
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


def bibtex(listed: Sequence[Reference]) -> str:
    """Return references as a `.bib` file in UTF-8, for BibTeX and biblatex."""
    return "\n".join(map(_entry, listed))


def _entry(reference: Reference) -> str:
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


def _note(reference: Reference) -> str:
    known = reference.known
    archived = f"archived at {known.full_text}" if known.archived else ""
    return ", ".join(filter(None, [reference.location, f"licence: {known.licence}" if known.licence else "", archived]))


def ris(listed: Sequence[Reference]) -> str:
    """Return references as an RIS file in UTF-8."""
    return "\r\n".join(map(_record, listed)) + "\r\n"


def _record(reference: Reference) -> str:
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
