"""The references of a report for reference managers: BibTeX, as biblatex reads it, and RIS.

Titles come from the open web: a brace, a `%` or a line end in one must neither break the file nor be typeset as a
command. Neither format has a type for every kind of source. Authors and journals are not known, and none are made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fathom.models import Report
from fathom.models.claims import SourceType
from fathom.report.chapters import cited_sources
from fathom.text.cleaning import clean_line
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
            )
        )
    return found


def bibtex(listed: Sequence[Reference]) -> str:
    """Return references as a `.bib` file in UTF-8, for BibTeX and biblatex."""
    return "\n".join(map(_entry, listed))


def _entry(reference: Reference) -> str:
    kind = _ENTRIES.get(reference.type, "online" if reference.web else "misc")
    address = reference.address if reference.web else ""
    fields = {
        # A second pair of braces keeps the capitals, which styles would lower.
        "title": f"{{{reference.title.translate(_LATEX)}}}",
        "year": reference.year.translate(_LATEX),
        "url": address,  # read literally
        "urldate": reference.retrieved.translate(_LATEX) if address else "",
        "howpublished": "" if address else reference.address.translate(_LATEX),
        "note": reference.location.translate(_LATEX),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{reference.key},", *lines, "}\n"])


def ris(listed: Sequence[Reference]) -> str:
    """Return references as an RIS file in UTF-8."""
    return "\r\n".join(map(_record, listed)) + "\r\n"


def _record(reference: Reference) -> str:
    tags = {
        "TY": _RIS_TYPES.get(reference.type, "ELEC" if reference.web else "GEN"),
        "ID": reference.key,
        "TI": reference.title,
        "PY": reference.year,
        "UR": reference.address.replace(";", "%3B") if reference.web else "",  # readers split the field there
        "Y2": reference.retrieved.replace("-", "/"),
        "N1": ", ".join(filter(None, ["" if reference.web else reference.address, reference.location])),
    }
    return "\r\n".join([*(f"{tag}  - {value}" for tag, value in tags.items() if value), "ER  - "])
