"""The report as data, put together from what the run knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fathom.evidence.claims import marked
from fathom.models import (
    Claim,
    Corroboration,
    Making,
    Plan,
    Report,
    ReportSection,
    Source,
    SourceQuality,
    StepCoverage,
    StepStatus,
    Verdict,
)
from fathom.report.chapters import chapters
from fathom.roles import SPECS
from fathom.roles.base import WITHOUT_MODEL
from fathom.run.state import ResearchState
from fathom.sources.scoring import confidence
from fathom.text.citations import cited_ids, number_citations
from fathom.text.plain import clean_line
from fathom.text.terms import query_terms
from fathom.text.wording import Wording


def coverage(run: ResearchState, qualities: Sequence[SourceQuality]) -> list[StepCoverage]:
    """Return the outcome of each step of the plan."""
    rated, sources = {quality.source_id: quality for quality in qualities}, run.sources
    gaps = run.reflection.gaps if run.reflection else []
    return [
        StepCoverage(
            step_id=step.step_id,
            title=step.title,
            status=step.status,
            calls=len(calls),
            useful_notes=len(notes),
            sources=len({source.source_id for call in calls for source in call.result.sources}),
            failures=[failure for call in calls for failure in call.result.failures if not failure.source],
            missing=[gap.description.rstrip(".") for gap in gaps if str(gap.step_id) == str(step.step_id)],
            confidence=confidence({i for note in notes for i in note.origins}, sources, rated)
            if notes and step.status is not StepStatus.blocked
            else None,
        )
        for step in run.plan.steps
        for notes in [[note for note in run.notes if str(step.step_id) in note.steps]]
        for calls in [run.calls.get(str(step.step_id), [])]
    ]


def open_questions(run: ResearchState) -> list[str]:
    """Return the open questions: steps without a useful note, even when tried again, then the gaps."""
    missing = [
        step.title
        for step in run.plan.steps
        for again in [run.plan.retry_of(step)]
        if not {str(step.step_id), str(again.step_id if again else "")} & run.evident
    ]
    gaps = [gap.description for gap in run.reflection.gaps] if run.reflection else []
    return list(dict.fromkeys([*missing, *gaps]))


def with_cited(report: Report) -> Report:
    """Return a report with the sources that it cites, in the order of their numbers, of all that were retrieved."""
    cited = {source_id for section in report.sections for source_id in cited_ids(section.markdown)}
    cited |= {source_id for found in report.contradictions for source_id in found.source_ids}
    sources = [source for source in report.sources if source.source_id in cited]
    qualities = [quality for quality in report.qualities if quality.source_id in cited]
    report = report.model_copy(update={"sources": sources, "qualities": qualities})
    by_id = {source.source_id: source for source in sources}
    _, order = number_citations(chapter.markdown for chapter in chapters(report))
    return report.model_copy(update={"sources": [by_id[source_id] for source_id in order if source_id in by_id]})


MOST_PLACES = 3  # of a source that its entry names


def with_places(sources: Sequence[Source], claims: Sequence[Claim]) -> list[Source]:
    """Return the sources with the headings below which they are quoted, in place of the one that a search found first.

    A source that states its pages, or has no headings, keeps the place where it was found.
    """
    quoted: dict[str, dict[str, None]] = {}
    for claim in claims:
        for quote in claim.quotes[:1] if claim.verdict is Verdict.supported else []:
            if quote.headings:
                quoted.setdefault(quote.source_id, {})[clean_line(quote.headings[-1])] = None
    return [
        source.model_copy(update={"location": "; ".join(places[:MOST_PLACES] + ["…"] * (len(places) > MOST_PLACES))})
        if source.location and source.source_id in quoted
        else source
        for source in sources
        for places in [[place for place in quoted.get(source.source_id, {}) if place != clean_line(source.title)]]
    ]


def marked_disputed(sections: Sequence[ReportSection], claims: Sequence[Claim]) -> list[ReportSection]:
    """Return sections with a mark behind each claim that a source contradicts which it does not cite.

    Claims that the judge objects to are marked already, and quotations stay as their sources have them.
    """
    disputed = [
        claim
        for claim in claims
        if claim.corroboration is Corroboration.contradicted and not claim.verdict.objects
        if not sections[claim.section].quoted
    ]
    return _marked(sections, disputed, Corroboration.contradicted)


def marked_alone(sections: Sequence[ReportSection], claims: Sequence[Claim]) -> tuple[list[ReportSection], int]:
    """Return sections with a mark behind each claim that no two independent sources support, and their number.

    Claims that the judge objects to, or that a source contradicts, are marked as such already.
    """
    lone = (Corroboration.single_source, Corroboration.unverified)
    alone = [claim for claim in claims if claim.corroboration in lone and not claim.verdict.objects]
    return _marked(sections, alone, lone[0]), len(alone)


def _marked(sections: Sequence[ReportSection], claims: Sequence[Claim], mark: Corroboration) -> list[ReportSection]:
    marks = [
        dict.fromkeys((claim.sentence for claim in claims if claim.section == n), mark) for n in range(len(sections))
    ]
    return [
        section.model_copy(update={"markdown": marked(section.markdown, own)})
        for section, own in zip(sections, marks, strict=True)
    ]


def making(run: ResearchState, *, as_of: str, model: str, seconds: float, template: str) -> Making:
    """Return the time, model and cost of the report; `model` and `template` are empty if it has none."""
    return Making(
        as_of=as_of,
        model=model,
        llm_calls=run.usage.llm_calls,
        tool_calls=len(run.all_calls),
        cost_usd=run.cost_usd,
        seconds=seconds,
        template=template,
        searched=run.searched,
        scope=run.scope,
    )


def own_case(plan: Plan, claims: Sequence[Claim], words: Wording) -> list[str]:
    """Return how the question's open points were taken, and which values of the asker's own case claims rest on."""
    return [*_clarified(plan, words), *_given_by_question(claims, words)]


def _clarified(plan: Plan, words: Wording) -> list[str]:
    assumed = f" {words('(assumed: nobody answered)')}"
    said = [
        f"{found.question} {found.answer.rstrip('.')}{assumed if found.assumed else ''}"
        for found in plan.clarifications
    ]
    taken = "The question leaves something open, and was taken like this: {answers}."
    return [words(taken, answers="; ".join(said))] if said else []


def _given_by_question(claims: Sequence[Claim], words: Wording) -> list[str]:
    named = [clean_line(value) for claim in claims if claim.judgement for value in claim.judgement.given]
    values = dict.fromkeys(a for a in named if not any(a != b and f" {a} " in f" {b} " for b in named))
    return [words("As the question says, not a source: {values}.", values="; ".join(values))] if values else []


def limitations(
    run: ResearchState, claims: Sequence[Claim], removed: Sequence[str], judge: str, words: Wording
) -> list[str]:
    """Return the limitations of the research and of the check of all claims.

    `removed` holds sentences that were removed, and `judge` is the model that judged the claims; empty if none did.
    """
    (ending, _), reasons = run.ending(), run.reasons(words)
    fallbacks = [said for said in run.usage.fallbacks if WITHOUT_MODEL in said]
    replaced = [SPECS[said.partition(":")[0]].role.value for said in fallbacks]
    reason = "; ".join(said for said in reasons if said not in fallbacks)
    found = own_case(run.plan, claims, words)
    if run.plan.left_out:
        left_out = "; ".join(run.plan.left_out)
        found.append(words("Planned, and left out because the run takes fewer steps: {steps}.", steps=left_out))
    if reason:
        found.append(words("The run is {ending}: {reason}.", ending=words(ending.value), reason=reason.rstrip(".")))
    if replaced:
        instead = (
            "The model gave no usable answer as {roles}; rules without a model answered in its place. "
            "Ask again, or choose another model with --role-model."
        )
        found.append(words(instead, roles=words.listed(dict.fromkeys(replaced))))
    found += [words.sentences([line]) for line in run.unreadable(words) if line not in reason]
    if missing := run.reflection.coverage.perspectives_missing if run.reflection else []:
        found.append(words("No source was found for the view of: {names}.", names=words.listed(missing)))
    taken_out = "Taken out, because its sources do not say it: “{sentence}”"
    found += [words(taken_out, sentence=sentence) for sentence in removed]
    if claims:
        verdicts = Counter(claim.verdict for claim in claims)
        counts = words.listed(
            words("{number} {verdict}", number=verdicts[verdict], verdict=words(verdict.words))
            for verdict in Verdict
            if verdicts[verdict]
        )
        by = (
            words("What no source says word for word was judged by {model}.", model=judge)
            if judge
            else words("No model judged them: words alone settle only what a source says word for word.")
        )
        found.append(
            words(
                "Claims checked against the stored sources: {counts}. {by} Whether a source is right is not checked.",
                counts=counts,
                by=by,
            )
        )
    if unread := sum(call.narrowed_tokens for call in run.all_calls):
        skipped = "About {number} tokens of the sources were skipped as less relevant and not read."
        found.append(words(skipped, number=words.number(unread)))
    return found


def next_steps(run: ResearchState, words: Wording) -> list[str]:
    """Return the queries that the critic would send next; for a query that was sent already, the part still open."""
    sent = {frozenset(query_terms(call.result.call.input)) for call in run.all_calls}
    gaps = [gap for gap in (run.reflection.gaps if run.reflection else []) if gap.suggested_query]
    lines = (
        words("Still open: {what}", what=gap.description)
        if frozenset(query_terms(gap.suggested_query)) in sent
        else words("Search for: {query}", query=gap.suggested_query)
        for gap in gaps
    )
    return list(dict.fromkeys(lines))
