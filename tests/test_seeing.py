"""Traces, logs and metrics, received by a real collector and a real client of Prometheus."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from fathom.config.environment import Environment
from fathom.errors import InvalidInput
from fathom.flows.operations.metrics import FathomCollector
from fathom.models import RunResult
from fathom.storage.store import ArtifactStore
from fathom.telemetry import tracing
from fathom.telemetry.audit_events import AuditType, ChainedEvent, events_in
from fathom.telemetry.logs import JsonHandler, start_logs
from tests.collector import ReceivedSpan, collecting
from tests.conftest import ROOT, FathomCLI, PrefectServer, base_env, quiet_port
from tests.inprocess import QUERY, investigated
from tests.processes import asking
from tests.stubs import Stubs

KEY = "tvly-0123456789abcdef"
TRACING = """
from fathom.config.environment import Environment
from fathom.telemetry.tracing import run_span, tool_span
from fathom.telemetry.tracing import start_tracing
import sys
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
print(start_tracing(Environment.read()))
for _ in range(3):
    with run_span("0123456789abcdef", "run", "key"):
        for _ in range(400):
            with tool_span("web_search"):
                pass
print([name for name in sys.modules if name.startswith("opentelemetry")] != [])
"""


def traced(env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Make 1,203 spans in a process of its own."""
    command = [sys.executable, "-c", TRACING]
    return subprocess.run(command, env={**base_env(), **env}, capture_output=True, text=True, timeout=120, check=False)


def test_a_run_is_one_trace_and_one_log(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, stubs: Stubs, tmp_path: Path
) -> None:
    """Run, step, call and request, each under the one before; logs and audit events have the same ids."""
    stubs.settings.refuses, stubs.settings.suggests = {"json_schema"}, False
    stubs.settings.faults = {"search": ["400"]}
    stubs.settings.echo, stubs.settings.breadth = KEY, 1
    with collecting() as collector:
        env = {**stubs.env, "TAVILY_API_KEY": KEY, "FATHOM_LOG": "json"}
        env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_RESOURCE_ATTRIBUTES": "team=a"}
        asked = ["research", QUERY, "--model", "openai/stub", "--price", "openai/stub=1,4", "--profile", "quick"]
        done = fathom_cli([*asked, "--json"], {**prefect_server.env, **env})
    result = json.loads(done.stdout)
    spans = {span.id: span for span in collector.spans}
    (run,) = [span for span in spans.values() if not span.parent]
    assert (run.name, run.service) == ("invoke_workflow deep-research", "fathom")
    assert {span.trace_id for span in spans.values()} == {run.trace_id}
    assert run.attributes["fathom.run.id"] == result["run_id"]
    assert run.attributes["fathom.cost_usd"] == result["metrics"]["cost_usd"] > 0
    assert run.attributes["fathom.run.ending"] == result["status"]

    def path(span: ReceivedSpan) -> list[str]:
        return [*path(spans[span.parent]), span.name] if span.parent else [span.name]

    root, names = run.name, [path(span) for span in spans.values()]
    assert [root, "step", "ask researcher", "chat stub"] in names
    assert [root, "step", "ask compressor", "chat stub"] in names
    assert [root, "step", "execute_tool web_search"] in names
    assert [root, "ask section", "chat stub"] in names

    refused, answered = [s for s in collector.named("chat") if s.attributes["fathom.role"] == "planner"]
    assert refused.failed and refused.attributes["error.type"] == "RequestRejected"
    assert answered.kind == 3  # a client's
    given = {name: answered.attributes[name] for name in sorted(answered.attributes)}
    tokens = given.pop("gen_ai.usage.input_tokens"), given.pop("gen_ai.usage.output_tokens")
    assert given.pop("fathom.cost_usd") == pytest.approx((tokens[0] + 4 * tokens[1]) / 1e6)
    given.pop("gen_ai.response.time_to_first_chunk", None)
    assert given == {
        "fathom.role": "planner",
        "gen_ai.operation.name": "chat",
        "gen_ai.output.type": "json",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.max_tokens": 4096,
        "gen_ai.request.model": "stub",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.model": "stub",
    }
    searches = collector.named("execute_tool web_search")
    assert {span.attributes["gen_ai.operation.name"] for span in searches} == {"execute_tool"}
    (failed,) = [span for span in searches if span.failed]
    assert failed.attributes["fathom.failures"] == [failed.attributes["fathom.error.code"]]
    told = json.dumps([span.attributes for span in collector.spans])
    assert "methane" not in told and KEY not in told

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, lines))
    assert KEY not in done.stderr and "***" in done.stderr
    called = [line for line in lines if line["message"].startswith("web_search:")]
    audit = (Path(result["artifacts"]) / "audit.jsonl").read_bytes()
    events = {event.id: event for event in events_in(audit, ChainedEvent)}
    assert called and {line["run_id"] for line in called} == {result["run_id"]}
    for line in called:
        assert line["step_id"] in "123" and line["trace_id"] == run.trace_id
        assert events[line["call_id"]].type is AuditType.tool_called
        assert spans[line["call_id"]].name == "execute_tool web_search"
    calls = {event.id for event in events.values() if event.type in (AuditType.tool_called, AuditType.llm_called)}
    assert calls <= spans.keys()


