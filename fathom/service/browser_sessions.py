"""Sessions of the page: a signed cookie that names a token by its id and holds no secret.

The key that signs is on the store (`.serve/key.json`), so every server on it takes the cookies of the others. A session
ends with its token, after a time, and when its holder signs out (`.serve/signed-out/`).
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import time
from dataclasses import dataclass

from fathom.errors import NotSignedIn, StoreError
from fathom.storage.store import ArtifactStore, json_bytes

COOKIE = "fathom_session"
SECONDS = 12 * 3_600
KEY = ".serve/key.json"
SIGNED_OUT = ".serve/signed-out"
_FORM = re.compile(r"([0-9a-f]{12})\.([0-9]{10,11})\.([0-9a-f]{32})\.([0-9a-f]{64})")
_ENDED = re.compile(r"([0-9]{10,11})-[0-9a-f]{32}")


@dataclass(frozen=True)
class BrowserSession:
    """One sign-in. `ends`: seconds since 1970. `csrf`: what forms and scripts of its pages send along."""

    token_id: str
    ends: int
    nonce: str
    cookie: str
    csrf: str


class BrowserSessions:
    """The sessions of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._key = b""

    async def begin(self, token_id: str) -> BrowserSession:
        """Return a new session of whoever has a token."""
        return self._session(await self._read_key(), token_id, int(time.time()) + SECONDS, secrets.token_hex(16))

    async def read(self, cookie: str) -> BrowserSession:
        """Return the session of a cookie.

        Raises:
            NotSignedIn: this store's servers did not make it, or it is over.
        """
        over = NotSignedIn("The session has ended.", next_step="sign in again")
        if not (parts := _FORM.fullmatch(cookie)):
            raise over
        session = self._session(await self._read_key(), parts[1], int(parts[2]), parts[3])
        if not hmac.compare_digest(session.cookie, cookie) or session.ends <= time.time():
            raise over
        if await self._store.exists(_ended(session)):
            raise over
        return session

    async def end(self, session: BrowserSession) -> None:
        """Make a session invalid on all servers, and forget those that are over anyhow."""
        await self._store.write(_ended(session), b"{}\n")
        for name in await self._store.list(SIGNED_OUT):
            if (parts := _ENDED.fullmatch(name)) and int(parts[1]) <= time.time():
                await self._store.remove(f"{SIGNED_OUT}/{name}")

    def _session(self, key: bytes, token_id: str, ends: int, nonce: str) -> BrowserSession:
        body = f"{token_id}.{ends}.{nonce}"
        cookie = f"{body}.{_signed(key, f'session {body}')}"
        return BrowserSession(token_id, ends, nonce, cookie, _signed(key, f"csrf {body}"))

    async def _read_key(self) -> bytes:
        if not self._key:
            if await self._store.exists(KEY):
                await self._store.make_private(KEY)  # earlier versions let everybody read it
            else:
                await self._store.create(KEY, json_bytes({"key": secrets.token_hex(32)}), private=True)
            stored = await self._store.read(KEY)  # another server may have been quicker
            try:
                self._key = bytes.fromhex(json.loads(stored)["key"])
            except (ValueError, KeyError, TypeError):
                raise StoreError(
                    f"{self._store.address(KEY)} is damaged.", next_step="remove it; all users must then sign in again"
                ) from None
            if len(self._key) < hmac.new(b"", b"", "sha256").digest_size:
                self._key = b""
                raise StoreError(f"{self._store.address(KEY)} is too short.", next_step="remove that file")
        return self._key


def _signed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _ended(session: BrowserSession) -> str:
    return f"{SIGNED_OUT}/{session.ends}-{session.nonce}"
