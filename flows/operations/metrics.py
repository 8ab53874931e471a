"""Metrics for Prometheus: the activity and usage of a store's runs, and the queues of Prefect's work pools.

Counters are sums over everything that was ever read, so they do not go down when runs are removed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import accumulate
from threading import Lock
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily as Counting
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from fathom.flows.server import ask_api
from fathom.run.usage import BOUNDS, Histogram, ModelUse, RunUse, UsageReader, unsettled_usd
from fathom.storage.store import ArtifactStore

API_SECONDS = 5.0  # seconds in which the Prefect API must answer: Prometheus allows a scrape ten
WAITING = ("late", "scheduled", "pending", "running", "paused")


class FathomCollector(Collector):
    """Reads the store and asks the Prefect API at each scrape; a finished run is read only once."""

    def __init__(self, store: ArtifactStore) -> None:
        self._reader = UsageReader(store)
        self._reading = Lock()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: to know the metrics, the store would be read."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._reading:
            asyncio.run(self._reader.read())
            listed, unreadable = list(self._reader.runs.values()), len(self._reader.unreadable)
            gone = list(self._reader.gone)
        yield from _of_runs(listed, gone)
        yield Gauge("fathom_unreadable_runs", "Runs of the store that cannot be read.", value=unreadable)
        yield from _of_prefect()


def _of_runs(listed: list[RunUse], gone: list[RunUse]) -> Iterator[Metric]:
    runs = [*gone, *listed]
    endings = dict.fromkeys(("complete", "degraded", "insufficient_evidence", "failed", "stopped"), 0)
    states = dict.fromkeys(("running", "failed", "stopped", "interrupted"), 0)
    tools, faults, models = Counter[str](), Counter[tuple[str, str]](), dict[str, ModelUse]()
    services = dict[str, ModelUse]()
    histograms = {name: Histogram(bounds) for name, bounds in BOUNDS.items()}
    for run in runs:
        for ending, times in run.endings.items():
            endings[ending] = endings.get(ending, 0) + times
        tools.update(run.tools)
        faults.update(run.faults)
        for name, use in run.models.items():
            models.setdefault(name, ModelUse()).add(use)
        for name, use in run.charges.items():
            services.setdefault(name, ModelUse()).add(use)
        for name, histogram in run.histograms.items():
            histograms[name].merge(histogram)
        if run.ended:
            histograms["run"].add(run.seconds)
    for run in listed:
        if not run.ended:
            states[run.state] = states.get(run.state, 0) + 1
    said = "Times that a run ended; one that failed, was resumed and completed has ended twice."
    yield _labelled(Counting, "fathom_runs", said, ["ending"], endings.items())
    said = "Runs without a result, by state."
    yield _labelled(Gauge, "fathom_unfinished_runs", said, ["state"], states.items())
    said = "Seconds of work on a run that ended with a result."
    yield _histogram("fathom_run_seconds", said, histograms["run"])
    used = models.items()
    said = "Answered model calls."
    yield _labelled(Counting, "fathom_model_calls", said, ["model"], [(name, use.calls) for name, use in used])
    said = "Tokens of answered model calls."
    tokens = [(name, "sent", use.sent) for name, use in used] + [(name, "received", use.received) for name, use in used]
    yield _labelled(Counting, "fathom_model_tokens", said, ["model", "direction"], tokens)
    said = "Tokens sent that the provider read from its cache."
    cached = [(name, use.cached) for name, use in used]
    yield _labelled(Counting, "fathom_model_cached_tokens", said, ["model"], cached)
    paid = [*used, *services.items()]
    said = "Dollars of answered calls to models and paid services whose price is known."
    yield _labelled(Counting, "fathom_cost_usd", said, ["model"], [(name, use.usd) for name, use in paid])
    said = "Answered calls to models and paid services whose price is not known."
    unpriced = [(name, use.unpriced) for name, use in paid]
    yield _labelled(Counting, "fathom_unpriced_model_calls", said, ["model"], unpriced)
    said = "Dollars that failed or unanswered requests may have cost at most."
    yield Gauge("fathom_unsettled_usd", said, value=unsettled_usd(listed))
    yield _labelled(Counting, "fathom_tool_calls", "Tool calls.", ["tool"], tools.items())
    said = "Failures by code, of a tool, a model, or a whole run."
    failures = [(part, code, times) for (part, code), times in faults.items()]
    yield _labelled(Counting, "fathom_faults", said, ["part", "code"], failures)
    yield Gauge("research_sessions_active", "Runs that are running.", value=states["running"])
    yield from _of_design(runs, models, faults, histograms)


def _of_design(
    runs: list[RunUse],
    models: Mapping[str, ModelUse],
    faults: Mapping[tuple[str, str], int],
    histograms: Mapping[str, Histogram],
) -> Iterator[Metric]:
    """Yield the metrics of the Research engine: `research.steps.total` as `research_steps_total`, and so on."""
    codes = Counter[str]()
    for (_, code), times in faults.items():
        codes[code] += times
    counts = (
        ("sessions", "Runs that were begun.", len(runs)),
        ("steps", "Steps that were researched to their end.", sum(histograms["step"].counts)),
        ("tokens_input", "Tokens sent in answered model calls.", sum(use.sent for use in models.values())),
        ("tokens_output", "Tokens received in answered model calls.", sum(use.received for use in models.values())),
        ("cost_dollars", "Dollars of answered calls whose price is known.", sum(run.usd for run in runs)),
        ("errors", "Failures of tools, models and runs.", codes.total()),
    )
    for name, said, count in counts:
        yield Counting(f"research_{name}", said, value=count)
    yield _labelled(Counting, "research_errors_by_type", "Failures by code.", ["code"], codes.items())
    for name, of, said in _HISTOGRAMS:
        yield _histogram(f"research_{name}", said, histograms[of], 1_000 if name.endswith("_ms") else 1)


_HISTOGRAMS = (
    ("session_duration_ms", "run", "Milliseconds of work on a run that ended with a result."),
    ("step_duration_ms", "step", "Milliseconds of a step."),
    ("llm_latency_ms", "model", "Milliseconds of an answered model call, repetitions and waits included."),
    ("tool_latency_ms", "tool", "Milliseconds of a tool call."),
    ("sufficiency_score", "sufficiency", "The critic's score of the evidence after a round, 1 to 10."),
    ("source_quality_score", "quality", "Overall score of a source of a report, 0 to 1."),
    ("iterations", "rounds", "Rounds of a run that ended with a result."),
)


def _of_prefect() -> Iterator[Metric]:
    counts: list[tuple[str, str, int]] = []
    try:
        for pool in _asked("work_pools/filter", {"limit": 200}):
            name = pool["name"]
            counts += [(name, state, _asked("flow_runs/count", _in_state(name, state))) for state in WAITING]
        up = 1
    except ConnectionError:
        up, counts = 0, []
    yield Gauge("fathom_prefect_up", "Whether the Prefect API answers.", value=up)
    said = "Flow runs in a work pool that wait or run."
    yield _labelled(Gauge, "fathom_pool_runs", said, ["pool", "state"], counts)


def _asked(path: str, query: Mapping[str, Any]) -> Any:
    answer = ask_api(path, query, API_SECONDS)
    if answer is None:
        raise ConnectionError
    return answer


def _in_state(pool: str, state: str) -> dict[str, Any]:
    """Return the filter of a pool's runs in a state; runs that a schedule has created for later do not wait yet."""
    flow_runs: dict[str, Any] = {"state": {"type": {"any_": [state.upper()]}}}
    if state in ("late", "scheduled"):
        names = {"any_": ["Late"]} if state == "late" else {"not_any_": ["Late"]}
        flow_runs = {
            "state": {"type": {"any_": ["SCHEDULED"]}, "name": names},
            "expected_start_time": {"before_": datetime.now(UTC).isoformat()},
        }
    return {"work_pools": {"name": {"any_": [pool]}}, "flow_runs": flow_runs}


def _labelled(
    kind: type[Counting | Gauge], name: str, meaning: str, labels: list[str], samples: Iterable[tuple[Any, ...]]
) -> Metric:
    """Return a metric of samples; each sample has the values of its labels, then its value."""
    family = kind(name, meaning, labels=labels)
    for *values, number in samples:
        family.add_metric(values, number)
    return family


def _histogram(name: str, meaning: str, values: Histogram, unit: int = 1) -> Metric:
    """Return a histogram as a metric; a bucket counts all values up to its bound, times `unit`."""
    bounds = [*(str(float(bound * unit)) for bound in values.bounds), "+Inf"]
    family = HistogramMetricFamily(name, meaning)
    family.add_metric([], [*zip(bounds, accumulate(values.counts), strict=True)], values.sum * unit)
    return family
