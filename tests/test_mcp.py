"""Tools of MCP servers: an honest server over both transports, and servers and results that mean harm."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import InvalidInput, ToolError, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.models import Ending, ToolCall, ToolOutput
from fathom.tools.mcp.configuration import read_servers
from fathom.tools.mcp.offer import OfferedTool
from fathom.tools.registry import Toolbox, configured_tools, open_toolbox
from tests.conftest import ROOT, quiet_port
from tests.inprocess import investigated
from tests.mcp_servers.harbour import FACTS
from tests.stubs import Stubs

KEY = "harbour-key-0123456789"
QUERY = "How deep is the harbour of Lindesund?"
HARBOUR, ROGUE = [str(ROOT / "tests" / "mcp_servers" / name) for name in ("harbour.py", "rogue.py")]


def program(*arguments: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [*arguments], "allow": ["search"], "seconds": 20, **more}


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a file of servers, and point the environment at it."""

    def write(**servers: dict[str, Any]) -> Path:
        file = tmp_path / "servers.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        monkeypatch.setenv("FATHOM_MCP", str(file))
        return file

    return write


class Nothing:
    """A run that has read nothing."""

    async def list(self) -> list[str]:
        return []

    async def read(self, name: str) -> ToolOutput:
        raise FileNotFoundError(name)


@asynccontextmanager
async def toolbox() -> AsyncIterator[Toolbox]:
    """Open the tools of the environment, those of its MCP servers included."""
    here, asked = Environment.read(), ResearchSettings(model="extractive")
    opened = open_toolbox(resolve(asked, here, configured_tools(asked, here)), here, Nothing())
    assert opened.servers
    try:
        opened.take_up(await opened.servers.offers())
        yield opened
    finally:
        await opened.aclose()


async def called(tools: Toolbox, tool: str, given: str) -> str:
    (text,) = (await tools.run(ToolCall(tool=tool, input=given))).results
    return text.text


