"""The client's methods for runs: starting, reading, following, answering and ending them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx

from fathom.client.core import Core, Pause, Program, made, path
from fathom.client.following import D, FinishedRun, Following, Pages, Resource, endpoint, finished, following, listing
from fathom.client.shapes import (
    MEDIA_TYPES,
    AnswerRequest,
    ArtifactInfo,
    ArtifactList,
    Checkup,
    ClaimList,
    FollowUpRequest,
    Form,
    RatingRequest,
    RemarkList,
    RemarkRequest,
    Run,
    RunList,
    RunRequest,
    RunSummary,
    SourceList,
)
from fathom.models import Plan, RunState

LONGEST_LOOK = 5.0
"""Maximum seconds between two polls of a run."""


class Runs(Resource[D]):
    """The runs of a server."""

    @endpoint
    def start(
        self,
        question: str,
        *,
        settings: Mapping[str, Any] | None = None,
        template: str | None = None,
        corpora: Sequence[str] = (),
        shared: bool = False,
        idempotency_key: str | None = None,
    ) -> Program[Run]:
        """Start a run and return it at once.

        Args:
            question: what to research.
            settings: settings of the run by name, as docs/settings.md lists them.
            template: the name of a template.
            corpora: names of uploaded corpora to read.
            shared: whether everybody who may read may see, answer and steer the run.
            idempotency_key: with the same key, the same run is returned again. By default each call has its own, so
                that no attempt starts a second run.

        Raises:
            FathomError: the server refuses, or it does not answer.
        """
        return start(self._core, request_of(question, settings, template, corpora, shared), idempotency_key)

    @endpoint
    def get(self, run_id: str) -> Program[Run]:
        """Return a run: its state, plan, metrics and result."""
        return self._core.ask(Run, "GET", path("runs", run_id))

    @listing
    def list(
        self,
        *,
        q: str | None = None,
        state: Sequence[RunState | str] = (),
        mine: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        parent: str | None = None,
        watch: str | None = None,
    ) -> Pages[RunSummary]:
        """Iterate over the runs that you may see, the newest first.

        Args:
            q: words of the question.
            state: only runs in one of these states.
            mine: only runs that you started.
            since: only runs that were started at this time or later.
            until: only runs that were started before.
            parent: only follow-ups of this run.
            watch: only runs of the watch of this name.
        """
        wanted = {
            "q": q,
            "state": [RunState(one).value for one in state] or None,
            "mine": True if mine else None,
            "since": since.isoformat() if since else None,
            "until": until.isoformat() if until else None,
            "parent": parent,
            "watch": watch,
        }

        def page(cursor: str | None) -> Program[tuple[Sequence[RunSummary], str | None]]:
            found = yield from self._core.ask(RunList, "GET", "/runs", params={**wanted, "cursor": cursor})
            return found.runs, found.next

        return Pages(page)

    @endpoint
    def cancel(self, run_id: str) -> Program[None]:
        """End a run without a report. A run that has ended stays as it is."""
        yield from self._core.send("DELETE", path("runs", run_id))

    @endpoint
    def answer(
        self,
        run_id: str,
        answers: Sequence[str] = (),
        *,
        plan: Plan | None = None,
        remark: str = "",
        reject: bool = False,
    ) -> Program[Run]:
        """Answer a run's question (`run.asked`). Without arguments, the run's proposal is accepted as it is.

        Args:
            run_id: the run.
            answers: answers to its questions, one for each.
            plan: the plan as you edited it.
            remark: what to change, in words.
            reject: stop the run instead of accepting what it shows.
        """
        request = made(AnswerRequest, answers=[*answers], plan=plan, remark=remark, reject=reject)
        return self._core.ask(Run, "POST", path("runs", run_id, "answer"), json=request)

    @endpoint
    def tell(self, run_id: str, text: str) -> Program[None]:
        """Tell a run in progress what else to look at."""
        request = made(RemarkRequest, text=text)
        yield from self._core.send("POST", path("runs", run_id, "remarks"), json=request)

    @endpoint
    def remarks(self, run_id: str) -> Program[RemarkList]:
        """Return the remarks that a run in progress has not taken up yet, the oldest first."""
        return self._core.ask(RemarkList, "GET", path("runs", run_id, "remarks"))

    @endpoint
    def take_back(self, run_id: str, remark_id: str) -> Program[None]:
        """Take a remark back that the run has not taken up yet."""
        yield from self._core.send("DELETE", path("runs", run_id, "remarks", remark_id))

    @endpoint
    def stop(self, run_id: str) -> Program[None]:
        """End the research of a run, and let it write its report from what it has found."""
        yield from self._core.send("POST", path("runs", run_id, "stop"))

    @endpoint
    def rate(self, run_id: str, *, good: bool, note: str = "") -> Program[None]:
        """Say whether a report was of use, and why. It replaces your earlier rating."""
        request = made(RatingRequest, good=good, note=note)
        yield from self._core.send("PUT", path("runs", run_id, "rating"), json=request)

    @endpoint
    def resume(self, run_id: str) -> Program[Run]:
        """Continue a run that was interrupted, failed or cancelled."""
        return self._core.ask(Run, "POST", path("runs", run_id, "resume"))

    @endpoint
    def ask(
        self,
        run_id: str,
        question: str,
        *,
        settings: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Program[Run]:
        """Start a run that follows up on a finished one, and return it at once.

        Args:
            run_id: the finished run.
            question: what else to research.
            settings: settings that replace the finished run's.
            idempotency_key: as of `start`.
        """
        request = made(FollowUpRequest, question=question, settings=dict(settings or {}))
        key = {"Idempotency-Key": idempotency_key or uuid4().hex}
        return self._core.ask(Run, "POST", path("runs", run_id, "ask"), json=request, headers=key)

    @following
    def events(self, run_id: str, *, after: int = 0) -> Following:
        """Iterate over the events of a run as they come, until it has ended. `after`: the id of the last one known."""
        begin = self._core.ask(Run, "GET", path("runs", run_id))
        return Following(self._core, begin, after)

    @endpoint
    def wait(self, run_id: str, *, timeout: float | None = None) -> Program[FinishedRun]:
        """Wait until a run has ended, and return it with its report.

        Raises:
            TimeoutError: it has not ended within `timeout` seconds. It goes on.
        """
        deadline, pause = time.monotonic() + (float("inf") if timeout is None else timeout), 0.25
        while True:
            run = yield from self._core.ask(Run, "GET", path("runs", run_id))
            if run.state.ended:
                return (yield from finished(self._core, run))
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"The run {run.id} is {run.state.value} after {timeout} seconds.")
            yield Pause(min(pause, left))
            pause = min(pause * 1.5, LONGEST_LOOK)

    @endpoint
    def report(self, run_id: str) -> Program[str]:
        """Return the report of a run in Markdown.

        Raises:
            NoReport: it has none, or none yet.
        """
        return (yield from _report(self._core, run_id, "md")).text

    @endpoint
    def export(self, run_id: str, form: Form) -> Program[bytes]:
        """Return the report of a run in one of its forms: md, html, json, docx, pdf, bib or ris.

        Raises:
            NoReport: it has none, or none yet.
        """
        return (yield from _report(self._core, run_id, form)).content

    @endpoint
    def claims(self, run_id: str) -> Program[ClaimList]:
        """Return the claims of the report of a run, each with the verdict on it and its quotes."""
        return self._core.ask(ClaimList, "GET", path("runs", run_id, "claims"))

    @endpoint
    def sources(self, run_id: str) -> Program[SourceList]:
        """Return the sources of a run, the cited ones first."""
        return self._core.ask(SourceList, "GET", path("runs", run_id, "sources"))

    @endpoint
    def artifacts(self, run_id: str) -> Program[Sequence[ArtifactInfo]]:
        """Return which files a run has."""
        return (yield from self._core.ask(ArtifactList, "GET", path("runs", run_id, "artifacts"))).artifacts

    @endpoint
    def artifact(self, run_id: str, name: str) -> Program[bytes]:
        """Return a file of a run."""
        place = path("runs", run_id, "artifacts", name)
        return (yield from self._core.send("GET", place, headers={"Accept": "*/*"})).content

    @endpoint
    def verify(self, run_id: str) -> Program[Checkup]:
        """Check the report of a run again, from its stored files."""
        return self._core.ask(Checkup, "POST", path("runs", run_id, "verify"))


def request_of(
    question: str, settings: Mapping[str, Any] | None, template: str | None, corpora: Sequence[str], shared: bool
) -> RunRequest:
    """Return the request for a run. Settings that were not given are left out, so that older servers accept it."""
    given = {"settings": dict(settings or {}), "template": template, "corpora": [*corpora], "shared": shared}
    return made(RunRequest, question=question, **{name: value for name, value in given.items() if value})


def start(core: Core, request: RunRequest, key: str | None) -> Program[Run]:
    """Start a run, only once however often the request is sent."""
    headers = {"Idempotency-Key": key or uuid4().hex}
    return core.ask(Run, "POST", "/runs", json=request, headers=headers)


def _report(core: Core, run_id: str, form: Form) -> Program[httpx.Response]:
    return core.send("GET", path("runs", run_id, "report"), headers={"Accept": MEDIA_TYPES[form]})
