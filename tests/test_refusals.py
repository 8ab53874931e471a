"""What a server refuses: each with the right status and a problem, and nothing is written."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import stat
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from hypothesis import given, settings
from hypothesis import strategies as st
from prefect.client.orchestration import get_client
from prefect.states import Cancelled, Crashed
from starlette.datastructures import Headers
from starlette.responses import StreamingResponse

from fathom.batch.folder import QUESTIONS
from fathom.config.secrets import without_credentials
from fathom.errors import InvalidInput, NotSignedIn
from fathom.flows.deep_research import deep_research
from fathom.flows.execution.worker import Worker
from fathom.flows.execution.worker import serving as worker_serving
from fathom.interfaces import gate as access
from fathom.interfaces.gate import Gate
from fathom.interfaces.problems import problem_of
from fathom.interfaces.server import create_app, on_error
from fathom.models import RunState
from fathom.service.caller import AccessRole, TokenLimits
from fathom.service.limits import STREAMS
from fathom.service.options import Options
from fathom.service.outages import outage
from fathom.service.runs import RunService
from fathom.service.tokens import COOKIE, BrowserSessions, Tokens
from fathom.storage.ownership import Ownership
from fathom.storage.store import BATCHES, ArtifactStore, json_bytes
from tests.conftest import ROOT, FathomCLI, Forked, PrefectServer, base_env, quiet_port
from tests.processes import asking
from tests.server import Served, served_with, without_worker

RUNS = "/api/v1/runs"
QUESTION = {"question": "What is a descriptor in Python?", "settings": {"profile": "quick"}}
BODIES: Mapping[str, Mapping[str, Any]] = {
    f"POST {RUNS}": QUESTION,
    f"PATCH {RUNS}/{{run_id}}": {"shared": True},
    f"POST {RUNS}/{{run_id}}/answer": {},
    f"POST {RUNS}/{{run_id}}/ask": {"question": "And on a class?"},
    f"POST {RUNS}/{{run_id}}/remarks": {"text": "Look at slots."},
    f"PUT {RUNS}/{{run_id}}/rating": {"good": True},
}
"""What routes want that change something; others get an empty object."""
OPEN_ROUTES = ("/api/v1/health", "/api/v1/ready", "/sign-in")
PARTS = {"form": "md"}
"""What stands for a part of a path that is no number or name."""
READING = (f"POST {RUNS}/{{run_id}}/verify",)
"""What changes nothing, although its method could."""
UPLOADS = (
    *(("POST", path) for path in ("/", "/corpora", "/corpora/{name}/files", "/api/v1/corpora")),
    ("PUT", "/api/v1/corpora/{name}/files"),
)
"""What takes files, and so large bodies, from whoever may upload them."""
PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class House:
    """A server that needs sign-in, its people's tokens, and a finished run of ann's."""

    served: Served
    tokens: dict[str, str]
    run_id: str
    prefect: str

    def client(self, name: str = "", **headers: str) -> httpx.Client:
        own = {"Authorization": f"Bearer {self.tokens[name]}"} if name else {}
        return httpx.Client(base_url=self.served.url, headers={**own, **headers}, timeout=60)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check that the block changes no file of the store and starts no run."""
        before = self._written()
        yield
        assert self._written() == before

    def _written(self) -> object:
        files = {path: path.read_bytes() for path in self.served.root.rglob("*") if path.is_file()}
        with asking(self.prefect) as client:
            return files, client.post("/flow_runs/count", json={}).json()


