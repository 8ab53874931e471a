"""What durability costs: `python -m benchmarks.durability` (`make bench` runs it too).

Two questions, each answered within one process against one Prefect server on the local disk:

    with / without   the same extractive run with its results stored, and with none stored at all
    calls            milliseconds a tool call takes, its raw output stored and its result committed, among 1, 10, 100
                     and 1,000 calls of one run: what a call costs must not depend on how many came before it

Calls are made one after another, with a tool that answers at once with 2 kB. Compare the ratios within one run.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUERY = "How does Python look up an attribute on an instance?"
CALLS = (1, 10, 100, 1_000)
REPEATS = 5


def main() -> None:
    """Start a server, and measure in a process of its own that points to it."""
    from benchmarks.pipeline import environment, server

    with tempfile.TemporaryDirectory(prefix="fathom-bench-") as folder, server(Path(folder), 24_219) as api:
        env = environment(Path(folder), PREFECT_API_URL=api, PREFECT_LOGGING_LEVEL="ERROR")
        subprocess.run([sys.executable, "-m", "benchmarks.durability", "--here", folder], env=env, cwd=ROOT, check=True)


async def measure(root: Path) -> None:
    """Print both tables."""
    print(f"{'calls':>8}{'ms a call':>12}{'ratio to 10':>14}")
    await _ms_a_call(root / "warm", 10)
    costs = {count: await _ms_a_call(root, count) for count in CALLS}
    for count, cost in costs.items():
        print(f"{count:8,}{cost:12.2f}{cost / costs[10]:14.2f}")
    await _seconds(root / "warm")
    kept, lost = [], []
    for number in range(REPEATS):  # in turns, because the machine may get busier
        kept.append(await _seconds(root / f"kept-{number}"))
        with _nothing_stored():
            lost.append(await _seconds(root / f"lost-{number}"))
    print(f"\n{'the same run':20}{'min':>8}{'median':>8}{'max':>8}   seconds, {REPEATS} runs each in turns")
    for name, values in (("results stored", kept), ("nothing stored", lost)):
        print(f"{name:20}{min(values):8.2f}{statistics.median(values):8.2f}{max(values):8.2f}")
    print(f"{'ratio of medians':20}{'':8}{statistics.median(kept) / statistics.median(lost):8.2f}")


async def _seconds(root: Path) -> float:
    """Return how long an extractive run takes."""
    from fathom.config.settings import ResearchSettings
    from fathom.flows.deep_research import deep_research

    began = time.perf_counter()
    await deep_research(QUERY, ResearchSettings(artifacts=str(root), model="extractive"))
    return time.perf_counter() - began


@contextmanager
def _nothing_stored() -> Iterator[None]:
    """Let every task run without a key and without storing its result."""
    from prefect.cache_policies import NO_CACHE

    from fathom.tasks import model_calls, planning, reporting, research, start, tool_calls
    from fathom.tasks.durable import RunTask

    modules = (model_calls, planning, tool_calls, reporting, research, start)
    durable = [value for module in modules for value in vars(module).values() if isinstance(value, RunTask)]
    before = {id(task): task.task for task in durable}
    for task in durable:
        task.task = task.task.with_options(persist_result=False, cache_policy=NO_CACHE)
    try:
        yield
    finally:
        for task in durable:
            task.task = before[id(task)]


async def _ms_a_call(root: Path, count: int) -> float:
    """Return the milliseconds of one of so many tool calls of a run."""
    from prefect import flow

    from fathom.budget.ledger import Ledger
    from fathom.config.environment import Environment
    from fathom.config.groups import Budget
    from fathom.config.secrets import Scrubber
    from fathom.config.settings import ResearchSettings, resolve
    from fathom.models import PlanStep, SourceText, ToolCall, ToolOutput, ToolResult
    from fathom.run.engine import Engine, RunStart
    from fathom.storage.store import ArtifactStore
    from fathom.tasks.durable import durable_run
    from fathom.tasks.tool_calls import call_tool
    from fathom.telemetry.audit_log import AuditLog
    from fathom.tools.base import Tool
    from fathom.tools.toolbox import Toolbox

    class Echo(Tool):
        name = "echo"
        description = "Answers at once."

        async def run(self, tool_input: str) -> ToolOutput:
            text = SourceText(source_id="S0a0a0a", url="docs:echo", title="Echo", kind="document", text="word " * 400)
            return ToolOutput(results=[text])

    environment = Environment.read({"HOME": str(root)})
    store = ArtifactStore(str(root / f"calls-{count}"))
    settings = resolve(ResearchSettings(), environment, [])
    began = "2026-01-01T00:00:00+00:00"
    start = RunStart(run_id="0", run_key="0", query=QUERY, started=began, today=began[:10], settings=settings)
    engine = Engine(start, store, environment, Ledger(Budget(), store, "ledger"), AuditLog(store, "audit"))
    engine.tools = Toolbox([Echo()], scrubber=Scrubber(environment.secrets))
    await engine.enter("research_artifacts/calls")
    step = PlanStep(step_id=1, title="Calls", description="Many calls.")

    @flow(name="benchmark-calls")
    async def calls() -> float:
        with durable_run(store):
            began = time.perf_counter()
            for number in range(count):
                result: ToolResult = await call_tool(
                    "Calls", step, ToolCall(tool="echo", input=str(number)), number + 1, {}, _engine=engine
                )
                assert result.sources
            return 1000 * (time.perf_counter() - began) / count

    return float(await calls())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        asyncio.run(measure(Path(sys.argv[2])))
    else:
        main()
