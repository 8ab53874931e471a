"""The report as Markdown."""

from __future__ import annotations

from fathom.models import Report, Source
from fathom.report.chapters import chapters, place_in, question_of, title_of
from fathom.report.escaping import escaped
from fathom.text.citations import number_citations
from fathom.text.cleaning import clean_line
from fathom.text.urls import web_address


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
    asked = question_of(report)
    texts = [f"# {escaped(clean_line(report.title))}", *([f"> **Question:** {escaped(asked)}"] if asked else [])]
    texts += [f"## {escaped(clean_line(part.heading))}\n\n{body}" for part, body in zip(parts, bodies, strict=True)]
    lines = [f"{number}. {_reference(by_id[source_id])}" for number, source_id in enumerate(order, 1)]
    texts.append("## Sources\n\n" + ("\n".join(lines) or "No source is cited."))
    return "\n\n".join(texts) + "\n"


def _link_target(url: str) -> str:
    return web_address(url).replace("(", "%28").replace(")", "%29")  # which would end the link


def _reference(source: Source) -> str:
    title = escaped(title_of(source).replace("[", "(").replace("]", ")"))
    address = _link_target(source.url)
    name = f"[{title}]({address})" if address else f"{title}, `{source.url}`"
    return ", ".join([name, *map(escaped, place_in(source))])