@pytest.fixture(scope="module")
def house(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    root, elsewhere = tmp_path_factory.mktemp("house"), tmp_path_factory.mktemp("elsewhere")
    options = Options(str(root), port=quiet_port(), sign_in=True, watches=2)

    async def people() -> dict[str, str]:
        known = Tokens(ArtifactStore(str(root)))
        made = {
            "ann": await known.add("ann", AccessRole.asker, TokenLimits(runs_per_day=1, daily_usd=3)),
            "bob": await known.add("bob", AccessRole.asker, TokenLimits()),
            "idle": await known.add("idle", AccessRole.asker, TokenLimits(runs_per_day=0)),
            "rita": await known.add("rita", AccessRole.reader, TokenLimits()),
            "root": await known.add("root", AccessRole.admin, TokenLimits()),
            "quick": await known.add("quick", AccessRole.reader, TokenLimits(requests_per_minute=2)),
            "gone": await known.add("gone", AccessRole.admin, TokenLimits()),
            "old": await known.add("old", AccessRole.admin, TokenLimits(), days=1e-9),
            "foreign": await Tokens(ArtifactStore(str(elsewhere))).add("ann", AccessRole.admin, TokenLimits()),
        }
        await known.revoke("gone")
        return {name: text for name, (_, text) in made.items()}

    tokens = asyncio.run(people())
    with served_with(options, limit=1) as served:
        house = House(served, tokens, "", prefect_server.api_url)
        with house.client("ann") as ann:
            started = ann.post(RUNS, json=QUESTION, headers={"Idempotency-Key": "one"})
            assert started.status_code == 202, started.text
            run_id = started.json()["id"]
            deadline = time.monotonic() + 120
            while not RunState(ann.get(f"{RUNS}/{run_id}").json()["state"]).ended:
                assert time.monotonic() < deadline
                time.sleep(0.3)
        yield replace(house, run_id=run_id)


def routes(app: FastAPI, run_id: str) -> Iterator[tuple[str, str, str]]:
    """Yield the method, the path as it is declared and one address of every route."""
    for route in _flat(app.routes):
        address = route.path.replace("{run_id}", run_id)
        for part in route.param_convertors:
            address = address.replace(f"{{{part}}}", (value := PARTS.get(part, "1"))).replace(f"{{{part}:path}}", value)
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield method, route.path, address


def _flat(found: Any) -> Iterator[APIRoute]:
    for route in found:
        if isinstance(route, APIRoute):
            yield route
        else:
            yield from _flat(getattr(getattr(route, "original_router", route), "routes", []))


def all_routes(house: House) -> list[tuple[str, str, str]]:
    found = list(routes(create_app(house.served.options), house.run_id))
    assert ("DELETE", f"{RUNS}/{{run_id}}", f"{RUNS}/{house.run_id}") in found
    return found


def send(client: httpx.Client, method: str, path: str, address: str, **more: Any) -> httpx.Response:
    body = None if method in ("GET", "DELETE") else BODIES.get(f"{method} {path}", {})
    with client.stream(method, address, json=body, **more) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            answer.read()
        return answer


def refused(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, (answer.request.url, answer.status_code, answer.text)
    assert answer.headers["content-type"] == PROBLEM
    assert answer.json()["code"] == code and answer.json()["status"] == status
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe-inline" not in answer.headers["content-security-policy"]


def test_nobody_comes_in_without_a_valid_token(house: House) -> None:
    good = house.tokens["ann"]
    spoiled = good[:-1] + ("0" if good[-1] != "0" else "1")
    bad = [house.tokens["gone"], house.tokens["old"], house.tokens["foreign"], spoiled, good[:-1], good + "0", "x"]
    headers = [{}, *({"Authorization": f"Bearer {token}"} for token in bad), {"Authorization": f"Basic {good}"}]
    with house.unchanged(), house.client() as nobody:
        for method, path, address in all_routes(house):
            if path not in OPEN_ROUTES and not path.startswith(("/static/", "/shared/")):  # a public link lets in
                answer = send(nobody, method, path, address)
                if path.startswith("/v1/"):  # in the words of OpenAI's clients
                    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
                else:
                    refused(answer, 401, "E7001")
        for sent in headers:
            for method, path, address in (("GET", RUNS, f"{RUNS}/{house.run_id}"), ("POST", RUNS, RUNS)):
                answer = send(nobody, method, path, address, headers=sent)
                refused(answer, 401, "E7001")
                assert answer.headers["www-authenticate"] == "Bearer"
                assert good[20:] not in answer.text and spoiled[20:] not in answer.text
        refused(nobody.get(f"{RUNS}/{house.run_id}?token={good}"), 401, "E7001")
        page = nobody.get(f"/runs/{house.run_id}", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, f"/sign-in?next=/runs/{house.run_id}")
        assert nobody.get("/api/v1/health").status_code == 200


def test_another_users_run_does_not_exist(house: House) -> None:
    """Every route of a run: a new one that forgets to ask whose it is fails here."""
    nowhere = str(uuid.uuid4())
    with house.unchanged(), house.client("bob") as bob:
        for method, path, address in all_routes(house):
            if "{run_id}" not in path:
                continue
            answer, other = (
                send(bob, method, path, address),
                send(bob, method, path, address.replace(house.run_id, nowhere)),
            )
            assert answer.status_code == 404, (method, address, answer.text)
            if path.startswith(access.PROGRAMS):  # pages tell it as a page
                refused(answer, 404, other.json()["code"])
            assert answer.text.replace(house.run_id, nowhere) == other.text


def test_nothing_of_somebody_else_exists(house: House) -> None:
    """Watches, batches, corpora and sessions are kept from others by the rule that runs are, in the same words."""
    batch = "made-1a2b3c4d"
    kept = {"owner": "root", "created": "2026-11-01T06:00:00+00:00", "questions": 1, "run_id": str(uuid.uuid4())}
    for path, text in (
        (f".serve/batches/{batch}.json", json.dumps(kept)),
        (f"{BATCHES}/{batch}/{QUESTIONS}", '{"question": "What is a slot?"}\n'),
    ):
        (house.served.root / path).parent.mkdir(parents=True, exist_ok=True)
        (house.served.root / path).write_text(text, encoding="utf-8")
    with house.client("root") as root, house.client("bob") as bob:
        watched = {"question": "What is a slot?", "cron": "0 6 1 1 *", "name": "slots"}
        assert root.post("/api/v1/watches", json=watched).status_code == 201
        files = {"files": ("a.md", b"# Slots\n\nA slot holds a value.\n")}
        assert root.post("/api/v1/corpora", data={"name": "slots"}, files=files).status_code == 201
        session = root.post("/research/sessions", json={"config": {}}).json()["id"]
        for folder, name, other in (
            ("/api/v1/watches", "slots", "plots"),
            ("/api/v1/batches", batch, "made-4d3c2b1a"),
            ("/api/v1/corpora", "slots", "plots"),
            ("/research/sessions", session, str(uuid.uuid4())),
        ):
            assert root.get(f"{folder}/{name}").status_code == 200
            for method in ("GET", "DELETE"):
                answer, missing = (bob.request(method, f"{folder}/{one}") for one in (name, other))
                refused(answer, 404, missing.json()["code"])
                assert answer.text.replace(name, other) == missing.text
            if folder.endswith("watches"):  # nor does a name tell of another's watch
                made = bob.post(folder, json=watched)
                assert made.status_code == 201 and made.json()["name"].startswith("slots-")
                asked, named = (bob.get(f"{folder}/{name}").json() for name in ("slots", made.json()["name"]))
                assert asked | {"next_run": None} == named | {"next_run": None}  # Prefect plans it meanwhile
                refused(bob.post(folder, json=watched), 409, "E7004")
                assert bob.delete(f"{folder}/slots").status_code == 204
            assert root.delete(f"{folder}/{name}").status_code == 204


def test_readers_change_nothing(house: House) -> None:
    with house.client("ann") as ann, house.client("rita") as rita:
        refused(rita.get(f"{RUNS}/{house.run_id}"), 404, "E5001")
        assert ann.patch(f"{RUNS}/{house.run_id}", json={"shared": True}).json()["shared"] is True
        with house.unchanged():
            assert rita.get(f"{RUNS}/{house.run_id}").json()["owner"] == "ann"
            for method, path, address in all_routes(house):
                if method == "GET" or path in (*OPEN_ROUTES, "/sign-out") or f"{method} {path}" in READING:
                    continue
                answer = send(rita, method, path, address)
                if path.startswith(access.PROGRAMS):
                    invalid = 400 if path.startswith("/v1") else 422
                    statuses = (403,) if f"{method} {path}" in BODIES else (403, 404, invalid)
                    assert answer.status_code in statuses, address
                    assert answer.headers["content-type"] == (PROBLEM if invalid == 422 else "application/json")
        assert ann.patch(f"{RUNS}/{house.run_id}", json={"shared": False}).json()["shared"] is False
        refused(rita.get(f"{RUNS}/{house.run_id}"), 404, "E5001")


def test_hosts_pages_and_paths_that_are_forged(house: House) -> None:
    run = f"{RUNS}/{house.run_id}"
    port = house.served.url.rpartition(":")[2]
    with house.unchanged(), house.client("root") as root:
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1",
            "127.0.0.1:1",
            f"127.0.0.1.evil.example:{port}",
            f"x@127.0.0.1:{port}",
            f"127.0.0.1:{port}/x",
            f"[::2]:{port}",
        ):
            refused(root.get(run, headers={"Host": host}), 421, "E7007")
        assert root.get(run, headers={"Host": f"localhost:{port}"}).status_code == 200
        own = house.served.url
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{int(port) + 1}"},
            {"Origin": f"{own}.evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Origin": own},
        ):
            for method, address in (("POST", RUNS), ("DELETE", run), ("POST", "/sign-in"), ("PATCH", run)):
                refused(root.request(method, address, headers=headers, json=QUESTION), 403, "E7008")
            assert "access-control-allow-origin" not in root.get(run, headers=headers).headers
        asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        assert "access-control-allow-origin" not in root.options(RUNS, headers=asked).headers
        for path in (
            "/../../etc/passwd",
            "/%2e%2e/x",
            f"{run}/artifacts/..%2frun.json",
            f"{run}/artifacts/%2fetc%2fpasswd",
            f"{run}/artifacts/..%5crun.json",
            f"{run}/artifacts/run.json%00.md",
            f"{run}/artifacts/..",
            "/api/v1/runs/..%2f",
        ):
            refused(raw(house, path), 404, "E7005")
        for run_id in ("x", house.run_id.upper(), house.run_id[:8], "%7B%7D", ".serve", "1" * 5_000):
            assert root.get(f"{RUNS}/{run_id}").status_code in (404, 422)
        refused(root.post(RUNS, content=b"x" * (access.MOST_BYTES + 1)), 413, "E7009")
        refused(root.post(RUNS, content=iter([b"x" * access.MOST_BYTES, b"x"])), 413, "E7009")


