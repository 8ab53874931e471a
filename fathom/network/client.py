"""What all HTTP clients share: the name they give, and the certificates they trust."""

from __future__ import annotations

import ssl
from functools import cache
from importlib.metadata import version


def user_agent(contact: str = "") -> str:
    """Return the name by which web servers and their robots.txt know us, with the address of who asks, if any."""
    name = f"fathom/{version('fathom-research')}"
    return f"{name} (mailto:{contact})" if contact else name


@cache
def tls() -> ssl.SSLContext:
    """Return the certificates that httpx trusts; reading them takes longer than a search over a local network."""
    import httpx

    return httpx.create_ssl_context()
