"""The start of a run: its clock, its settings, its folder, and the MCP servers that join it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

from prefect.runtime import flow_run

from fathom.changes.model import CHANGES_FILES
from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings, resolve
from fathom.config.templates import template_of
from fathom.errors import ToolUnavailable
from fathom.evidence.provenance import PROVENANCE
from fathom.extractive.following import understood
from fathom.llm.model_checks import settled_budget
from fathom.llm.prompts import prompt_hashes
from fathom.models import Clarification, Model, RunManifest
from fathom.models.run import LAYOUT
from fathom.report.unanswered import UNANSWERED
from fathom.run.engine import Engine, Parent, RunStart
from fathom.storage.corpora import CorpusStore
from fathom.storage.ownership import Ownership
from fathom.storage.pruning import PRUNED
from fathom.storage.store import MANIFEST, REPORT, REPORT_PAGE, REPORT_TEXT, RESULT, RunFolder, json_bytes
from fathom.tasks.durable import (
    current_parameters,
    current_run_id,
    current_run_key,
    recorded_task,
    run_logger,
    run_store,
)
from fathom.text.wording import language_for
from fathom.tools.mcp.offer import OfferedTools
from fathom.tools.registry import configured_tools

_WARNING = (
    "The parameter {name} seems to hold a key or password, and Prefect stores parameters as they are: change that key, "
    "and give it in an environment variable or a Secret block."
)


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("fathom-research", "prefect", "litellm", "pydantic")}


@recorded_task(name="today", run_name="read the date", shown=False, asks=False)
async def first_day() -> str:
    """Return today's date, ISO 8601: the same for all runs with one key, so that they can share calls."""
    return datetime.now(UTC).date().isoformat()


@recorded_task(name="seconds", run_name="read the clock", shown=False, asks=False)
async def seconds_worked(run_id: str, _engine: Engine) -> float:
    """Return the seconds of work on the run; `run_id` makes the value a record of this run."""
    return round(_engine.ledger.seconds, 1)


@recorded_task(name="begin", run_name="start", shown=False, asks=False)
async def begin(
    query: str, settings: ResearchSettings, _artifacts: str, _environment: Environment, _watch: str = ""
) -> RunStart:
    """Read the clock and resolve the settings, once for the whole run.

    Raises:
        UserError: a chosen tool is not available, or a corpus does not exist.
    """
    return await _start(query, settings, None, artifacts=_artifacts, environment=_environment, watch=_watch)


@recorded_task(name="parent", run_name="find the earlier run", shown=False, asks=False)
async def find_parent(reference: str, _find: Callable[[str], Awaitable[Parent]]) -> Parent:
    """Return the run that a follow-up names; it is looked up once."""
    return await _find(reference)


@recorded_task(name="begin", run_name="start", shown=False, asks=False)
async def begin_follow_up(
    query: str, settings: ResearchSettings, parent: Parent, _artifacts: str, _environment: Environment, _watch: str
) -> RunStart:
    """Begin a run that follows up on another one, with that run's settings where none are given."""
    # In a submitted form, which has null in its empty boxes, fields with their defaults count as not given.
    is_form = any(getattr(settings, name) is None for name in settings.model_fields_set - {"artifacts"})
    given = settings.model_dump(exclude_unset=True, exclude_none=True, exclude_defaults=is_form)
    settings = ResearchSettings.model_validate(parent.settings_with(given))
    return await _start(query, settings, parent, artifacts=_artifacts, environment=_environment, watch=_watch)


async def _start(
    query: str,
    settings: ResearchSettings,
    parent: Parent | None,
    *,
    artifacts: str,
    environment: Environment,
    watch: str,
) -> RunStart:
    settings = settings.model_copy(update={"artifacts": artifacts})
    tools = configured_tools(settings, environment, query, follow_up=parent is not None and not parent.refused)
    resolved = resolve(settings, environment, tools)
    resolved = resolved.model_copy(update={"budget": settled_budget(resolved)})
    warnings = [_WARNING.format(name=name) for name in Scrubber(environment.secrets).names_in(current_parameters())]
    for warning in warnings:
        run_logger().warning(warning)
    ownership = Ownership.of_tags(flow_run.tags)
    corpora = await CorpusStore(run_store(artifacts)).fixed(settings.corpora or [], ownership.asker)
    return RunStart(
        run_id=current_run_id(),
        run_key=current_run_key(),
        query=query,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        today=await first_day(),
        settings=resolved,
        corpora=corpora,
        warnings=warnings,
        watch=watch,
        asker=ownership.owner if resolved.library else "",
        parent=parent,
        understood=understood(query, parent.question, parent.answer, refused=parent.refused) if parent else "",
        language=language_for(query, parent.question if parent else ""),
        template=template_of(settings.template) if settings.template else None,
    )


