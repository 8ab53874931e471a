"""Fathom as an MCP server, used with the client of the package `mcp`: over HTTP, and over input and output."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters

from fathom.interfaces.mcp.transports import Mounted
from tests.conftest import PrefectServer, base_env
from tests.server import Served, without_worker

QUESTION = "What is an iterator in Python?"
QUICK = {"question": QUESTION, "profile": "quick"}
TOOLS = {
    *("research_start", "research_status", "research", "ask"),
    *("research_cancel", "search_runs", "verify_claim", "read_report"),
    *("list_corpora", "list_templates"),
}


@asynccontextmanager
async def over_http(served: Served) -> AsyncIterator[Client]:
    async with Client(f"{served.url}/mcp") as client:
        yield client


async def call(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))


async def test_a_question_is_researched_read_checked_and_found_over_http(served: Served) -> None:
    told: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with over_http(served) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        assert all(tool.description and tool.output_schema for tool in tools)

        result = await client.call_tool("research", QUICK, progress_callback=hear)
        status = result.structured_content
        assert status and status["state"] == "complete" and status["ended"]
        assert any(line.startswith("Step 1 begins") for line in told)
        answer, run_id = status["answer"], status["run_id"]
        assert "[1]" in answer["markdown"] and answer["sources"][0]["number"] == 1 and answer["claims"]["supported"]

        found = await call(client, "search_runs", query="iterator PYTHON", limit=5)
        listed = next(run for run in found["runs"] if run["run_id"] == run_id)
        async with httpx.AsyncClient(base_url=served.url) as api:
            assert listed["answered"] == (await api.get(f"/api/v1/runs/{run_id}")).json()["answered"] is not None
        assert (await call(client, "search_runs", query="zebra crossings"))["runs"] == []

        section = await call(client, "read_report", run_id=run_id, section=2)
        assert section["markdown"] and section["sections"] == answer["sections"] and section["parts"] == 1
        assert "numbered 1 to" in await refusal(client, "read_report", run_id=run_id, section=99)
        whole = await client.read_resource(f"fathom://runs/{run_id}/report.md")
        assert getattr(whole.contents[0], "text", "").startswith("# ")

        claim = await call(client, "verify_claim", run_id=run_id, n=1)
        assert claim["verdict"] == "supported" and claim["quotes"] and all(q["intact"] for q in claim["quotes"])
        assert (await call(client, "verify_claim", run_id=run_id, text=claim["sentence"]))["claim"] == 1
        other = await call(client, "verify_claim", run_id=run_id, text="An iterator weighs exactly 47 kilograms.")
        assert other["claim"] == 0 and other["verdict"] != "supported"
        assert "E4001" in await refusal(client, "verify_claim", run_id=run_id)

        after = await call(client, "ask", run_id=run_id, question="And what is a generator?", profile="quick")
        while not after["ended"]:  # a busy machine takes longer than `ask` waits
            after = await call(client, "research_status", run_id=after["run_id"], wait_seconds=50)
        assert after["state"] == "complete" and after["run_id"] != run_id


async def test_a_run_is_started_looked_at_and_cancelled(served: Served) -> None:
    with without_worker(served) as idle:  # with one, a run this short may be over before it is cancelled
        async with over_http(idle) as client:
            run_id = (await call(client, "research_start", **QUICK))["run_id"]
            assert not (await call(client, "research_status", run_id=run_id))["answer"]
            assert (await call(client, "research_cancel", run_id=run_id))["state"] == "cancelled"
            status = await call(client, "research_status", run_id=run_id, wait_seconds=20)
            assert status["ended"] and "cancelled" in status["why_no_report"]


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (ModuleNotFoundError(name="mcp"), 501),
        (ModuleNotFoundError(name="a.module.of.ours"), 500),
        (RuntimeError("its description is wrong"), 500),
    ],
)
async def test_a_request_is_answered_though_the_server_cannot_be_made(
    served: Served, monkeypatch: pytest.MonkeyPatch, reason: Exception, status: int
) -> None:
    def fail(_mounted: Mounted) -> None:
        raise reason

    monkeypatch.setattr(Mounted, "_create", fail)
    with without_worker(served) as idle:
        for _ in range(2):
            async with httpx.AsyncClient() as client:
                answer = await client.post(f"{idle.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert answer.status_code == status


async def test_what_is_wrong_is_told(served: Served) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    async with over_http(served) as client:
        assert "E5001" in await refusal(client, "research_status", run_id=nobody)
        assert "E5001" in await refusal(client, "verify_claim", run_id="../../etc/passwd", n=1)
        assert "wait_seconds" in await refusal(client, "research_status", run_id=nobody, wait_seconds=51)
        assert "no such setting" in await refusal(client, "research_start", question="Why?", settings={"colour": 1})
        dear = await refusal(client, "research_start", question="Why?", settings={"budget": {"max_usd": -1}})
        assert "budget.max_usd -1: it must be at least 0" in dear
        with pytest.raises(MCPError, match="E5001"):
            await client.read_resource(f"fathom://runs/{nobody}/report.md")


async def test_an_argument_that_a_tool_does_not_have_is_refused_with_what_was_meant(served: Served) -> None:
    async with over_http(served) as client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert all(schema["additionalProperties"] is False for schema in tools.values())
        for given, said in (
            ({"corpra": ["handbook"]}, "'corpra'; did you mean corpora?"),
            ({"depth": 2}, "'depth'; did you mean settings.depth?"),
            ({"colour": 1}, "no such argument: 'colour'. research_start takes question, corpora, docs,"),
        ):
            assert said in await refusal(client, "research_start", question="Why?", **given)
        assert "no such argument: 'query'" in await refusal(client, "list_corpora", query="")


async def test_a_run_reads_the_corpora_and_files_that_it_is_given(served: Served, tmp_path: Path) -> None:
    (tmp_path / "rooms.md").write_text("# Rooms\n\nThe harbour room seats 14 people.\n")
    async with httpx.AsyncClient(base_url=served.url, timeout=120) as api, over_http(served) as client:
        files = {"files": ("ferry.md", b"# Ferry\n\nThe ferry to Lund leaves at 07:40.\n")}
        assert (await api.post("/api/v1/corpora", data={"name": "ferries"}, files=files)).is_success
        listed = (await call(client, "list_corpora"))["corpora"]
        assert [(one["name"], one["files"]) for one in listed if one["name"] == "ferries"] == [("ferries", 1)]
        asked = {"profile": "quick", "corpora": ["ferries"], "docs": [str(tmp_path)]}
        for question, word in (
            ("When does the ferry to Lund leave?", "07:40"),
            ("How many seats has the harbour room?", "14"),
        ):
            status = await call(client, "research", question=question, **asked)
            while not status["ended"]:  # a busy machine takes longer than `research` waits
                status = await call(client, "research_status", run_id=status["run_id"], wait_seconds=50)
            assert word in status["answer"]["markdown"]
        started = await call(client, "research_start", question="When does it leave?", scope="private", **asked)
        run = (await api.get(f"/api/v1/runs/{started['run_id']}")).json()
        assert run["settings"]["scope"] == "private"
        assert "'private'" in await refusal(client, "research_start", question="Why?", scope="everything")
        templates = (await call(client, "list_templates"))["templates"]
        assert "E4001" in await refusal(client, "research_start", question="Why?", template="no-such-kind")
        assert "The question has no word." in await refusal(client, "research_start", question="???")
        assert "“test” asks for nothing." in await refusal(client, "research_start", question="test")
        assert "technology-comparison" in [one["name"] for one in templates]


async def test_a_process_speaks_only_the_protocol(prefect_server: PrefectServer, tmp_path: Path) -> None:
    env = {**base_env(), **prefect_server.env, "HOME": str(tmp_path)}
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "fathom", "mcp", "--artifacts", str(tmp_path / "store")], env=env
    )
    async with Client(program) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        status = await call(client, "research", **QUICK)
        assert status["ended"] and status["answer"]["sources"]
