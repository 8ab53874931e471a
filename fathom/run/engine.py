"""The parts of a run: built when a run starts or resumes, never stored, and never part of a cache key."""

from __future__ import annotations

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.inputs import words_asked
from fathom.config.models import EXTRACTIVE, RoleModel
from fathom.config.settings import ResolvedSettings
from fathom.config.templates import UsedTemplate
from fathom.errors import StoreError
from fathom.extractive.backend import ExtractiveBackend
from fathom.llm.base import Backend
from fathom.llm.client import ModelBackend
from fathom.models import Model, ToolOutput
from fathom.roles.base import AnswerT, RequestT, RoleSpec
from fathom.run.reliability import Reliability
from fathom.run.speed import Speed
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.telemetry.audit_log import AuditLog
from fathom.telemetry.warnings import Warnings
from fathom.tools.registry import Toolbox, open_toolbox


class RunStart(Model):
    """What is fixed when a run starts. `started` is an ISO 8601 time in UTC.

    `today` is the ISO 8601 date that the prompts have; of runs with one key, it is that of the first.
    """

    run_id: str
    run_key: str
    query: str
    started: str
    today: str
    settings: ResolvedSettings
    warnings: list[str] = []  # about the request
    watch: str = ""  # the watch that the run belongs to
    template: UsedTemplate | None = None


class Engine:
    """The settings, store, tools, budget and audit log of a run, and the backends that answer for its roles."""

    def __init__(
        self, start: RunStart, store: ArtifactStore, environment: Environment, ledger: Ledger, audit: AuditLog
    ) -> None:
        self.start = start
        self.settings = start.settings
        self.store = store
        self.folder: RunFolder | None = None
        self.tools: Toolbox = open_toolbox(start.settings, environment, self, start.query)
        self.extractive: Backend = ExtractiveBackend()
        self.ledger = ledger
        self.audit = audit
        self.warnings = Warnings()
        self.speed = Speed(start.settings)
        self.reliability = Reliability()
        settings = start.settings
        self._models = ModelBackend(environment, ledger, settings.model_calls, settings.prices, self.warnings)

    @property
    def words(self) -> int | None:
        """The approximate length of the report in words, from the settings or else from the question."""
        return self.settings.report.words or words_asked(self.start.query)

    def model_for(self, spec: RoleSpec[RequestT, AnswerT]) -> RoleModel:
        """Return the model that answers for a role."""
        return self.settings.role_models[spec.role]

    def backend(self, model: RoleModel) -> Backend:
        """Return the backend that serves a model."""
        return self.extractive if model.model == EXTRACTIVE else self._models

    async def aclose(self) -> None:
        """Close the connections to providers."""
        try:
            await self._models.aclose()
        finally:
            await self.ledger.aclose()

    async def enter(self, folder: str) -> None:
        """Set the run's folder in the store."""
        self.folder = RunFolder(self.store, folder)
        await self.audit.settle(folder)

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
