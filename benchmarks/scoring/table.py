"""The scores of one system, or of two side by side, as a Markdown table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.scoring.summary import ROWS, Row, Scored, calibration, difference, labels, outcome


def report(systems: Sequence[Scored]) -> str:
    """Return the scores of one system or two, and their right answers by kind of question."""
    return "\n\n".join(filter(None, [table(systems), nothing_shared(systems), kinds(systems)]))


def missed(system: Scored) -> str:
    """Return a line for each question that did not end as it should: how it ended, its id and the question."""
    lines = []
    for run, scores in zip(system.runs.finished, system.scores, strict=True):
        said, well = outcome(scores)
        if well is False:
            lines.append(f"  {said:26} {run.question.id:14} {run.question.question}")
    return "\n".join([f"{len(lines)} of {len(system.scores)} questions did not end as they should:", *lines])


def table(systems: Sequence[Scored]) -> str:
    """Return a row for each measure that applies; with two systems, the difference and its 95 % interval."""
    heads = ["", *(f"{label} ({len(one.scores)})" for label, one in zip(labels(systems), systems, strict=True))]
    if len(systems) == 2:
        heads.append("difference")
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    for row in ROWS:
        values = [row.mean(one.scores) for one in systems]
        if all(value is None for value in values):
            continue
        cells = [row.shown(value) + _of(row, one) for value, one in zip(values, systems, strict=True)]
        lines.append([row.name, *cells, *([_difference(row, *systems)] if len(systems) == 2 else [])])
    for one in systems:
        if found := calibration(one.scores):
            error, brier, count = found
            lines.append([f"Calibration error, {one.label}", f"{100 * error:.0f} % (Brier {brier:.2f}, {count})"])
    return "\n".join(f"| {' | '.join([*line, *[''] * (len(heads) - len(line))])} |" for line in lines)


def kinds(systems: Sequence[Scored]) -> str:
    """Return the right endings by kind of question: right answers, or refusals where there is no answer."""
    rows = list(_kinds(systems))
    if len(rows) < 2:
        return ""
    heads = ["kind", *labels(systems)]
    lines = [heads, ["---", *["--:"] * len(systems)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _kinds(systems: Sequence[Scored]) -> Iterator[list[str]]:
    by_kind: defaultdict[str, list[list[bool]]] = defaultdict(lambda: [[] for _ in systems])
    for number, system in enumerate(systems):
        for run, scores in zip(system.runs.finished, system.scores, strict=True):
            ended = scores.right if scores.right is not None else scores.refused
            if ended is not None:
                by_kind[run.question.kind][number].append(ended)
    for kind, columns in by_kind.items():
        yield [kind or "-", *(f"{sum(column)} of {len(column)}" if column else "-" for column in columns)]


def nothing_shared(systems: Sequence[Scored]) -> str:
    """Return why two systems have no differences, if they have none for want of a common question."""
    if len(systems) == 2 and not systems[0].by_id().keys() & systems[1].by_id().keys():
        return "No question was put to both, so there are no differences."
    return ""


def _of(row: Row, system: Scored) -> str:
    """Return to how many runs a measure applies, if not to all."""
    count = row.applies(system.scores)
    return "" if row.form == "count" or count == len(system.scores) or not count else f" of {count}"


def _difference(row: Row, one: Scored, other: Scored) -> str:
    found = difference(row, one, other)
    if not found:
        return "-"
    sign = "+" if found.value >= 0 else "-"
    shown = f"{sign}{row.shown(abs(found.value))}"
    low, high = row.shown(found.low), row.shown(found.high)
    return f"{shown} ({low} to {high}, n = {found.questions}){'' if found.clear else ', not clear'}"
