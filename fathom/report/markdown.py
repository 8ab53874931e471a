"""The report as Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fathom.models import CitedAnswer, CitedSource, Report, Source
from fathom.report.answer import answer_of
from fathom.report.chapters import answer_markdown, chapters, how_sure, place_in, question_of, title_of
from fathom.report.own_words import QUESTION
from fathom.report.quotations import escaped, escaped_quotation
from fathom.sources.corroboration import origin_of
from fathom.text.citations import number_citations
from fathom.text.plain import clean_line
from fathom.text.urls import web_address
from fathom.text.wording import Wording, wording

# Around the number of a citation while it is looked for: characters that Unicode keeps out of texts.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARKED = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


@dataclass(frozen=True)
class Citation:
    """A citation in a rendered report: `text[start:end]`; `number` is its source's number in the list, from 1."""

    start: int
    end: int
    number: int
    source: Source


def render_markdown(report: Report, *, linked: bool = False) -> str:
    """Render a report: its chapters with numbered citations, then the sources.

    With `linked`, a citation of a web page is a link to it. There is no time and no run id in it, so that the same
    research gives the same bytes.
    """
    return render_cited(report, linked=linked)[0]


def render_cited(report: Report, *, linked: bool = False) -> tuple[str, list[Citation]]:
    """Render a report as `render_markdown` does, and say where in it each source is cited."""
    by_id = {source.source_id: source for source in report.sources}
    parts = chapters(report)
    bodies, order = number_citations((part.markdown for part in parts), lambda _id, n: f"{_OPEN}{n}{_CLOSE}")
    known = range(1, len(order) + 1)
    asked, words = question_of(report), wording(report.language)
    texts = [f"# {_heading(report.title)}", *([f"> {words(QUESTION)} {escaped(asked)}"] if asked else [])]
    texts += [f"## {_heading(part.heading)}\n\n{body}" for part, body in zip(parts, bodies, strict=True)]
    lines = [f"{number}. {_reference(by_id[source_id], words)}" for number, source_id in enumerate(order, 1)]
    texts.append(f"## {words('Sources')}\n\n" + ("\n".join(lines) or words("No source is cited.")))
    pieces = _MARKED.split("\n\n".join(texts) + "\n")
    text, citations = pieces[0], list[Citation]()
    for number, rest in zip(map(int, pieces[1::2]), pieces[2::2], strict=True):
        if number not in known:  # a source wrote such characters
            text += f"[{number}]{rest}"
            continue
        source = by_id[order[number - 1]]
        address = _link_target(source.url) if linked else ""
        written = f"[\\[{number}\\]]({address})" if address else f"[{number}]"
        citations.append(Citation(len(text), len(text) + len(written), number, source))
        text += written + rest
    return text, citations


def cited_answer(report: Report) -> CitedAnswer | None:
    """Return the answer with the sources that it cites, by number; None if the report has no answer."""
    if not (found := answer_of(report)):
        return None
    by_id = {source.source_id: source for source in report.sources}
    (body,), order = number_citations([answer_markdown(found, wording(report.language))])
    cited = [(number, by_id[one]) for number, one in enumerate(order, 1) if one in by_id]
    return CitedAnswer(
        heading=found.heading,
        markdown=body,
        sources=[numbered(number, source) for number, source in cited],
        sure=found.sure,
        why=found.why,
    )


def numbered(number: int, source: Source) -> CitedSource:
    """Return a source as a list of numbered ones names it."""
    return CitedSource(number=number, source_id=source.source_id, title=title_of(source), url=source.url)


def render_answer(report: Report) -> str:
    """Render the answer, with the sources that it cites; empty if the report has no answer."""
    if not (answer := cited_answer(report)):
        return ""
    by_id = {source.source_id: source for source in report.sources}
    words = wording(report.language)
    lines = [f"{cited.number}. {_reference(by_id[cited.source_id], words)}" for cited in answer.sources]
    parts = [
        f"## {_heading(answer.heading)}",
        answer.markdown,
        how_sure(answer.sure, answer.why, words),
        "\n".join(lines),
    ]
    return "\n\n".join(parts).strip() + "\n"


def _heading(text: str) -> str:
    """Return a title as Markdown: plain text, but for `code`."""
    return escaped_quotation(clean_line(text))


def _link_target(url: str) -> str:
    return web_address(url).replace("(", "%28").replace(")", "%29")  # which would end the link


def _reference(source: Source, words: Wording) -> str:
    title = escaped(title_of(source).replace("[", "(").replace("]", ")"))
    address = _link_target(source.url)
    name = f"[{title}]({address})" if address else f"{title}, `{origin_of(source)}`"
    return ", ".join([name, *map(escaped, place_in(source, words))])
