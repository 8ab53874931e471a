"""Charts of a report as inline SVG, drawn by pygal, each with its figures as rows for a table.

What pygal adds for a page of its own is taken out: its scripts, styles, ids and the date. The report's style sheet
colours the bars, so that they follow its light and dark.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from fathom.models import Phase, Report

if TYPE_CHECKING:
    from lxml.etree import _Element

WIDTH, BAR, FRAME = 460, 26, 60  # of a drawing, in its own units
FONT = 13  # as the style sheet has it: room for labels is reckoned with it
LABEL = 24  # characters of a label; the table has it whole
_LEFT_OUT = {"style", "script", "desc", "defs", "title"}


@dataclass(frozen=True)
class Chart:
    """Bars that compare rows. `columns` names what stands in the rows: first the label, then the values."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, *tuple[float, ...]], ...]
    decimals: int = 0

    @property
    def labels(self) -> list[str]:
        """The first column."""
        return [row[0] for row in self.rows]

    def values(self, column: int) -> list[float]:
        """Return a column of values, from 1."""
        return [float(row[column]) for row in self.rows]

    def shown(self, value: float) -> str:
        """Return a value as a reader sees it."""
        return f"{value:,.{self.decimals}f}"

    @property
    def svg(self) -> Markup:
        """The drawing; the same chart gives the same bytes."""
        return Markup(_drawn(self))  # noqa: S704 - a serialised tree of elements


def report_charts(report: Report) -> list[Chart]:
    """Return the charts of the evidence: by step, and the cited sources by type and by year."""
    steps = tuple((f"{s.step_id}. {s.title}", s.useful_notes, s.sources) for s in report.coverage)
    types = Counter(quality.type for quality in report.qualities)
    years = Counter(quality.published[:4] for quality in report.qualities if quality.published)
    charts = [
        Chart("Evidence by step", ("Step", "Useful notes", "Sources"), steps),
        Chart("Sources by type", ("Type", "Sources"), tuple((t, n) for t, n in types.most_common())),
        Chart("Sources by year", ("Year", "Sources"), tuple(sorted(years.items()))),
    ]
    return _telling(charts)


def phase_charts(phases: Sequence[Phase]) -> list[Chart]:
    """Return the charts of what each phase took: money, time and tokens, as far as it took any."""
    costs = tuple((p.name, p.cost_usd) for p in phases if p.cost_usd is not None)
    charts = [
        Chart("Cost by phase, in US dollars", ("Phase", "USD"), costs, decimals=4),
        Chart("Time of model calls by phase, in seconds", ("Phase", "Seconds"), _of(phases, "seconds"), decimals=1),
        Chart("Tokens by phase", ("Phase", "Tokens"), _of(phases, "tokens")),
    ]
    return _telling(charts)


def _of(phases: Sequence[Phase], field: str) -> tuple[tuple[str, float], ...]:
    return tuple((phase.name, getattr(phase, field)) for phase in phases)


def _telling(charts: Iterable[Chart]) -> list[Chart]:
    """Leave out charts that compare nothing."""
    return [chart for chart in charts if len(chart.rows) > 1 and any(map(any, (row[1:] for row in chart.rows)))]


def _drawn(chart: Chart) -> str:
    from lxml import etree
    from pygal import HorizontalBar
    from pygal.style import Style

    # pygal leaves an importer of plug-ins behind that Python warns of at every later import.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    series = len(chart.columns) - 1
    drawing = HorizontalBar(
        width=WIDTH,
        height=FRAME + BAR * len(chart.rows) * (1 + series) // 2,
        js=[],
        no_prefix=True,
        explicit_size=False,
        legend_at_bottom=True,
        show_legend=series > 1,
        truncate_legend=-1,
        print_values=True,
        print_values_position="top",
        show_x_labels=False,
        formatter=chart.shown,
        margin=4,
        margin_right=40,  # for the value behind the longest bar
        style=Style(label_font_size=FONT, legend_font_size=FONT, value_font_size=FONT),
    )
    drawing.x_labels = [_short(label) for label in reversed(chart.labels)]
    for column in range(series, 0, -1):  # a horizontal chart is drawn from the bottom up
        drawing.add(chart.columns[column], list(reversed(chart.values(column))))
    return str(etree.tostring(_bare(drawing.render_tree(), chart.title), encoding="unicode"))


def _short(label: str) -> str:
    return label if len(label) <= LABEL else f"{label[: LABEL - 1].rstrip()}…"


def _bare(svg: _Element, title: str) -> _Element:
    """Strip a drawing of all but its shapes and texts, and name it."""
    for element in list(svg.iter()):
        name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
        hidden = "tooltip-overlay" in element.get("class", "") if name else False
        parent = element.getparent()
        if parent is not None and (not name or name in _LEFT_OUT or hidden):
            parent.remove(element)
        for attribute in ("id", "style"):
            element.attrib.pop(attribute, None)
        if name == "text":  # labels end at the axis, values begin behind their bar
            in_axis = parent is not None and parent.get("class") == "guides"
            element.set("text-anchor", "end" if in_axis else "start")
    svg.set("role", "img")
    svg.set("aria-label", title)
    return svg
