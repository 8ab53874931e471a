"""The report as one HTML file that needs nothing else, and lets nothing else in.

What it holds comes from pages and models, so all of it is foreign: cleaned of hidden characters, escaped, its Markdown
sanitised, and shown under a content security policy that allows the page's own style and script and nothing more.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from fathom.models import Claim, Phase, Quote, Report, Verdict
from fathom.report.bibliography import cited_sources
from fathom.report.charts import phase_charts, report_charts
from fathom.report.citing import NO_MARKS, doubt
from fathom.report.languages import language_tag
from fathom.report.prose import inline_html, section_html
from fathom.text.cleaning import clean_text

FOLDER = Path(__file__).parent / "templates"
CORROBORATIONS = {
    "verified": "carried by two independent sources",
    "single_source": "rests on a single source",
    "contradicted": "sources contradict each other",
    "unverified": "no source carries it",
}


def render_html(report: Report, phases: Sequence[Phase] = ()) -> str:
    """Render a report as a page of its own; the same report and phases give the same bytes.

    Args:
        report: The report.
        phases: What each phase of the run took, for the charts.
    """
    report = Report.model_validate(_clean(report.model_dump(mode="json")))
    cited = cited_sources(report)
    numbers = {source.source_id: number for number, source in enumerate(cited, 1)}
    language = language_tag("\n".join(section.markdown for section in report.sections))
    sections = [
        {
            "id": f"section-{position + 1}",
            "heading": section.heading,
            "html": section_html(section.markdown, claims := _claims_of(report, position), numbers),
            "claims": claims,
        }
        for position, section in enumerate(report.sections)
    ]
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return _template().render(
        report=report,
        sections=sections,
        contents=_contents(report, sections, phases),
        cited=cited,
        sources={source.source_id: source for source in report.sources},
        numbers=numbers,
        qualities={quality.source_id: quality for quality in report.qualities},
        uses=Counter(source_id for claim in report.claims for source_id in claim.source_ids),
        verdicts=_counts(claim.verdict.value for claim in report.claims),
        doubts=_counts(doubt(claim) for claim in report.claims),
        corroborations=CORROBORATIONS,
        facts=_facts(report, len(cited)),
        phases=phases,
        charts=report_charts(report) + phase_charts(phases),
        lang=Markup(' lang="{}"').format(language) if language else "",
        style=Markup(style),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(inline=inline_html, where=_where, others=_others)
    return environment.get_template("report.html.j2")


def _clean(value: Any) -> Any:
    """Take from every text of a report what hides or reorders it, and what would be taken for a mark of ours."""
    if isinstance(value, str):
        return clean_text(value).translate(NO_MARKS)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {key: _clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def _claims_of(report: Report, position: int) -> list[Claim]:
    return [claim for claim in report.claims if claim.section == position]


def _contents(report: Report, sections: Sequence[dict[str, Any]], phases: Sequence[Phase]) -> list[tuple[str, str]]:
    """Return the id and the heading of each part that the page has."""
    parts = [
        ("disagreement", "Where sources disagree", report.contradictions),
        ("not-found", "Not found", report.open_questions),
        ("limitations", "Limitations", report.limitations),
        ("next-steps", "Next steps", report.next_steps),
        ("method", "How this was researched", report.coverage or phases),
        ("sources", "Sources", True),
        ("evidence", "Evidence for every claim", report.claims),
    ]
    written = [(section["id"], section["heading"]) for section in sections]
    return written + [(name, heading) for name, heading, there in parts if there]


def _counts(words: Any) -> dict[str, int]:
    """Count words, in the order in which they are first met, without the empty one."""
    return {word: count for word, count in Counter(words).items() if word}


def _facts(report: Report, cited: int) -> list[str]:
    """Return in a few words what the report rests on."""
    calls = sum(row.calls for row in report.coverage)
    counts = {"source cited": cited, "claim checked": len(report.claims), "tool call": calls}
    days = sorted({quote.retrieved[:10] for claim in report.claims for quote in claim.quotes if quote.retrieved})
    facts = [f"{count} {name if count == 1 else _plural(name)}" for name, count in counts.items() if count]
    if days:
        facts.append("sources read on " + " to ".join(dict.fromkeys([days[0], days[-1]])))
    return facts


def _plural(name: str) -> str:
    first, _, rest = name.partition(" ")
    return f"{first}s {rest}" if first != "tool" else f"{name}s"


def _where(url: str) -> str:
    """Return what tells a reader where a source lies: the site, or the name of the document."""
    parts = urlsplit(url) if url.startswith(("http://", "https://")) else None
    return (parts.hostname or url) if parts else url


def _others(claim: Claim) -> list[Quote]:
    """Return the quotes of further sources that carry a claim."""
    known = {quote.source_id for quote in claim.quotes} if claim.verdict is Verdict.supported else set[str]()
    return [quote for quote in claim.corroborating if quote.source_id not in known]


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
