"""What `fathom serve` was started with, and where it listens. It imports nothing that loads slowly."""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import socket
from dataclasses import dataclass, field
from datetime import timedelta

from fathom.errors import InvalidInput
from fathom.service.caller import AccessRole, TokenLimits
from fathom.storage.editions import LIMITS, StorageLimits
from fathom.storage.names import slug

_OWN = "serve-"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class ConnectionLimits:
    """How long a request may take to arrive, and how many connections may be open on which nobody has signed in.

    Attributes:
        header_seconds: from the beginning of a connection, or from the first byte after an answer, to its last line.
        body_seconds: between two parts of a body; for the whole body if its sender is not known.
        of_peer: connections of one IPv4 address or one IPv6 network of 64 bits without sign-in.
    """

    header_seconds: float = 15.0
    body_seconds: float = 30.0
    of_peer: int = 256


@dataclass(frozen=True)
class Options:
    """The options of one server.

    Attributes:
        host: the address that it listens on.
        port: 0 for one that is free.
        artifacts: the root of the artifact store, absolute.
        docs: files and folders that a question searches if it names no documents; absolute.
        pool: the work pool whose workers do the research; empty: processes that this server starts.
        at_once: the most runs at the same time, if this server starts their processes.
        queue: the most runs that wait for a worker; who asks for another one is refused.
        hosts: further names under which it is reached.
        origins: web pages of other origins that may use the API.
        sign_in: whether callers must sign in although only this machine can reach the server.
        uploads: how much may be uploaded.
        user_header: the header in which a trusted proxy names the user; empty: none is believed.
        trusted_proxies: addresses or networks of proxies that are believed; with `user_header`, also this machine.
        proxy_role: the role of users whom a proxy names, and
        proxy_limits: what each of them may use.
        public_links: whether owners may let anyone at all read a report by a link.
        models: models that callers who are no administrators may choose, beside the server's own.
        connections: how long requests may take to arrive, and how many connections strangers may hold.
        watch_every: the least time between two runs of a watch, and
        watches: the most watches, of a caller who is no administrator.
    """

    artifacts: str
    host: str = "127.0.0.1"
    port: int = 8700
    docs: tuple[str, ...] = ()
    pool: str = ""
    at_once: int = 2
    queue: int = 100
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    sign_in: bool = False
    user_header: str = ""
    uploads: StorageLimits = LIMITS
    trusted_proxies: tuple[str, ...] = ()
    proxy_role: AccessRole = AccessRole.asker
    proxy_limits: TokenLimits = field(default_factory=TokenLimits)
    public_links: bool = True
    models: tuple[str, ...] = ()
    connections: ConnectionLimits = ConnectionLimits()
    watch_every: timedelta = timedelta(minutes=15)
    watches: int = 20

    def __post_init__(self) -> None:
        """Check the addresses of proxies.

        Raises:
            InvalidInput: one is none.
        """
        for address in self.trusted_proxies:
            try:
                ipaddress.ip_network(address)
            except ValueError as error:
                raise InvalidInput(
                    f"--trusted-proxy {address!r}: {error}.", next_step="for example 10.0.0.5 or 10.0.0.0/24"
                ) from None

    def trusts(self, peer: str) -> bool:
        """Whether what a peer says of the user and of the first connection is believed."""
        if (address := ip_address_of(peer)) is None:
            return False
        if self.user_header and address.is_loopback:
            return True
        return any(address in ipaddress.ip_network(network) for network in self.trusted_proxies)

    @property
    def open(self) -> bool:
        """Whether everybody who reaches the server may do everything: only this machine does."""
        return self.host in LOOPBACK and not self.sign_in and not self.user_header

    @property
    def work_pool(self) -> str:
        """The work pool of the server's runs. One of its own is of this machine and this store."""
        root = hashlib.sha256(self.artifacts.encode()).hexdigest()[:6]
        return self.pool or f"{_OWN}{slug(socket.gethostname()).replace('_', '-')}-{root}"

    @property
    def deployment(self) -> str:
        """The name of the deployment of the server's runs, without the flow's."""
        return f"serve-{self.pool}" if self.pool else self.work_pool


def ip_address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a text is, an IPv4 address inside an IPv6 one as such; None if it is none."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None) or found


def is_own(pool: str) -> bool:
    """Whether a server starts the workers of a work pool itself, to judge by its name."""
    return pool.startswith(_OWN)


def listen(options: Options) -> socket.socket:
    """Return a socket that listens as the options say.

    Raises:
        InvalidInput: the address is not one of this machine, or its port is taken.
    """
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
        # Each connection inherits it. Without it the second part of an answer waits 40 ms for the reader's delayed ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            said, how = (
                f"Port {options.port} of {options.host} is taken.",
                "choose another with --port; 0 for a free one",
            )
        elif error.errno == errno.EACCES:
            said, how = f"Port {options.port} may not be used by this user.", "choose one from 1024 on with --port"
        else:
            said, how = f"The server cannot listen on {options.host}: {error}.", "use an address of this machine"
        raise InvalidInput(said, next_step=how) from error
