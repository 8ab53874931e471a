"""Checking another system's report: reading its file, finding or fetching its sources, judging its claims."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from fathom.budget.caps import store_budget_of
from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment, artifact_root
from fathom.config.groups import EXTRACTIVE, Role
from fathom.config.inputs import read_text
from fathom.config.settings import ResearchSettings, ResolvedSettings, resolve
from fathom.errors import InvalidInput, ModelError, ModelUnreachable
from fathom.evidence.bearing import Bearing
from fathom.evidence.claims import claims_of
from fathom.evidence.judging import Ask, Key, Settled, judge, key_of, settled
from fathom.llm.client import ModelBackend
from fathom.llm.model_checks import check_models, settled_budget
from fathom.llm.parsing import answer_of
from fathom.llm.windows import fitting
from fathom.models import Report, Source, Usage
from fathom.report.foreign.check import ForeignCheck, checked, to_judge, wanted_of
from fathom.report.foreign.reading import Foreign, report_of
from fathom.report.foreign.sources import Looked, in_folder, on_the_web
from fathom.roles import JUDGE
from fathom.roles.judge import JudgeAnswer, JudgeRequest
from fathom.storage.store import ArtifactStore
from fathom.telemetry.progress import phase
from fathom.text.plain import clean_line, counted
from fathom.tools.base import RunContext

MOST_BYTES = 10 * 2**20
ANSWER_TOKENS = 8_192  # tokens of the judge's answer for `AT_ONCE` claims


@dataclass(frozen=True)
class Wish:
    """How to check a report."""

    file: Path
    sources: Path | None  # a folder
    fetch: bool
    settings: ResearchSettings  # of them the model, its price and the cap count


_HOW = (
    "cite with links or footnotes, or with [1], [2] and a list at the end: a heading `## Sources`, then a line for "
    "each, such as `1. Minutes, minutes.txt` or `2. https://example.org/a`"
)
"""How a report must name its sources."""


def check_file(wish: Wish) -> tuple[ForeignCheck, Report]:
    """Check another system's report; return the check, and the report with its verdicts for the page.

    Raises:
        UserError: the file is not a report, there are no sources to check it against, or the model cannot be asked.
        ModelError: the model answered nothing.
    """
    judging = _Judging(_resolved(wish.settings), Environment.read())
    if not wish.sources and not wish.fetch:
        raise InvalidInput(
            f"No sources were given to check {wish.file} against.",
            next_step="give its sources with --sources FOLDER, or read them from the web with --fetch",
        )
    foreign = _read(wish.file)
    wanted = wanted_of(foreign)
    phase(f"{counted(len(claims_of(foreign.report.sections)), 'claim')}, {counted(len(wanted), 'source')}")
    looked = in_folder(wish.sources, wanted, wish.file.read_bytes()) if wish.sources else Looked([], {}, {}, [], {})
    judged = asyncio.run(_judged(foreign, looked, judging, fetch=wish.fetch))
    phase("checking the claims")
    today = datetime.now(UTC).date()
    found, report = checked(str(wish.file), foreign, looked, judged, model=judging.model, today=today)
    return found.model_copy(update={"warnings": [*found.warnings, *judging.warnings], "usage": judging.usage}), report


def _resolved(settings: ResearchSettings) -> ResolvedSettings:
    resolved = resolve(settings, Environment.read(), ["fetch"])
    check_models(resolved, Environment.read())
    return resolved


def _read(file: Path) -> Foreign:
    """Return the report in a file.

    Raises:
        InvalidInput: it cannot be read, claims nothing, or names no source.
    """
    foreign = report_of(read_text(file, MOST_BYTES), file.stem)
    if not claims_of(foreign.report.sections):
        raise InvalidInput(f"{file} has no sentence that makes a claim.", next_step="check the file")
    if not foreign.report.sources:
        marks = foreign.cited.dangling
        lacks = f"cites [{clean_line(marks[0])}], but has no list of sources" if marks else "names no source"
        raise InvalidInput(f"{file} {lacks}.", next_step=_HOW)
    return foreign


async def _judged(foreign: Foreign, looked: Looked, judging: _Judging, *, fetch: bool) -> dict[Key, Settled]:
    """Return the judge's verdicts, after fetching the sources that no folder has, if that is wanted."""
    missing = [source for source in foreign.report.sources if source.source_id not in looked.places]
    if fetch and missing:
        fetched = await _fetched(missing, judging.settings, judging.environment)
        looked.texts.extend(fetched.texts)
        looked.places.update(fetched.places)
        looked.reasons.update(fetched.reasons)
    return await judging.judged(foreign.report, looked)


async def _fetched(sources: Sequence[Source], settings: ResolvedSettings, environment: Environment) -> Looked:
    context = RunContext(settings, environment)
    try:
        return await on_the_web(sources, context.reader.page, datetime.now(UTC).isoformat(timespec="seconds"))
    finally:
        await context.aclose()


class _Judging:
    """Asks a model about the claims, and keeps its usage and failures."""

    def __init__(self, settings: ResolvedSettings, environment: Environment) -> None:
        self.settings = settings
        self.environment = environment
        self.usage = Usage()
        self.warnings: list[str] = []
        self._failures: list[ModelError] = []
        self._chosen = settings.role_models[Role.judge].model_copy(update={"max_tokens": ANSWER_TOKENS})

    @property
    def model(self) -> str:
        """The name of the model that judges; empty if words alone decide."""
        return "" if self._chosen.model == EXTRACTIVE else self._chosen.model

    async def judged(self, report: Report, looked: Looked) -> dict[Key, Settled]:
        """Return the model's verdicts on the claims that words do not settle; nothing without a model.

        Raises:
            ModelError: the model answered nothing.
        """
        if not self.model:
            return {}
        statements = await asyncio.to_thread(to_judge, report, looked.texts)
        if not statements:
            return {}
        phase(f"judging {counted(len(statements), 'claim')} by {self.model}")
        store = ArtifactStore(f"memory://verify-{uuid4()}")
        store_budget = store_budget_of(ArtifactStore(artifact_root()), self.environment, datetime.now(UTC))
        await store_budget.check()
        budget = settled_budget(self.settings).model_copy(update={"research_share": 1.0})
        ledger = Ledger(budget, store, "ledger", store_budget=store_budget)
        backend = ModelBackend(self.environment, ledger, self.settings.model_calls, self.settings.prices)
        async with aclosing(ledger), aclosing(backend):
            fits = fitting(JUDGE, self._chosen, await backend.window(self._chosen))
            asked = await judge(statements, Bearing(looked.texts), self._asking(backend), fits=fits)
        found = settled(asked)
        if self._failures and not found:
            raise self._failures[0]
        open_claims = sum(key_of(statement) not in found for statement in statements)
        if open_claims:
            why = f": {self._failures[0].message}" if self._failures else "."
            self.warnings.append(f"{counted(open_claims, 'claim')} got no verdict of {self.model}{why}")
        return found

    def _asking(self, backend: ModelBackend) -> Ask:
        async def ask(request: JudgeRequest) -> tuple[JudgeAnswer, str]:
            try:
                answer, usage, model = await answer_of(JUDGE, request, self._chosen, backend)
            except ModelUnreachable:
                raise
            except ModelError as error:  # the claims of the other requests are judged all the same
                self._failures.append(error)
                return JudgeAnswer(opinions=[]), self.model
            self.usage += usage
            phase(f"judged {counted(len(answer.opinions), 'claim')}{' again' if request.again else ''}")
            return answer, model

        return ask
