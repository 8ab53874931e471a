"""Runs, for every door: the API, the page, the OpenAI-compatible endpoint and the MCP server.

A run is opened for whoever asks, which checks that they may see it; what they may do with it, the run they have checks.
So no protocol can forget it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, nullcontext
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary

from fathom.client.shapes import (
    ActivityEntry,
    AnswerRequest,
    FollowUpRequest,
    RatingRequest,
    Run,
    RunEvent,
    RunList,
    RunRequest,
    ShareLink,
)
from fathom.config.environment import Environment
from fathom.config.form import SetBy, setting_of
from fathom.config.given import settings_from
from fathom.config.settings import SETTINGS, ResearchSettings
from fathom.errors import (
    Conflict,
    FathomError,
    InvalidInput,
    InvalidState,
    NoReport,
    NotAllowed,
    NotThere,
    RunNotFound,
    UserError,
)
from fathom.evidence.provenance import as_left
from fathom.flows.execution.resuming import reschedule
from fathom.flows.housekeeping import remove_run
from fathom.flows.preflight import check_request
from fathom.flows.runs import answering, following
from fathom.flows.runs.finding import Finder, KnownRun, find_run, no_run
from fathom.flows.runs.library import Library
from fathom.flows.runs.steering import check_author, check_remark, steer
from fathom.flows.runs.stored import find, no_report
from fathom.models import Matter, Reply, Report, ReportRating, RunState
from fathom.service.activity import Action, ActivityLog
from fathom.service.caller import AccessRole, Caller, check_owner, check_read, owned_by
from fathom.service.corpora import CorpusService
from fathom.service.events import Feeds, LogReader
from fathom.service.limits import Spending, capped, check_choice, check_most, choosable, most_usd
from fathom.service.links import ShareLinks
from fathom.service.options import Options
from fathom.service.run_list import EVERYTHING, MOST, Listing, RunFilter
from fathom.service.run_view import Hide, hidden, hiding_of, plain, read_run, told
from fathom.service.submissions import Submissions, cancel_flow_run
from fathom.service.workers import Readiness
from fathom.storage.corpora import CorpusStore
from fathom.storage.ownership import Owners, Ownership
from fathom.storage.steering import Ratings, Steer, Steering, SteeringEntry
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.text.plain import clean_line

OF_THE_SERVER = [path for path, field in SETTINGS.items() if setting_of(field).set_by is SetBy.server]
"""Settings that no request sets: the store is the server's, and a template has a field of its own."""
MOST_TITLE = 200  # characters
_STEERED = {Steer.tell: Action.told, Steer.back: Action.took_back, Steer.stop: Action.stopped}
LOOK_SECONDS = 2.0  # between two looks at whether somebody who follows a run still may


