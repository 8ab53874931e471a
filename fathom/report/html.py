"""The report as one HTML file that needs nothing else, and lets nothing else in.

Its text comes from pages and models and is not trusted: it is cleaned of hidden characters and escaped, its Markdown is
sanitised, and a content security policy allows the page's own style and script and nothing more.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from fathom.evidence.claims import claims_of
from fathom.models import Claim, Phase, Quote, Report, Verdict
from fathom.report.charts import phase_charts, report_charts
from fathom.report.markdown import EXTRACTIVE_NOTICE, cited_sources, web_address
from fathom.report.marks import NO_MARKS, doubt
from fathom.report.prose import inline_html, section_html
from fathom.report.unread import unread_lines
from fathom.text.cleaning import clean_text
from fathom.text.counting import counted
from fathom.text.languages import language_tag

_FOLDER = Path(__file__).parent / "templates"
_CORROBORATIONS = {
    "verified": "supported by two independent sources",
    "single_source": "supported by a single source",
    "contradicted": "contradicted by another source",
    "unverified": "supported by no source",
}


def render_html(report: Report, phases: Sequence[Phase] = ()) -> str:
    """Render a report as a page, with charts of what each phase took; the same arguments give the same bytes."""
    report = Report.model_validate(_clean(report.model_dump(mode="json")))
    cited = cited_sources(report)
    numbers = {source.source_id: number for number, source in enumerate(cited, 1)}
    language = language_tag("\n".join(section.markdown for section in report.sections))
    sections = []
    for position, section in enumerate(report.sections):
        claims = [claim for claim in report.claims if claim.section == position]
        html = section_html(section, claims, numbers)
        sections.append({"id": f"section-{position + 1}", "heading": section.heading, "html": html, "claims": claims})
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return _template().render(
        report=report,
        notice=EXTRACTIVE_NOTICE,
        sections=sections,
        contents=_contents(report, sections, phases),
        cited=cited,
        sources={source.source_id: source for source in report.sources},
        numbers=numbers,
        code={claim.sentence for claim in claims_of(report.sections) if claim.kind == "code"},
        qualities={quality.source_id: quality for quality in report.qualities},
        uses=Counter(source_id for claim in report.claims for source_id in claim.source_ids),
        verdicts=Counter(claim.verdict.value for claim in report.claims),
        doubts=Counter(filter(None, map(doubt, report.claims))),
        corroborations=_CORROBORATIONS,
        facts=list(_facts(report, len(cited))),
        phases=phases,
        unread=unread_lines(report.unread),
        charts=report_charts(report) + phase_charts(phases),
        lang=Markup(' lang="{}"').format(language) if language else "",
        style=Markup(style),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704 - the same
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
    )


@cache
def _template() -> Template:
    loader = FileSystemLoader(_FOLDER)
    environment = Environment(
        loader=loader, undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(inline=inline_html, web_address=web_address, place=_place, others=_others)
    return environment.get_template("report.html.j2")


def _clean(value: Any) -> Any:
    """Remove from every text of a report what hides or reorders it, and what could be taken for one of our marks."""
    if isinstance(value, str):
        return clean_text(value).translate(NO_MARKS)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {key: _clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def _contents(report: Report, sections: Sequence[dict[str, Any]], phases: Sequence[Phase]) -> list[tuple[str, str]]:
    parts = [
        ("disagreement", "Where sources disagree", report.contradictions),
        ("not-found", "Not found", report.open_questions),
        ("limitations", "Limitations", report.limitations),
        ("next-steps", "Next steps", report.next_steps),
        ("method", "How this was researched", report.coverage or report.unread or phases),
        ("sources", "Sources", True),
        ("evidence", "Evidence for every claim", report.claims),
    ]
    written = [(section["id"], section["heading"]) for section in sections]
    return written + [(name, heading) for name, heading, present in parts if present]


def _facts(report: Report, cited: int) -> Iterable[str]:
    calls = sum(row.calls for row in report.coverage)
    counts = [(cited, "source", " cited"), (len(report.claims), "claim", " checked"), (calls, "tool call", "")]
    yield from (counted(number, noun) + done for number, noun, done in counts if number)
    days = [quote.retrieved[:10] for claim in report.claims for quote in claim.quotes if quote.retrieved]
    if days:
        yield "sources read on " + " to ".join(dict.fromkeys([min(days), max(days)]))


def _place(url: str) -> str:
    return urlsplit(web_address(url)).hostname or url


def _others(claim: Claim) -> list[Quote]:
    """Return the quotes of further sources that support a claim."""
    known = {quote.source_id for quote in claim.quotes if claim.verdict is Verdict.supported}
    return [quote for quote in claim.corroborating if quote.source_id not in known]


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
