"""Connections to permitted addresses only: a name is resolved once, all its addresses are checked, one of them is used.

This happens below HTTP, so it covers redirects, robots.txt and a DNS answer that changes between check and use.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address

import httpcore

from fathom.errors import ToolRejected, ToolUnavailable
from fathom.tools.fetch.allow import AllowList


class UnknownHost(ToolUnavailable):
    """A name has no address: the host is gone, or the resolver does not know it at the moment."""


Resolve = Callable[[str, int], Awaitable[list[str]]]  # addresses of a host; raises OSError when it has none

MAX_ADDRESSES = 3  # tried one after another


async def system_resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to permitted addresses only; `network` is given addresses, never names."""

    def __init__(
        self, allowed: AllowList, resolve: Resolve = system_resolve, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._network = network or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses.

        Raises:
            ToolRejected: one of them is not permitted; no connection was made.
            UnknownHost: the host has no address.
        """
        *others, last = (await self._checked(host, port))[:MAX_ADDRESSES]
        for address in others:
            with contextlib.suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
        return await self._network.connect_tcp(last, port, timeout, local_address, socket_options)

    async def _checked(self, host: str, port: int) -> list[str]:
        try:
            addresses = [str(ip_address(host))]
        except ValueError:
            try:
                addresses = await self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                raise UnknownHost(f"The host {host[:100]!r} is unknown.") from error
        # One forbidden address is enough to refuse the name: a later connection might take that one.
        if not addresses or not all(self._allowed.permits(host, port, address) for address in addresses):
            raise ToolRejected(
                f"{host[:100]!r} is not on the public internet.",
                next_step="a private host is read only when FATHOM_FETCH_ALLOW or fetch_allow_hosts names it",
            )
        return addresses
