"""The benchmarks by name."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.research.answers import ANSWERS
from benchmarks.research.benchmark import Benchmark
from benchmarks.research.reports import REPORTS

BENCHMARKS: Mapping[str, Benchmark] = {one.name: one for one in (*REPORTS, *ANSWERS)}
