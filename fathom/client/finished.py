"""A run that has ended, with what it found."""

from __future__ import annotations

from fathom.client.core import Core, Program, path, read
from fathom.client.shapes import MEDIA_TYPES, Run
from fathom.models import Claim, Report, Source


class FinishedRun(Run):
    """A run that has ended, also one that failed or was cancelled: `state` says how, and `reason` why."""

    report: str  # in Markdown; empty if there is none
    report_data: Report | None  # the report as data

    @property
    def answer(self) -> str:
        """The answer in short, which cites sources by id; empty without a report."""
        if self.result and self.result.answer:
            return self.result.answer
        return self.report_data.sections[0].markdown if self.report_data and self.report_data.sections else ""

    @property
    def sources(self) -> list[Source]:
        """The sources that were found."""
        return self.result.sources if self.result else []

    @property
    def claims(self) -> list[Claim]:
        """The sentences of the report, each with the quotes that support it."""
        return self.report_data.claims if self.report_data else []

    @property
    def cost(self) -> float | None:
        """What the run cost in US dollars; None if a price is not known."""
        return self.cost_usd

    @property
    def reason(self) -> str:
        """Why the run is not complete; empty if it is, or if nobody knows."""
        return self.result.reason if self.result else ""


def finished(core: Core, run: Run) -> Program[FinishedRun]:
    """Return a run that has ended, with its report."""
    report, data = "", None
    if run.links.report:
        place = path("runs", run.id, "report")
        report = (yield from core.send(core.request("GET", place, headers={"Accept": MEDIA_TYPES["md"]}))).text
        answer = yield from core.send(core.request("GET", place, headers={"Accept": MEDIA_TYPES["json"]}))
        data = read(Report, answer)
    return FinishedRun.model_construct(**dict(run), report=report, report_data=data)
