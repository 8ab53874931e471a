"""Connections to the server: how long a request may take to arrive, and how many strangers may hold.

uvicorn waits without an end for a request that was begun, and takes connections until the process may open no more
files; then nobody else is answered. A stranger is whoever has not signed in on a connection: the guard says when that
changes (`ClientConnection.is_known`). Bodies that a route reads are timed there (`fathom.interfaces.gate`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from fathom.errors import FathomError, TooManyRequests, TooSlow
from fathom.interfaces.problems import MEDIA_TYPE, phrase_of, problem_of, retry_after_of
from fathom.service.options import ConnectionLimits, ip_address_of

MOST_FILES = 10_240
"""Open files that a server asks for: the most that macOS allows, and far more than one process can serve."""
_READ_SECONDS = 0.05
"""In which what a new connection has sent already is read: many may come at once, each with its whole request."""
_IPV6_NETWORK = 64  # bits: one customer of a provider has at least such a network to himself


def raise_file_limit() -> int:
    """Raise the soft limit of open files as far as this process may; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


class Strangers:
    """The connections on which nobody has signed in.

    Where there are too many, the one makes room that has waited longest for its client; none whose request is answered.
    """

    def __init__(self, limits: ConnectionLimits, in_all: int) -> None:
        self.limits = limits
        self._in_all = in_all
        self._all: OrderedDict[ClientConnection, str] = OrderedDict()
        self._by_peer: dict[str, OrderedDict[ClientConnection, None]] = {}

    def add(self, connection: ClientConnection, address: str) -> None:
        """Take a new connection; soon close another one if its peer, or all peers together, then hold too many."""
        peer = _network(address)
        self._all[connection] = peer
        self._by_peer.setdefault(peer, OrderedDict())[connection] = None
        connection.loop.call_later(_READ_SECONDS, self._check, peer)

    def _check(self, peer: str) -> None:
        own = self._by_peer.get(peer, ())
        if len(own) > self.limits.of_peer:
            self._make_room(own, f"More than {self.limits.of_peer} connections from {peer}")
        elif len(self._all) > self._in_all:
            self._make_room(self._all, f"More than {self._in_all} connections")

    def _make_room(self, among: Iterable[ClientConnection], how_many: str) -> None:
        if longest := next((one for one in among if one.awaits_client), None):
            longest.refuse(
                TooManyRequests(
                    f"{how_many} are open on which nobody has signed in.",
                    next_step="close some, or send a token with the first request of each",
                    retry_after=self.limits.header_seconds,  # the longest that one of them waits for its request
                )
            )

    def remove(self, connection: ClientConnection) -> None:
        """Count a connection no longer: it has ended, or somebody has signed in on it."""
        if (peer := self._all.pop(connection, None)) is not None:
            del self._by_peer[peer][connection]
            if not self._by_peer[peer]:
                del self._by_peer[peer]


class ClientConnection(H11Protocol):
    """A connection that is closed when a request does not arrive in time. Requests find it in their ASGI state."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        strangers: Strangers,
    ) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self._strangers = strangers
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()
        self._strangers.add(self, self.client[0] if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._stop_waiting()
        self._strangers.remove(self)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; the time for the next one begins with the first byte after an answer."""
        super().data_received(data)
        if self._between:  # also the rest of a body that was answered before all of it was there
            self._wait()
        else:
            self._stop_waiting()

    def is_known(self) -> None:
        """Count this connection to strangers no longer: somebody has signed in on it."""
        self._strangers.remove(self)

    def refuse(self, error: FathomError) -> None:
        """Close the connection, and say why if no answer has been sent on it."""
        self._strangers.remove(self)
        if not self.cycle and not self.transport.is_closing():
            problem = problem_of(error)
            body = problem.model_dump_json().encode()
            headers = {
                "Content-Type": MEDIA_TYPE,
                "Content-Length": len(body),
                "Connection": "close",
                **retry_after_of(error),
            }
            lines = [
                f"HTTP/1.1 {problem.status} {phrase_of(problem.status)}",
                *(f"{name}: {value}" for name, value in headers.items()),
            ]
            self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.transport.close()

    @property
    def awaits_client(self) -> bool:
        """Whether the client has yet to send something: a header, or the rest of a body."""
        return self._between or self.cycle.more_body

    @property
    def _between(self) -> bool:
        """Whether no request is being answered."""
        return not self.cycle or self.cycle.response_complete

    def _wait(self) -> None:
        if not self._deadline:
            self._deadline = self.loop.call_later(self._strangers.limits.header_seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        seconds = self._strangers.limits.header_seconds
        self.refuse(TooSlow(f"The header of the request was not complete after {seconds:g} seconds."))


def _network(address: str) -> str:
    """Return what counts as one peer: an IPv4 address, or the network of an IPv6 address."""
    found = ip_address_of(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
    return str(found or address)
