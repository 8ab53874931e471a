"""The server over HTTP: a question is asked, followed and read."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Semaphore, Thread
from typing import Any
from uuid import UUID

import httpx
import pytest
from aiohttp import web
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.context import AsyncClientContext
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Pending, Running

from fathom.service.options import Options, listen
from fathom.service.outages import prefect_is_gone
from fathom.service.submissions import AT_ONCE
from fathom.storage.store import MANIFEST, RUNS
from fathom.tasks import clients
from fathom.telemetry.audit_events import AuditType, ChainedEvent, events_in
from fathom.telemetry.audit_log import AUDIT_FILE
from tests.conftest import ROOT, Forked, PrefectServer, base_env, quiet_port
from tests.forking import Fork
from tests.listening import Handler, in_front
from tests.server import Served, served_with
from tests.stubs import Stubs


def test_a_question_is_asked_followed_and_read(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=60) as client:
        asked = {"question": "What is a descriptor in Python?", "settings": {"profile": "quick"}}
        started = client.post("/api/v1/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert started.status_code == 202, started.text
        again = client.post("/api/v1/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert again.status_code == 202, again.text
        assert again.json()["id"] == started.json()["id"]
        with client.stream("GET", started.json()["links"]["events"]) as events:
            lines = list(events.iter_lines())
        assert next(line for line in lines if line.startswith("id: ")) == "id: 1"
        for odd in ("-1", "x", "1" * 30):
            refused = client.get(started.json()["links"]["events"], headers={"Last-Event-ID": odd})
            assert (refused.status_code, refused.json()["code"]) == (422, "E4001")
        beyond = client.get(started.json()["links"]["events"], headers={"Last-Event-ID": "9999"}).text
        assert "id: " not in beyond and '"ended":true' in beyond, "only how it ended"
        assert '"title":"' in next(line for line in lines if '"plan_generated"' in line)
        assert any(line == "event: section" for line in lines)
        assert client.get("/api/v1/ready").json() == {"status": "ok"}
        run = client.get(started.headers["Location"]).json()
        assert run["state"] == "complete" and run["plan"]["steps"][0]["status"] == "done"


def test_without_a_worker_the_server_is_not_ready(prefect_server: PrefectServer, tmp_path: Path) -> None:
    with served_with(Options(str(tmp_path), port=quiet_port(), pool="nobody"), limit=0) as served:
        answer = httpx.get(f"{served.url}/api/v1/ready", timeout=60)
        assert (answer.status_code, answer.json()["code"]) == (503, "E7006")
        assert answer.json()["detail"] == "No worker serves the pool 'nobody'."
        asked = {"question": "What is a \u202edescriptor\u2066 in Python?"}
        run = httpx.post(f"{served.url}/api/v1/runs", json=asked, timeout=60).json()
        assert run["question"] == "What is a descriptor in Python?", "nothing turns the text around in titles and logs"
        assert (run["state"], run["phase"]) == ("queued", "waits for a worker of the pool nobody")
        httpx.delete(f"{served.url}{run['links']['run']}", timeout=60).raise_for_status()
        events = httpx.get(f"{served.url}{run['links']['events']}", timeout=60).text
        assert '"state":"cancelled","ended":true' in events, "nobody need tell that it has ended"


async def passed_on(server: PrefectServer, request: web.Request) -> web.Response:
    """Have Prefect answer a request."""
    async with httpx.AsyncClient(timeout=60) as client:
        url = server.api_url.removesuffix("/api") + str(request.rel_url)
        headers = {"Content-Type": "application/json"}
        told = await client.request(request.method, url, content=await request.read(), headers=headers)
    return web.Response(body=told.content, status=told.status_code, content_type="application/json")


@contextmanager
def served_behind(handle: Handler, root: Path) -> Iterator[Served]:
    """Start a server whose Prefect answers through a proxy, and whose questions wait for a worker."""
    with (
        in_front(handle, "prefect") as url,
        temporary_settings({PREFECT_API_URL: f"{url}/api"}),
        served_with(Options(str(root), port=quiet_port(), pool="nobody"), limit=0) as served,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("PREFECT_API_URL", f"{url}/api")
        yield served


def test_who_asks_while_prefect_is_slow_is_soon_refused(prefect_server: PrefectServer, tmp_path: Path) -> None:
    """Prefect gets 8 questions at once; others wait for them some seconds, and nobody for a sign of life from it."""
    slow, held, most = Event(), list[web.Request](), list[int]()

    async def handle(request: web.Request) -> web.Response:
        if request.path.endswith("/create_flow_run"):
            held.append(request)
            most.append(len(held))
            try:
                while slow.is_set():  # noqa: ASYNC110 - a thread clears it
                    await asyncio.sleep(0.05)
            finally:
                held.remove(request)
        if request.path.endswith("/health"):
            await asyncio.sleep(3_600)
        return await passed_on(prefect_server, request)

    with served_behind(handle, tmp_path) as served, ThreadPoolExecutor(AT_ONCE + 2) as people:

        def ask(_number: int) -> httpx.Response:
            answer = httpx.post(f"{served.url}/api/v1/runs", json={"question": "What is a descriptor?"}, timeout=120)
            if answer.status_code == 429:
                refused.append(answer)
            if len(refused) == 2:
                slow.clear()
            return answer

        refused: list[httpx.Response] = []
        slow.set()
        answers = list(people.map(ask, range(AT_ONCE + 2)))
        assert max(most) <= AT_ONCE and [answer.status_code for answer in answers].count(429) == 2
        assert [answer.headers["Retry-After"] for answer in refused] == ["6", "6"]
        for answer in answers:
            if answer.is_success:
                httpx.delete(f"{served.url}{answer.json()['links']['run']}", timeout=60).raise_for_status()


def test_lists_that_are_asked_for_at_once_share_what_is_read(prefect_server: PrefectServer, tmp_path: Path) -> None:
    asked, answering, sent = list[str](), Event(), Semaphore(0)

    async def handle(request: web.Request) -> web.Response:
        if request.path.endswith("/flow_runs/filter"):
            asked.append(request.path)
            while not answering.is_set():  # noqa: ASYNC110 - a thread sets it
                await asyncio.sleep(0.05)
        return await passed_on(prefect_server, request)

    def told(event: str, _details: object) -> None:
        if event == "http11.send_request_body.complete":
            sent.release()

    with (
        served_behind(handle, tmp_path) as served,
        httpx.Client(base_url=served.url, timeout=120) as client,
        ThreadPoolExecutor(20) as people,
    ):

        def ask(_number: int) -> int:
            return client.get("/api/v1/runs", extensions={"trace": told}).status_code

        answers = people.map(ask, range(20))
        for _ in range(20):
            assert sent.acquire(timeout=60)
        answering.set()
        assert {*answers} == {200}
        assert 0 < len(asked) <= 12, "of 40: 2 for each reading, and some asked while one was under way"


def test_no_part_of_an_answer_waits_until_the_part_before_is_confirmed(tmp_path: Path) -> None:
    with (
        closing(listen(Options(str(tmp_path), port=quiet_port()))) as listener,
        socket.create_connection(listener.getsockname()),
        closing(listener.accept()[0]) as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.usefixtures("prefect_server")
async def test_clients_of_prefect_read_the_certificates_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, load = list[object](), ssl.SSLContext.load_verify_locations

    def count(self: ssl.SSLContext, *files: Any, **named: Any) -> None:
        read.append(files or named)
        load(self, *files, **named)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", count)
    clients._trusting.cache_clear()
    for _ in range(3):
        async with clients.prefect_client():
            pass
    assert len(read) == 1
    async with AsyncClientContext.get_or_create(), clients.prefect_client() as one, clients.prefect_client() as other:
        assert one is other


def test_a_change_is_made_though_prefect_is_busy(prefect_server: PrefectServer, tmp_path: Path) -> None:
    refused: Counter[str] = Counter()
    busy = Event()

    async def handle(request: web.Request) -> web.Response:
        sent = f"{request.method} {request.path}"
        if busy.is_set() and refused[sent] < 2:
            refused[sent] += 1
            return web.Response(status=503, headers={"Retry-After": "0"})  # as while its database is locked
        return await passed_on(prefect_server, request)

    with served_behind(handle, tmp_path) as served:
        asked = {"question": "What is a descriptor in Python?"}
        run = httpx.post(f"{served.url}/api/v1/runs", json=asked, timeout=60).json()
        busy.set()
        ended = httpx.delete(f"{served.url}{run['links']['run']}", timeout=60)
        assert ended.is_success, ended.text
        busy.clear()
        assert httpx.get(f"{served.url}{run['links']['run']}", timeout=60).json()["state"] == "cancelled"
    assert len(refused) > 1 and min(refused.values()) == 2, "reads and the change"


def test_a_run_or_a_batch_that_is_just_being_begun_is_cancelled(prefect_server: PrefectServer, tmp_path: Path) -> None:
    """A worker that has taken a run says that it runs, whatever was said meanwhile."""
    with (
        served_with(Options(str(tmp_path), port=quiet_port(), pool="beginning"), limit=0) as served,
        get_client(sync_client=True) as prefect,
        ThreadPoolExecutor(1) as beside,
    ):
        question = "What is a descriptor in Python?"
        for place, asked in (("runs", {"question": question}), ("batches", {"questions": [question]})):
            begun = httpx.post(f"{served.url}/api/v1/{place}", json=asked, timeout=60)
            assert begun.status_code == 202, begun.text
            made = begun.json()
            flow_run = UUID(made.get("run_id") or made["id"])
            prefect.set_flow_run_state(flow_run, Pending())
            cancelling = beside.submit(httpx.delete, f"{begun.url}/{made['id']}", timeout=60)
            time.sleep(0.5)
            prefect.set_flow_run_state(flow_run, Running(), force=True)
            assert cancelling.result().is_success
            assert prefect.read_flow_run(flow_run).state_type is StateType.CANCELLING


def test_a_killed_server_loses_no_event_and_repeats_no_run(
    prefect_server: PrefectServer, forked: Forked, stubs: Stubs, tmp_path: Path
) -> None:
    """Ten clients listen to a run while the server is killed; each goes on at the one that is started again."""
    port, root = quiet_port(), tmp_path / "store"
    chosen = {"HOME": str(tmp_path), "FATHOM_ARTIFACTS": str(root), "SEARXNG_URL": stubs.url}
    env = {**base_env(), **prefect_server.env, **chosen}
    stubs.settings.held = "searxng"  # the run goes on until its listeners have lost the server
    url = f"http://127.0.0.1:{port}"
    first = forked(env, "serve", "--port", str(port), "--at-once", "1")
    until(lambda: answers(url), first)
    taken = forked(env, "serve", "--port", str(port))
    assert taken.communicate(timeout=120)[1].startswith("fathom: E4001 Port"), "it said so, and nothing else"
    assert taken.returncode == 2
    asked = {"question": "What is a descriptor in Python?", "settings": {"profile": "quick"}}
    started = httpx.post(f"{url}/api/v1/runs", json=asked, timeout=60).json()
    waits = httpx.post(f"{url}/api/v1/runs", json={**asked, "question": "What is a slot?"}, timeout=60).json()
    listeners = [Listener(f"{url}{started['links']['events']}") for _ in range(10)]
    until(lambda: all(len(listener.ids) >= 2 for listener in listeners))
    first.kill()
    until(lambda: all(listener.breaks for listener in listeners))
    stubs.settings.held = ""
    told = first.communicate()[1]
    assert re.findall(r".*at once.*", told) == ["  runs     up to 1 at once, each in a process of this machine"]
    second = forked(env, "serve", "--port", str(port), "--at-once", "1")
    for listener in listeners:
        listener.join(120)
    kept = (root / RUNS / folder_of(root, started["id"]) / AUDIT_FILE).read_bytes()
    lines = events_in(kept, ChainedEvent)
    assert [line.type for line in lines].count(AuditType.session_created) == 1
    assert AuditType.session_resumed not in [line.type for line in lines], "the run went on by itself"
    for listener in listeners:
        assert listener.ids == list(range(1, len(lines) + 1)), "every event, and each once"
        assert listener.end == {"state": "degraded", "ended": True}, "the page that was found is nowhere"
    late = Listener(f"{url}{waits['links']['events']}")
    late.join(120)
    assert late.end == {"state": "degraded", "ended": True}, "it waited, and was answered"
    until(lambda: httpx.get(f"{url}/api/v1/ready", timeout=60).is_success)
    more = [httpx.post(f"{url}/api/v1/runs", json=asked, timeout=60).json() for _ in range(2)]
    idle = Listener(f"{url}{more[1]['links']['events']}")
    second.terminate()
    said = second.communicate(timeout=120)[1]
    assert second.returncode == 0, said
    idle.stop()
    workers = {int(pid) for pid in re.findall(r"Worker process (\d+) is ready for a run", told + said)}
    assert workers
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def until(reached: Callable[[], bool], process: Fork | None = None) -> None:
    """Wait; where a process is waited for, until it ends at the latest, and fail with what it said."""
    deadline = time.monotonic() + 300
    while not reached():
        if time.monotonic() > deadline or (process and process.poll() is not None):
            if process:
                process.kill()
            raise AssertionError(process.communicate() if process else "waited for five minutes")
        time.sleep(0.05)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v1/health", timeout=5).is_success
    except httpx.TransportError:
        return False


def folder_of(root: Path, run_id: str) -> str:
    found = (path for path in (root / RUNS).iterdir() if json.loads((path / MANIFEST).read_text())["run_id"] == run_id)
    return next(found).name


class Listener(Thread):
    """Follows a run, and comes back after a break with the id of the last event that it had."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._stopped = False
        self.ids: list[int] = []
        self.end: object = None
        self.breaks = 0
        self.start()

    def run(self) -> None:
        with httpx.Client(timeout=60) as client:
            while self.end is None and not self._stopped:
                after = {"Last-Event-ID": str(self.ids[-1])} if self.ids else {}
                try:
                    with client.stream("GET", self._url, headers=after) as answer:
                        self._read(answer.iter_lines())
                except httpx.TransportError:
                    self.breaks += 1
                    time.sleep(0.1)

    def stop(self) -> None:
        self._stopped = True
        self.join(60)

    def _read(self, lines: Iterator[str]) -> None:
        for line in lines:
            if line.startswith("id: "):
                self.ids.append(int(line.removeprefix("id: ")))
            elif line.startswith("data: ") and "ended" in (data := json.loads(line.removeprefix("data: "))["data"]):
                self.end = data
                return


