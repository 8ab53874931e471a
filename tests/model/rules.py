"""What Fathom keeps whatever a model says: each function returns how a run broke a rule, one line each."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fathom.config.groups import Budget
from fathom.evidence.claims import claims_of, marked
from fathom.models import Ending, Note, Plan, Report, RunResult
from fathom.roles.planner import plan_complaints
from fathom.text.citations import cited_ids
from tests.model.recording import Exchange

__all__ = ["Finished", "broken_rules"]

RUN_OF_WORDS = 8
_DEBRIS = re.compile(r'^\s*(?:[-*>]\s*)*\[?\{|```json|"summary|<\|im_|<think', re.MULTILINE | re.IGNORECASE)
_NUMBER = re.compile(r"\[(\d{1,4})\]")
_ID = re.compile(r"\bS[0-9a-f]{6,64}\b")
_WITHOUT = re.compile(r"(\w+): answered without the model")


@dataclass(frozen=True)
class Finished:
    """A run that has ended, what passed between it and the model, and the warnings that it showed."""

    result: RunResult
    exchanges: Sequence[Exchange]
    warnings: Sequence[str]

    @property
    def folder(self) -> Path:
        """Where the run's files are."""
        return Path(self.result.artifacts)

    @property
    def replaced(self) -> Counter[str]:
        """How often the answer of each role came without the model."""
        return Counter(found[1] for line in self.warnings if (found := _WITHOUT.match(line)))


def broken_rules(run: Finished, budget: Budget) -> list[str]:
    """Return how a run broke the rules that hold for every model."""
    broken = [*_stored(run), *_repeated(run.exchanges), *_ending(run), *_spending(run, budget)]
    if run.result.report:
        report = Report.model_validate_json((run.folder / "report.json").read_bytes())
        markdown = (run.folder / "report.md").read_text(encoding="utf-8")
        broken += [*_debris(report, markdown), *_echoes(run.exchanges, markdown)]
        broken += [*_citations(report, markdown), *_claims(report)]
    return broken


def _stored(run: Finished) -> Iterator[str]:
    """The plan, the notes and the report are of their types, and the plan keeps the planner's rules."""
    kinds = {"plan.json": TypeAdapter[object](Plan), "notes.json": TypeAdapter[object](list[Note])}
    if run.result.report:
        kinds["report.json"] = TypeAdapter(Report)
    for name, kind in kinds.items():
        try:
            kind.validate_json((run.folder / name).read_bytes())
        except ValidationError as error:
            yield f"{name}: {error}"
    plan = Plan.model_validate_json((run.folder / "plan.json").read_bytes())
    yield from (f"plan.json: {complaint.text}" for complaint in plan_complaints(plan.steps))


def _repeated(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """A model without chance says the same again: no request is sent twice unchanged."""
    sent = Counter((exchange.role, json.dumps(exchange.body, sort_keys=True)) for exchange in exchanges)
    yield from (f"a request of the {role} was sent {times} times" for (role, _), times in sent.items() if times > 1)


def _ending(run: Finished) -> Iterator[str]:
    """The reason names every role that was answered without the model; without a reason there was none."""
    status, reason = run.result.status, run.result.reason
    if status is Ending.failed:
        yield f"the run failed: {reason}"
    if (status is Ending.complete) is not (reason == ""):
        yield f"the run is {status.value} with the reason {reason!r}"
    if (status is Ending.insufficient_evidence) is not (run.result.report is None):
        yield f"the run is {status.value}, its report {run.result.report}"
    named = set(_WITHOUT.findall(reason))
    replaced = {role for role in run.replaced if role != "section"}  # a draft stays where only its revision failed
    silent = {e.role for e in run.exchanges} - {e.role for e in run.exchanges if e.status == 200 and e.text}
    yield from (f"the reason does not name the {role}: {reason!r}" for role in sorted((replaced | silent) - named))
    yield from (f"the reason names the {role}, which no warning did" for role in sorted(named - set(run.replaced)))


def _spending(run: Finished, budget: Budget) -> Iterator[str]:
    """The budget holds, and counts at least what the provider says."""
    account = run.result.metrics.account
    assert account
    tokens = sum(e.usage.get("prompt_tokens", 0) + e.usage.get("completion_tokens", 0) for e in run.exchanges)
    if not tokens <= account.tokens <= budget.max_tokens:
        yield f"{account.tokens} tokens were counted, {tokens} used, {budget.max_tokens} allowed"
    if not len(run.exchanges) <= account.calls <= budget.max_calls:
        yield f"{account.calls} requests were counted, {len(run.exchanges)} sent, {budget.max_calls} allowed"


def _debris(report: Report, markdown: str) -> Iterator[str]:
    """No JSON, no tags of a chat or of reasoning."""
    own = [report.title, *(f"{section.heading}\n{section.markdown}" for section in report.sections)]
    for text in (html.unescape(markdown).replace("\\", ""), *own):
        for found in _DEBRIS.finditer(text):
            yield f"the report says {text[found.start() : found.start() + 60]!r}"


def _echoes(exchanges: Sequence[Exchange], markdown: str) -> Iterator[str]:
    """No sentence of the instructions."""
    said = {m["content"] for e in exchanges for m in e.body["messages"] if m["role"] == "system"}
    instructions = set().union(*map(_runs, said)) if said else set()
    yield from (f"the report repeats the instructions: {' '.join(run)}" for run in _runs(markdown) & instructions)


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return every run of eight words."""
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + RUN_OF_WORDS]) for start in range(len(words) - RUN_OF_WORDS + 1)}


def _citations(report: Report, markdown: str) -> Iterator[str]:
    """Every id is a source of the report, every number one of its list, and no id is left where a reader sees it."""
    known = {source.source_id for source in report.sources}
    for section in report.sections:
        yield from (f"{i} is no source of the report" for i in cited_ids(section.markdown) if i not in known)
    text, _, sources = markdown.rpartition("\n## Sources\n")
    listed = set(re.findall(r"^(\d+)\. ", sources, re.MULTILINE))
    yield from (f"[{number}] is not in the list of sources" for number in set(_NUMBER.findall(text)) - listed)
    yield from (f"the report shows the id {found}" for found in set(_ID.findall(text)))


def _claims(report: Report) -> Iterator[str]:
    """Every claim was checked, and one to which the judge objects is marked."""
    claimed = [statement.sentence for statement in claims_of(report.sections)]
    if claimed != [claim.sentence for claim in report.claims]:
        yield f"{len(claimed)} claims are made, {len(report.claims)} were checked"
    for claim in report.claims:
        section = report.sections[claim.section]
        if not claim.judgement or not claim.verdict.objects or section.quoted:
            continue
        if marked(section.markdown, {claim.sentence: claim.verdict}) != section.markdown:
            yield f"{claim.verdict.words} and not marked: {claim.sentence}"
