"""The report as one self-contained HTML file that loads nothing from elsewhere.

Its text comes from pages and models and is not trusted: it is cleaned of hidden characters and escaped, its Markdown
is sanitised, and a content security policy allows the page's own style and script and nothing more.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_address
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from fathom.evidence.claims import claims_of
from fathom.evidence.trace import others
from fathom.models import Claim, Phase, Report
from fathom.report.answer import AnswerBox, answer_of, making_parts
from fathom.report.chapters import (
    address_in_words,
    better_side,
    credit_of,
    in_short,
    language_of,
    method_lines,
    notice_of,
    open_first,
    said_before,
    sides_of,
    state_of,
    title_of,
    unread_lines,
)
from fathom.report.document import evidence_of, is_quotation
from fathom.report.figures import ClaimTable, figures_of, phase_charts, report_charts, series_of
from fathom.report.own_words import Added
from fathom.report.prose import NO_MARKS, doubt, inline_html, section_html, support_in_words
from fathom.report.quotations import escaped_quotation, quoted_parts
from fathom.sources.corroboration import origin_of, query_of
from fathom.text.plain import clean_line, clean_text
from fathom.text.urls import at_text, web_address
from fathom.text.wording import Wording, wording

_FOLDER = Path(__file__).parent / "templates"
_WRAP = re.compile(r"(?<!\n)[ \t]*\n(?![\n|*#>+-]|[ \t]|\d{1,3}[.)]|```)")


def render_html(report: Report, phases: Sequence[Phase] = ()) -> str:
    """Render a report as a page, with charts of each phase's usage; the same arguments give the same bytes."""
    report = Report.model_validate(cleaned(report.model_dump(mode="json")))
    answer = answer_of(report)
    numbers = {source.source_id: number for number, source in enumerate(report.sources, 1)}
    sources = {source.source_id: source for source in report.sources}
    qualities = {quality.source_id: quality for quality in report.qualities}
    language, words = language_of(report), wording(report.language)
    figures, series, unread = figures_of(report), series_of(report), unread_lines(report.unread, words)
    sections = list(_sections(report, answer, numbers))
    asked, title = clean_line(report.query), clean_line(report.title)
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return page_template().render(
        report=report,
        words=words,
        state_of=state_of,
        question="" if asked == title else asked,
        titled_by_question=asked.startswith(title.removesuffix(" …")),
        parent=report.parent,
        notice=notice_of(report),
        answer=answer,
        answer_html=section_html(report.sections[0], _claims(report, 0), numbers, words, (0, answer.end))
        if answer
        else "",
        before=said_before(answer, words) if answer else "",
        why=in_short(answer.why, words) if answer else "",
        disagreement=[
            (sides_of(found, sources, qualities), better_side(found, sources, qualities, words))
            for found in open_first(report.contradictions)
        ],
        sections=sections,
        figures=figures,
        series=series,
        added=Added,
        contents=_contents(
            report, answer=answer, sections=sections, figures=figures, series=bool(series), phases=bool(phases)
        ),
        sources=sources,
        numbers=numbers,
        code={claim.sentence for claim in claims_of(report.sections) if claim.kind == "code"},
        qualities=qualities,
        uses=Counter(source_id for claim in report.claims for source_id in claim.source_ids),
        verdicts=Counter(claim.verdict for claim in report.claims),
        judge=next((claim.judgement.model for claim in report.claims if claim.judgement), ""),
        doubts=Counter(filter(None, map(doubt, report.claims))),
        evidence=evidence_of(report, numbers),
        computed=_computed(report),
        facts=list(_facts(report, words)),
        method=list(_method(report, phases, words)),
        method_lines=method_lines(report),
        phases=phases,
        unread=unread,
        charts=report_charts(report) + phase_charts(phases, words),
        lang=Markup(' lang="{}"').format(language) if language else "",
        style=Markup(style),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704 - the same
        policy=policy(style, script),
    )


def _claims(report: Report, section: int) -> list[Claim]:
    return [claim for claim in report.claims if claim.section == section]


def _computed(report: Report) -> dict[str, list[str]]:
    """Return, by source, the passages of queries' results that claims rest on."""
    queries = [source.source_id for source in report.sources if query_of(source.url)]
    quotes = [quote for claim in report.claims for quote in claim.quotes]
    found = {one: dict.fromkeys(quote.text for quote in quotes if quote.source_id == one) for one in queries}
    return {
        one: [text for text in texts if not any(text != other and text in other for other in texts)]
        for one, texts in found.items()
    }