def test_only_uploads_may_be_large(house: House) -> None:
    """Whatever its media type is: nobody fills the memory or the disk by way of a route that takes no files."""
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    large = b'--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n' + b"x" * access.MOST_BYTES
    with house.unchanged(), house.client("rita", **form) as rita:
        for method, path, address in all_routes(house):
            if method != "GET":
                answer = rita.request(method, address, content=large)
                expected = (403, 404) if (method, path) in UPLOADS else (413,)  # a reader may upload nothing
                assert answer.status_code in expected, (method, address, answer.text)


def raw(house: House, path: str) -> httpx.Response:
    """Ask for a path as it is, which httpx would make a plain one."""
    url = httpx.URL(house.served.url)
    request = httpx.Request("GET", url, headers={"Authorization": f"Bearer {house.tokens['root']}"})
    request.extensions["target"] = path.encode()
    with httpx.HTTPTransport() as transport:
        answer = transport.handle_request(request)
        answer.request = request
        answer.read()
        return answer


def test_sessions_that_are_forged(house: House) -> None:
    run = f"{RUNS}/{house.run_id}"
    store = ArtifactStore(str(house.served.root))
    with house.client() as page:
        signed_in = page.post("/sign-in", data={"token": house.tokens["root"], "next": "//evil.example"})
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/")
        said = signed_in.headers["set-cookie"].lower()
        assert "httponly" in said and "samesite=lax" in said and "max-age=" in said and "secure" not in said
        cookie = page.cookies[COOKIE]
        session = asyncio.run(BrowserSessions(store).read(cookie))
        assert house.tokens["root"][20:] not in cookie
        assert page.get(run).status_code == 200
        other = asyncio.run(BrowserSessions(ArtifactStore(f"memory://{uuid.uuid4()}")).begin(session.token_id)).cookie
        parts = cookie.split(".")
        forged = [
            other,
            ".".join([*parts[:1], str(int(parts[1]) + 1), *parts[2:]]),
            ".".join([house.tokens["ann"].split("_")[1], *parts[1:]]),
            ".".join([*parts[:3], "0" * 64]),
            f"{cookie}0",
            session.csrf,
            "x",
        ]
        with house.unchanged(), house.client() as thief:
            for text in forged:
                refused(thief.get(run, headers={"Cookie": f"{COOKIE}={text}"}), 401, "E7001")
                refused(thief.post(RUNS, json=QUESTION, headers={"Cookie": f"{COOKIE}={text}"}), 401, "E7001")
            for name in ("", "0" * 64, other.rpartition(".")[2], cookie.rpartition(".")[2], "ä"):
                secret = [(b"X-CSRF-Token", name.encode())] if name else []
                refused(page.post(RUNS, json=QUESTION, headers=secret), 403, "E7008")
                refused(page.post("/sign-out", data={"csrf_token": name}), 403, "E7008")
                refused(page.delete(run, headers=secret), 403, "E7008")
                files = {"file": ("x.txt", b"x")}
                for upload in ("/api/v1/corpora", "/corpora/x/files", "/"):
                    refused(page.post(upload, files=files, headers=secret), 403, "E7008")
                    refused(page.post(upload, files=files, data={"csrf_token": session.csrf}), 403, "E7008")
        assert page.patch(run, json={"shared": False}, headers={"X-CSRF-Token": session.csrf}).status_code == 200
        sent = page.post(f"/corpora?csrf_token={session.csrf}", files=files)
        assert sent.status_code != 403, sent.text
        signed_out = page.post("/sign-out", data={"csrf_token": session.csrf})
        assert signed_out.status_code == 303
        refused(page.get(run, headers={"Cookie": f"{COOKIE}={cookie}"}), 401, "E7001")
        with house.unchanged():
            for token in (house.tokens["gone"], house.tokens["foreign"], "x", ""):
                answer = page.post("/sign-in", data={"token": token})
                assert answer.status_code == 401 and "set-cookie" not in answer.headers
                assert not token[20:] or token[20:] not in answer.text