def test_an_endpoint_that_is_down_is_one_line_in_the_log() -> None:
    done = traced({"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{quiet_port()}", "OTEL_BSP_SCHEDULE_DELAY": "50"})
    assert done.stdout.split() == ["True"]
    assert done.returncode == 0 and len(set(done.stderr.splitlines())) == len(done.stderr.splitlines()) <= 3


def test_many_spans_arrive_before_the_process_ends() -> None:
    with collecting() as collector:
        env = {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.endpoint}/v1/traces"}
        done = traced({**env, "OTEL_SERVICE_NAME": "research", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
    assert (done.returncode, done.stderr) == (0, "")
    assert {span.service for span in collector.spans} == {"research"}
    assert len(collector.spans) == 3 * 401


@pytest.mark.parametrize(
    ("variables", "traces"),
    [
        ({}, ""),
        ({"OTEL_SERVICE_NAME": "a"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, ""),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, ""),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER is 'zipkin'"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ],
)
def test_the_standard_variables_decide(variables: dict[str, str], traces: str) -> None:
    found = Environment.read(variables).traces
    assert traces in found if len(traces) > 4 else found == traces


def test_without_the_extra_there_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_started", False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    environment = Environment.read({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    assert re.search(r"pip install .*\[otel\]", tracing.start_tracing(environment))
    assert tracing.start_tracing(environment) == ""


def test_another_form_of_logs_is_refused(fathom_cli: FathomCLI) -> None:
    with pytest.raises(InvalidInput, match="xml"):
        start_logs(Environment.read({"FATHOM_LOG": "xml"}))
    done = fathom_cli(["runs"], {"FATHOM_LOG": "xml"})
    assert (done.returncode, done.stdout) == (2, "") and "set it to json" in done.stderr
    failed = fathom_cli(["show", "0123abcd"], {"FATHOM_LOG": "JSON"})
    assert json.loads(failed.stderr)["level"] == "error" and failed.returncode == 2


class CountingStore(ArtifactStore):
    """A store that counts what is read of it."""

    reads = 0

    async def read(self, path: str) -> bytes:
        self.reads += 1
        return await super().read(path)


@pytest.fixture(scope="module")
def pool(prefect_server: PrefectServer) -> str:
    """A work pool with a deployment's run that waits."""
    with asking(prefect_server.api_url) as client:
        client.post("/work_pools/", json={"name": "seeing", "type": "process"})
        flow = client.post("/flows/", json={"name": "waits"}).json()["id"]
        wanted = {"name": "waits", "flow_id": flow, "work_pool_name": "seeing", "entrypoint": "a.py:b"}
        deployment = client.post("/deployments/", json=wanted).json()["id"]
        state = {"state": {"type": "SCHEDULED", "name": "Scheduled"}}
        client.post(f"/deployments/{deployment}/create_flow_run", json=state)
    return "seeing"


@pytest.fixture
def scraped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[CountingStore, str]]:
    """A store, and the address of its metrics."""
    registry, store, port = CollectorRegistry(), CountingStore(str(tmp_path)), quiet_port()
    registry.register(FathomCollector(store))
    server, thread = start_http_server(port, "127.0.0.1", registry)
    try:
        yield store, f"http://127.0.0.1:{port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def scrape(address: str) -> dict[tuple[str, ...], float]:
    """Return the samples by name and the values of the labels, as a client of Prometheus reads them."""
    families = text_string_to_metric_families(httpx.get(address, timeout=60).text)
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


def _follow_the_design(scraped: dict[tuple[str, ...], float], result: RunResult, folder: Path) -> None:
    """Check the fifteen metrics that the Research engine names."""
    metrics, events = result.metrics, events_in((folder / "audit.jsonl").read_bytes(), ChainedEvent)
    details = [(event.type, event.details) for event in events]
    plan, report = (json.loads((folder / name).read_bytes()) for name in ("plan.json", "report.json"))
    failures = sum(value for name, value in scraped.items() if name[0] == "research_errors_by_type_total")
    assert failures > 0
    expected = {
        "research_sessions_total": 1,
        "research_sessions_active": 0,
        "research_steps_total": len(plan["steps"]),
        "research_session_duration_ms_count": 1,
        "research_step_duration_ms_count": len(plan["steps"]),
        "research_llm_latency_ms_count": metrics.llm_calls,
        "research_tool_latency_ms_count": metrics.tool_calls,
        "research_tokens_input_total": metrics.prompt_tokens,
        "research_tokens_output_total": metrics.completion_tokens,
        "research_cost_dollars_total": pytest.approx(metrics.cost_usd),
        "research_sufficiency_score_count": metrics.rounds,
        "research_source_quality_score_count": len(report["qualities"]),
        "research_iterations_sum": metrics.rounds,
        "research_errors_total": failures,
    }
    assert {name: scraped[name,] for name in expected} == expected
    waited = sum(float(str(data["seconds"])) for kind, data in details if kind is AuditType.tool_called)
    assert scraped["research_tool_latency_ms_sum",] == pytest.approx(waited * 1_000)
    assert scraped["research_sufficiency_score_bucket", "5.0"] < scraped["research_sufficiency_score_bucket", "10.0"]


@pytest.mark.usefixtures("wide")
async def test_the_metrics_of_a_store_and_of_prefect(
    providers: Stubs, scraped: tuple[CountingStore, str], pool: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, address = scraped
    providers.settings.faults, providers.settings.cached = {"search": ["400"]}, 0.5
    first = await investigated(tmp_path, profile="standard", prices={"openai/stub": {"input": 1, "output": 4}})
    before = scrape(address)
    assert before["fathom_runs_total", first.status.value] == 1
    assert before["fathom_run_seconds_count",] == before["fathom_run_seconds_bucket", "+Inf"] == 1
    assert before["fathom_model_calls_total", "openai/stub"] == first.metrics.llm_calls
    assert before["fathom_model_tokens_total", "sent", "openai/stub"] == first.metrics.prompt_tokens
    assert before["fathom_model_cached_tokens_total", "openai/stub"] == first.metrics.cached_tokens > 0
    dollars = {name[1]: value for name, value in before.items() if name[0] == "fathom_cost_usd_total"}
    assert {*dollars} == {"openai/stub", "search:tavily", "read:tavily"}
    assert sum(dollars.values()) == pytest.approx(first.metrics.cost_usd)
    assert before["fathom_tool_calls_total", "web_search"] > 0
    assert before["fathom_prefect_up",] == 1
    _follow_the_design(before, first, Path(first.artifacts))
    # Prefect calls a scheduled run late after some seconds.
    assert before["fathom_pool_runs", pool, "scheduled"] + before["fathom_pool_runs", pool, "late"] == 1

    read = store.reads
    again = {name: value for name, value in scrape(address).items() if name[0] != "fathom_pool_runs"}
    assert again.items() <= before.items() and store.reads == read, "a run that has ended is read once"
    for file in Path(first.artifacts).iterdir():
        file.unlink()
    Path(first.artifacts).rmdir()
    providers.settings.faults = {"search": ["400*"]}
    await investigated(tmp_path, "What else is known of moons?", profile="quick")
    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{quiet_port()}/api")
    after = scrape(address)
    kinds = ("fathom_runs_total", "fathom_model", "fathom_tool", "fathom_cost", "fathom_faults", "fathom_run_seconds")
    assert all(after[name] >= value for name, value in before.items() if name[0].startswith(kinds))
    assert after["fathom_runs_total", "insufficient_evidence"] == 1
    assert after["fathom_unpriced_model_calls_total", "openai/stub"] > 0
    assert [name for name in after if name[0] == "fathom_faults_total" and name[2] == "web_search"]
    assert after["fathom_prefect_up",] == 0 and not [name for name in after if name[0] == "fathom_pool_runs"]

    dashboard = (ROOT / "deployments/grafana/fathom.json").read_text(encoding="utf-8")
    queries = [target["expr"] for panel in json.loads(dashboard)["panels"] for target in panel["targets"]]
    shown = {name for query in queries for name in re.findall(r"fathom_\w+", query)}
    assert shown <= {name for name, *_ in before | after} and len(shown) > 10


def test_a_log_line_cannot_break_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.Logger("fathom.test")
    log.addHandler(JsonHandler())
    try:
        raise ValueError("a\nb")
    except ValueError:
        log.exception("what\n%s", "\u2028 \ud800")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError" in json.loads(line)["error"]
