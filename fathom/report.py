"""The report as data and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote

from fathom.citations import cited_ids, number_citations
from fathom.models import (
    Call,
    Metrics,
    Note,
    Plan,
    Reflection,
    Report,
    ReportSection,
    Source,
    StepCoverage,
    Usage,
)

__all__ = ["assemble", "coverage", "measure", "open_questions", "render_markdown"]


def coverage(plan: Plan, calls: Mapping[str, Sequence[Call]], notes: Sequence[Note]) -> list[StepCoverage]:
    """Return what became of each step; `calls` are by step id."""
    rows: list[StepCoverage] = []
    for step in plan.steps:
        own = calls.get(str(step.step_id), [])
        rows.append(
            StepCoverage(
                step_id=step.step_id,
                title=step.title,
                status=step.status,
                calls=len(own),
                useful_notes=sum(str(note.step_id) == str(step.step_id) for note in notes),
                sources=len({source.source_id for call in own for source in call.result.sources}),
                failures=[failure for call in own for failure in call.result.failures],
            )
        )
    return rows


def open_questions(plan: Plan, reflection: Reflection | None, notes: Sequence[Note]) -> list[str]:
    """Return what the research could not find: steps without evidence, then the critic's gaps."""
    found = {str(note.step_id) for note in notes}
    missing = [step.title for step in plan.steps if str(step.step_id) not in found]
    gaps = [gap.description for gap in reflection.gaps] if reflection else []
    return list(dict.fromkeys([*missing, *gaps]))


def assemble(
    *,
    query: str,
    title: str,
    extractive: bool,
    sections: Sequence[ReportSection],
    sources: Mapping[str, Source],
    steps: list[StepCoverage],
    questions: list[str],
    reflection: Reflection | None,
) -> Report:
    """Put a report together; `sources` are all that were retrieved, by id, of which the cited ones are kept."""
    contradictions = reflection.contradictions if reflection else []
    cited = dict.fromkeys(source_id for section in sections for source_id in cited_ids(section.markdown))
    cited |= dict.fromkeys(i for found in contradictions for i in found.source_ids if i in sources)
    return Report(
        title=title,
        query=query,
        extractive=extractive,
        sections=list(sections),
        sources=[sources[source_id] for source_id in cited],
        open_questions=questions,
        contradictions=contradictions,
        coverage=steps,
    )


def measure(calls: Sequence[Call], notes: Sequence[Note], usage: Usage, seconds: float) -> Metrics:
    """Count a run. The context reduction is 1 - tokens injected / tokens read."""
    raw = sum(call.result.raw_tokens for call in calls)
    context = sum(note.tokens for note in notes)
    return Metrics(
        llm_calls=usage.llm_calls,
        tool_calls=len(calls),
        raw_tokens=raw,
        context_tokens=context,
        narrowed_tokens=sum(call.narrowed_tokens for call in calls),
        context_reduction=round(1 - context / raw, 4) if raw else 0.0,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost_usd=usage.cost_usd,
        seconds=round(seconds, 3),
    )


def render_markdown(report: Report) -> str:
    """Render a report: sections with numbered citations, what is missing, how it was researched, the sources.

    Holds no time and no run id, so that the same research gives the same bytes.
    """
    by_id = {source.source_id: source for source in report.sources}
    texts = [*(section.markdown for section in report.sections), _contradictions(report, by_id)]
    (*bodies, contradictions), order = number_citations(texts)
    parts = [f"# {report.title}"]
    if report.query.strip() != report.title.strip():
        parts.append(f"> **Question:** {_one_line(report.query)}")
    if report.extractive:
        parts.append(
            "> Every sentence below is a quotation from the source it cites, chosen by its words: no language model "
            "wrote any, and none judged whether the question is answered."
        )
    parts += [f"## {section.heading}\n\n{body}" for section, body in zip(report.sections, bodies, strict=True)]
    if report.contradictions:
        parts.append("## Where sources disagree\n\n" + contradictions)
    if report.open_questions:
        parts.append("## Not found\n\n" + "\n".join(f"- {_one_line(q)}" for q in report.open_questions))
    if report.coverage:
        parts.append("## How this was researched\n\n" + _coverage_table(report.coverage))
    lines = [f"{number}. {_reference(by_id[source_id])}" for number, source_id in enumerate(order, 1)]
    parts.append("## Sources\n\n" + ("\n".join(lines) or "None was cited."))
    return "\n\n".join(parts) + "\n"


def _contradictions(report: Report, known: Collection[str]) -> str:
    return "\n".join(
        f"- {_one_line(found.claim_a)} / {_one_line(found.claim_b)} "
        + "".join(f"[{source_id}]" for source_id in found.source_ids if source_id in known)
        for found in report.contradictions
    )


def _coverage_table(rows: Sequence[StepCoverage]) -> str:
    lines = ["| Step | Status | Calls | Useful notes | Sources | Failed |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        failed = "; ".join(dict.fromkeys(f"{failure.code} {failure.message}" for failure in row.failures)) or "-"
        cells = [f"{row.step_id}. {row.title}", row.status.value.replace("_", " ")]
        cells += [str(row.calls), str(row.useful_notes), str(row.sources), failed]
        lines.append("| " + " | ".join(_one_line(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _reference(source: Source) -> str:
    title = _one_line(source.title).replace("[", "(").replace("]", ")")
    linked = source.url.startswith(("http://", "https://"))
    name = f"[{title}]({_target(source.url)})" if linked else f"{title}, `{source.url}`"
    details = [part for part in (source.location, source.published) if part]
    return ", ".join([name, *map(_one_line, details)])


def _target(url: str) -> str:
    """Return an address in a form that cannot end the link it stands in."""
    return re.sub(r"[\s()<>\"`\\\\]", lambda found: quote(found[0]), url)


def _one_line(text: str) -> str:
    return " ".join(text.split())
