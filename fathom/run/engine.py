"""What a run works with: built once when a run starts or resumes, never stored, never part of a cache key."""

from __future__ import annotations

import hashlib
import json

from pydantic import BaseModel, ConfigDict

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.inputs import words_asked
from fathom.config.models import EXTRACTIVE, RoleModel
from fathom.config.settings import ResolvedSettings
from fathom.errors import StoreError
from fathom.extractive.backend import ExtractiveBackend
from fathom.llm.base import Backend
from fathom.llm.client import LiteLLMBackend
from fathom.llm.prompts import prompt_hashes
from fathom.models import ToolOutput
from fathom.roles.base import AnswerT, RequestT, RoleSpec
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.telemetry.audit_log import AuditLog
from fathom.tools.registry import Toolbox, open_toolbox


class RunStart(BaseModel):
    """What is fixed at a run's start. `started` is an ISO 8601 time in UTC; its date is the prompts' today."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    run_key: str
    query: str
    started: str
    settings: ResolvedSettings

    @property
    def today(self) -> str:
        """The date of the start, ISO 8601."""
        return self.started[:10]


class Engine:
    """The parts of a run: its settings, its store, its tools and the backends that answer for its roles.

    Args:
        start: what was fixed when the run began.
        store: where its artifacts and results lie.
        environment: what this process was started with.
        ledger: what it may spend, and has spent.
        audit: where it is written down who did what.
    """

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
        self._models: Backend = LiteLLMBackend(environment, ledger, start.settings.model_calls, start.settings.prices)
        material = {"settings": start.settings.fingerprint(), "prompts": prompt_hashes()}
        self.fingerprint = hashlib.sha256(json.dumps(material, sort_keys=True).encode()).hexdigest()

    @property
    def words(self) -> int | None:
        """Words that the report should have, about: by the settings, else by the question."""
        return self.settings.report.words or words_asked(self.start.query)

    def model_for(self, spec: RoleSpec[RequestT, AnswerT]) -> RoleModel:
        """Return the model that answers for a role."""
        return self.settings.role_models[spec.role]

    def backend(self, model: RoleModel) -> Backend:
        """Return the backend that serves a model."""
        return self.extractive if model.model == EXTRACTIVE else self._models

    async def enter(self, folder: str) -> None:
        """Say which folder of the store is the run's own."""
        self.folder = RunFolder(self.store, folder)
        await self.audit.settle(folder)

    @property
    def run_folder(self) -> RunFolder:
        """The run's own folder.

        Raises:
            StoreError: it has not been claimed yet, which happens once the plan has a title.
        """
        if self.folder is None:
            raise StoreError("The run has no folder yet.")
        return self.folder

    async def list(self) -> list[str]:
        """Return the names of the run's raw outputs; the artifact tools read them through the engine."""
        return await self.run_folder.list()

    async def read(self, name: str) -> ToolOutput:
        """Return one of the run's raw outputs."""
        return await self.run_folder.read(name)
