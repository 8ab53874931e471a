"""Follow-ups: the earlier run of a question, the settings taken over from it, and the runs that follow a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from fathom.config.environment import Environment
from fathom.config.groups import PROFILES, Role
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, NoReport, StoreError
from fathom.evidence.provenance import PROVENANCE, FollowUp, with_follow_ups
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.stored import check_evidence, find, locate
from fathom.models import RunManifest
from fathom.run.engine import Parent
from fathom.storage.runs import StoredRun
from fathom.storage.store import MANIFEST, REPORT, REPORT_PAGE, ArtifactStore
from fathom.text.citations import without_citations
from fathom.tools.documents_tool import DocumentsTool
from fathom.tools.earlier_run import EarlierRunTool
from fathom.tools.mcp.configuration import PREFIX
from fathom.tools.mcp.servers import allowed_tools
from fathom.tools.registry import REGISTRY, configured_tools

ANSWER_CHARS = 4_000  # characters of the earlier report's answer that the planner is told
MOST_GAPS = 10
_OWN = ("artifacts", "fetch_allow_hosts", "people", "template")
"""Settings that are not taken over: a run from elsewhere does not say which private hosts may be read, whoever asks now
may sit elsewhere, and a follow-up asks for what is missing, not for all that a template asks for."""


async def find_parent(store: ArtifactStore, reference: str) -> Parent:
    """Return the run of a store that a reference means, in the form of `parent_of`.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several, or the run is in another store.
    """
    root, name = locate(reference.strip(), store.address())
    if root != store.address():
        raise InvalidInput(
            f"The run {reference!r} is not in the store {store.address()}, where its follow-up would be.",
            next_step="leave out --artifacts, or take the run over: fathom export --bundle, fathom import",
        )
    return await parent_of(await find(store, name))


async def parent_of(found: StoredRun) -> Parent:
    """Return a finished run as its follow-ups see it.

    Raises:
        NoReport: it has not finished, or its evidence was removed.
        StoreError: its files are missing or damaged.
    """
    folder, run_id = found.files, found.run_id
    result = await folder.result()
    if result is None:
        raise NoReport(
            f"The run {run_id[:8]} has not finished, so nothing can follow it yet.",
            next_step=f"fathom resume {run_id[:8]} finishes it",
        )
    await check_evidence(folder)
    run, report = await folder.manifest(), await folder.report()
    whole = report and await folder.store.exists(f"{folder.folder}/{PROVENANCE}")
    if run is None or (result.report and not whole):
        names = f"{MANIFEST}, {REPORT} or {PROVENANCE}"
        raise StoreError(f"{folder.url} has no {names}.", next_step="restore the file, or run again")
    try:
        settings = taken_over(run)
    except ValidationError as error:
        wrong = error.errors()[0]["msg"]
        message = f"{folder.url} is not a run of this version: {wrong}."
        raise StoreError(message, next_step="ask the question by itself: fathom research") from error
    return Parent(
        run_id=run.run_id,
        folder=folder.folder,
        query=run.query,
        started=run.started,
        refused=not result.report,
        question=run.understood or run.query,
        answer=without_citations(report.sections[0].markdown)[:ANSWER_CHARS] if report and report.sections else "",
        gaps=report.open_questions[:MOST_GAPS] if report else [],
        settings=settings,
    )


def taken_over(run: RunManifest) -> dict[str, Any]:
    """Return the settings of a run that a follow-up has unless it is given others, without the ones that its profile
    implies.

    Tools are taken over if the run had different tools than it would choose now, and as far as they are configured: a
    question that was restricted to some documents stays restricted.
    """
    environment = Environment.read()
    # What is left out of a dump where it has no value is a setting too.
    default = dict.fromkeys(ResearchSettings.model_fields) | ResearchSettings().model_dump(mode="json")
    known = {name: value for name, value in run.settings.items() if name in default and name not in _OWN}
    implied = next((values for profile, values in PROFILES.items() if profile == known.get("profile")), {})
    settings: dict[str, Any] = {
        name: value for name, value in known.items() if value not in (default[name], implied.get(name))
    }
    settings["role_models"] = {
        role: {"model": model}
        for role, model in run.models.items()
        if role in list(Role) and model != settings.get("model")
    }
    had = [str(name) for name in cast("list[object]", known.get("tools") or [])]
    free = ResearchSettings.model_validate({**settings, "tools": None})
    chosen = set(had) != set(configured_tools(free, environment, run.query, follow_up=EarlierRunTool.name in had))
    servers = allowed_tools(environment) if any(name.startswith(PREFIX) for name in had) else []
    able = [
        name
        for name in had
        if name in servers or (name in REGISTRY.tools and REGISTRY.is_configured(REGISTRY.tools[name], environment))
    ]
    settings["tools"] = (able or [EarlierRunTool.name]) if chosen else None
    return {name: value for name, value in settings.items() if value not in (None, {}, [])}


def without_corpora(parent: Parent, settings: Mapping[str, Any], query: str) -> dict[str, Any]:
    """Return the settings of a follow-up none of whose corpora can be read any more, and that has no other documents.

    It searches what the earlier run has read, and the web where that is set up; never the Python reference in their
    place.

    Raises:
        InvalidInput: nothing is left to search, since the earlier run has found nothing either.
    """
    bare = ResearchSettings.model_validate({**settings, "corpora": None})
    tools = configured_tools(bare, Environment.read(), query, follow_up=not parent.refused)
    if DocumentsTool.name not in tools:
        return {**settings, "corpora": []}
    if parent.refused:
        raise InvalidInput("The documents of this run are gone.", next_step="ask again with files or a corpus")
    return {**settings, "corpora": [], "tools": [name for name in tools if name != DocumentsTool.name]}


async def name_follow_ups(store: ArtifactStore, folder: str) -> None:
    """List the runs that followed a run and have a report in the run's page, the earliest first.

    The list is not part of the run's findings: `fathom verify` checks the page without it.
    """
    named: list[FollowUp] | None = None
    while True:  # two that end together would each know of the other only now
        stored = await RunIndex(store).read()
        if not (run_id := next((run.run_id for run in stored if run.folder == folder), "")):
            return  # it was removed
        children = await _with_reports(store, [run for run in stored if run.parent == run_id])
        if children == named:
            return
        try:
            page = await store.read(f"{folder}/{REPORT_PAGE}")
        except FileNotFoundError:
            return
        if (changed := with_follow_ups(page, children)) != page:
            await store.write(f"{folder}/{REPORT_PAGE}", changed)
        named = children


async def _with_reports(store: ArtifactStore, found: Sequence[StoredRun]) -> list[FollowUp]:
    finished = [run for run in found if await store.exists(f"{run.folder}/{PROVENANCE}")]
    return [FollowUp(run.name, run.query) for run in sorted(finished, key=lambda run: run.started)]
