"""What a server refuses: it is asked over HTTP, and every failure has a status there."""

from __future__ import annotations

from fathom.errors import FathomError, UserError


class NotSignedIn(UserError):
    """The server does not know the caller: the token is missing, invalid or revoked."""

    code = "E7001"
    reaction = "the request is answered with 401, and nothing is written"
    remedy = "send a valid token: `fathom tokens add NAME` creates one"


class NotAllowed(UserError):
    """The caller may not do this."""

    code = "E7002"
    reaction = "the request is answered with 403, and nothing is written"
    remedy = "ask the owner of the run to share it, or an administrator for another role"


class TooManyRequests(UserError):
    """A limit of requests, runs or spending is reached."""

    code = "E7003"
    reaction = "the request is answered with 429 and Retry-After, and nothing is written"
    remedy = "wait as long as the answer says, or ask an administrator to raise the limit"


class Conflict(UserError):
    """The request contradicts existing data, such as another request with the same idempotency key."""

    code = "E7004"
    reaction = "the request is answered with 409, and nothing is written"
    remedy = "do what the message says"


class NotThere(UserError):
    """Nothing with that name exists."""

    code = "E7005"
    reaction = "the request is answered with 404"
    remedy = "check the name or address"


class ServerFailed(FathomError):
    """The Fathom server does not answer its client or fails, or the address does not belong to a Fathom server."""

    code = "E7013"
    retryable = True
    reaction = "the client tries again if that can do no harm; a run that has started continues"
    remedy = "check the address and whether the server runs"


class NotReady(FathomError):
    """The server is running but cannot do its work: Prefect, the artifact store or a worker is missing."""

    code = "E7006"
    reaction = "`/api/v1/ready` is answered with 503; a load balancer sends no requests here until that changes"
    remedy = "repair what the message names"


class WrongHost(UserError):
    """The request names a host that is not this server's, as after DNS rebinding."""

    code = "E7007"
    reaction = "the request is answered with 421, and nothing is written"
    remedy = "use the address that `fathom serve` printed, or name the host with `--host-name`"


class ForeignPage(UserError):
    """A page of another site sent the request, or the secret of the form is missing."""

    code = "E7008"
    reaction = "the request is answered with 403, and nothing is written"
    remedy = "load the page again and repeat it there; `--origin` lets pages of another site use the API"


class TooLarge(UserError):
    """The body of the request is larger than allowed."""

    code = "E7009"
    reaction = "the request is answered with 413, and nothing is written"
    remedy = "send less; files are uploaded to a corpus"


class NotAcceptable(UserError):
    """The request accepts none of the available media types."""

    code = "E7010"
    reaction = "the request is answered with 406; the message lists the available types"
    remedy = "send another Accept header"


class WrongMediaType(UserError):
    """The body of the request has a media type that this route does not read."""

    code = "E7011"
    reaction = "the request is answered with 415, and nothing is written"
    remedy = "send JSON, with Content-Type: application/json"


class NotInstalled(UserError):
    """A library that the request needs is not installed on the server."""

    code = "E7012"
    reaction = "the request is answered with 501"
    remedy = "choose another form, or have the library installed on the server"
