"""API tokens, kept on the store so that all servers on it know them: `.serve/tokens/{id}.json`.

A token is `fathom_{id}_{secret}`. Only a SHA-256 of the secret is stored. It has 256 random bits, so it needs neither
salt nor a slow hash.

A session of the page is a signed cookie that names a token by its id and holds no secret. The key that signs is on the
store (`.serve/key.json`), so every server on it takes the cookies of the others. A session ends with its token, after a
time, and when its holder signs out (`.serve/signed-out/`).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from pydantic import Field

from fathom.errors import InvalidInput, NotSignedIn, StoreError
from fathom.models import Model
from fathom.service.caller import AccessRole, Caller, TokenLimits
from fathom.service.options import Options
from fathom.storage.store import ArtifactStore, json_bytes

FOLDER = ".serve/tokens"
LOCAL_NAME = "local"
REMEMBERED_SECONDS = 3.0
"""How long a token of an object store is used without asking again: a revoked one may still be taken so long."""
_FORM = re.compile(r"fathom_([0-9a-f]{12})_([0-9a-f]{64})")
_ID = re.compile(r"[0-9a-f]{12}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,59}")  # it is the name of files, too


class Token(Model):
    """A token as it is stored. Times are ISO 8601 in UTC."""

    id: str
    name: str
    role: AccessRole
    sha256: str = Field(repr=False)  # of the secret
    created: str
    expires: str | None = None
    revoked: str | None = None
    requests_per_minute: int | None = None
    runs_per_day: int | None = None
    daily_usd: float | None = None

    @property
    def state(self) -> str:
        """`valid`, `revoked` or `expired`."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and datetime.fromisoformat(self.expires) <= datetime.now(UTC) else "valid"

    @property
    def caller(self) -> Caller:
        """Whoever has the token."""
        limits = TokenLimits(self.requests_per_minute, self.runs_per_day, self.daily_usd)
        return Caller(self.name, self.role, self.id, limits)


