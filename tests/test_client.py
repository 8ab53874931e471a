"""The Python client, against a real server: what it returns, what it survives, how it fails."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from fathom.client import AsyncFathom, EventType, Fathom, FinishedRun, RunEvent, RunState
from fathom.client.following import Lines
from fathom.errors import Conflict, InvalidInput, NotSignedIn, RunNotFound, ServerFailed, TooManyRequests
from fathom.service.options import Options
from tests.conftest import ROOT, PrefectServer, quiet_port
from tests.listening import in_front
from tests.server import Served, served_with

QUESTION = "What is a descriptor in Python?"
QUICK = {"profile": "quick"}


@pytest.fixture(scope="module")
def researched(served: Served) -> tuple[FinishedRun, list[RunEvent]]:
    """A finished run, and the events that its callback was given."""
    heard: list[RunEvent] = []
    with Fathom(served.url) as client:
        return client.research(QUESTION, settings=QUICK, on_event=heard.append), heard


@contextmanager
def breaking(url: str, *, after: int = 1_500) -> Iterator[tuple[str, Counter[str]]]:
    """Serve as a proxy that loses the first answer to a POST and cuts each third answer with events.

    Of the others the first ends early and in good order, and one is refused for a moment.
    """
    seen: Counter[str] = Counter()

    async def handle(request: web.Request) -> web.StreamResponse:
        events = request.path.endswith("/events")
        kind = "events" if events else request.method
        seen[kind] += 1
        if events and seen[kind] == 2:
            return web.Response(status=503, headers={"Retry-After": "0"})
        headers = {name: value for name, value in request.headers.items() if name not in ("Host", "Content-Length")}
        async with (
            ClientSession() as session,
            session.request(
                request.method, f"{url}{request.path_qs}", headers=headers, data=await request.read()
            ) as told,
        ):
            if kind == "POST" and seen[kind] == 1:
                await told.read()
                assert request.transport
                request.transport.abort()
            answer = web.StreamResponse(status=told.status, headers={"Content-Type": told.headers["Content-Type"]})
            await answer.prepare(request)
            sent = 0
            async for chunk in told.content.iter_any():
                part = chunk if not events or seen[kind] > 6 else chunk[: after - sent]
                await answer.write(part)
                sent += len(part)
                if len(part) < len(chunk):
                    if seen[kind] > 1:
                        assert request.transport
                        request.transport.abort()
                    break
            return answer

    with in_front(handle, "breaking") as address:
        yield address, seen


def test_research_returns_the_report_and_calls_back(researched: tuple[FinishedRun, list[RunEvent]]) -> None:
    run, heard = researched
    assert run.state is RunState.complete and run.question == QUESTION
    assert run.report.startswith("# ") and "descriptor" in run.answer
    assert run.sources and run.claims and all(claim.quotes for claim in run.claims if claim.verdict == "supported")
    assert run.cost == 0 and run.reason == ""
    ids = [event.id for event in heard if event.id]
    assert ids == [*range(1, len(ids) + 1)]
    assert {EventType.step_started, EventType.source_found, EventType.note_created} <= {event.type for event in heard}


async def test_events_come_once_whatever_breaks(served: Served) -> None:
    with breaking(served.url) as (url, seen):
        found: list[str] = []

        async def on_source(event: RunEvent) -> None:
            await asyncio.sleep(0)
            found.append(event.message)

        async with AsyncFathom(url) as client:
            stream = client.stream(QUESTION, settings=QUICK).on("source_found", on_source)
            ids = [event.id async for event in stream if event.id]
            assert stream.run.state is RunState.complete and stream.run.report
            runs = [run.id async for run in client.runs.list(q=QUESTION)]
        assert ids == [*range(1, len(ids) + 1)] and len(ids) > 15
        assert found
        assert seen["POST"] == 2 and seen["events"] > 6
        # The lost answer was asked for again, and that started no second run.
        assert runs.count(stream.run.id) == 1 and runs[0] == stream.run.id


def test_a_run_is_read_in_every_way(served: Served, researched: tuple[FinishedRun, list[RunEvent]]) -> None:
    run, heard = researched
    with Fathom(served.url) as client:
        assert client.runs.wait(run.id) == run and client.runs.get(run.id).result == run.result
        assert client.runs.report(run.id) == run.report
        assert client.runs.export(run.id, "html").startswith(b"<!doctype html>")
        assert client.runs.claims(run.id).claims == run.claims
        assert {source.source_id for source in client.runs.sources(run.id).sources} >= {
            source.source_id for source in run.sources
        }
        names = [file.name for file in client.runs.artifacts(run.id)]
        assert client.runs.artifact(run.id, "report.md").decode() == run.report and "report.md" in names
        assert client.runs.verify(run.id).ok
        last = max(event.id for event in heard)
        stream = client.runs.events(run.id, after=last - 2)
        first = next(stream)
        stream.close()
        assert first.id == last - 1 and stream.last_event_id == first.id and stream.run_id == run.id
        with pytest.raises(RuntimeError, match="not ended"):
            print(stream.run)


def test_failures_have_their_classes(served: Served) -> None:
    nobody = "00000000-0000-0000-0000-000000000000"
    with Fathom(served.url) as client:
        with pytest.raises(RunNotFound) as missing:
            client.runs.get(nobody)
        assert missing.value.status == 404 and missing.value.next_step
        with pytest.raises(RunNotFound):
            next(client.runs.events(nobody))
        with pytest.raises(InvalidInput, match="profile"):
            client.research(QUESTION, settings={"profile": "thorough"})
        for no_name in ("", "..", "../watches"):
            with pytest.raises(InvalidInput):
                client.runs.get(no_name)
        with pytest.raises(RunNotFound):
            client.runs.get("a?b#c %2F")
        with pytest.raises(ValueError, match="sources"):
            client.stream(QUESTION).on("sources", print)
        run = client.runs.start(QUESTION, settings=QUICK, idempotency_key="sdk")
        with pytest.raises(TimeoutError):
            client.runs.wait(run.id, timeout=0)
        with pytest.raises(Conflict):
            client.runs.start("Another question?", settings=QUICK, idempotency_key="sdk")
        client.runs.cancel(run.id)


async def test_failures_have_their_classes_when_awaited(served: Served) -> None:
    async with AsyncFathom(served.url) as client:
        with pytest.raises(RunNotFound):
            await client.runs.get("nothing")
        with pytest.raises(InvalidInput, match="question"):
            await client.runs.start("")


def test_a_token_that_is_not_known_is_refused(prefect_server: PrefectServer, tmp_path: Path) -> None:
    with served_with(Options(str(tmp_path), port=quiet_port(), sign_in=True), limit=0) as server:
        for token in (None, "nobody's"):
            with Fathom(server.url, token) as client, pytest.raises(NotSignedIn):
                client.runs.start(QUESTION)
    with pytest.raises(InvalidInput, match="token") as refused:
        Fathom(server.url, "a\nsecret")
    assert "secret" not in str(refused.value)


def test_a_busy_server_is_asked_again_and_a_long_wait_is_told() -> None:
    asked = count()

    async def busy(request: web.Request) -> web.Response:
        problem = {"title": "Too Many Requests", "status": 429, "code": "E7003", "detail": "Later.", "next_step": ""}
        if request.path.endswith("/stop"):
            problem |= {"code": "E9999", "status": 500}
            return web.json_response(problem, status=500, content_type="application/problem+json")
        if next(asked) < 2 or request.query.get("cursor") == "far":
            headers = {"Retry-After": "3600" if request.query.get("cursor") else "0"}
            return web.json_response(problem, status=429, headers=headers, content_type="application/problem+json")
        run = {"id": "1", "question": "Why?", "state": "queued", "created": "2026-01-01T00:00:00Z", "new": True}
        return web.json_response({"runs": [run], "next": "far"})

    with in_front(busy, "busy") as url, Fathom(url) as client:
        runs = client.runs.list(state=[RunState.queued])
        assert next(runs).id == "1"
        with pytest.raises(TooManyRequests, match="Later") as late:
            next(runs)
        assert late.value.retry_after == 3600
        with pytest.raises(ServerFailed, match="Later"):
            client.runs.stop("1")


def test_what_is_no_fathom_server_is_told() -> None:
    async def other(request: web.Request) -> web.Response:
        if request.path.endswith("/slow"):
            await asyncio.sleep(60)
        if request.path.endswith("/moved"):
            raise web.HTTPFound("https://example.org/")
        return web.Response(text="<p>Hello", content_type="text/html", status=200 if request.method == "GET" else 404)

    with (
        in_front(other, "other") as url,
        Fathom(url, timeout=0.3, retries=0) as hasty,
        Fathom(url, timeout=60, retries=0) as client,
    ):
        with pytest.raises(ServerFailed, match="does not answer"):
            hasty.runs.get("slow")
        for run, said in (("1", "not what Fathom sends"), ("moved", "example.org")):
            with pytest.raises(ServerFailed, match=said):
                client.runs.get(run)
        with pytest.raises(ServerFailed, match="404"):
            client.research(QUESTION)
    with Fathom(f"http://127.0.0.1:{quiet_port()}", retries=0) as nowhere, pytest.raises(ServerFailed, match="serve"):
        nowhere.runs.get("1")
    for address in ("", "ftp://a", "127.0.0.1:8700", "http://user:secret@a"):
        with pytest.raises(InvalidInput):
            Fathom(address or "http://")


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FATHOM_URL", "http://fathom.example/api/v1/")
    monkeypatch.setenv("FATHOM_TOKEN", "a-secret-token")
    client = Fathom()
    assert repr(client) == "Fathom('http://fathom.example')"
    assert client._core.request("GET", "/runs").headers["Authorization"] == "Bearer a-secret-token"


def test_events_are_read_in_any_pieces() -> None:
    event = RunEvent(id=1, type=EventType.warning, at="", message="one\u2028two\x85three")
    later = json.dumps({**event.model_dump(), "type": "of a later version"})
    sent = f": here\r\n\r\nid: 1\r\nevent: warning\r\ndata: {event.model_dump_json()}\r\n\r\ndata: {later}\n\n".encode()
    for size in (1, 7, len(sent)):
        lines = Lines()
        pieces = (sent[start : start + size] for start in range(0, len(sent), size))
        assert [told for piece in pieces for told in lines.feed(piece)] == [event]


def test_importing_the_client_is_light() -> None:
    """It needs httpx and pydantic only, so that it can be installed without the rest."""
    code = "import fathom.client, sys; print(*{name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"prefect", "litellm", "fastapi", "trafilatura", "fsspec", "Stemmer"} & set(done.stdout.split())


def test_the_examples_of_the_document_run(
    served: Served, researched: tuple[FinishedRun, list[RunEvent]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them compile; those that start no run are run."""
    monkeypatch.setenv("FATHOM_URL", served.url)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "client.md").read_text(encoding="utf-8"), re.DOTALL)
    codes = [compile(block, "docs/client.md", "exec") for block in blocks]
    for name in ("client.runs.export", "except RunNotFound"):
        exec(next(code for code, block in zip(codes, blocks, strict=True) if name in block), {})
