"""The parts of a run: built when a run starts or resumes, never stored, and never part of a cache key."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from textwrap import shorten
from typing import Any

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.groups import EXTRACTIVE, RoleModel
from fathom.config.inputs import words_asked
from fathom.config.settings import ResolvedSettings
from fathom.config.templates import UsedTemplate, merged
from fathom.errors import StoreError
from fathom.extractive.backend import ExtractiveBackend
from fathom.extractive.following import own_words
from fathom.llm.base import Backend, ExchangeRecord
from fathom.llm.client import ModelBackend
from fathom.models import Model, ParentRun, Plan, PlanCost, ToolOutput
from fathom.network import Sender
from fathom.roles.base import AnswerT, RequestT, RoleSpec
from fathom.run.estimate import Scope, Speed, plan_cost
from fathom.storage.corpora import CorpusStore
from fathom.storage.editions import UsedCorpus
from fathom.storage.steering import Steering
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.telemetry.audit_log import AuditLog
from fathom.telemetry.logs import Warnings
from fathom.text.terms import terms
from fathom.text.wording import language_wanted
from fathom.tools.base import RunContext
from fathom.tools.documents.corpus import UploadedCorpora
from fathom.tools.earlier import EarlierRun, EarlierRuns, TextsFor
from fathom.tools.mcp.offer import OfferedTools
from fathom.tools.mcp.servers import McpServers
from fathom.tools.payment import SearchBudget
from fathom.tools.toolbox import Toolbox, open_toolbox, searched_by_default

EARLIER_CHARS = 500  # of the first paragraph of the earlier answer, that writers of a follow-up are told


class Parent(ParentRun):
    """The earlier run of a follow-up, with the parts that the planner is told."""

    question: str  # its query; for a follow-up as it was understood
    answer: str
    gaps: list[str]
    settings: dict[str, Any]  # that a follow-up takes over: fields of `ResearchSettings` that differ

    def settings_with(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return its settings, overridden by other settings; a given model applies to every role."""
        own = {name: value for name, value in self.settings.items() if name != "role_models" or "model" not in given}
        return merged(own, given)

    def named(self) -> ParentRun:
        """Return the reference to it that a follow-up stores."""
        return ParentRun(**self.model_dump(include=set(ParentRun.model_fields)))


class RunStart(Model):
    """The values that are fixed when a run starts.

    `started` is an ISO 8601 time in UTC. `today` is the ISO 8601 date in the prompts; runs with one key share the date
    of the first.
    """

    run_id: str
    run_key: str
    query: str
    started: str
    today: str
    settings: ResolvedSettings
    warnings: list[str] = []  # about the request
    watch: str = ""  # the watch that the run belongs to
    asker: str = ""  # who asked it over a server, if it searches earlier runs
    corpora: list[UsedCorpus] = []  # in the editions that it reads
    parent: Parent | None = None  # of a follow-up
    understood: str = ""  # of a follow-up: its query as a question of its own
    language: str = ""  # the tag of the report's fixed words; empty: English, and in runs that do not say

    @property
    def question(self) -> str:
        """The question to research: the query, for a follow-up as it is understood."""
        return self.understood or self.query

    @property
    def kept_in(self) -> list[Sender]:
        """What may reach nothing beyond this machine and its private network."""
        return self.settings.scope.kept_in if self.settings.scope else []

    @property
    def scope(self) -> str:
        """The name of the scope and what it means; empty for none."""
        return f"{self.settings.scope}: {self.settings.scope.about}" if self.settings.scope else ""

    @property
    def searched(self) -> str:
        """What the run searches for want of documents and a web search; empty if there are any."""
        return searched_by_default(self.settings, self.settings.tools)

    @property
    def wanted(self) -> list[str]:
        """The words of a follow-up that the earlier question lacks: subjects that the earlier run may have missed."""
        if not self.parent or self.parent.refused:
            return []
        known = set(terms(self.parent.question))
        return [word for word in own_words(self.query) if not known & set(terms(word))]

    template: UsedTemplate | None = None


