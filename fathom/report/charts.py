"""Charts of a report: what they compare, and where each bar goes; the template draws them as inline SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fathom.models import Phase, Report

_LONGEST_BAR = 270  # in units of the drawing, which is 340 wide: the value follows its bar


@dataclass(frozen=True)
class Chart:
    """Horizontal bars that compare rows. `columns` names what is in a row: the label, then one or two values."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, *tuple[float, ...]], ...]
    decimals: int = 0

    def shown(self, value: float) -> str:
        """Return a value as a reader sees it."""
        return f"{value:,.{self.decimals}f}"

    def length(self, value: float) -> str:
        """Return the length of a value's bar, in units of the drawing."""
        return f"{_LONGEST_BAR * value / max(max(row[1:]) for row in self.rows):.1f}"


def report_charts(report: Report) -> list[Chart]:
    """Return the charts of the evidence: by step, and the cited sources by type and by year."""
    steps = tuple((f"{s.step_id}. {s.title}", s.useful_notes, s.sources) for s in report.coverage)
    types = Counter(quality.type for quality in report.qualities)
    years = Counter(quality.published[:4] for quality in report.qualities if quality.published)
    return _useful(
        Chart("Evidence by step", ("Step", "Useful notes", "Sources"), steps),
        Chart("Sources by type", ("Type", "Sources"), tuple(types.most_common())),
        Chart("Sources by year", ("Year", "Sources"), tuple(sorted(years.items()))),
    )


def phase_charts(phases: Sequence[Phase]) -> list[Chart]:
    """Return the charts of the cost, time and tokens of each phase, as far as they are known."""
    costs = tuple((p.name, p.cost_usd) for p in phases if p.cost_usd is not None)
    times = tuple((p.name, p.seconds) for p in phases)
    tokens = tuple((p.name, p.tokens) for p in phases)
    return _useful(
        Chart("Cost by phase, in US dollars", ("Phase", "USD"), costs, decimals=4),
        Chart("Time of model calls by phase, in seconds", ("Phase", "Seconds"), times, decimals=1),
        Chart("Tokens by phase", ("Phase", "Tokens"), tokens),
    )


def _useful(*charts: Chart) -> list[Chart]:
    """Leave out charts that compare nothing."""
    return [chart for chart in charts if len(chart.rows) > 1 and any(any(row[1:]) for row in chart.rows)]
