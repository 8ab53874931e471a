"""The addresses to which `fetch` may connect: public ones and, if the user allows them, private ones.

The rules apply to addresses, not to names: every address of a name is checked at each connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from fathom.errors import InvalidInput, ToolRejected

if TYPE_CHECKING:
    import httpx

PORTS = frozenset({80, 443, 8000, 8008, 8080, 8081, 8443, 8888})
"""Ports that web servers use; others belong to mail servers, databases and shells."""

MAX_URL_CHARS = 2_048
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\]|\s")  # a backslash is a slash to some parsers
_USER = re.compile(r"[^/?#]*//[^/?#]*@")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)

# Parts of the public ranges that are not public; some versions of `ipaddress.is_global` accept them.
_RELAYS = IPv4Network("192.88.99.0/24")
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # leaves out mapped, compatible, NAT64, local and multicast addresses
_TUNNELS = [
    IPv6Network("2001::/23"),  # Teredo and other protocol assignments
    IPv6Network("2001:db8::/32"),
    IPv6Network("2002::/16"),  # 6to4: an IPv4 address inside
    IPv6Network("3fff::/20"),
]
_ISATAP = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")  # RFC 5214: an IPv4 address follows, under any prefix
# Addresses at which clouds serve credentials to their machines. 168.63.129.16 (Azure) is a public address.
_CLOUD_ADDRESSES = """
169.254.169.254 169.254.170.2 169.254.170.23 169.254.42.42 168.63.129.16 100.100.100.200 192.0.0.192
fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42
"""
_CLOUD_SERVICES = frozenset(map(ip_address, _CLOUD_ADDRESSES.split()))
# Bytes of an IPv6 address that may hold an IPv4 address: 6to4 (RFC 3056), and NAT64 with prefixes of 32 to 96 bits,
# which any operator may choose (RFC 6052, section 2.2).
_EMBEDDED = [(2, 3, 4, 5), (4, 5, 6, 7), (5, 6, 7, 9), (6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15)]


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is on the open internet and does not hide another address."""
    if is_cloud_service(address):
        return False
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in _RELAYS
    if address.scope_id is not None or address not in _GLOBAL_UNICAST or address.packed[8:12] in _ISATAP:
        return False
    return address.is_global and not any(address in net for net in _TUNNELS)


def is_cloud_service(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is, or as IPv6 may be translated to, one at which clouds serve credentials."""
    if address in _CLOUD_SERVICES or isinstance(address, IPv4Address):
        return address in _CLOUD_SERVICES
    packed = address.packed
    hidden = {IPv4Address(bytes(packed[at] for at in places)) for places in _EMBEDDED}
    hidden.add(IPv4Address(bytes(byte ^ 0xFF for byte in packed[12:])))  # Teredo stores it inverted
    return not hidden.isdisjoint(_CLOUD_SERVICES)


@dataclass(frozen=True)
class AllowList:
    """Private hosts that may be read: exact `host:port` pairs, and networks on the usual ports."""

    hosts: frozenset[tuple[str, int]] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> AllowList:
        """Read entries such as `intranet.example:8080`, `[fd00::1]:80` and `10.1.0.0/16`.

        Raises:
            InvalidInput: an entry has another form.
        """
        hosts: set[tuple[str, int]] = set()
        networks: list[IPv4Network | IPv6Network] = []
        for entry in entries:
            host, _, port = entry.strip().rpartition(":")
            try:
                if "/" in entry:
                    networks.append(ip_network(entry.strip()))
                elif not re.fullmatch(r"\[[0-9a-fA-F:]+\]|[\w.-]+", host) or not 0 < int(port) < 65_536:
                    raise ValueError(entry)
                else:
                    hosts.add((host.strip("[]").lower(), int(port)))
            except ValueError as error:
                raise InvalidInput(
                    f"{entry!r} cannot be allowed as a host to fetch from.",
                    next_step="give host:port, or a network such as 10.1.0.0/16",
                ) from error
        return cls(frozenset(hosts), tuple(networks))

    def permits(self, host: str, port: int, address: str) -> bool:
        """Return whether a connection may be made to an address of a host.

        The addresses at which clouds serve credentials are refused even if the user allows them.
        """
        ip = ip_address(address)
        if is_cloud_service(ip):
            return False
        return (host.lower(), port) in self.hosts or is_public(ip) or any(ip in network for network in self.networks)


def check_url(url: str | httpx.URL, allowed: AllowList) -> httpx.URL:
    """Return a URL whose spelling allows a request.

    Raises:
        ToolRejected: it is not http(s), has a user name or an unusual port, or its host is spelled misleadingly.
    """
    import httpx

    shown = str(url)[:200]
    if len(str(url)) > MAX_URL_CHARS or _FORBIDDEN.search(str(url)):
        raise ToolRejected(f"{shown!r} is not a web address.")
    try:
        parsed = httpx.URL(url)
        host, port = parsed.raw_host.decode("ascii").lower(), parsed.port or (443 if parsed.scheme == "https" else 80)
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise ToolRejected(f"{shown!r} is not a web address.") from error
    if parsed.scheme not in ("http", "https") or not host:
        raise ToolRejected(f"{shown!r} is not a web address.", next_step="use http or https")
    if parsed.userinfo or _USER.match(str(url)):
        raise ToolRejected("Addresses with a user name or password are not allowed.")
    if "%" in host or host.startswith(".") or ".." in host or _is_disguised(host):
        raise ToolRejected(f"The host {host[:100]!r} is spelled in an unusual way.")
    if port not in PORTS and (host, port) not in allowed.hosts:
        raise ToolRejected(f"Port {port} is not allowed.", next_step="allow it with FATHOM_FETCH_ALLOW=host:port")
    return parsed.copy_with(fragment=None)


def _is_disguised(host: str) -> bool:
    """Return whether a host is an IPv4 address in an unusual form: decimal, octal, hexadecimal or shortened."""
    last = host.rstrip(".").rpartition(".")[2]
    if not _NUMBER.fullmatch(last):
        return False
    try:
        IPv4Address(host)
    except ValueError:
        return True
    return False
