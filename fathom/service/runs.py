"""What every way of asking does with runs: the API, the page, the OpenAI-compatible endpoint and the MCP server.

Who may do it is checked here, so no protocol can forget it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from fathom.client.shapes import AnswerRequest, FollowUpRequest, Form, Run, RunEvent, RunList, RunRequest
from fathom.config.form import SetBy, setting_of
from fathom.config.given import settings_from
from fathom.config.settings import SETTINGS, ResearchSettings
from fathom.errors import InvalidInput, NoReport, NotInstalled
from fathom.flows.preflight import check_request
from fathom.flows.runs import answering, following
from fathom.flows.runs.finding import KnownRun
from fathom.flows.runs.steering import check_author, check_remark, steer
from fathom.flows.runs.stored import no_report
from fathom.models import Matter, Reply, Report
from fathom.report.exporting import export, files_for
from fathom.service.caller import Caller, Ownership, Role
from fathom.service.corpora import CorpusDesk
from fathom.service.events import PULSE_SECONDS, Feeds, stream
from fathom.service.limits import Spending, check_choice, check_most
from fathom.service.options import Options
from fathom.service.outages import asking_patiently
from fathom.service.ownership import Deed
from fathom.service.run_list import EVERYTHING, MOST, Listing, RunFilter
from fathom.service.run_view import read_run
from fathom.service.sharing import Sharing
from fathom.service.submissions import Submissions, cancel_flow_run
from fathom.service.workers import Readiness
from fathom.storage.corpora import CorpusStore
from fathom.storage.steering import Steer
from fathom.storage.store import ArtifactStore

OF_THE_SERVER = [path for path, field in SETTINGS.items() if setting_of(field).set_by is SetBy.server]
"""Settings that no request sets: the store is the server's, and a template has a field of its own."""