@recorded_task(name="claim folder", run_name="create the folder", shown=False, asks=False)
async def claim_folder(
    plan_title: str, run_id: str, _engine: Engine, _clarifications: Sequence[Clarification] = ()
) -> str:
    """Claim the folder of a plan title, writing the run's manifest, and return the folder's name.

    A run with the key of an earlier one takes over its folder and removes that run's report and result.
    """
    start = _engine.start
    manifest = RunManifest(
        layout=LAYOUT,
        run_id=start.run_id,
        run_key=start.run_key,
        query=start.query,
        plan_title=plan_title,
        started=start.started,
        settings=start.settings.model_dump(mode="json", exclude={"role_models"}),
        models={role.value: model.model for role, model in start.settings.role_models.items()},
        prompts=prompt_hashes(),
        versions=_versions(),
        watch=start.watch,
        clarifications=list(_clarifications),
        parent=start.parent.named() if start.parent else None,
        understood=start.understood,
        corpora={used.name: used.digest for used in start.corpora},
        mcp={offer.server: offer.hash for offer in _engine.tools.offers if offer.hash},
        template=start.template.model_dump(mode="json") if start.template else None,
    )
    folder = await RunFolder.claim(_engine.store, plan_title, run_id, start.run_key, manifest.model_dump(mode="json"))
    if (await folder.load_json(MANIFEST)).get("run_id") != run_id:
        made = (REPORT, REPORT_TEXT, REPORT_PAGE, PROVENANCE, RESULT, UNANSWERED, PRUNED)
        for name in (*made, *CHANGES_FILES):
            await _engine.store.remove(f"{folder.folder}/{name}")
        await folder.replace_manifest(json_bytes(manifest))
    return folder.folder


class Offers(Model):
    """The offers of a run's MCP servers when it began."""

    offers: list[OfferedTools]


@recorded_task(name="mcp servers", run_name="ask the MCP servers for their tools")
async def ask_servers(tools: list[str], _engine: Engine) -> Offers:
    """Ask the servers of the chosen tools for their offers."""
    servers = _engine.tools.servers
    offers = await servers.offers() if servers else []
    if servers and not (servers.tools(offers) or _engine.tools.searching):
        why = "; ".join(_lacking(offers, servers.chosen))
        raise ToolUnavailable(f"The run has nothing to search with. {why}", next_step="look at it with `fathom doctor`")
    return Offers(offers=offers)


async def take_up_servers(engine: Engine) -> None:
    """Offer the researcher the tools of MCP servers; unavailable ones are named in the log and the report.

    Raises:
        InvalidInput: the run is resumed, and a server has changed since it began or is not configured here.
    """
    if (servers := engine.tools.servers) is None:
        return
    offers: Offers = await ask_servers(servers.chosen, _engine=engine)
    await engine.take_up(offers.offers)
    lacking = _lacking(offers.offers, sorted({*servers.chosen} - engine.tools.offered.keys()))
    for message in lacking:
        engine.warnings.warn(run_logger(), message, message)
    engine.start = engine.start.model_copy(update={"warnings": [*engine.start.warnings, *lacking]})


def _lacking(offers: Sequence[OfferedTools], unknown: Sequence[str]) -> list[str]:
    """Return why tools of MCP servers are unavailable; `unknown` holds allowed tools that no server offers."""
    failed = [f"The tools of the MCP server {o.server} were not used: {o.failure}" for o in offers if o.failure]
    if unknown and not failed:
        return [f"These tools were allowed, but no MCP server offers them: {', '.join(unknown)}."]
    return failed