async def test_a_server_does_not_wait_for_workers_that_can_hand_nothing_over(prefect_server: PrefectServer) -> None:
    assert not await prefect_is_gone()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{bound.getsockname()[1]}/api"
        with temporary_settings(updates={PREFECT_API_URL: nobody}):
            assert await prefect_is_gone()


def test_a_server_lives_before_prefect_answers_and_keeps_nobody_from_it(
    prefect_server: PrefectServer, tmp_path: Path
) -> None:
    """It says that it lives, shows a page that waits, and answers everything else once it can, whole."""
    awake = Event()

    async def handle(request: web.Request) -> web.Response:
        await asyncio.to_thread(awake.wait)
        async with httpx.AsyncClient(timeout=60) as client:
            headers = {"Content-Type": "application/json"}
            url = prefect_server.api_url.removesuffix("/api") + str(request.rel_url)
            told = await client.request(request.method, url, content=await request.read(), headers=headers)
        return web.Response(body=told.content, status=told.status_code, content_type="application/json")

    port = quiet_port()
    url, log = f"http://127.0.0.1:{port}", tmp_path / "serve.log"
    with in_front(handle, "asleep") as prefect, log.open("wb") as output, ThreadPoolExecutor(2) as beside:
        env = {**base_env(), "PREFECT_API_URL": f"{prefect}/api", "HOME": str(tmp_path), "FATHOM_ARTIFACTS": "store"}
        command = [sys.executable, "-m", "fathom", "serve", "--port", str(port), "--pool", "nobody"]
        with subprocess.Popen(command, env={**env, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, stderr=output) as process:
            try:
                until(lambda: answers(url) or process.poll() is not None)
                assert not awake.is_set(), log.read_text()
                page = httpx.get(url, headers={"Accept": "text/html"}, timeout=60)
                assert (page.status_code, page.headers["Retry-After"]) == (503, "1")
                assert '<meta http-equiv="refresh" content="1">' in page.text and "is starting" in page.text
                asked = {"question": "What is a descriptor in Python?"}
                posted = beside.submit(httpx.post, f"{url}/api/v1/runs", json=asked, timeout=120)
                with socket.create_connection(("127.0.0.1", port)) as half:
                    half.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port)
                    assert httpx.get(f"{url}/api/v1/health", timeout=60).json() == {"status": "ok"}
                    assert not posted.done()
                    awake.set()
                    assert posted.result().status_code == 202, posted.result().text
                    half.sendall(b"\r\n")
                    half.settimeout(60)
                    assert half.recv(1_000).startswith(b"HTTP/1.1 200 OK\r\n")
                shown = httpx.get(url, headers={"Accept": "text/html"}, timeout=60)
                assert shown.status_code == 200 and "is starting" not in shown.text
            finally:
                process.terminate()
    assert "Fathom serves on" in log.read_text()