class Desk:
    """The runs of one store. Everything else is Prefect's or the store's, so any number of servers can share it.

    `wake` is called when a run was started or can go on, so that a worker looks for it at once.
    """

    def __init__(self, options: Options, wake: Callable[[], object] = lambda: None) -> None:
        self.options = options
        self.store = ArtifactStore(options.artifacts)
        self.sharing = Sharing(self.store)
        self.owners = self.sharing.owners
        self.spending = Spending(self.store)
        self.corpora = CorpusDesk(CorpusStore(self.store, self.options.uploads))
        self.feeds = Feeds(self.store)
        self.readiness = Readiness(self.store, options)
        self._wake = wake
        self.listing = Listing(self.store, self.owners)
        self._submissions = Submissions(options, self.sharing, self.spending, wake)

    async def open(self) -> None:
        """Make the deployment whose runs the server starts."""
        await self._submissions.open()

    async def start(self, caller: Caller, request: RunRequest, key: str = "") -> Run:
        """Start a run; with the same key, the same caller gets the same run again.

        Raises:
            NotAllowed: the caller may not ask, or not with these settings.
            TooManyRequests: the caller has used up what a day allows.
            InvalidInput: the request cannot be researched.
            Conflict: the key was used for another request.
        """
        caller.check(Role.asker)
        if request.corpora and "corpora" in request.settings:
            raise InvalidInput("Corpora are named twice.", next_step="leave them out of the settings")
        given = {**request.settings, **({"corpora": request.corpora} if request.corpora else {})}
        settings = self.settings_for(caller, given, request.template)
        await self.corpora.check_readable(caller, settings.corpora or [])
        checked = await asyncio.to_thread(check_request, request.question, settings)
        ownership = Ownership(owner=caller.name, shared=request.shared)
        with asking_patiently():
            started = await self._submissions.submit(caller, checked.query, checked.settings, ownership, key=key)
            return await self.get(caller, started)

    async def ask(self, caller: Caller, run_id: str, request: FollowUpRequest, key: str = "") -> Run:
        """Start a run that follows up on a finished one.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NotAllowed: the caller may not ask, or not with these settings.
            TooManyRequests: the caller has used up what a day allows.
            NoReport: it has no report to follow up on.
            InvalidInput: the request cannot be researched.
        """
        caller.check(Role.asker)
        found, ownership = await self.readable(caller, run_id)
        if not found.folder:
            raise _no_report_yet(run_id)
        parent = await following.parent_of(found.stored)
        given = self.settings_for(caller, request.settings).model_dump(mode="json", exclude_unset=True)
        earlier = parent.settings_with(given)
        if "corpora" in given:
            await self.corpora.check_readable(caller, given["corpora"])
        elif "corpora" in earlier:  # of somebody else, or gone: what the earlier run has found stays
            earlier["corpora"] = await self.corpora.readable(caller, earlier["corpora"])
        settings = settings_from({**earlier, "artifacts": self.options.artifacts})
        checked = await asyncio.to_thread(check_request, request.question, settings, follow_up=True)
        own = Ownership(owner=caller.name, shared=ownership.shared)
        with asking_patiently():
            started = await self._submissions.submit(
                caller, checked.query, checked.settings, own, key=key, parent=run_id
            )
            return await self.get(caller, started)

    async def get(self, caller: Caller, run_id: str) -> Run:
        """Return a run.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        return await read_run(self.store, *await self.readable(caller, run_id))

    async def latest(
        self, caller: Caller, wanted: RunFilter = EVERYTHING, *, limit: int = 50, cursor: str = ""
    ) -> RunList:
        """Return the runs that the caller may see, the newest first; `cursor` is `next` of the page before."""
        return await self.listing.page(caller, wanted, min(limit, MOST), cursor)

    async def cancel(self, caller: Caller, run_id: str) -> None:
        """End a run without a report; one that has ended stays as it is.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NotAllowed: it is somebody else's.
        """
        found, ownership = await self.readable(caller, run_id)
        ownership.check_owner(caller, run_id)
        if found.flow_run and await cancel_flow_run(found.flow_run.id, f"{caller.name} cancelled it."):
            await self.sharing.journal.note(run_id, caller, Deed.cancelled)

    async def answer(self, caller: Caller, run_id: str, request: AnswerRequest) -> Run:
        """Answer what a run asks.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            InvalidInput: it asks nothing, or the answer cannot be used.
        """
        found, ownership = await self.readable(caller, run_id)
        ownership.check_write(caller, run_id)
        if not found.flow_run:
            raise InvalidInput(f"The run {run_id[:8]} is not waiting for an answer.")
        waits = await answering.waiting(found.flow_run.id)
        answers = request.answers
        if waits.asked.matter is Matter.question and not request.reject:
            defaults = [question.default for question in waits.asked.questions]
            answers = [given.strip() or default for given, default in zip(answers, defaults, strict=False)]
            answers += defaults[len(answers) :]
        reply = Reply(answers=answers, plan=request.plan, remark=request.remark, stop=request.reject, by=caller.name)
        await answering.answer(waits, reply)
        await self.sharing.journal.note(run_id, caller, Deed.answered, waits.asked.matter.value)
        self._wake()
        return await self.get(caller, run_id)

    async def tell(self, caller: Caller, run_id: str, text: str) -> None:
        """Tell a run that is going on what else to look at.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            InvalidInput: it is too late, or the text cannot be used.
        """
        await self._steer(caller, run_id, Steer.tell, check_remark(text))

    async def stop(self, caller: Caller, run_id: str) -> None:
        """End the research of a run and let it write with what there is.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            InvalidInput: it is too late.
        """
        await self._steer(caller, run_id, Steer.stop, "")

    async def events(self, caller: Caller, run_id: str, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield the events of a run after the one of an id, as they come, until the run has ended.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        found = await self.sharing.followed(caller, run_id)
        async with aclosing(self.sharing.while_readable(caller, found, self.feeds.follow(found, after))) as events:
            async for event in events:
                if event:
                    yield event

    async def stream(self, caller: Caller, run_id: str, after: int = 0) -> AsyncIterator[bytes]:
        """Return the events of a run as server-sent events, with a pulse while nothing happens.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        found = await self.sharing.followed(caller, run_id)
        return stream(self.sharing.while_readable(caller, found, self.feeds.follow(found, after, PULSE_SECONDS)))

    async def report(self, caller: Caller, run_id: str, form: Form) -> bytes:
        """Return the report of a run in one of its forms.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NoReport: it has no report, or none yet.
            NotInstalled: a library that the form needs is not installed.
        """
        files = await self.files(caller, run_id, files_for([form]))
        written, failed = await asyncio.to_thread(export, files, [form])
        if form in failed:
            raise NotInstalled(failed[form].message, next_step=failed[form].next_step)
        return written[form]

    async def report_data(self, caller: Caller, run_id: str) -> Report:
        """Return the report of a run as data.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NoReport: it has no report, or none yet.
        """
        found, _ = await self.readable(caller, run_id)
        if not found.folder:
            raise _no_report_yet(run_id)
        if (report := await found.folder.report()) is None:
            raise await no_report(found.folder)
        return report

    async def files(self, caller: Caller, run_id: str, names: list[str]) -> Mapping[str, bytes]:
        """Return files of a run by name.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NoReport: one does not exist.
        """
        found, _ = await self.readable(caller, run_id)
        if not found.folder:
            raise _no_report_yet(run_id)
        try:
            return {name: await found.folder.load(name) for name in names}
        except FileNotFoundError:
            raise await no_report(found.folder) from None

    async def readable(self, caller: Caller, run_id: str) -> tuple[KnownRun, Ownership]:
        """Return a run, and whose it is.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        return await self.sharing.readable(caller, run_id)

    def settings_for(self, caller: Caller, given: Mapping[str, Any], template: str | None = None) -> ResearchSettings:
        """Return the settings of a request, on the store of the server.

        Raises:
            NotAllowed: the caller may not set one of them.
            InvalidInput: one cannot be used.
        """
        for name in OF_THE_SERVER:
            if name in given:
                raise InvalidInput(f"The setting {name!r} cannot be set in a request.", next_step="leave it out")
        settings = settings_from({**given, "template": template, "artifacts": self.options.artifacts})
        check_choice(caller, settings, self.options.models)
        return settings

    async def check_use(self, caller: Caller, settings: ResearchSettings) -> None:
        """Check what each of several runs would take and read, of which `start` does not hear.

        Raises:
            NotAllowed: one run of the caller may not use so much.
            InvalidInput: there is no such corpus, or the caller may not read it.
        """
        check_most(caller, settings)
        await self.corpora.check_readable(caller, settings.corpora or [])

    async def _steer(self, caller: Caller, run_id: str, kind: Steer, text: str) -> None:
        found, ownership = await self.readable(caller, run_id)
        ownership.check_write(caller, run_id)
        await steer(found.stored, kind, text, check_author(caller.name))
        deed = Deed.told if kind is Steer.tell else Deed.stopped
        await self.sharing.journal.note(run_id, caller, deed, text)


def _no_report_yet(run_id: str) -> NoReport:
    return NoReport(f"The run {run_id[:8]} has not finished: there is no report yet.", next_step="wait for it")