async def test_proxies_that_are_forged(tmp_path: Path) -> None:
    options = Options(str(tmp_path), hosts=("fathom.example",), user_header="X-User", trusted_proxies=("10.1.0.0/16",))
    app = create_app(options)

    async def ask(peer: str, headers: list[tuple[str, str]], app: FastAPI = app) -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://fathom.example") as client:
            return await client.get("/api/v1/me", headers=headers)

    named = ("X-User", "zoe@example.org")
    for peer in ("127.0.0.1", "10.1.2.3", "::1", "::ffff:10.1.2.3"):
        assert (await ask(peer, [named])).json()["name"] == "zoe@example.org"
        assert (await ask(peer, [named])).json()["role"] == "asker"
        refused(await ask(peer, [named, ("X-User", "root")]), 403, "E7002")
        refused(await ask(peer, [("X-User", "../../x")]), 401, "E7001")
        refused(await ask(peer, []), 401, "E7001")
    for peer in ("10.2.0.1", "192.0.2.1", ""):
        refused(await ask(peer, [named]), 403, "E7002")
        refused(await ask(peer, [named, ("X-Forwarded-For", "127.0.0.1")]), 403, "E7002")
    plain = create_app(Options(str(tmp_path), hosts=("fathom.example",), sign_in=True))
    refused(await ask("127.0.0.1", [named], plain), 401, "E7001")
    opened = create_app(Options(str(tmp_path), hosts=("fathom.example",)))
    refused(await ask("127.0.0.1", [("X-Forwarded-For", "192.0.2.1")], opened), 403, "E7002")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    token = (await Tokens(ArtifactStore(str(tmp_path))).add("ann", AccessRole.asker, TokenLimits()))[1]
    for peer, secure in (("10.1.2.3", True), ("10.2.0.1", False)):
        transport = httpx.ASGITransport(app, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://fathom.example") as client:
            headers = {"X-Forwarded-Proto": "https", "Origin": "https://fathom.example"}
            for _ in range(2):  # the second time with a session
                answer = await client.post("/sign-in", data={"token": token}, headers=headers)
                assert answer.status_code == 303 and ("; Secure" in answer.headers["set-cookie"]) is secure
    for peer, lines, known in [
        ("10.1.2.3", ["192.0.2.1, 198.51.100.7"], "198.51.100.7"),
        ("10.1.2.3", ["192.0.2.1", "198.51.100.7"], "198.51.100.7"),  # the proxy's line, below its client's
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.2.0.1", ["198.51.100.7"], "10.2.0.1"),
    ]:
        sent = Headers(raw=[(b"x-forwarded-for", line.encode()) for line in lines])
        assert access.peer_of({"client": (peer, 1)}, sent, options)[0] == known, "whose attempts are counted"
    with pytest.raises(InvalidInput):
        Options(str(tmp_path), trusted_proxies=("everybody",))


HOSTILE: list[dict[str, Any]] = [
    {"docs": ["/etc"]},
    {"fetch_allow_hosts": ["169.254.169.254"]},
    {"embed_model": "/tmp/model"},
    {"prices": {"openai/x": {"input": 0, "output": 0}}},
    {"model": "huggingface/http://10.0.0.1/"},
    {"fallback_models": ["ollama/x"]},
    {"role_models": {"planner": {"model": "extractive", "fallbacks": ["openai/x"]}}},
    {"budget": {"max_usd": 1_000_000}},
    {"budget": {"max_tokens": 10**12}},
    {"concurrency": 32},
    {"model_calls": {"at_once": 64}},
    {"people": {"wait_minutes": 10_000}},
]


def test_settings_that_reach_too_far(house: House) -> None:
    with house.unchanged(), house.client("bob") as bob:
        for settings in HOSTILE:
            refused(bob.post(RUNS, json={**QUESTION, "settings": settings}), 403, "E7002")
        for settings in ({"artifacts": "/tmp/x"}, {"template": "x"}, {"unknown": 1}):
            refused(bob.post(RUNS, json={**QUESTION, "settings": settings}), 422, "E4001")
        template = 'title = "x"\nabout = "x"\n[settings]\nembed_model = "/tmp/model"\n'
        assert bob.post(RUNS, json={**QUESTION, "template": template}).status_code in (403, 422)


def test_a_follow_up_takes_over_only_what_its_asker_may_set(house: House, tmp_path: Path) -> None:
    """Somebody who may read an administrator's run does not get its prices or its budget with it."""
    dear = {"budget": {"max_usd": 900}, "prices": {"x/y": {"input": 1e-6, "output": 1e-6}}, "max_steps": 2}
    (papers := tmp_path / "papers").mkdir()
    (papers / "a.md").write_text("A slot holds a value.\n")
    manifest = next(house.served.root.glob("research_artifacts/*/run.json"))
    stored = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(stored | {"settings": stored["settings"] | dear | {"docs": [str(papers)]}}))
    try:
        with without_worker(house.served) as idle, ExitStack() as open_ones:
            bob, root = (open_ones.enter_context(replace(house, served=idle).client(name)) for name in ("bob", "root"))
            assert root.patch(f"{RUNS}/{house.run_id}", json={"shared": True}).is_success
            follow_up = {"question": "And on a class?"}
            asked = [one.post(f"{RUNS}/{house.run_id}/ask", json=follow_up) for one in (bob, root)]
            assert [answer.status_code for answer in asked] == [202, 202], [answer.text for answer in asked]
            theirs, whole = (answer.json()["settings"] for answer in asked)
            assert root.patch(f"{RUNS}/{house.run_id}", json={"shared": False}).is_success
    finally:
        manifest.write_text(json.dumps(stored))
    assert dear.keys() <= whole.keys(), "who may set all takes all over"
    assert dear.keys() & theirs.keys() == {"max_steps"} and theirs["docs"] == ["papers"]