class Tokens:
    """The tokens of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._seconds = REMEMBERED_SECONDS if "://" in store.address() else 0.0
        self._known: dict[str, tuple[float, Token]] = {}  # by id, with the time at which it was read

    async def add(
        self, name: str, role: AccessRole, limits: TokenLimits, days: float | None = None
    ) -> tuple[Token, str]:
        """Make a token and return it and the text that its holder sends, which is stored nowhere.

        Raises:
            InvalidInput: the name cannot be used, or has a valid token.
        """
        check_name(name)
        if any(token.name == name and token.state == "valid" for token in await self.list()):
            raise InvalidInput(
                f"{name} already has a token.", next_step=f"fathom tokens revoke {name}, then add it again"
            )
        now = datetime.now(UTC)
        secret = secrets.token_hex(32)
        token = Token(
            id=secrets.token_hex(6),
            name=name,
            role=role,
            sha256=hashed(secret),
            created=now.isoformat(timespec="seconds"),
            expires=(now + timedelta(days=days)).isoformat(timespec="seconds") if days else None,
            **asdict(limits),
        )
        if not await self._store.create(_path(token.id), json_bytes(token)):
            raise StoreError("The id of the new token is already in use.", next_step="try again")
        return token, f"fathom_{token.id}_{secret}"

    async def list(self) -> list[Token]:
        """Return all tokens, also those that are no longer valid, by name and age.

        Raises:
            StoreError: one cannot be read.
        """
        ids = [name.removesuffix(".json") for name in await self._store.list(FOLDER)]
        found = await asyncio.gather(*(self._read(known) for known in ids if _ID.fullmatch(known)))
        return sorted((token for token in found if token), key=lambda token: (token.name, token.created))

    async def revoke(self, name: str) -> Token:
        """Make the token of a name invalid from now on.

        Raises:
            InvalidInput: there is no valid token of that name.
        """
        valid = [token for token in await self.list() if token.name == name and token.state == "valid"]
        if not valid:
            raise InvalidInput(f"{name!r} has no valid token.", next_step="fathom tokens list")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        revoked = [token.model_copy(update={"revoked": now}) for token in valid]
        for token in revoked:
            await self._store.write(_path(token.id), json_bytes(token))
        return revoked[-1]

    async def check(self, text: str) -> Token:
        """Return the token that a text is.

        Raises:
            NotSignedIn: it is none of this store, was revoked or has expired.
        """
        unknown = NotSignedIn("The token is not valid.")
        if not (parts := _FORM.fullmatch(text)):
            raise unknown
        token = await self._recent(parts[1])
        if token is None or not hmac.compare_digest(token.sha256, hashed(parts[2])):
            raise unknown
        return self._valid(token)

    async def of(self, token_id: str) -> Token:
        """Return the token of an id, whose holder has shown it before.

        Raises:
            NotSignedIn: there is none, it was revoked or has expired.
        """
        token = await self._recent(token_id)
        if token is None:
            raise NotSignedIn("The token is not valid.")
        return self._valid(token)

    def _valid(self, token: Token) -> Token:
        if token.state != "valid":
            why = "was revoked" if token.revoked else "has expired"
            raise NotSignedIn(f"The token {why}.", next_step="ask an administrator for another one")
        return token

    async def _recent(self, token_id: str) -> Token | None:
        at, token = self._known.get(token_id, (0.0, None))
        if token and time.monotonic() - at < self._seconds:
            return token
        if token := await self._read(token_id):
            self._known[token_id] = (time.monotonic(), token)
        return token

    async def _read(self, token_id: str) -> Token | None:
        return await self._store.stored(Token, _path(token_id), "remove that file and add the token again")


def check_name(name: str) -> str:
    """Return a name that a caller can have.

    Raises:
        InvalidInput: it cannot be one.
    """
    if not _NAME.fullmatch(name) or name == LOCAL_NAME:
        raise InvalidInput(
            f"{name[:60]!r} cannot be a name.",
            next_step=f"use up to 60 letters, digits and . _ @ + -, not {LOCAL_NAME!r}",
        )
    return name


def hashed(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _path(token_id: str) -> str:
    return f"{FOLDER}/{token_id}.json"


async def check_reach(options: Options) -> None:
    """Check that somebody can sign in where that is needed.

    Raises:
        InvalidInput: there is no valid token.
    """
    if options.open or options.user_header:
        return
    tokens = await Tokens(ArtifactStore(options.artifacts)).list()
    if not any(token.state == "valid" for token in tokens):
        why = f"reachable at {options.host}" if not options.sign_in else "started with --sign-in"
        raise InvalidInput(
            f"A server that is {why} needs sign-in, and {options.artifacts} has no valid token.",
            next_step="fathom tokens add NAME --role admin",
        )


COOKIE = "fathom_session"
SESSION_SECONDS = 12 * 3_600
_KEY = ".serve/key.json"
_SIGNED_OUT = ".serve/signed-out"
_COOKIE_FORM = re.compile(r"([0-9a-f]{12})\.([0-9]{10,11})\.([0-9a-f]{32})\.([0-9a-f]{64})")
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
        ends = int(time.time()) + SESSION_SECONDS
        return self._session(await self._read_key(), token_id, ends, secrets.token_hex(16))

    async def read(self, cookie: str) -> BrowserSession:
        """Return the session of a cookie.

        Raises:
            NotSignedIn: this store's servers did not make it, or it is over.
        """
        over = NotSignedIn("The session has ended.", next_step="sign in again")
        if not (parts := _COOKIE_FORM.fullmatch(cookie)):
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
        for name in await self._store.list(_SIGNED_OUT):
            if (parts := _ENDED.fullmatch(name)) and int(parts[1]) <= time.time():
                await self._store.remove(f"{_SIGNED_OUT}/{name}")

    def _session(self, key: bytes, token_id: str, ends: int, nonce: str) -> BrowserSession:
        body = f"{token_id}.{ends}.{nonce}"
        cookie = f"{body}.{_signed(key, f'session {body}')}"
        return BrowserSession(token_id, ends, nonce, cookie, _signed(key, f"csrf {body}"))

    async def _read_key(self) -> bytes:
        if not self._key:
            if await self._store.exists(_KEY):
                await self._store.make_private(_KEY)  # earlier versions let everybody read it
            else:
                await self._store.create(_KEY, json_bytes({"key": secrets.token_hex(32)}), private=True)
            stored = await self._store.read(_KEY)  # another server may have been quicker
            try:
                self._key = bytes.fromhex(json.loads(stored)["key"])
            except (ValueError, KeyError, TypeError):
                raise StoreError(
                    f"{self._store.address(_KEY)} is damaged.", next_step="remove it; all users must then sign in again"
                ) from None
            if len(self._key) < hmac.new(b"", b"", "sha256").digest_size:
                self._key = b""
                raise StoreError(f"{self._store.address(_KEY)} is too short.", next_step="remove that file")
        return self._key


def _signed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _ended(session: BrowserSession) -> str:
    return f"{_SIGNED_OUT}/{session.ends}-{session.nonce}"