def _sections(report: Report, answer: AnswerBox | None, numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    words = wording(report.language)
    if answer and answer.rest:
        part = (answer.end, len(report.sections[0].markdown))
        html = section_html(report.sections[0], _claims(report, 0), numbers, words, part)
        yield {"id": "section-1", "heading": answer.rest.heading, "html": html}
    for position, section in list(enumerate(report.sections))[1:]:
        html = section_html(section, _claims(report, position), numbers, words)
        yield {"id": f"section-{position + 1}", "heading": section.heading, "html": html}


def pages_in(folder: Path) -> Environment:
    """Return the templates of pages: what they show is escaped, and a name that they do not know is an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=True,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def page_template() -> Template:
    """Return the template of the page of a report."""
    environment = pages_in(_FOLDER)
    environment.filters.update(
        inline=inline_html,
        titled=_titled,
        web_address=web_address,
        place=_place,
        others=others,
        support_in_words=support_in_words,
        is_quotation=is_quotation,
        title_of=title_of,
        origin_of=origin_of,
        credit_of=credit_of,
        unwrapped=partial(_WRAP.sub, " "),
        at_text=at_text,
        file_link=_file_link,
        quoted_parts=quoted_parts,
        page_beside=_page_beside,
    )
    return environment.get_template("report.html.j2")


def cleaned(value: Any) -> Any:
    """Remove from every text in a value the characters that hide or reorder it, and those that look like our marks."""
    if isinstance(value, str):
        return clean_text(value).translate(NO_MARKS)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    return {key: cleaned(item) for key, item in value.items()} if isinstance(value, dict) else value


def _contents(
    report: Report,
    *,
    answer: AnswerBox | None,
    sections: Sequence[Mapping[str, Any]],
    figures: Sequence[ClaimTable],
    series: bool,
    phases: bool,
) -> list[tuple[str, str]]:
    words = wording(report.language)
    parts = [
        ("numbers", "In numbers", series),
        ("not-found", Added.not_found, report.open_questions),
        ("limitations", Added.limitations, report.limitations),
        ("next-steps", Added.next_steps, report.next_steps),
        ("sources", "Sources", True),
        ("method", Added.method, report.coverage or report.unread or phases),
        ("evidence", "Evidence for every claim", report.claims),
    ]
    written = [("answer", answer.heading)] if answer else []
    written += [(section["id"], section["heading"]) for section in sections]
    written += [(f"figure-{number}", figure.title) for number, figure in enumerate(figures, 1)]
    return written + [(name, words(heading)) for name, heading, present in parts if present]


def _facts(report: Report, words: Wording) -> Iterator[str]:
    yield from making_parts(report.made, words, timed=True)
    if report.sources:
        yield words("{sources} cited", sources=words.counted(len(report.sources), "source"))
    if report.claims:
        yield words("{claims} checked", claims=words.counted(len(report.claims), "claim"))


def _method(report: Report, phases: Sequence[Phase], words: Wording) -> Iterator[str]:
    counts = [(len(report.coverage), "step"), (sum(row.calls for row in report.coverage), "tool call")]
    counts.append((sum(phase.calls for phase in phases), "model call"))
    yield from (words.counted(number, noun) for number, noun in counts if number)
    if report.unread:
        yield words("{files} not read, or only in part", files=words.counted(len(report.unread), "file"))


def _titled(text: str) -> Markup:
    """Return a title or heading as HTML: plain text, but for `code`."""
    return inline_html(escaped_quotation(text))


def _place(url: str, words: Wording) -> str:
    if query_of(url):
        return words("computed by a query")
    return urlsplit(web_address(url)).hostname or address_in_words(url, words)


def _file_link(name: str) -> str:
    """Return the address of a file beside the page."""
    return f"./{quote_address(name.rpartition('/')[2])}"


def _page_beside(folder: str) -> str:
    """Return the address of the report in another run's folder of the same store."""
    return f"../{quote_address(folder.rpartition('/')[2])}/report.html"


def policy(style: str, script: str = "") -> str:
    """Return the policy of a page with a style and, if it has one, a script."""
    scripts = f"script-src 'sha256-{digest(script)}'; " if script else ""
    return f"default-src 'none'; style-src 'sha256-{digest(style)}'; {scripts}base-uri 'none'; form-action 'none'"


def digest(text: str) -> str:
    """Return the SHA-256 of a style or script, in Base64, as a policy names it."""
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


_FORMER = (
    "uHvRTgp8d3OUgfOcVWijTr7MslPWQeYhoBLFX86cxiI=",
    "eS26X1SpZWuwXBgDw0iJEq5PhNeYsu0gkPp+ea9j5y4=",
    "uww7fmi1boRwHnTUx0+tm6kBecM21LM55GWwf12RhkI=",
    "eWqBSfHMeYAc7i5N25PL7uPLeRlEz/nUKl6/+AdMiHg=",
    "oVxkjpT+ykANrqd1+lHwL3QMjkB/GzP8Y02b866I3ZU=",
)
"""Hashes of the scripts of earlier versions. Add the hash of `report.js` when a change of it is released."""
_HASH = r"sha256-[A-Za-z0-9+/]{43}="
_START = re.compile(
    r'<!doctype html>\n<html[^<>]*>\n<head>\n<meta charset="utf-8">\n'
    r'<meta http-equiv="Content-Security-Policy" content="'
    rf"default-src 'none'; style-src '{_HASH}'; (?:script-src '(?P<script>{_HASH})'; )?base-uri 'none'; "
    r"form-action 'none'\">\n"
)
_PLAIN = re.compile(r'<meta name="[a-z-]+" content="[^"<>]*">')


def unsafe(page: bytes) -> str:
    """Return the reason why a page may not be opened; nothing if its policy lets only Fathom's own script run."""
    try:
        text = page.decode().replace("&#39;", "'")
    except UnicodeDecodeError:
        return "is not in UTF-8"
    start = _START.match(text)
    if not start:
        return "does not begin with the content security policy of Fathom's pages"
    own = digest((_FOLDER / "report.js").read_text(encoding="utf-8"))
    if start["script"] and start["script"].removeprefix("sha256-") not in (own, *_FORMER):
        return "has a script that this version of Fathom does not know"
    for found in re.finditer("<meta", text[start.end() :], re.IGNORECASE):
        if not _PLAIN.match(text, start.end() + found.start()):  # it could lead to another page
            return "has settings that Fathom's pages do not have"
    return ""
