"""The measures of all runs of a system in one row each, and two systems side by side."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Self

from benchmarks import metrics
from benchmarks.results import Question
from benchmarks.scoring.measures import Scores, score
from benchmarks.scoring.reading import Finished, Runs, read_runs

RESAMPLES = 2_000
"""Of the paired bootstrap (Efron and Tibshirani, 1993): questions are drawn with replacement, the same of both."""

Values = Sequence[float | None]


@dataclass(frozen=True)
class Scored:
    """A system's runs with their scores."""

    runs: Runs
    scores: list[Scores]

    @property
    def label(self) -> str:
        """What names it in a table."""
        return f"{self.runs.system.name}, {self.runs.system.model or 'no model'}"

    @classmethod
    def of(cls, folder: Path, expected: Mapping[str, Question] | None = None) -> Self:
        """Score the runs of a folder; `expected`: what is, by the question, where the folder does not say."""
        runs = read_runs(folder, expected)
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            return cls(runs, list(pool.map(score, runs.finished, chunksize=4)))

    def among(self, names: Collection[str]) -> Self:
        """Return the runs and scores of some questions, by their ids."""
        kept = [pair for name, pair in self.by_id().items() if name in names]
        return replace(
            self, runs=replace(self.runs, finished=[run for run, _ in kept]), scores=[one for _, one in kept]
        )

    def by_id(self) -> dict[str, tuple[Finished, Scores]]:
        """Return runs and scores by the id of the question."""
        pairs = zip(self.runs.finished, self.scores, strict=True)
        return {run.question.id: (run, scores) for run, scores in pairs}


def labels(systems: Sequence[Scored]) -> list[str]:
    """Return what names each system in a table; two of the same name are told apart by their questions."""
    found = [one.label for one in systems]
    return found if len(set(found)) == len(found) else [f"{one.label}, {one.runs.system.set}" for one in systems]


def outcome(scores: Scores) -> tuple[str, bool | None]:
    """Return how a question ended, and whether that is how it should end; empty and None where nothing is expected."""
    if scores.failed:
        return "failed", False
    if scores.false_facts:
        return "says what is false", False
    if scores.refused is not None:
        return ("refused, as it should", True) if scores.refused else ("not refused", False)
    if scores.right is None:
        return "", None
    if scores.refused_wrongly:
        return f"refused, answer {'quoted' if scores.right else 'not quoted'}", False
    return ("right", True) if scores.right else ("answer not found", False)


@dataclass(frozen=True)
class Row:
    """A measure. `of` gives its value for one run, `sums` two parts of a ratio of sums; `best`: which way is better."""

    name: str
    of: Callable[[Scores], float | bool | None]
    form: str = "share"  # or number, dollars, seconds, count
    best: str = "high"  # or low, or empty
    per: Callable[[Scores], float | None] | None = None  # the mean is a ratio of two sums
    group: str = "answers"

    def mean(self, scores: Sequence[Scores]) -> float | None:
        """Return the value over runs: the mean of those to which it applies, or the ratio of two sums."""
        if self.per:
            pairs = [(self.of(one), self.per(one)) for one in scores]
            known = [(above, below) for above, below in pairs if above is not None and below is not None]
            total = sum(below for _, below in known)
            return sum(above for above, _ in known) / total if total else None
        values = [float(value) for one in scores if (value := self.of(one)) is not None]
        if not values:
            return None
        return sum(values) if self.form == "count" else statistics.fmean(values)

    def applies(self, scores: Sequence[Scores]) -> int:
        """Return to how many runs it applies."""
        return sum(self.of(one) is not None for one in scores)

    def shown(self, value: float | None) -> str:
        """Return a value as a reader sees it."""
        if value is None:
            return "-"
        forms = {"share": f"{100 * value:.0f} %", "dollars": f"${value:.4f}", "seconds": f"{value:.1f} s"}
        return forms.get(self.form, f"{value:,.0f}" if self.form == "count" else f"{value:,.1f}")


