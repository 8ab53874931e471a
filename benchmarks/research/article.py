"""A report as benchmarks want it: the answer and the sections with `[n]`, and a source list with full addresses."""

from __future__ import annotations

from fathom.models import Report
from fathom.report.answer import answer_of
from fathom.report.chapters import chapters, title_of
from fathom.text.citations import number_citations, without_citations
from fathom.text.plain import clean_line
from fathom.text.urls import web_address


def article(report: Report) -> str:
    """Return a report without tables of its coverage and notes about its method.

    A source on the web is listed with its whole address, another with the one that Fathom gives it.
    """
    by_id = {source.source_id: source for source in report.sources}
    parts = chapters(report, making=False, appendix=False)
    bodies, order = number_citations((part.markdown for part in parts), lambda _id, number: f"[{number}]")
    texts = [f"# {clean_line(report.title)}"]
    texts += [f"## {clean_line(part.heading)}\n\n{body}" for part, body in zip(parts, bodies, strict=True)]
    listed = [
        f"[{number}] {title_of(by_id[one])}. {web_address(by_id[one].url) or by_id[one].url}"
        for number, one in enumerate(order, 1)
    ]
    return "\n\n".join([*texts, *(["## References", "\n".join(listed)] if listed else [])]) + "\n"


def explanation(report: Report) -> str:
    """Return the answer's section on one line, with nothing about how sure it is.

    It has no citations: there is no list of sources with it, and BrowseComp-Plus takes `[1]` for a document's id.
    """
    found = answer_of(report)
    section = found.section if found else report.sections[0]
    return clean_line(without_citations(section.markdown))