def running(mark: str) -> list[int]:
    """Return the processes that have a text among their arguments."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in process.read_bytes().split(b"\0"):
                found.append(int(process.parent.name))
    return found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The honest server over HTTP."""
    port = quiet_port()
    process = subprocess.Popen([sys.executable, HARBOUR, str(port)], env={**os.environ, "HARBOUR_KEY": KEY})
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(f"http://127.0.0.1:{port}/", timeout=2)
            break
        except httpx.TransportError:
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait()


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_allowed_tools_are_called_with_what_fits_their_schema(
    servers: Callable[..., Path], address: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_MINE", KEY)
    if transport == "stdio":
        harbour = program(HARBOUR, env={"HARBOUR_KEY": "${TOKEN_OF_MINE}"})
    else:
        harbour = {"url": address, "headers": {"Authorization": "Bearer ${TOKEN_OF_MINE}"}}
    servers(harbour=harbour | {"allow": ["search", "ships", "fails"]})
    async with toolbox() as tools:
        assert {name for name in tools.offered if "mcp" in name} == {
            "mcp_harbour_search",
            "mcp_harbour_ships",
            "mcp_harbour_fails",
        }
        assert FACTS[0] in await called(tools, "mcp_harbour_search", '{"query": "depth"}')
        assert FACTS[0] in await called(tools, "mcp_harbour_search", "depth")
        assert await called(tools, "mcp_harbour_ships", '{"year": 2024}') == "- year: 2024\n- kind: all\n- ships: 2,580"
        for given, problem in (
            ('{"year": "soon"}', "year: 'soon' is not of type 'integer'"),
            ("{}", "'year' is a required property"),
            ("2024", "no JSON object"),
        ):
            with pytest.raises(ToolRejected, match=problem):
                await tools.run(ToolCall(tool="mcp_harbour_ships", input=given))
        with pytest.raises(ToolRejected, match=r"The records are closed, key \*\*\*") as failed:
            await tools.run(ToolCall(tool="mcp_harbour_fails", input="x"))
        assert KEY not in str(failed.value)
        with pytest.raises(ToolError, match="no tool 'mcp_harbour_secret'"):
            await tools.run(ToolCall(tool="mcp_harbour_secret", input="x"))


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("dies at start", None, "Its last words: ModuleNotFoundError: No module named 'harbour'"),
        ("hangs at start", None, "did not answer in 1 s"),
        ("talks nonsense", None, "did not answer in 1 s. Its last words: Welcome to the harbour!"),
        ("hangs while listing", None, "did not answer in 1 s"),
        ("lists for ever", None, "lists its tools without end"),
        ("dies", ToolUnavailable, "ended before it answered. Its last words: out of memory"),
        ("hangs", ToolTimeout, "did not answer in 1 s"),
        ("floods", ToolRejected, "sent more than 2.0 MB"),
        ("floods in lines", ToolRejected, "sent more than 2.0 MB"),
        ("floods stderr", None, ""),
        ("runs away", None, ""),
    ],
)
async def test_a_server_that_misbehaves_is_a_failed_call_and_bounded_memory(
    servers: Callable[..., Path], tmp_path: Path, how: str, kind: type[ToolError] | None, said: str
) -> None:
    seconds = 1 if said else 20
    servers(rogue=program(ROGUE, how, str(tmp_path), seconds=seconds), other=program(ROGUE, "behaves", str(tmp_path)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with toolbox() as tools:
        failures = {offer.server: offer.failure for offer in tools.offers}
        if kind is None:
            assert said in failures["rogue"]
        if not said:
            assert "answers" in await called(tools, "mcp_rogue_search", "depth")
        elif kind:
            with pytest.raises(kind, match=said):
                await tools.run(ToolCall(tool="mcp_rogue_search", input="depth"))
        assert "answers" in await called(tools, "mcp_other_search", "depth"), "the others go on"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # KB; the flood has 100 MB
    assert running(str(tmp_path)) == []


async def test_a_dead_program_is_started_again_for_the_next_call(servers: Callable[..., Path]) -> None:
    servers(rogue=program(ROGUE, "dies after each call"))
    async with toolbox() as tools:
        first = await called(tools, "mcp_rogue_search", "depth")
        await asyncio.sleep(0.5)
        assert await called(tools, "mcp_rogue_search", "depth") != first


async def test_a_program_ends_with_all_that_it_started_when_its_run_is_killed(
    servers: Callable[..., Path], tmp_path: Path
) -> None:
    servers(rogue=program(ROGUE, "has a child", str(tmp_path)))
    script = (
        "import asyncio; from tests.test_mcp import *\n"
        "async def main():\n    async with toolbox() as tools: await called(tools, 'mcp_rogue_search', 'depth')\n"
        "asyncio.run(main())"
    )
    run = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    await until(lambda: len(running(str(tmp_path))) == 3)  # the guard, the program, and its child
    run.kill()
    run.wait()
    await until(lambda: not running(str(tmp_path)))


async def until(come: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not come():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


@pytest.mark.usefixtures("home")
async def test_a_report_cites_what_a_tool_returned(servers: Callable[..., Path], tmp_path: Path) -> None:
    servers(harbour=program(HARBOUR))
    result = await investigated(tmp_path / "store", QUERY, model="extractive")
    assert result.status is Ending.complete, result.reason
    folder = Path(result.artifacts)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    (source, *_) = result.sources
    assert (source.kind, source.url.partition("?")[0]) == ("mcp", "mcp://harbour/search")
    assert "14 metres" in files["report.md"].decode()
    raw = [name for name in files if name.endswith("__mcp_harbour_search.json")]
    assert raw and FACTS[0] in files[raw[0]].decode()
    assert re.fullmatch("[0-9a-f]{64}", json.loads(files["run.json"])["mcp"]["harbour"])
