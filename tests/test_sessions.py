"""Research sessions over HTTP, as the Research engine has them: their states, configuration and result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from fathom.service.options import Options
from tests.conftest import PrefectServer, quiet_port
from tests.server import served_with
from tests.stubs import Stubs

MODEL = {"provider": "openai", "model": "stub", "retryConfig": {"maxRetries": 2, "baseDelay": 1500}}
CONFIG: dict[str, Any] = {
    "models": {"planner": MODEL, "researcher": MODEL, "critic": MODEL, "synthesizer": {**MODEL, "temperature": 0.7}},
    "limits": {
        "maxIterations": 2,
        "maxStepsPerIteration": 2,
        "maxSourcesPerStep": 3,
        "sufficiencyThreshold": 7.5,
    },
    "budget": {"maxDurationMs": 600_000},
    "tools": {"enabled": ["web_search"], "preferences": {"search_mode": "all", "breadth": 1}},
    "domain": {"preferredSources": ["example.org"], "blockedSources": ["example.com"], "minSourceQuality": 0.1},
    "output": {"format": "html", "includeProvenance": True, "maxLength": 500},
}
WALK = [  # each state, and the request that is held so that the run stays in it
    ("planning", "planner"),
    ("researching", "search"),
    ("reflecting", "critic"),
    ("researching", "search"),
    ("reflecting", "critic"),
    ("synthesizing", "outline"),
    ("completed", ""),
]


def test_a_session_walks_through_every_state(prefect_server: PrefectServer, providers: Stubs, tmp_path: Path) -> None:
    providers.settings.steps = providers.settings.breadth = providers.settings.follow_ups = 1
    with (
        served_with(Options(str(tmp_path), port=quiet_port())) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        made = client.post("/research/sessions", json={"config": CONFIG})
        assert made.status_code == 201 and made.json()["state"] == "created", made.text
        path = f"/research/sessions/{made.json()['id']}"
        providers.settings.held = WALK[0][1]
        started = client.post(f"{path}/execute", json={"query": "How do tides form?"}).json()
        told, shown = list[str](), list[str]()
        with client.stream("GET", started["stream"]) as events:
            for line in events.iter_lines():
                if not line.startswith("data: "):
                    continue
                state = json.loads(line[6:])["data"]["state"]
                if told[-1:] != [state]:
                    told.append(state)
                    shown.append(client.get(path).json()["state"])
                    providers.settings.held = WALK[min(len(told), len(WALK) - 1)][1]
        assert told == shown == [state for state, _ in WALK]
        session, run = client.get(path).json(), client.get(f"/api/v1/runs/{started['runId']}").json()
        assert client.post(f"{path}/execute", json={"query": "How do tides form?"}).json() == started
        again = client.post(f"{path}/execute", json={"query": "How do moons form?"})
        assert (again.status_code, again.json()["code"]) == (409, "E5002"), again.text

    assert run["stage"] is None and session["plan"]["steps"][0]["status"] == "completed"
    role = {"model": "openai/stub"}
    assert run["settings"] == {
        "docs": [],
        "depth": 2,
        "max_steps": 2,
        "max_results": 3,
        "breadth": 1,
        "sufficiency": 8,
        "tools": ["web_search"],
        "search_mode": "all",
        "role_models": {
            "planner": role,
            "researcher": role,
            "compressor": role,
            "critic": role,
            "reporter": {**role, "temperature": 0.7},
        },
        "model_calls": {"retries": 2, "backoff_seconds": 1.5},
        "budget": {"max_seconds": 600.0},
        "sources": {"prefer": ["example.org"], "block": ["example.com"], "min_quality": 0.1},
        "report": {"words": 500},
    }
    result = session["result"]
    citations = {citation["id"]: citation for citation in result["citations"]}
    assert result["report"].startswith("<!doctype html>") and result["sections"] and citations
    for section in result["sections"]:
        cited = {citations[one]["sourceId"] for one in section["citations"]}
        assert cited and all(f"[{source}" in section["content"] for source in cited), section
    assert any(citation["verified"] and citation["quote"] for citation in citations.values())
    assert 0 <= result["confidence"] <= 1 and isinstance(result["limitations"], list)
    assert result["provenance"]["plan"]["plan_title"] == session["plan"]["title"]
    metrics = result["metrics"]
    assert metrics["iterations"] == 2 and 1 <= metrics["uniqueDomains"] <= metrics["totalSources"]
    assert metrics["apiCalls"] == len(providers.requests) - len(providers.calls("extract"))