def test_settings_that_are_too_large(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    domains = [f"{number}.example.org" for number in range(50_000)]
    large: list[tuple[dict[str, Any], str]] = [
        ({"sources": {"block": domains}}, "sources.block"),
        ({"sources": {"scores": dict.fromkeys(domains, 0.5)}}, "sources.scores"),
        ({"sources": {"block": ["x" * 1_900_000]}}, "sources.block.0"),
        ({"tools": ["x" * 4_000] * 400}, ""),
        ({"y" * 1_900_000: 1}, "y" * 200 + " ..."),
    ]
    session = {"config": {"settings": {"tools": ["x" * 4_000] * 400}}}
    with house.unchanged(), house.client("bob") as bob:
        for settings, place in large:
            for route, asked in (
                (RUNS, {"question": "Why?"}),
                ("/api/v1/watches", {"question": "Why?", "every": "1d"}),
                ("/api/v1/batches", {"questions": ["Why?"]}),
            ):
                refused(answer := bob.post(route, json={**asked, "settings": settings}), 422, "E4001")
                assert len(answer.text) < 5_000, "what was sent is not repeated"
                assert [one["path"] for one in answer.json()["errors"]] == ([place] if place else [])
        others: list[tuple[str, dict[str, Any]]] = [
            ("/v1/chat/completions", {"model": "fathom", "messages": [{"role": "user", "content": "x" * 1_900_000}]}),
            ("/research/sessions", session),
        ]
        for route, body in others:
            assert 400 <= bob.post(route, json=body).status_code < 500
    assert len("".join(capfd.readouterr())) < 10_000, "nobody fills the log"


async def test_what_prefect_finds_too_large_is_said_and_not_logged(
    prefect_server: PrefectServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with get_client() as client:
        with pytest.raises(httpx.HTTPStatusError) as refused:
            await client.create_flow_run(deep_research, parameters={"query": "x" * 1_000_000})
    assert len(str(refused.value)) > 1_000_000, "it repeats what it was sent"
    problem = problem_of(outage(refused.value))
    assert (problem.status, problem.code) == (413, "E7009")
    assert 0 < len(caplog.text) < 1_000


def test_watches_that_would_flood_the_server(house: House) -> None:
    asked = {"question": "What is a slot?"}
    with house.unchanged(), house.client("bob") as bob, house.client("root") as root, house.client("idle") as idle:
        for cron in ("* * * * * *", "0 6 1 1 * 30", "* * * *"):  # six fields: a run every second, without a daily limit
            for anybody in (bob, root):
                refused(anybody.post("/api/v1/watches", json={**asked, "cron": cron}), 422, "E4001")
        for schedule in ({"cron": "* * * * *"}, {"cron": "0,5 0 1 1 *"}, {"cron": "0 0 30 2 *"}, {"every": "14m"}):
            refused(answer := bob.post("/api/v1/watches", json={**asked, **schedule}), 422, "E4001")
            assert "15 minutes apart" in answer.json()["detail"] or "30 2" in answer.json()["detail"]
        assert "--watch-every" in answer.json()["next_step"]
        refused(idle.post("/api/v1/watches", json={**asked, "cron": "@daily"}), 403, "E7002")
    with house.client("bob") as bob, ThreadPoolExecutor(6) as pool:
        added = [
            *pool.map(lambda n: bob.post("/api/v1/watches", json={**asked, "cron": "@daily", "name": n}), "abcdef")
        ]
        assert sorted(answer.status_code for answer in added) == [201] * 2 + [403] * 4
        assert "--watches" in next(answer for answer in added if answer.status_code == 403).json()["next_step"]
        for watch in bob.get("/api/v1/watches").json()["watches"]:
            assert bob.delete(f"/api/v1/watches/{watch['name']}").status_code == 204


def test_limits(house: House) -> None:
    """Ann has had the one run of her day; what it did not spend was given back when it had ended."""
    with house.client("ann") as ann, house.client("quick") as quick:
        with ThreadPoolExecutor(4) as pool:  # only one of them gives back
            assert [*pool.map(lambda _: ann.get("/api/v1/me").status_code, range(4))] == [200] * 4
        accounts = house.served.root / ".spending/callers/ann"
        assert len([*accounts.glob("*/usd/*.json")]) == 2 and len([*accounts.glob("*/runs/*.json")]) == 1
        assert ann.get(f"{RUNS}/{house.run_id}").json()["settings"]["budget"]["max_usd"] == 3
        me = ann.get("/api/v1/me").json()
        assert (me["name"], me["role"], me["runs_left"], me["usd_left"]) == ("ann", "asker", 0, 3.0)
        with house.unchanged():
            answer = ann.post(RUNS, json=QUESTION)
            refused(answer, 429, "E7003")
            assert 0 < int(answer.headers["retry-after"]) <= 86_401
            refused(ann.post(RUNS, json={**QUESTION, "settings": {"budget": {"max_usd": 4}}}), 403, "E7002")
            follow_up = {"question": "And on a class?", "settings": {"docs": ["/etc"]}}
            refused(ann.post(f"{RUNS}/{house.run_id}/ask", json=follow_up), 403, "E7002")
            refused(ann.post(f"{RUNS}/{house.run_id}/ask", json={"question": "And on a class?"}), 429, "E7003")
            again = ann.post(RUNS, json=QUESTION, headers={"Idempotency-Key": "one"})
            assert (again.status_code, again.json()["id"]) == (202, house.run_id)
            codes = [quick.get("/api/v1/me").status_code for _ in range(3)]
            assert codes == [200, 200, 429]


def test_only_administrators_see_paths_of_the_server(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    root = house.served.root
    stored = root / "research_artifacts" / "water_tanks_hold"  # of an earlier store, with documents of that machine
    shutil.copytree(ROOT / "tests" / "stored_run", root, dirs_exist_ok=True)
    own = Ownership(owner="ann", shared=True)
    run_id = json.loads((stored / "run.json").read_text())["run_id"]
    asyncio.run(RunService(house.served.options).owners.record(run_id, own))
    for name, run in itertools.product(("run.json", "result.json", "provenance.json"), (run_id, house.run_id)):
        for route in (f"/runs/{run}/{name}", f"{RUNS}/{run}/artifacts/{name}"):
            with house.client("ann") as ann, house.client("root") as admin:
                shown, whole = ann.get(route), admin.get(route)
                assert shown.status_code == whole.status_code == 200, route
                assert '"/' not in shown.text and str(root) not in shown.text, route
                assert '"/' in whole.text and json.loads(shown.text).keys() == json.loads(whole.text).keys()
    monkeypatch.setitem(sys.modules, "typst", None)
    with house.client("ann") as ann, house.client("root") as admin:
        shown, whole = (one.get(f"{RUNS}/{house.run_id}/report?form=pdf") for one in (ann, admin))
        assert shown.status_code == whole.status_code == 501
        assert sys.executable in whole.text and sys.executable not in shown.text


async def test_what_failed_names_no_path_of_the_server(prefect_server: PrefectServer, tmp_path: Path) -> None:
    """Its events, its page and what chat programs are told do not, and neither does a refusal."""
    store, docs = ArtifactStore(str(tmp_path / "store")), tmp_path / "papers"
    tokens = {
        role: (await Tokens(store).add(role, role, TokenLimits()))[1] for role in (AccessRole.asker, AccessRole.admin)
    }
    docs.mkdir()
    (docs / "a.md").write_text("A slot holds a value.\n")
    options = Options(store.address(), docs=(str(docs),), port=quiet_port(), sign_in=True, pool="papers")
    with served_with(options, limit=0) as served:
        clients = [
            httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {tokens[role]}"}, timeout=120)
            for role in tokens
        ]
        with clients[0] as ann, clients[1] as root:
            run = ann.post(RUNS, json=QUESTION).json()
            shutil.rmtree(docs)
            with worker_serving(Worker(options.work_pool, 1)):
                said = {client: client.get(run["links"]["events"]).text for client in (root, ann)}
            for address in (
                run["links"]["run"],
                run["links"]["page"],
                f"/v1/responses/resp_{run['id'].replace('-', '')}",
            ):
                for client in said:
                    said[client] += client.get(address).text
            refusal = ann.post(RUNS, json=QUESTION)
            assert refusal.status_code == 422 and "'papers' does not exist" in refusal.text
    assert str(tmp_path) in said[root]
    assert "'papers' does not exist" in said[ann] and str(tmp_path) not in said[ann] + refusal.text


async def test_a_run_is_paid_for_once_for_each_time_it_runs(prefect_server: PrefectServer, tmp_path: Path) -> None:
    token = (
        await Tokens(ArtifactStore(str(tmp_path))).add(
            "ann", AccessRole.asker, TokenLimits(runs_per_day=5, daily_usd=10)
        )
    )[1]
    options = Options(str(tmp_path), port=quiet_port(), sign_in=True, pool="nobody")
    headers, asked = {"Authorization": f"Bearer {token}"}, {**QUESTION, "settings": {"budget": {"max_usd": 3}}}
    with served_with(options, limit=0) as served:
        async with (
            httpx.AsyncClient(base_url=served.url, headers=headers, timeout=60) as ann,
            get_client() as prefect,
        ):

            async def left() -> tuple[int, float]:
                me = (await ann.get("/api/v1/me")).json()
                return me["runs_left"], me["usd_left"]

            run = (await ann.post(RUNS, json=asked)).json()
            assert await left() == (4, 7)
            await prefect.set_flow_run_state(uuid.UUID(run["id"]), Crashed(), force=True)
            assert await left() == (4, 7), "a worker takes it up again within an hour"
            await prefect.set_flow_run_state(uuid.UUID(run["id"]), Cancelled(), force=True)
            assert await left() == (4, 10)
            resumed = await asyncio.gather(*(ann.post(f"{run['links']['run']}/resume") for _ in range(4)))
            assert sorted(answer.status_code for answer in resumed) == [202, 409, 409, 409]
            assert await left() == (3, 7)


def test_links_and_who_did_what(house: House, fathom_cli: FathomCLI) -> None:
    run = f"{RUNS}/{house.run_id}"
    with house.client("ann") as ann, house.client("rita") as rita, house.client("bob") as bob:
        public = ann.post(f"{run}/links?public=true").json()
        refused(rita.get(f"/runs/{house.run_id}/join/{public['page'].split('/')[-2]}"), 404, "E7005")
        refused(rita.get(run), 404, "E5001")
        assert ann.delete(f"{run}/links/{public['id']}").status_code == 204
        made = ann.post(f"{run}/links").json()
        secret = made["page"].rpartition("/")[2]
        assert [link["page"] for link in ann.get(f"{run}/links").json()] == [None]
        with house.unchanged(), house.client() as nobody:
            refused(nobody.get(made["page"]), 401, "E7001")
            refused(rita.get(f"/runs/{house.run_id}/join/{'0' * 64}"), 404, "E7005")
            refused(rita.get(f"/runs/{uuid.uuid4()}/join/{secret}"), 404, "E7005")
        assert rita.get(made["page"]).headers["location"] == f"/runs/{house.run_id}"
        assert rita.get(run).status_code == 200
        refused(rita.post(f"{run}/remarks", json={"text": "x"}), 403, "E7002")
        refused(bob.get(run), 404, "E5001")
        assert ann.delete(f"{run}/links/{made['id']}").status_code == 204
        refused(rita.get(run), 404, "E5001")
        said = [(entry["by"], entry["action"]) for entry in ann.get(f"{run}/activity").json()]
        assert said[0] == ("ann", "asked")
        assert said[-3:] == [("ann", "linked"), ("rita", "joined"), ("ann", "unlinked")]
        printed = fathom_cli(["audit", house.run_id, "--artifacts", str(house.served.root)]).stdout
        assert "ann (asker) asked" in printed and f"rita (reader) joined {made['id']}" in printed
        everything = b"".join(path.read_bytes() for path in house.served.root.rglob("*") if path.is_file())
        assert secret.encode() not in everything
        assert not [name for name, text in house.tokens.items() if text[20:].encode() in everything]


async def test_a_stream_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "LOOK_SECONDS", 0)
    gate = Gate(Options(str(tmp_path), hosts=("fathom.example",), sign_in=True))
    _, text = await gate.tokens.add("ann", AccessRole.reader, TokenLimits())

    async def forever(scope: Any, receive: Any, send: Any) -> None:
        async def lines() -> AsyncIterator[str]:
            for number in range(10_000):
                if number == 3:
                    await gate.tokens.revoke("ann")
                yield f"id: {number}\n\n"
            raise AssertionError("it went on")

        await StreamingResponse(lines(), media_type="text/event-stream")(scope, receive, send)

    transport = httpx.ASGITransport(access.Guard(forever, gate, on_error), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://fathom.example") as client:
        answer = await client.get("/events", headers={"Authorization": f"Bearer {text}"})
    assert answer.text.splitlines()[:2] == ["id: 0", ""] and "id: 3" not in answer.text
    for _ in range(STREAMS):
        gate.rates.open_stream("ann")


async def test_streams_are_counted_when_they_are_opened_together(prefect_server: PrefectServer, tmp_path: Path) -> None:
    """Of every kind, whatever the client says that it takes; and of each user whom a proxy names by itself."""
    options = Options(str(tmp_path), port=quiet_port(), user_header="X-User", pool="nobody")
    token = (await Tokens(ArtifactStore(str(tmp_path))).add("ann", AccessRole.asker, TokenLimits()))[1]
    limits = httpx.Limits(max_connections=None)
    with served_with(options, limit=0) as served:
        for headers in ({"Authorization": f"Bearer {token}"}, {"X-User": "zoe"}, {"X-User": "yan"}):
            async with httpx.AsyncClient(base_url=served.url, headers=headers, timeout=60, limits=limits) as client:
                events = (await client.post(RUNS, json=QUESTION)).json()["links"]["events"]
                session = (await client.post("/research/sessions", json={"config": {}})).json()["id"]
                asked = await client.post(f"/research/sessions/{session}/execute", json={"query": "What is a slot?"})
                async with AsyncExitStack() as open_ones:
                    streams = (
                        open_ones.enter_async_context(client.stream("GET", address))
                        for address in [events, asked.json()["stream"], "/mcp"] * 40
                    )
                    answers = await asyncio.gather(*streams)
                    assert Counter(answer.status_code for answer in answers) == {200: STREAMS, 429: 120 - STREAMS}


def begun(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v1/me", headers={"X-User": "ann"}).is_success
    except httpx.TransportError:
        return False


def test_each_user_whom_a_proxy_names_has_the_limits_of_the_command(
    prefect_server: PrefectServer, forked: Forked, tmp_path: Path
) -> None:
    address = f"http://127.0.0.1:{(port := quiet_port())}"
    limits = ["--proxy-runs-per-day", "1", "--proxy-daily-usd", "2", "--proxy-requests-per-minute", "50"]
    options = ["--user-header", "X-User", "--pool", "nobody", "--port", str(port), "--artifacts", str(tmp_path)]
    serving = forked({**base_env(), **prefect_server.env}, "serve", *options, *limits)
    asked = {"question": "What is a descriptor?", "settings": {"profile": "quick"}}
    with httpx.Client(base_url=address, timeout=60) as client:
        while not begun(client):
            assert serving.poll() is None, serving.said()
            time.sleep(0.1)
        for name in ("ann", "zoe"):
            user = {"X-User": name}
            assert client.post(RUNS, json=asked, headers=user).status_code == 202
            refused(client.post(RUNS, json=asked, headers=user), 429, "E7003")
            me = client.get("/api/v1/me", headers=user).json()
            assert (me["requests_per_minute"], me["runs_per_day"], me["runs_left"], me["daily_usd"]) == (50, 1, 0, 2)
            assert me["usd_left"] == 0


async def test_named_origins_may_use_the_api(tmp_path: Path) -> None:
    page = "https://app.example"
    app = create_app(Options(str(tmp_path), hosts=("fathom.example",), origins=(page,), sign_in=True))
    transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://fathom.example") as client:
        headers = {"Origin": page, "Access-Control-Request-Method": "POST"}
        preflight = await client.options(RUNS, headers=headers)
        assert preflight.status_code == 204 and preflight.headers["access-control-allow-origin"] == page
        assert "access-control-allow-credentials" not in preflight.headers
        refused(await client.post(RUNS, json=QUESTION, headers={"Origin": page}), 401, "E7001")
        other = await client.options(RUNS, headers={**headers, "Origin": "https://app.example.evil"})
        assert "access-control-allow-origin" not in other.headers


TEXT = st.text(max_size=150) | st.from_regex(r"fathom_[0-9a-f]{12}_[0-9a-f]{64}", fullmatch=True)
COOKIES = st.text(max_size=150) | st.from_regex(
    r"[0-9a-f]{12}\.[0-9]{10,11}\.[0-9a-f]{32}\.[0-9a-f]{64}", fullmatch=True
)


@settings(max_examples=40)
@given(TEXT, st.integers(0, 82), st.characters())
def test_no_other_text_is_a_token(text: str, at: int, char: str) -> None:
    async def tried() -> None:
        tokens = Tokens(ArtifactStore(f"memory://{uuid.uuid4()}"))
        _, good = await tokens.add("ann", AccessRole.asker, TokenLimits())
        assert (await tokens.check(good)).name == "ann"
        assert good not in without_credentials(f"{good}, {good[:30]}")
        for other in {text, good[:at] + char + good[at + 1 :], good[:at], good + char} - {good}:
            with pytest.raises(NotSignedIn):
                await tokens.check(other)

    asyncio.run(tried())


@settings(max_examples=40)
@given(COOKIES, st.integers(0, 121), st.characters())
def test_no_other_text_is_a_session(text: str, at: int, char: str) -> None:
    async def tried() -> None:
        store = ArtifactStore(f"memory://{uuid.uuid4()}")
        session = await BrowserSessions(store).begin("0" * 12)
        assert await BrowserSessions(store).read(session.cookie) == session
        for other in {text, session.cookie[:at] + char + session.cookie[at + 1 :], session.cookie + char}:
            if other != session.cookie:
                with pytest.raises(NotSignedIn):
                    await BrowserSessions(store).read(other)

    asyncio.run(tried())


def test_the_commands(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    here = ["--artifacts", str(tmp_path / "art")]
    refused_start = fathom_cli(["serve", "--host", "0.0.0.0", *here])
    assert refused_start.returncode == 2 and "fathom tokens add" in refused_start.stderr
    assert not (tmp_path / "art").exists()
    made = fathom_cli(["tokens", "add", "ann", "--days", "30", "--daily-usd", "5", "--json", *here])
    token = json.loads(made.stdout)["token"]
    again = fathom_cli(["tokens", "add", "ann", *here])
    assert again.returncode == 2 and "ann already has a token" in again.stderr
    for bad in (["add", "../x"], ["add", "b", "--role", "god"], ["revoke", "b"]):
        assert fathom_cli(["tokens", *bad, *here]).returncode == 2, bad
    listed = fathom_cli(["tokens", "list", *here])
    assert "ann" in listed.stdout and token[20:] not in listed.stdout
    assert asyncio.run(Tokens(ArtifactStore(str(tmp_path / "art"))).check(token)).daily_usd == 5
    assert fathom_cli(["tokens", "revoke", "ann", *here]).returncode == 0
    assert json.loads(fathom_cli(["tokens", "list", "--json", *here]).stdout)[0]["state"] == "revoked"
    damaged = tmp_path / "art/.serve/tokens" / f"{'0' * 12}.json"
    damaged.write_bytes(json_bytes({"id": "x"}))
    assert "is damaged" in fathom_cli(["tokens", "list", *here]).stderr


async def test_only_its_user_can_read_the_key_that_signs_sessions(tmp_path: Path) -> None:
    store, key = ArtifactStore(str(tmp_path)), tmp_path / ".serve/key.json"

    def permissions() -> int:
        return stat.S_IMODE(key.stat().st_mode)

    session = await BrowserSessions(store).begin("0" * 12)
    assert permissions() == 0o600
    key.chmod(0o644)  # as earlier versions made it
    assert await BrowserSessions(store).read(session.cookie) == session
    assert permissions() == 0o600
