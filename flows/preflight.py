"""Checks of a request before Prefect is loaded and before anything is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fathom.batch.questions import settings_of
from fathom.budget.prices import Pricing
from fathom.config.environment import Environment, artifact_root
from fathom.config.given import wrong_in
from fathom.config.groups import BatchBudget
from fathom.config.inputs import check_query
from fathom.config.secrets import HIDDEN, Scrubber
from fathom.config.settings import ResearchSettings, resolve
from fathom.config.templates import template_of
from fathom.errors import InvalidInput
from fathom.extractive.planner import judge
from fathom.flows.server import find_api
from fathom.llm.model_checks import check_models, settled_budget
from fathom.models.run import BatchQuestion, PhaseCost
from fathom.retrieval.encoder import check_encoder
from fathom.run.estimate import Scope, added_up, estimate, price_of_search, scope_of
from fathom.storage.corpora import CorpusStore
from fathom.storage.ownership import Asker
from fathom.storage.store import ArtifactStore
from fathom.tools.documents.corpus import check_documents
from fathom.tools.documents_tool import DocumentsTool
from fathom.tools.mcp.configuration import read_servers
from fathom.tools.registry import REGISTRY, check_scope, configured_tools, without_limits
from fathom.tools.toolbox import searched_by_default


@dataclass(frozen=True)
class CheckedRequest:
    """A request that can be run from any folder on this machine.

    `notices` are worth one line each. `searched` is what is searched for want of documents and a web search; empty if
    there are any.
    """

    query: str
    settings: ResearchSettings
    notices: list[str]
    searched: str


def batch_caps(options: Mapping[str, float | None]) -> dict[str, float]:
    """Return the given caps over a batch.

    Raises:
        InvalidInput: some are not above zero; `wrong` has them.
    """
    given = {name: cap for name, cap in options.items() if cap is not None}
    try:
        BatchBudget.model_validate(given)
    except ValidationError as error:
        how = "give a larger value, or leave it out for no cap"
        raise InvalidInput(wrong=wrong_in(error.errors(), BatchBudget), next_step=how) from None
    return given


def check_request(
    query: str, settings: ResearchSettings, *, follow_up: bool = False, ask_prefect: bool = True
) -> CheckedRequest:
    """Check a request; its paths become absolute, because a worker or `resume` may run in another folder.

    With `ask_prefect`, a configured Prefect API must answer, and a busy one is waited for: for minutes, which suits a
    command and no server, whose threads would all wait.

    Raises:
        UserError: it cannot be run; nothing was written.
    """
    typed = check_query(query)
    query = Scrubber(Environment.read().secrets).message(typed)  # now, because Prefect stores it before the flow begins
    hidden = [f"A password or key in the question was replaced by {HIDDEN}."] if query != typed else []
    settings, notices = check_settings(settings, follow_up=follow_up)
    if ask_prefect:
        find_api()  # fails if the configured one does not answer; none is started yet
    # Last, because it creates the root's folder.
    asyncio.run(ArtifactStore(settings.artifacts or "").check_writable())
    return CheckedRequest(query, settings, [*hidden, *notices], searched_in(settings, follow_up=follow_up))


def check_settings(settings: ResearchSettings, *, follow_up: bool = False) -> tuple[ResearchSettings, list[str]]:
    """Check settings and return them with absolute paths, and what a user should know, one line each.

    Raises:
        UserError: no question can be researched with them.
    """
    environment = Environment.read()
    if not all(path.strip() for path in settings.docs):  # an empty path would mean the present folder
        raise InvalidInput("A --docs path is empty.", next_step="give a file or folder, or leave --docs out")
    if pages := [path for path in settings.docs if "://" in path]:
        how = "write the address of a page in the question, and the page is read"
        raise InvalidInput(f"--docs {pages[0]}: it is no file or folder.", next_step=how)
    settings = settings.model_copy(
        update={
            "docs": [str(Path(path).expanduser().resolve()) for path in settings.docs],
            "artifacts": artifact_root(settings.artifacts),
        }
    )
    tools = configured_tools(settings, environment, follow_up=follow_up)
    resolved = resolve(settings, environment, tools)
    check_scope(resolved)
    check_documents(settings.docs)
    if settings.embed_model:
        check_encoder(settings.embed_model)
    if settings.corpora:
        asyncio.run(CorpusStore(ArtifactStore(settings.artifacts or "")).fixed(settings.corpora, Asker()))
    check_models(resolved, environment)
    unlimited = without_limits(settings, environment, REGISTRY.vendors) if "web_search" in tools else []
    return settings, [*_notices(settings, tools), *unlimited, *_unused_servers(environment)]


def searched_in(settings: ResearchSettings, *, follow_up: bool = False) -> str:
    """Return what is searched for want of documents and a web search; empty if there are any."""
    return searched_by_default(settings, configured_tools(settings, Environment.read(), follow_up=follow_up))


def check_batch(
    settings: ResearchSettings, questions: Sequence[BatchQuestion], *, ask_prefect: bool = True
) -> tuple[ResearchSettings, list[BatchQuestion], list[str]]:
    """Check the questions of a batch and return them and its settings, as `check_request` does, and its notices.

    Raises:
        UserError: one cannot be researched; nothing was written.
    """
    settings, notices = check_settings(settings.model_copy(update={"artifacts": artifact_root(settings.artifacts)}))
    scrubber = Scrubber(Environment.read().secrets)
    checked: dict[str, ResearchSettings] = {}
    found: list[BatchQuestion] = []
    for question in questions:
        own = dict(question.settings)
        if own:
            text = json.dumps(own, sort_keys=True)
            if text not in checked:
                checked[text] = check_settings(settings_of(question, settings))[0]
            own.update({"docs": list(checked[text].docs)} if "docs" in own else {})
        asked = scrubber.message(question.question)
        if asked != question.question:
            notices.append(f"A password or key in a question was replaced by {HIDDEN}.")
        found.append(question.model_copy(update={"question": asked, "settings": own}))
    if ask_prefect:
        find_api()
    asyncio.run(ArtifactStore(settings.artifacts or "").check_writable())
    if all("docs" in question.settings for question in found):  # notices about the batch's own settings do not apply
        notices = [notice for notice in notices if HIDDEN in notice]
    return settings, found, list(dict.fromkeys(notices))


def estimated(query: str, settings: ResearchSettings) -> list[PhaseCost]:
    """Estimate the usage of a request, by phase, without starting or writing anything.

    Raises:
        UserError: the request could not be run.
    """
    environment = Environment.read()
    check_query(query)
    resolved = resolve(settings, environment, configured_tools(settings, environment, query))
    resolved = resolved.model_copy(update={"budget": settled_budget(resolved)})
    asks = settings.template and template_of(settings.template).questions
    scope = Scope(resolved) if asks else scope_of(resolved, *judge(query))  # as it is planned
    return estimate(resolved, Pricing(settings.prices).highest, price_of_search(resolved, environment), scope)


def estimated_batch(questions: Sequence[BatchQuestion], settings: ResearchSettings) -> list[PhaseCost]:
    """Estimate the usage of all questions of a batch together, by phase, as `estimated` does for one.

    Raises:
        UserError: one could not be researched.
    """
    phases = [phase for q in questions for phase in estimated(q.question, settings_of(q, settings))]
    return added_up(phases)


def _unused_servers(environment: Environment) -> list[str]:
    servers = read_servers(environment)
    if not servers.servers or servers.names:
        return []
    return [
        "No tool of the MCP servers is allowed, so none is used: name some in `allow`; fathom doctor --mcp lists them."
    ]


def _notices(settings: ResearchSettings, tools: list[str]) -> list[str]:
    web = [tool for tool in REGISTRY.tools.values() if tool.searches and tool.by_vendors]
    if settings.tools:
        lacking = [t for t in REGISTRY.tools.values() if t.group in settings.tools and t.name not in tools]
        return [f"{t.name} is left out: set {REGISTRY.variables(t)}." for t in lacking if REGISTRY.variables(t)]
    if any(tool.name in tools for tool in web) or DocumentsTool.name not in tools:
        return []
    own = "No web search is set up (fathom doctor shows how): only your documents are searched, not the web."
    return [own] if settings.docs or settings.corpora else []
