"""Connections of strangers: whoever sends half a request, or none, keeps nobody else from the server."""

from __future__ import annotations

import re
import select
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from fathom.service.caller import AccessRole, TokenLimits
from fathom.service.options import ConnectionLimits, Options
from fathom.service.tokens import Tokens
from fathom.storage.store import ArtifactStore
from tests.conftest import ROOT, PrefectServer, base_env, quiet_port
from tests.server import Served, served_with
from tests.test_serving import answers

HALF = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
HELD = 1_100


@contextmanager
def serving(server: PrefectServer, folder: Path, limit: str) -> Iterator[str]:
    """Run `fathom serve` with a limit of open files, as `ulimit` takes it, and yield its address."""
    port = quiet_port()
    env = {**base_env(), **server.env, "HOME": str(folder), "FATHOM_ARTIFACTS": str(folder / "store")}
    command = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", sys.executable, "-m", "fathom"]
    log = folder / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "serve", "--port", str(port)], env=env, cwd=ROOT, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + 120
        while not answers(f"http://127.0.0.1:{port}"):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        httpx.get(f"http://127.0.0.1:{port}/api/v1/status", timeout=120).raise_for_status()  # waits for the application
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
    assert "Too many open files" not in log.read_text()


def connected(url: str, peer: int, sent: bytes) -> socket.socket:
    """Connect from one of many addresses of this machine, and send something."""
    address = httpx.URL(url)
    found = socket.create_connection((address.host, address.port), 60, source_address=(f"127.0.0.{peer}", 0))
    found.sendall(sent)
    return found


def told(connection: socket.socket) -> str:
    """Return what the server says before it closes a connection."""
    connection.settimeout(60)
    found = b""
    with suppress(ConnectionResetError):  # what was sent meanwhile could not be read
        while part := connection.recv(65_536):
            found += part
    return found.decode()


def open_ones(held: Sequence[socket.socket]) -> list[socket.socket]:
    """Return the connections on which the server has said nothing."""
    poll = select.poll()
    for one in held:
        poll.register(one, select.POLLIN)
    said = {number for number, _ in poll.poll(0)}
    return [one for one in held if one.fileno() not in said]


@pytest.mark.parametrize(
    ("limit", "rooms"),
    [("-Sn 1024", {1: 256, 11: HELD}), ("-n 1024", {11: 512})],
    ids=["the limit is raised", "it cannot be raised"],
)
def test_half_sent_requests_keep_nobody_out(
    prefect_server: PrefectServer, tmp_path: Path, limit: str, rooms: dict[int, int]
) -> None:
    """From one address, and from more of them than have room."""
    with serving(prefect_server, tmp_path, limit) as url:
        for peers, room in rooms.items():
            with ExitStack() as ending:
                held = [ending.enter_context(connected(url, n % peers + 1, HALF)) for n in range(HELD)]
                for _ in range(3):
                    assert httpx.get(f"{url}/api/v1/health", timeout=10).is_success
                deadline = time.monotonic() + 10  # before time ends any
                while len(still := open_ones(held)) > room and time.monotonic() < deadline:
                    time.sleep(0.05)  # a new connection is looked at a moment after it was made
                made_room = [told(one) for one in held if one not in still]
            codes = Counter(re.findall(r'"code":"(.+?)"', " ".join(made_room)))
            assert len(made_room) >= HELD - room
            assert codes.keys() <= {"E7003", "E7014"}, "each is told why, unless it was sending"
            assert bool(codes["E7003"]) is (room < HELD), "only time ends what there is room for"


@pytest.fixture(scope="module")
def impatient(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = ConnectionLimits(header_seconds=0.5, body_seconds=0.5, of_peer=4)
    options = Options(str(tmp_path_factory.mktemp("impatient")), port=quiet_port(), sign_in=True, connections=limits)
    with served_with(options, limit=0) as served:
        yield served


async def token_of(served: Served, name: str) -> str:
    return (await Tokens(ArtifactStore(str(served.root))).add(name, AccessRole.asker, TokenLimits()))[1]


def status_lines(connection: socket.socket, pieces: bytes = b"") -> list[str]:
    """Return the first lines of what the server answers until it closes; meanwhile, send one byte after another."""
    for number in range(len(pieces)):
        if select.select([connection], [], [], 0.1)[0]:
            break
        connection.sendall(pieces[number : number + 1])
    else:
        assert not pieces, "it would have gone on"
    return re.findall(r"^HTTP/1.1 (.+)\r$", told(connection), re.MULTILINE)


async def test_a_request_arrives_in_time_or_is_refused(impatient: Served) -> None:
    token = f"Authorization: Bearer {await token_of(impatient, 'ann')}\r\n".encode()
    host = f" HTTP/1.1\r\nHost: {httpx.URL(impatient.url).netloc.decode()}\r\n".encode()
    half, body = b"GET /api/v1/health" + host, b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    whole, asked = half + b"\r\n", b"POST /api/v1/runs" + host + token + body
    late, well = "408 Request Timeout", "200 OK"
    sent = {b"": [late], half: [late], asked: [late], whole + half: [well], half + body: [well]}
    for first, expected in sent.items():
        with connected(impatient.url, 1, first) as one:
            assert status_lines(one) == expected, first
    signing_in = b"POST /sign-in" + host + body.replace(b"json", b"x-www-form-urlencoded")
    for first in (half + b"X-Slow: ", signing_in, half + body):  # a byte now and then is not enough
        with connected(impatient.url, 1, first) as one:
            assert status_lines(one, b"x" * 900)[:1] in ([late], [well])


async def test_whoever_has_signed_in_is_not_pushed_out(impatient: Served) -> None:
    """Half a request that breaks off starts nothing, even where its half could be read."""
    token = f"Authorization: Bearer {await token_of(impatient, 'bob')}\r\n"
    host = f"HTTP/1.1\r\nHost: {httpx.URL(impatient.url).netloc.decode()}\r\n"
    form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\n"
    with ExitStack() as ending:
        known = [
            ending.enter_context(connected(impatient.url, 1, f"GET /api/v1/me {host}{token}\r\n".encode()))
            for _ in range(6)
        ]
        for one in known:
            while b"}" not in (said := one.recv(65_536)):
                assert b" 200 OK" in said
        strangers = [ending.enter_context(connected(impatient.url, 1, b"")) for _ in range(6)]
        for refused in map(told, strangers[:2]):
            assert "429 Too Many" in refused and "Retry-After: 1" in refused
        assert len(open_ones(known)) == 6
    with connected(impatient.url, 1, f"POST / {host}{token}{form}question=What+is+a".encode()) as one:
        one.shutdown(socket.SHUT_WR)
        assert told(one) == ""
    async with httpx.AsyncClient(base_url=impatient.url, headers=dict([token.strip().split(": ")])) as bob:
        assert (await bob.get("/api/v1/runs")).json()["runs"] == []
