"""The report as data and as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from urllib.parse import quote

from fathom.models import (
    Account,
    Call,
    Claim,
    Contradiction,
    Metrics,
    Note,
    Phase,
    Plan,
    Reflection,
    Report,
    ReportSection,
    Source,
    SourceQuality,
    StepCoverage,
    Usage,
    Verdict,
)
from fathom.run.state import RunState
from fathom.sources.warnings import report_warnings
from fathom.text.citations import cited_ids, number_citations, without_citations


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
    contradictions: list[Contradiction],
    qualities: Sequence[SourceQuality],
) -> Report:
    """Put a report together; `sources` are all that were retrieved, by id, of which the cited ones are kept."""
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
        qualities=[quality for quality in qualities if quality.source_id in cited],
    )


def measure(run: RunState, account: Account, seconds: float) -> Metrics:
    """Count a run. The context reduction is 1 - tokens injected / tokens read."""
    calls, notes, usage = run.all_calls, run.notes, run.usage
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
        phases=phases_of(run),
        steps=_summed((spent.step_id, spent.usage) for spent in run.spent if spent.step_id),
        account=account,
    )


def phases_of(run: RunState) -> list[Phase]:
    """Return what the model calls of each role took."""
    return _summed((spent.role, spent.usage) for spent in run.spent)


def _summed(spent: Iterable[tuple[str, Usage]]) -> list[Phase]:
    sums: dict[str, Usage] = {}
    for name, usage in spent:
        sums[name] = sums.get(name, Usage()) + usage
    return [
        Phase(
            name=name,
            calls=usage.llm_calls,
            tokens=usage.prompt_tokens + usage.completion_tokens,
            seconds=usage.seconds,
            cost_usd=usage.cost_usd,
        )
        for name, usage in sums.items()
    ]


def render_markdown(report: Report) -> str:
    """Render a report: sections with numbered citations, what is missing, how it was researched, the sources.

    Holds no time and no run id, so that the same research gives the same bytes.
    """
    by_id = {source.source_id: source for source in report.sources}
    parts = chapters(report)
    bodies, order = number_citations(part.markdown for part in parts)
    texts = [f"# {report.title}", *(f"> {notice}" for notice in notices(report))]
    texts += [f"## {part.heading}\n\n{body}" for part, body in zip(parts, bodies, strict=True)]
    lines = [f"{number}. {_reference(by_id[source_id])}" for number, source_id in enumerate(order, 1)]
    texts.append("## Sources\n\n" + ("\n".join(lines) or "None was cited."))
    return "\n\n".join(texts) + "\n"


def notices(report: Report) -> list[str]:
    """Return what stands above the report, as Markdown: the question, and who wrote the sentences."""
    said = []
    if report.query.strip() != report.title.strip():
        said.append(f"**Question:** {_one_line(report.query)}")
    if report.extractive:
        said.append(
            "Every sentence below is a quotation from the source it cites, chosen by its words: no language model "
            "wrote any, and none judged whether the question is answered."
        )
    return said


def chapters(report: Report) -> list[ReportSection]:
    """Return the sections and what is said about them, in the order in which they are read; they cite by id."""
    known = {source.source_id for source in report.sources}
    said = {
        "Before you rely on it": _list(report.warnings),
        "Where sources disagree": _contradictions(report, known),
        "Not found": _list(report.open_questions),
        "Limitations": _list(report.limitations),
        "Next steps": _list(report.next_steps),
        "How this was researched": _coverage_table(report.coverage) if report.coverage else "",
    }
    return report.sections + [ReportSection(heading=name, markdown=text) for name, text in said.items() if text]


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {_prose(line)}" for line in lines)


def warnings(report: Report, claims: Sequence[Claim], today: str) -> list[str]:
    """Return what a reader must know of the sources that the claims rest on."""
    return report_warnings(claims, report.qualities, report.sources, date.fromisoformat(today))


def limitations(run: RunState, claims: Sequence[Claim], left_out: Sequence[str]) -> list[str]:
    """Return what a reader must know of how far the research and the check of its claims went."""
    verdicts = Counter(claim.verdict for claim in claims)
    ending, reason = run.ending()
    said = [f"The run ended {ending.value}: {reason}."] if reason else []
    if left_out:
        said.append(f"{len(left_out)} sentences of the draft were left out or marked: no source carried them.")
    if claims:
        counts = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict])
        said.append(
            f"{len(claims)} sentences were compared with the stored sources by their words, numbers, dates and names: "
            f"{counts}. Such a check cannot see what a sentence implies, nor whether a source is right."
        )
    unread = sum(call.narrowed_tokens for call in run.all_calls)
    if unread:
        said.append(f"About {unread:,} tokens of the sources were passed over as less relevant before they were read.")
    return said


def next_steps(reflection: Reflection | None) -> list[str]:
    """Return the queries that the critic would have sent next."""
    gaps = reflection.gaps if reflection else []
    return list(dict.fromkeys(f"Search for: {gap.suggested_query}" for gap in gaps if gap.suggested_query))


def _contradictions(report: Report, known: Collection[str]) -> str:
    return "\n".join(
        f"- {_prose(found.claim_a)} / {_prose(found.claim_b)} "
        + "".join(f"[{source_id}]" for source_id in found.source_ids if source_id in known)
        for found in report.contradictions
    )


def _coverage_table(rows: Sequence[StepCoverage]) -> str:
    lines = ["| Step | Status | Calls | Useful notes | Sources | Failed |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        failed = "; ".join(dict.fromkeys(failure.line for failure in row.failures)) or "-"
        cells = [f"{row.step_id}. {row.title}", row.status.value.replace("_", " ")]
        cells += [str(row.calls), str(row.useful_notes), str(row.sources), failed]
        lines.append("| " + " | ".join(_prose(cell).replace("|", "\\|") for cell in cells) + " |")
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


def _prose(text: str) -> str:
    """Return a text on one line, without ids: plans and critics may name ones that the report does not have."""
    return _one_line(without_citations(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