ROWS = (
    Row("Right answers", lambda s: s.right),
    Row("Right, and not refused", lambda s: s.told),
    Row("Right in the first section", lambda s: s.first),
    Row("Refused where there is no answer", lambda s: s.refused),
    Row("Refused though there is one", lambda s: s.refused_wrongly, best="low"),
    Row("Failed runs", lambda s: s.failed, "count", "low"),
    Row("Short answers right", lambda s: s.answer_right),
    Row("Fact checks passed", lambda s: s.facts),
    Row("False statements", lambda s: s.false_facts, "count", "low"),
    Row("Expected topics covered", lambda s: s.topics),
    Row("Required sources cited", lambda s: s.required),
    Row("Claims", lambda s: s.claims, "count", "", group="claims"),
    Row(
        "Claims in their sources' words", lambda s: _part(s.alike, s), per=lambda s: _whole(s.alike, s), group="claims"
    ),
    Row(
        "Claims near their sources' words",
        lambda s: _part(s.near, s),
        best="",
        per=lambda s: _whole(s.near, s),
        group="claims",
    ),
    Row(
        "Claims apart from their sources' words",
        lambda s: _part(s.apart, s),
        "share",
        "low",
        lambda s: _whole(s.apart, s),
        "claims",
    ),
    Row("Claims that cite a page", lambda s: _part(s.cited, s), per=lambda s: _whole(s.cited, s), group="claims"),
    Row("Citations that support", lambda s: s.precision, group="claims"),
    Row("Invented citations", lambda s: s.invented, "count", "low", group="claims"),
    Row("Domains cited, a report", lambda s: s.domains if s.claims else None, "number", group="claims"),
    Row("Independent sources, a claim", lambda s: s.independent, "number", group="claims"),
    Row("Model calls, a question", lambda s: s.calls, "number", "low", group="cost"),
    Row("Tokens, a claim in its sources' words", lambda s: s.tokens, "number", "low", lambda s: s.verified, "cost"),
    Row("Dollars, a claim in its sources' words", lambda s: s.usd, "dollars", "low", lambda s: s.verified, "cost"),
    Row("Seconds, a question", lambda s: s.seconds, "seconds", "low", group="cost"),
)


def _part(share: float | None, scores: Scores) -> float | None:
    return None if share is None else share * scores.claims


def _whole(share: float | None, scores: Scores) -> float | None:
    return None if share is None else scores.claims


@dataclass(frozen=True)
class Difference:
    """What a second system has more of than the first, over the questions that both were asked."""

    value: float
    low: float
    high: float
    questions: int

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def difference(row: Row, one: Scored, other: Scored) -> Difference | None:
    """Return the difference of a measure with the 95 % interval of a paired bootstrap; None if it cannot be told."""
    mine, yours = one.by_id(), other.by_id()
    pairs = [(mine[name][1], yours[name][1]) for name in mine if name in yours]
    pairs = [pair for pair in pairs if None not in map(row.of, pair)]
    if len(pairs) < 2:
        return None

    def of(chosen: Sequence[tuple[Scores, Scores]]) -> float | None:
        before, after = row.mean([a for a, _ in chosen]), row.mean([b for _, b in chosen])
        return None if before is None or after is None else after - before

    value = of(pairs)
    if value is None:
        return None
    chance = random.Random(0)
    drawn = [of(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES)]
    known = sorted(one for one in drawn if one is not None)
    return Difference(value, known[int(0.025 * len(known))], known[int(0.975 * len(known)) - 1], len(pairs))


def calibration(scores: Sequence[Scores]) -> tuple[float, float, int] | None:
    """Return the expected calibration error over ten bins, the Brier score and the number of stated confidences.

    An answer does not count if it is not known whether it is right.
    """
    stated = ((one.confidence, one.answer_right) for one in scores)
    known = [(confidence, right) for confidence, right in stated if confidence is not None and right is not None]
    if not known:
        return None
    return metrics.calibration_error(known), metrics.brier(known), len(known)
