"""The pipeline, top to bottom: plan, rounds of research and reflection, outline, sections, report; or one answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from pydantic import WithJsonSchema

from fathom.budget.caps import store_budget_of
from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.inputs import check_query
from fathom.config.secrets import Scrubber, guard_logs
from fathom.config.settings import Mode, ResearchSettings
from fathom.errors import StoreError
from fathom.evidence.provenance import PROVENANCE
from fathom.flows.approval import agree, write_accepted
from fathom.flows.rounds import research_rounds
from fathom.flows.runs import following
from fathom.flows.runs.endings import compare_with_last, ended, page, tell_failure, whereabouts
from fathom.flows.runs.library import library_of
from fathom.flows.runs.states import FLOW
from fathom.flows.writing import load, provenance_of, save_exchanges, save_explanation, save_report
from fathom.llm.model_checks import check_models, models_of
from fathom.models import Report, RunResult
from fathom.network import keeping_in, sharing
from fathom.report.changes import summary_of
from fathom.report.chapters import unread_lines
from fathom.report.markdown import cited_answer
from fathom.report.unanswered import render_unanswered
from fathom.run.engine import Engine, RunStart
from fathom.run.state import ResearchState, measure
from fathom.storage.corpora import CorpusStore
from fathom.storage.lease import RESULTS, journals_of
from fathom.storage.runs import remember
from fathom.storage.store import REPORT_TEXT, RESULT, ArtifactStore, json_bytes
from fathom.tasks.auditing import log_event, quieten_tasks, session
from fathom.tasks.durable import current_run_key, durable_run, run_logger, run_store
from fathom.tasks.events import tell_end, tell_start
from fathom.tasks.limits import SharedTurns, read_limits
from fathom.tasks.start import begin, begin_follow_up, claim_folder, find_parent, take_up_servers
from fathom.tasks.supervision import Supervision
from fathom.tasks.ui import Display
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.audit_log import PENDING_FILE, AuditLog
from fathom.telemetry.logs import start_logs
from fathom.telemetry.progress import Event, phase, publish, showing
from fathom.telemetry.tracing import describe_run, start_tracing
from fathom.text.plain import counted

DEFAULTS = ResearchSettings()
RunKey = Annotated[str | None, WithJsonSchema({"type": "string"})]
"""A run key, empty or None for none. The form has one box for it: see `fathom.config.form`."""
Watch = RunKey
FollowUpOf = RunKey


def _run_name() -> str:
    """Name a flow run after its query."""
    query = Scrubber(Environment.read().secrets).message(str(flow_run.parameters.get("query", "")))
    query = " ".join(query.split())
    return query if len(query) <= 80 else f"{query[:79]}…"


# The server would retry a refusal, whose state is `Failed`; within a run, calls are retried one by one.
# Results of a run's calls go to its own store. Prefect's place on this machine is named, because Prefect otherwise asks
# the server for one, three times a run.
@flow(
    name=FLOW,
    flow_run_name=_run_name,
    retries=0,
    on_failure=[tell_failure],
    persist_result=False,
    result_storage=get_current_settings().results.local_storage_path,
)
async def deep_research(
    query: str, settings: ResearchSettings = DEFAULTS, run_key: RunKey = "", watch: Watch = "", parent: FollowUpOf = ""
) -> State[RunResult]:
    """Research a question and write a cited report.

    Args:
        query: The question, at most 10,000 characters. Example: `How does Python look up an attribute?`
        settings: How to research it. Every field has a default; most runs need none of them.
        run_key: Runs with the same key share finished calls. Empty: only retries of this run do. Example: `q3-prices`
        watch: Name of the watch that the run belongs to, set by `fathom watch`. It says what changed since the run
            before. Example: `plan-prices`
        parent: The run that the question follows up on: its id or first digits, its folder or its plan title. What it
            has read is searched first, and its settings count where none are given. Example: `1a2b3c4d`
    """
    environment = Environment.read()
    start_logs(environment)
    scrubber = Scrubber(environment.secrets)
    guard_logs(scrubber)
    quieten_tasks()
    phase("preparing the run")
    store = run_store(settings.artifacts or environment.artifacts)
    await store.check_writable()
    remember(store.address(), environment)
    with durable_run(store):
        async with Supervision(store, scrubber):
            await store.open_journal(journals_of(current_run_key()))
            query = check_query(scrubber.message(query))
            asked = settings.model_copy(update={"artifacts": None})  # a store that was moved is still the same store
            start = await _begin(query, asked, store, environment, parent=parent or "", watch=watch or "")
            check_models(start.settings, environment)  # at each attempt: a key may be missing where the run is resumed
            ledger = await _open_ledger(start, store, environment)
            audit = AuditLog(store, f"{RESULTS}/{start.run_key}/{PENDING_FILE}", log_event)
            library = library_of(store, environment.cache, list(flow_run.tags)) if start.settings.library else None
            engine = Engine(start, store, environment, ledger, audit, library=library)
            if problem := start_tracing(environment):
                engine.warnings.warn(run_logger(), problem, problem)
            turns = SharedTurns(await read_limits())
            async with Display() as display, showing(store, start.run_key):
                async with aclosing(engine), sharing(turns), keeping_in(start.kept_in), session(engine) as span:
                    display.label(start.settings)
                    await tell_start(start)
                    publish(Event("spent", spent=ledger.account, caps=ledger.budget))
                    run, report, result = await investigate(engine, display)
                    if changes := await compare_with_last(engine, run, report):
                        display.changes(changes, f"{result.artifacts}/changes.html")
                        result = result.model_copy(update={"changes": summary_of(changes)})
                    phase("finishing the run")
                    status, metrics = result.status.value, result.metrics.model_dump(mode="json")
                    describe_run(span, status, result.metrics)
                    await audit.record(
                        AuditType.session_completed, "system", status, reason=result.reason, metrics=metrics
                    )
                result = await conclude(engine, run, report, result)
                await CorpusStore(store).discard([used.name for used in start.corpora])
                display.end(result.status)
            await tell_end(engine, result, report, whereabouts(result), changes)  # all files must exist by then
    run_logger().info("%s", whereabouts(result))
    return ended(result)


# A property without a default may be null, as it is in the parameters of older runs.
for name in ("run_key", "watch", "parent"):
    deep_research.parameters.properties[name].pop("default")


async def _begin(
    query: str, settings: ResearchSettings, store: ArtifactStore, environment: Environment, *, parent: str, watch: str
) -> RunStart:
    if not parent:
        return await begin(query, settings, _artifacts=store.address(), _environment=environment, _watch=watch)
    earlier = await find_parent(parent, _find=partial(following.find_parent, store))
    return await begin_follow_up(
        query, settings, earlier, _artifacts=store.address(), _environment=environment, _watch=watch
    )


async def _open_ledger(start: RunStart, store: ArtifactStore, environment: Environment) -> Ledger:
    """Return the ledger of a run, within what the store may still spend.

    What this process takes from the caps of all runs, it gives back also when it has lost the run.
    """
    store_budget = store_budget_of(run_store(store.address()), environment, datetime.now(UTC))
    if models_of(start.settings):
        await store_budget.check()
    return await Ledger.open(start.settings.budget, store, f"{RESULTS}/{start.run_key}/ledger", store_budget)


async def investigate(engine: Engine, display: Display) -> tuple[ResearchState, Report | None, RunResult]:
    """Research and report, in a flow run or a replay of it. Without any note there is no report."""
    began = monotonic()
    run = await _research(engine, display)
    report = await write_accepted(engine, run) if run.notes else None
    if report:
        await save_report(engine, run, report)
    result = _result(engine, run, report, monotonic() - began - engine.ledger.rested)
    if report:
        display.report(report, page(result))
    else:
        unanswered = await save_explanation(engine, run)
        result = result.model_copy(update={"unanswered": unanswered})
        display.refusal(render_unanswered(engine.start.query, unanswered), result.artifacts)
    await save_exchanges(engine)
    return run, report, result


async def conclude(engine: Engine, run: ResearchState, report: Report | None, result: RunResult) -> RunResult:
    """Store the result of a run, which says that it has ended, once all before it is certain."""
    result = result.model_copy(update={"audit_head": engine.audit.head})
    last = {RESULT: json_bytes(result)}
    if report:  # last, because it contains the hash of every other file
        last[PROVENANCE] = await provenance_of(engine, run, report, last)
    await engine.store.close_journal({f"{engine.run_folder.folder}/{name}": data for name, data in last.items()})
    if report:
        await _name_in_parent(engine)
    return result


async def _name_in_parent(engine: Engine) -> None:
    """Name a follow-up in the page of the run before; a failure there must not fail a finished run."""
    if parent := engine.start.parent:
        try:
            await following.name_follow_ups(engine.store, parent.folder)
        except StoreError as error:
            run_logger().warning("The report of the run before does not name this one: %s", error)


async def _research(engine: Engine, display: Display) -> ResearchState:
    """Plan, then research and reflect in rounds until the decision says to stop."""
    await take_up_servers(engine)
    loading = asyncio.to_thread(load, by_model=not engine.settings.extractive)
    run, _ = await asyncio.gather(agree(engine), loading)  # while a model plans
    said = run.plan.clarifications
    folder = await claim_folder(run.plan.plan_title, engine.start.run_id, _engine=engine, _clarifications=said)
    await engine.enter(folder)
    publish(Event("plan", f"{run.plan.plan_title} ({counted(len(run.plan.steps), 'step')})", plan=run.plan))
    await research_rounds(engine, display, run)
    return run


def _result(engine: Engine, run: ResearchState, report: Report | None, seconds: float) -> RunResult:
    status, reason = run.ending()
    return RunResult(
        run_id=engine.start.run_id,
        status=status,
        plan_title=run.plan.plan_title,
        artifacts=engine.run_folder.url,
        report=engine.run_folder.path_of(REPORT_TEXT) if report else None,
        answer=report.sections[0].markdown if report and engine.settings.mode is Mode.answer else None,
        confidence=report.confidence if report else None,
        cited_answer=cited_answer(report) if report else None,
        sources=report.sources if report else list(run.sources.values()),
        metrics=measure(run, engine.ledger.account, seconds),
        reason=reason,
        stop=run.stop.value if run.stop else "",
        searched=run.searched,
        scope=run.scope,
        answered=report.answered if report else None,
        warnings=[*engine.start.warnings, *unread_lines(run.unread)],
    )
