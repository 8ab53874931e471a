"""What a server refuses: it is asked over HTTP, and every failure has a status there."""

from __future__ import annotations

from fathom.errors import FathomError, UserError


class NotSignedIn(UserError):
    """The server does not know who asks: no token, one that is not valid, or one that was revoked."""

    code = "E7001"
    reaction = "the request is answered with 401, and nothing is written"
    remedy = "send a valid token: `fathom tokens add NAME` makes one"


class NotAllowed(UserError):
    """Whoever asks may not do this."""

    code = "E7002"
    reaction = "the request is answered with 403, and nothing is written"
    remedy = "ask the owner of the run to share it, or an administrator for another role"


class TooManyRequests(UserError):
    """A limit of requests, runs or spending is reached."""

    code = "E7003"
    reaction = "the request is answered with 429 and Retry-After, and nothing is written"
    remedy = "wait as long as the answer says, or have the limit raised"


class Conflict(UserError):
    """The request contradicts what is there, such as another request with the same idempotency key."""

    code = "E7004"
    reaction = "the request is answered with 409, and nothing is written"
    remedy = "do what the message says"


class NotThere(UserError):
    """There is nothing of that name."""

    code = "E7005"
    reaction = "the request is answered with 404"
    remedy = "check the name or address"


class ServerFailed(FathomError):
    """A Fathom server does not answer its client, fails, or is none."""

    code = "E7020"
    retryable = True
    reaction = "the client tries again where that can do no harm; a run that has started goes on"
    remedy = "check the address and whether the server runs"


class NotReady(FathomError):
    """The server lives but cannot do its work: Prefect, the artifact store or a worker is missing."""

    code = "E7006"
    reaction = "`/api/v1/ready` is answered with 503; a balancer sends nothing here until that changes"
    remedy = "mend what the message names"
