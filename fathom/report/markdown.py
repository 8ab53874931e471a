"""The report as Markdown, and the chapters that every form of it has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from urllib.parse import quote, urlsplit

from fathom.models import Report, ReportSection, Source, StepCoverage, UnreadFile
from fathom.report.escaping import escaped, with_names
from fathom.report.quotations import quoted_markdown
from fathom.report.unread import unread_lines
from fathom.text.citations import number_citations, without_citations
from fathom.text.cleaning import clean_line

_IN_ADDRESSES = "!#$%&'()*+,-./:;=?@[]_~"  # the characters that RFC 3986 allows in an address
EXTRACTIVE_NOTICE = (
    "Every sentence of this report is a quotation from the source it cites, selected by its words. No language model "
    "wrote the report or judged whether it answers the question."
)


def render_markdown(report: Report, *, linked: bool = False) -> str:
    """Render a report: its chapters with numbered citations, then the sources.

    With `linked`, a citation of a web page is a link to it. There is no time and no run id in it, so that the same
    research gives the same bytes.
    """
    by_id = {source.source_id: source for source in report.sources}
    parts = chapters(report)
    addresses = {source.source_id: _link_target(source.url) for source in report.sources} if linked else {}

    def citation(source_id: str, number: int) -> str:
        return f"[\\[{number}\\]]({address})" if (address := addresses.get(source_id)) else f"[{number}]"

    bodies, order = number_citations((part.markdown for part in parts), citation)
    texts = [f"# {escaped(clean_line(report.title))}", *(f"> {notice}" for notice in notices(report))]
    texts += [f"## {escaped(clean_line(part.heading))}\n\n{body}" for part, body in zip(parts, bodies, strict=True)]
    lines = [f"{number}. {_reference(by_id[source_id])}" for number, source_id in enumerate(order, 1)]
    texts.append("## Sources\n\n" + ("\n".join(lines) or "No source is cited."))
    return "\n\n".join(texts) + "\n"


def notices(report: Report) -> list[str]:
    """Return the notices above the report, as Markdown: the question, and who wrote the sentences."""
    asked = (
        [f"**Question:** {escaped(clean_line(report.query))}"] if report.query.strip() != report.title.strip() else []
    )
    return [*asked, EXTRACTIVE_NOTICE] if report.extractive else asked


def chapters(report: Report) -> list[ReportSection]:
    """Return the sections, then what is said about them, as Markdown in reading order; they cite by source id."""
    known = {source.source_id for source in report.sources}
    added = {
        "Before you rely on it": _list(report.warnings),
        "Where sources disagree": _contradictions(report, known),
        "Not found": _list(report.open_questions),
        "Limitations": _list(report.limitations),
        "Next steps": _list(report.next_steps),
        "How this was researched": "\n\n".join([*_coverage_table(report.coverage), *_unread(report.unread)]),
    }
    written = [
        section.model_copy(update={"markdown": (quoted_markdown if section.quoted else with_names)(section.markdown)})
        for section in report.sections
    ]
    return written + [ReportSection(heading=name, markdown=text) for name, text in added.items() if text]


def cited_sources(report: Report) -> list[Source]:
    """Return the sources that a report cites, in the order of their numbers, from 1."""
    by_id = {source.source_id: source for source in report.sources}
    _, order = number_citations(chapter.markdown for chapter in chapters(report))
    return [by_id[source_id] for source_id in order if source_id in by_id]


def web_address(url: str) -> str:
    """Return a web address with the characters that it may not hold quoted, or nothing if it is not a web address."""
    address = quote(clean_line(url), safe=_IN_ADDRESSES)
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:  # a port that is no number, an open bracket
        return ""
    return address if parts.scheme in ("http", "https") and parts.hostname and port != 0 else ""


def _link_target(url: str) -> str:
    return web_address(url).replace("(", "%28").replace(")", "%29")  # which would end the link


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {_prose(line)}" for line in lines)


def _contradictions(report: Report, known: Collection[str]) -> str:
    return "\n".join(
        f"- {_prose(found.claim_a)} / {_prose(found.claim_b)} "
        + "".join(f"[{source_id}]" for source_id in found.source_ids if source_id in known)
        for found in report.contradictions
    )


def _unread(files: Sequence[UnreadFile]) -> list[str]:
    return ["Files that were not read, or only in part:", _list(unread_lines(files))] if files else []


def _coverage_table(rows: Sequence[StepCoverage]) -> list[str]:
    if not rows:
        return []
    lines = ["| Step | Status | Calls | Useful notes | Sources | Failed |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        failed = "; ".join(dict.fromkeys(failure.line for failure in row.failures))
        counts = [str(row.calls), str(row.useful_notes), str(row.sources)]
        step = f"{_cell(str(row.step_id))}. {_cell(row.title)}"
        cells = [step, row.status.value.replace("_", " "), *counts, _cell(failed) or "-"]
        lines.append(f"| {' | '.join(cells)} |")
    return ["\n".join(lines)]


def _reference(source: Source) -> str:
    title = escaped(clean_line(source.title).replace("[", "(").replace("]", ")"))
    address = _link_target(source.url)
    name = f"[{title}]({address})" if address else f"{title}, `{source.url}`"
    return ", ".join([name, *(escaped(clean_line(detail)) for detail in (source.location, source.published) if detail)])


def _prose(text: str) -> str:
    """Return a text on one line, without ids: plans and critics may name ones that the report does not have."""
    return escaped(clean_line(without_citations(text)))


def _cell(text: str) -> str:
    """Return a text for a cell of a table, which a bar would end."""
    return _prose(text).replace("\\|", "|").replace("|", "&#124;")