class RunService:
    """The runs of one store. Everything else is Prefect's or the store's, so any number of servers can share it.

    `wake` is called when a run was started or can go on, so that a worker looks for it at once.
    """

    def __init__(self, options: Options, wake: Callable[[], object] = lambda: None) -> None:
        self.options = options
        self.wake = wake
        self.store = ArtifactStore(options.artifacts)
        self.owners = Owners(self.store)
        self.links = ShareLinks(self.store)
        self.activity = ActivityLog(self.store)
        self.ratings = Ratings(self.store)
        self.spending = Spending(self.store)
        self.corpora = CorpusService(CorpusStore(self.store, options.uploads))
        self.feeds = Feeds(self.store)
        self.readiness = Readiness(self.store, options)
        self.submissions = Submissions(options, self.owners, self.activity, self.spending, wake)
        self.listing = Listing(self.store, self.owners)
        self._finder = Finder(self.store)
        self.library = Library(self.store, Environment.read().cache)
        self.resuming = WeakValueDictionary[str, asyncio.Lock]()  # by run, so that each is paid for once
        self.adding_watch = asyncio.Lock()  # so that watches are counted one after another

    async def start(self, caller: Caller, request: RunRequest, key: str = "") -> Run:
        """Start a run; with the same key, the same caller gets the same run again.

        Raises:
            NotAllowed: the caller may not ask, or not with these settings.
            TooManyRequests: the caller has used up what a day allows.
            InvalidInput: the request cannot be researched.
            Conflict: the key was used for another request.
        """
        caller.check(AccessRole.asker)
        if request.corpora and "corpora" in request.settings:
            raise InvalidInput("Corpora are named twice.", next_step="leave them out of the settings")
        given = {**request.settings, **({"corpora": request.corpora} if request.corpora else {})}
        settings = self.settings_for(caller, given, request.template)
        settings = await self.corpora.named_in(caller, settings)
        checked = await asyncio.to_thread(check_request, request.question, settings, ask_prefect=False)
        ownership = owned_by(caller, shared=request.shared)
        started = await self.submissions.submit(caller, checked.query, checked.settings, ownership, key=key)
        return told(await self.read(caller, started), checked)

    async def open(self, caller: Caller, run_id: str, *, to_follow: bool = False) -> RunHandle:
        """Return a run for whoever asks. Many who come to follow one at the same moment share what was found.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        found = await (self._finder.find(run_id) if to_follow else find_run(self.store, run_id))
        return RunHandle(self, caller, found, await self.ownership(caller, found))

    async def ownership(self, caller: Caller, found: KnownRun) -> Ownership:
        """Return whose a run is, as `open` does."""
        own = await self.links.with_guest(await self.owners.of(found.run_id, found.tags), found.run_id, caller)
        check_read(own, caller, no_run(found.run_id))
        return own

    async def open_public(self, run_id: str, secret: str) -> RunHandle:
        """Return a run for anyone who has a public link to it.

        Raises:
            NotThere: it is no such link, was removed, or this server has none.
        """
        if not self.options.public_links or not await self.links.is_public(run_id, secret):
            raise NotThere("There is no such link.", next_step="ask whoever sent it for another one")
        found = await find_run(self.store, run_id)
        return RunHandle(self, Caller("", AccessRole.reader), found, Ownership())

    async def read(self, caller: Caller, run_id: str) -> Run:
        """Return what is known of a run now, as `open` does."""
        return await (await self.open(caller, run_id)).read()

    async def latest(
        self, caller: Caller, wanted: RunFilter = EVERYTHING, *, limit: int = 50, cursor: str = ""
    ) -> RunList:
        """Return the runs that the caller may see, the newest first; `cursor` is `next` of the page before."""
        return await self.listing.page(caller, wanted, min(limit, MOST), cursor)

    async def join(self, caller: Caller, run_id: str, secret: str) -> None:
        """Let a caller in who has a link; from then on they read the run without it.

        Raises:
            NotThere: it is no link to this run, or was removed.
        """
        if link_id := await self.links.join(run_id, secret, caller):
            await self.activity.note(run_id, caller, Action.joined, link_id)

    def store_address(self, caller: Caller | None) -> str:
        """Return where the store is; empty for all but administrators, who alone may know."""
        return self.store.address() if caller and caller.is_admin else ""

    def hide_paths(self, error: FathomError, caller: Caller | None) -> None:
        """Take where the store and the documents are out of a failure, unless the caller may know."""
        if not self.store_address(caller):
            error.message = self.without_paths(error.message)
            error.next_step = error.next_step and self.without_paths(error.next_step)

    def without_paths(self, text: str) -> str:
        """Return a text for people without where on the server the store, the documents and its Python are."""
        text = text.replace(root := self.store.address(), "the store").replace(sys.executable, "python")
        return hidden(text.encode(), root, {"docs": [*self.options.docs]}).decode()

    async def in_folder(self, caller: Caller, name: str) -> str:
        """Return the id of the run in a folder, as a follow-up names it; empty if there is none to see."""
        try:
            return (await self.open(caller, (await find(self.store, name)).run_id)).run_id
        except UserError:
            return ""

    def settings_for(
        self, caller: Caller, given: Mapping[str, Any], template: str | None = None, *, follow_up: bool = False
    ) -> ResearchSettings:
        """Return the settings of a request, on the store of the server; with its documents if a new one names none.

        Raises:
            NotAllowed: the caller may not set one of them.
            InvalidInput: one cannot be used.
        """
        if named := [name for name in OF_THE_SERVER if name in given]:
            raise InvalidInput(f"The setting {named[0]!r} cannot be set in a request.", next_step="leave it out")
        own = {} if follow_up or given.get("corpora") or not self.options.docs else {"docs": [*self.options.docs]}
        settings = settings_from({**own, **given, "template": template, "artifacts": self.options.artifacts})
        check_choice(caller, settings, self.options)
        return settings

    async def check_use(self, caller: Caller, settings: ResearchSettings) -> ResearchSettings:
        """Check what each of several runs would take and read, of which `start` does not hear; see `named_in`.

        Raises:
            NotAllowed: one run of the caller may not use so much.
            InvalidInput: there is no such corpus, or the caller may not read it.
        """
        check_most(caller, settings)
        return await self.corpora.named_in(caller, settings)


class RunHandle:
    """A run that `caller` may see, as it was found, and all that they may do with it."""

    def __init__(self, service: RunService, caller: Caller, found: KnownRun, ownership: Ownership) -> None:
        self.caller = caller
        self.found = found
        self.run_id = found.run_id
        self.store = service.store
        self._service = service
        self._ownership = ownership

    async def read(self) -> Run:
        """Return what is known of the run."""
        return await read_run(self.store, self.found, self._ownership, with_paths=self.caller.is_admin)

    async def hiding(self) -> Hide | None:
        """Return what takes paths of the server out of a text of the run; None for administrators, who see them."""
        return None if self.caller.is_admin else await hiding_of(self.found, self.store.address())

    async def ask(self, request: FollowUpRequest, key: str = "") -> Run:
        """Start a run that follows up on this finished one.

        Raises:
            NotAllowed: the caller may not ask, or not with these settings.
            TooManyRequests: the caller has used up what a day allows.
            NoReport: its evidence was removed.
            InvalidInput: the request cannot be researched.
        """
        self.caller.check(AccessRole.asker)
        self.finished()
        service, caller = self._service, self.caller
        wanted = service.settings_for(caller, request.settings, follow_up=True)
        given = wanted.model_dump(mode="json", exclude_unset=True)
        parent = await following.parent_of(self.found.stored)
        taken = choosable(caller, parent.settings, service.options)
        earlier = parent.model_copy(update={"settings": taken}).settings_with(given)
        if "corpora" in given:
            earlier["corpora"] = await service.corpora.check_readable(caller, given["corpora"])
        elif "corpora" in earlier:  # of somebody else, or gone: what the earlier run has found stays
            earlier["corpora"] = await service.corpora.readable(caller, earlier["corpora"])
            if not (earlier["corpora"] or earlier.get("docs")):
                earlier = following.without_corpora(parent, earlier, request.question)
        settings = settings_from({**earlier, "artifacts": service.options.artifacts})
        ask = request.question, settings
        checked = await asyncio.to_thread(check_request, *ask, follow_up=not parent.refused, ask_prefect=False)
        own, submit = owned_by(caller, shared=self._ownership.shared), service.submissions.submit
        started = await submit(caller, checked.query, checked.settings, own, key=key, parent=self.run_id)
        return told(await service.read(caller, started), checked)

    async def cancel(self) -> None:
        """End the run without a report; one that has ended stays as it is.

        Raises:
            NotAllowed: it is somebody else's.
        """
        self._check_owner()
        if self.found.flow_run and await cancel_flow_run(self.found.flow_run.id, f"{self.caller.name} cancelled it."):
            await self._note(Action.cancelled)

    async def remove(self) -> None:
        """Remove the run, which has ended, with its report and all of its files; its follow-ups stay.

        Raises:
            NotAllowed: it is somebody else's.
            InvalidState: it has not ended.
            RunBusy: a process works on it.
        """
        self._check_owner()
        if not (run := await self.read()).state.ended:
            raise InvalidState(f"The run is {run.state.value}.", next_step="cancel it first")
        await remove_run(self.found.stored)
        await self._service.links.clear(self.run_id)
        await self._service.corpora.corpora.discard(run.settings.get("corpora") or [])
        await self._note(Action.removed)

    async def rename(self, title: str) -> None:
        """Give the run a name under which it is listed; empty for its question.

        Raises:
            NotAllowed: it is somebody else's.
        """
        self._check_owner()
        own = self._ownership.model_copy(update={"title": clean_line(title)[:MOST_TITLE], "guest": ""})
        await self._service.owners.record(self.run_id, own)
        await self._note(Action.renamed, own.title)

    async def resume(self) -> Run:
        """Have a worker continue the run, which was interrupted, failed or was cancelled.

        Raises:
            NotAllowed: it is somebody else's.
            TooManyRequests: the caller has used up what a day allows.
            InvalidState: there is nothing to continue.
            Conflict: no worker can do it.
            RunBusy: a process works on it.
        """
        self._check_owner()  # it spends what is theirs
        async with self._service.resuming.setdefault(self.run_id, asyncio.Lock()):
            return await (await self._service.open(self.caller, self.run_id))._resume()

    async def _resume(self) -> Run:
        state, flow_run, spending = (await self.read()).state, self.found.flow_run, self._service.spending
        if state not in (RunState.interrupted, RunState.failed, RunState.cancelled):
            how = "read its result" if state.ended else "wait for it"
            raise InvalidState(f"The run is {state.value}: there is nothing to resume.", next_step=how)
        if flow_run is None or not self.found.by_worker:
            how = f"fathom resume {self.run_id[:8]}, on the machine of the server"
            raise Conflict("No worker can take this run: the server did not start it.", next_step=how)
        # What it had not spent may have been given back when it stopped.
        settings = capped(self.caller, ResearchSettings.model_validate(flow_run.parameters.get("settings") or {}))
        held = await spending.holds(self.caller, self.run_id)
        async with nullcontext() if held else spending.taking(self.caller, most_usd(settings)) as taken:
            await reschedule(flow_run)
        if taken:
            await spending.hold_again(self.caller, taken, self.run_id)
        return await self._service.read(self.caller, self.run_id)

    async def answer(self, request: AnswerRequest) -> Run:
        """Answer what the run asks.

        Raises:
            NotAllowed: the caller may not ask.
            InvalidInput: it asks nothing, or the answer cannot be used.
        """
        self.caller.check(AccessRole.asker)
        if not self.found.flow_run:
            raise InvalidInput(f"The run {self.run_id[:8]} is not waiting for an answer.")
        waits = await answering.waiting(self.found.flow_run.id)
        answers = request.answers
        if waits.asked.matter is Matter.question and not request.reject:
            defaults = [question.default for question in waits.asked.questions]
            answers = [given.strip() or default for given, default in zip(answers, defaults, strict=False)]
            answers += defaults[len(answers) :]
        by = self.caller.name
        reply = Reply(answers=answers, plan=request.plan, remark=request.remark, stop=request.reject, by=by)
        await answering.answer(waits, reply)
        await self._note(Action.answered, waits.asked.matter.value)
        self._service.wake()
        return await self._service.read(self.caller, self.run_id)

    async def steer(self, kind: Steer, text: str = "") -> None:
        """Tell the run, which is going on, something, take a remark back by its token, or end the research.

        Raises:
            NotAllowed: the caller may not ask.
            InvalidInput: it is too late, or the text cannot be used.
        """
        self.caller.check(AccessRole.asker)
        said = check_remark(text) if kind is Steer.tell else text
        steered = await steer(self.found.stored, kind, said, check_author(self.caller.name))
        await self._note(_STEERED[kind], steered.text)

    async def said(self) -> list[SteeringEntry]:
        """Return what was said to the run so far."""
        return await Steering(self.store, self.found.stored.run_key, self.run_id).entries()

    async def rate(self, request: RatingRequest) -> list[ReportRating]:
        """Rate the report of the run, in place of an earlier rating, and return all ratings.

        Raises:
            NotAllowed: the caller may not ask.
            NoReport: there is no report to rate.
            InvalidInput: the note cannot be used.
        """
        self.caller.check(AccessRole.asker)
        await self.report_data()
        note = check_remark(request.note) if request.note else ""
        await self._service.ratings.give(self.run_id, good=request.good, note=note, by=self.caller.name)
        await self._note(Action.rated, "up" if request.good else "down")
        return await self.ratings()

    async def ratings(self) -> list[ReportRating]:
        """Return the ratings of the report of the run, the oldest first."""
        return await self._service.ratings.of(self.run_id)

    async def log(self) -> list[RunEvent]:
        """Return the events of the run so far."""
        hide = await self.hiding()
        return [plain(event, hide) for event in await LogReader.of(self.store, self.found).new()]

    async def events(self, after: int = 0, pulse: float | None = None) -> AsyncGenerator[RunEvent | None, None]:
        """Yield the events of the run after the event `after`, as they come; None after `pulse` seconds without one.

        It ends when the run has, and when the caller may no longer see it.
        """
        looked, hide = monotonic(), await self.hiding()
        async with aclosing(self._service.feeds.follow(self.found, after, pulse)) as events:
            async for event in events:
                if not self.caller.is_admin and monotonic() - looked > LOOK_SECONDS:
                    looked = monotonic()
                    try:
                        await self._service.ownership(self.caller, self.found)
                    except RunNotFound:
                        return
                yield event and plain(event, hide)

    async def report_data(self) -> Report:
        """Return the report of the run as data.

        Raises:
            NoReport: it has no report, or none yet.
        """
        folder = self.finished()
        if (report := await folder.report()) is None:
            raise await no_report(folder)
        return report

    async def files(self, names: list[str]) -> Mapping[str, bytes]:
        """Return files of the run by name, without the questions that follow it: not all of them are for the caller.

        Raises:
            NoReport: one does not exist.
        """
        folder = self.finished()
        try:
            return {name: as_left(name, await folder.load(name)) for name in names}
        except FileNotFoundError:
            raise await no_report(folder) from None

    def finished(self) -> RunFolder:
        """Return where the files of the run are.

        Raises:
            NoReport: it has none yet.
        """
        if self.found.folder:
            return self.found.folder
        raise NoReport(f"The run {self.run_id[:8]} has not finished: there is no report yet.", next_step="wait for it")

    async def share(self, *, shared: bool) -> None:
        """Share the run with everybody who may sign in, or with nobody any more.

        Raises:
            NotAllowed: it is somebody else's.
        """
        self._check_owner()
        if self._ownership.shared != shared:
            own = self._ownership.model_copy(update={"shared": shared, "guest": ""})
            await self._service.owners.record(self.run_id, own)
            await self._note(Action.shared if shared else Action.unshared)

    async def link(self, *, public: bool = False) -> ShareLink:
        """Make a link to the run for whoever has it and is signed in; with `public`, for anyone, to its report only.

        Raises:
            NotAllowed: it is somebody else's, or this server has no public links.
        """
        self._check_owner()
        if public and not self._service.options.public_links:
            raise NotAllowed("This server has no public links.", next_step="export the report: fathom export --to html")
        made = await self._service.links.make(self.run_id, self.caller, public=public)
        await self._note(Action.linked, made.id)
        return made

    async def links(self) -> list[ShareLink]:
        """Return the links to the run, without their addresses.

        Raises:
            NotAllowed: it is somebody else's.
        """
        self._check_owner()
        return await self._service.links.of(self.run_id)

    async def unlink(self, link_id: str) -> None:
        """Remove a link; who came by it may no longer read the run.

        Raises:
            NotAllowed: it is somebody else's.
            NotThere: there is no such link.
        """
        self._check_owner()
        await self._service.links.remove(self.run_id, link_id)
        await self._note(Action.unlinked, link_id)

    async def activity(self) -> list[ActivityEntry]:
        """Return what people did with the run over a server, in order."""
        found = await self._service.activity.of(self.run_id)
        return [ActivityEntry(**entry.model_dump(exclude={"unique", "token"})) for entry in found]

    def _check_owner(self) -> None:
        check_owner(self._ownership, self.caller, "run")

    async def _note(self, action: Action, detail: str = "") -> None:
        await self._service.activity.note(self.run_id, self.caller, action, detail)
