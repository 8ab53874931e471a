"""Who sent a request: a proxy that is trusted says it, a token, a session of the page, or nobody has to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hmac import compare_digest

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from fathom.errors import InvalidInput, NotAllowed, NotSignedIn
from fathom.serve.access.checks import peer_of
from fathom.serve.access.rates import Rates
from fathom.serve.access.sessions import COOKIE, Session, Sessions
from fathom.serve.access.tokens import LOCAL_NAME, Tokens, check_name
from fathom.serve.caller import Caller, Role
from fathom.serve.options import Options
from fathom.storage.store import ArtifactStore

LOCAL = Caller(LOCAL_NAME, Role.admin)
"""Whoever uses this machine, where only it can reach the server."""
PER_MINUTE = 600
"""Requests of callers whose token says nothing of it."""
SIGN_IN = "/sign-in"
_PUBLIC = ("/api/v1/health", "/api/v1/ready", SIGN_IN)
_STATIC = "/static/"


@dataclass(frozen=True)
class Visit:
    """What is known of a request. `peer`: the address it came from. `secure`: over https."""

    caller: Caller | None
    session: Session | None
    peer: str
    secure: bool


class Gate:
    """Knows who may come in. One for each application."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.store = ArtifactStore(options.artifacts)
        self.tokens = Tokens(self.store)
        self.sessions = Sessions(self.store)
        self.rates = Rates()

    async def admit(self, scope: Scope, headers: Headers) -> Visit:
        """Return who sent a request.

        Raises:
            NotSignedIn: nobody who is known, and the address is not for everybody.
            NotAllowed: the request claims to come from a trusted proxy.
            TooManyRequests: the caller sends too many.
        """
        peer, secure = peer_of(scope, headers, self.options)
        visit = Visit(None, None, peer, secure)
        public = scope["path"] in _PUBLIC or str(scope["path"]).startswith(_STATIC)
        try:
            caller, session = await self._known(scope, headers)
        except NotSignedIn:
            if public:
                return visit
            raise
        if caller is not LOCAL and not public:
            self.rates.take(caller.name, caller.limits.requests_per_minute or PER_MINUTE)
        return replace(visit, caller=caller, session=session)

    async def still(self, visit: Visit) -> bool:
        """Whether whoever began to read an answer may go on."""
        try:
            if visit.caller and visit.caller.token:
                await self.tokens.of(visit.caller.token)
            if visit.session:
                await self.sessions.read(visit.session.cookie)
        except NotSignedIn:
            return False
        return True

    async def _known(self, scope: Scope, headers: Headers) -> tuple[Caller, Session | None]:
        if user := self._named_by_proxy(scope, headers):
            return Caller(user, self.options.proxy_role), None
        if self.options.open:
            return LOCAL, None
        if sent := headers.get("authorization"):
            scheme, _, text = sent.partition(" ")
            if scheme.lower() != "bearer":
                raise NotSignedIn("Send a token: Authorization: Bearer fathom_...")
            return (await self.tokens.check(text.strip())).caller, None
        if cookie := Request(scope).cookies.get(COOKIE):
            session = await self.sessions.read(cookie)
            return (await self.tokens.of(session.token_id)).caller, session
        raise NotSignedIn("Sign in with a token.")

    def _named_by_proxy(self, scope: Scope, headers: Headers) -> str:
        sent = headers.getlist(self.options.user_header) if self.options.user_header else []
        if not sent:
            return ""
        if len(sent) > 1 or not self.options.trusts(str((scope.get("client") or ("",))[0])):
            raise NotAllowed(
                f"Only a trusted proxy may send {self.options.user_header}, and only once.",
                next_step="leave out the header; for a proxy on another machine, use --trusted-proxy ADDRESS",
            )
        try:
            return check_name(sent[0])
        except InvalidInput as error:
            raise NotSignedIn(f"The proxy names an invalid user: {error.message}") from None


def proves(session: Session, sent: str) -> bool:
    """Whether what was sent with a request is the secret of the session's forms."""
    return sent.isascii() and compare_digest(session.csrf, sent)