class Engine:
    """The settings, store, tools, budget and audit log of a run, and the backends that answer for its roles."""

    def __init__(
        self,
        start: RunStart,
        store: ArtifactStore,
        environment: Environment,
        ledger: Ledger,
        audit: AuditLog,
        *,
        library: TextsFor | None = None,
    ) -> None:
        self.start = start
        self.settings = start.settings
        self.store = store
        self.folder: RunFolder | None = None
        self.simple = False  # whether the question is simple, as the planner judges
        self._environment = environment
        self.earlier = (
            EarlierRun(RunFolder(store, start.parent.folder)) if start.parent and not start.parent.refused else None
        )
        self._library = library
        self._corpora = UploadedCorpora(CorpusStore(store), start.corpora)
        self.extractive: Backend = ExtractiveBackend(start.settings.embed_model)
        self.ledger = ledger
        self.tools = self._toolbox()
        self.audit = audit
        self.steering = Steering(store, start.run_key, start.run_id)
        self.warnings = Warnings()
        self.speed = Speed(start.settings)
        self.reliability = Reliability()
        self.exchanges: list[ExchangeRecord] = []  # with models, each once
        self.remarks: list[str] = []  # a person's remarks on earlier drafts of the report
        self.plan: Plan | None = None  # as it was accepted
        self.reading = asyncio.Lock()  # held by the thread that cuts or ranks texts: two would take as long for each
        settings = start.settings
        self._models = ModelBackend(
            environment, ledger, settings.model_calls, settings.prices, self.warnings, scope=settings.scope
        )

    def adopt(self, scope: Scope) -> None:
        """Adopt the scope that the question deserves; tools that read fewer results are created anew."""
        results = self.settings.max_results
        self.settings, self.simple = scope
        if self.settings.max_results != results:
            before = self.tools
            self.tools = self._toolbox(before.servers)
            self.tools.take_up(before.offers)

    def cost_of(self, steps: int) -> PlanCost:
        """Return what a run with a plan of some steps usually takes, by today's prices."""
        return plan_cost(self.settings, self._environment, steps, simple=self.simple)

    def _toolbox(self, servers: McpServers | None = None) -> Toolbox:
        run = RunContext(
            self.settings,
            self._environment,
            self,
            self.start.query,
            search_budget=SearchBudget(self.ledger, self.settings.search_prices),
            earlier=self.earlier,
            library=EarlierRuns(self.start.asker, self._library) if self.settings.library else None,
            corpora=self._corpora,
        )
        return open_toolbox(run, servers=servers)

    @property
    def words(self) -> int | None:
        """The approximate length of the report in words, as set, else as a remark, the plan or the question says."""
        asked = words_asked("\n\n".join(self.remarks)) or (self.plan and self.plan.preferences.words)
        return self.settings.report.words or asked or words_asked(self.start.question)

    @property
    def language(self) -> str:
        """The tag of the report's fixed words: as the plan says that the question wants it, else of the question."""
        return language_wanted(self.plan.preferences.language if self.plan else "", self.start.language)

    @property
    def wanted(self) -> list[str]:
        """What the plan says about the report, in words."""
        return self.plan.wanted if self.plan else []

    def question_for(self, spec: RoleSpec[RequestT, AnswerT]) -> str:
        """Return the question for a role; a model gets a follow-up as it was typed, with the earlier question."""
        start = self.start
        if not start.parent or start.question == start.query or self.model_for(spec).model == EXTRACTIVE:
            return start.question
        return f"{start.query}\n\n(It follows up on the question: {start.parent.question})"

    def brief_for(self, spec: RoleSpec[RequestT, AnswerT]) -> str:
        """Return the question for the reporter, with a person's requests for changes of the draft.

        Of a follow-up, it has the earlier answer, by which its reader understands "that".
        """
        asked = [f"The reader of a draft asks for this change: {remark}" for remark in self.remarks]
        question, parent = self.question_for(spec), self.start.parent
        if parent and parent.answer and question != self.start.question:
            said = shorten(parent.answer.split("\n\n")[0], EARLIER_CHARS, placeholder=" ...")
            earlier = said.translate(str.maketrans("<>", "()"))  # it may quote a page
            asked.append(
                f"<source>\nThe earlier report answered: {earlier}\n</source>\nRepeat of it what the notes say."
            )
        return "\n\n".join([question, *asked])

    def model_for(self, spec: RoleSpec[RequestT, AnswerT], *, saving: bool = False) -> RoleModel:
        """Return the model that answers for a role: the cheaper one, if there is one and money must be saved."""
        model, cheaper = self.settings.role_models[spec.role], self.settings.cheaper_model
        if not saving or cheaper is None or model.model == EXTRACTIVE:
            return model
        return model.model_copy(update={"model": cheaper, "window": None, "structured_output": None})

    def backend(self, model: RoleModel) -> Backend:
        """Return the backend that serves a model."""
        return self.extractive if model.model == EXTRACTIVE else self._models

    async def window(self, model: RoleModel) -> int | None:
        """Return how many tokens prompt and answer may have together; None: not known, or without a model.

        It asks the model's server, once. Code that builds requests uses `fathom.tasks.model_calls.find_window`, whose
        answer is stored.
        """
        return None if model.model == EXTRACTIVE else await self._models.window(model)

    async def aclose(self) -> None:
        """Close the connections to providers and the processes and connections of the tools."""
        async with AsyncExitStack() as parts:
            for part in (self.ledger, self.tools, self._models):
                parts.push_async_callback(part.aclose)

    async def enter(self, folder: str) -> None:
        """Set the run's folder in the store."""
        self.folder = RunFolder(self.store, folder)
        await self.audit.settle(folder)

    async def take_up(self, offers: Sequence[OfferedTools]) -> None:
        """Give the researcher the tools that MCP servers offered when the run began.

        Raises:
            InvalidInput: a server has changed since, or is not configured here.
        """
        if self.tools.servers:
            await self.tools.servers.check(offers)
        self.tools.take_up(offers)

    @property
    def run_folder(self) -> RunFolder:
        """The run's folder.

        Raises:
            StoreError: the run has none yet; it is claimed once the plan has a title.
        """
        if self.folder is None:
            raise StoreError("The run has no folder yet.")
        return self.folder

    async def list(self) -> list[str]:
        """Return the names of the run's raw outputs, for the tools that search and read them."""
        return await self.run_folder.list()

    async def read(self, name: str) -> ToolOutput:
        """Return one of the run's raw outputs."""
        return await self.run_folder.read(name)


MOST_FAILURES = 2  # calls of a role without a valid answer, before the first valid one


class Reliability:
    """Counts a run's calls with and without a valid answer, by role and model."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()
        self._able = set[tuple[str, str]]()

    def count(self, role: str, model: str, *, valid: bool) -> None:
        """Count a call whose answer was valid, at the first or second try, or was not."""
        if valid:
            self._able.add((role, model))
        else:
            self._failures[role, model] += 1

    def able(self, role: str, model: str) -> bool:
        """Return whether a model is worth asking."""
        return (role, model) in self._able or self._failures[role, model] < MOST_FAILURES
