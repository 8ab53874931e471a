"""Every failure that Fathom names, grouped by who must react.

    FathomError
    ├── UserError             the user corrects something; exit code 2, nothing was written
    │   └── InvalidInput MissingCredential ServerUnreachable RunNotFound InvalidState (RunBusy) OtherLayout
    ├── ModelError            a model call: the role's fallback, or the end of research or of the run
    │   ├── ModelUnavailable  tried again where `retryable`, then the role's next model
    │   │   └── ModelTimeout RateLimited ProviderFailed AnswerTooLarge CircuitOpen ModelUnreachable
    │   └── BudgetExceeded ContextOverflow Refused ModelRejected (RequestRejected) AnswerInvalid
    ├── ToolError             a tool call: the step continues without it, and the coverage table lists it
    │   └── ToolNotFound ToolTimeout ToolRateLimited ToolUnavailable ToolRejected
    └── RunCancelled RunTerminated ServerLost RecordMissing NoReport StoreError      the run as a whole

E1002, the last round, is a normal end and E4002, an invalid plan, is asked again like any invalid answer: neither is
an error here. `docs/errors.md` is made from the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

_MOST_TOLD = 3  # wrong values in one message


class FathomError(Exception):
    """A failure with a code, one line on what happened and one on what to do next, the remedy for this one failure."""

    code: ClassVar[str] = "E0000"
    retryable: ClassVar[bool] = False  # whether the same request may succeed when sent again
    reaction: ClassVar[str] = "the run fails; it can be resumed"  # what Fathom does about it
    remedy: ClassVar[str] = ""  # what a person can do about it, if anything
    exit_code: ClassVar[int] = 1
    status: int | None = None  # of HTTP, if a service answered with one

    def __init__(self, message: str, *, next_step: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.retry_after = retry_after  # seconds the provider asked to wait, if it did

    def __str__(self) -> str:
        return f"{self.code} {self.message}" + (f" ({self.next_step})" if self.next_step else "")

    def __reduce__(self) -> tuple[type[FathomError], tuple[str], dict[str, object]]:
        return (type(self), (self.message,), {"next_step": self.next_step, "retry_after": self.retry_after})


class UserError(FathomError):
    """Something that only the user can correct; nothing has been written."""

    code = "E4000"
    reaction = "the command ends with exit code 2 before anything is written"
    exit_code = 2


@dataclass(frozen=True)
class WrongValue:
    """A setting, or a field of a request, that cannot have the value that was given."""

    path: str  # dotted, as docs/settings.md names settings, such as `budget.max_usd`; empty: all that was sent
    value: str | int | float | bool | None  # what was given, a long text shortened; None if it is a list or a table
    message: str  # what is allowed, such as `it must be at least 1 and at most 5`

    def told(self, given: str = "") -> str:
        """Return a sentence that begins with the value as it was given, by default with its path and value."""
        value = "" if self.value is None else f" {self.value!r}"
        end = "" if self.message.endswith(("?", ".", ")")) else "."
        named = given or f"{self.path}{value}".strip()
        return f"{named}{': ' if named else ''}{self.message}{end}"


class InvalidInput(UserError):
    """A query, option or setting that cannot be used."""

    code = "E4001"
    remedy = "correct the value that the message names"

    def __init__(self, message: str = "", *, next_step: str = "", wrong: Sequence[WrongValue] = ()) -> None:
        """Take a message, or the wrong values; the message then quotes the first of them."""
        told = message or " ".join(one.told() for one in wrong[:_MOST_TOLD])
        super().__init__(told, next_step=next_step)
        self.wrong = tuple(wrong)

    def __reduce__(self) -> tuple[type[FathomError], tuple[str], dict[str, object]]:
        kind, arguments, state = super().__reduce__()
        return (kind, arguments, {**state, "wrong": self.wrong})


class MissingCredential(UserError):
    """The chosen model or service needs a key that is not set."""

    code = "E4003"
    remedy = "set the variable that the message names; `fathom doctor` shows what is set"


class ServerUnreachable(UserError):
    """The Prefect server does not answer, or could not be started."""

    code = "E4005"
    remedy = "do what the message says; without `PREFECT_API_URL` a local server is started"


class RunNotFound(UserError):
    """No run or session with that id is known."""

    code = "E5001"
    remedy = "`fathom runs` lists the runs"


class InvalidState(UserError):
    """The run or session is in a state in which this cannot be done."""

    code = "E5002"
    remedy = "do what the message says; `fathom show RUN` says what the run does"


class RunBusy(InvalidState):
    """Another process works on the run, or on one with the same run key."""

    remedy = "wait for it, cancel it, or end the process that the message names; then `fathom resume RUN`"


class OtherLayout(UserError):
    """The run was stored by a version of Fathom with another layout of stored results."""

    code = "E5007"
    remedy = "`fathom verify` and `fathom export` still work; run the question again to replay or resume it"


class ModelError(FathomError):
    """A model call failed. `unbilled`: refused before it cost anything."""

    unbilled: ClassVar[bool] = False
    code = "E2000"
    reaction = "the role answers without the model, and the run is degraded"


class BudgetExceeded(ModelError):
    """The worst-case cost of a request exceeds the remaining budget, so the request is not sent."""

    code = "E1001"
    reaction = (
        "the role answers without the model, research ends, and the report is written from the notes so far: degraded"
    )
    remedy = "raise `--max-usd`, `--max-tokens`, `--max-calls` or `--max-seconds`, and leave out `--run-key`"


class ModelUnavailable(ModelError):
    """The model cannot be called now; another one could."""

    reaction = "tried again after 2, 4, 8 and 16 s; then the role's fallback models, then without a model: degraded"
    remedy = "set `fallback_models`, or research again later"


class ModelTimeout(ModelUnavailable):
    """The model sent no token for too long, or did not finish its answer in the time that the budget allows."""

    code = "E1003"
    retryable = True
    reaction = "tried again once; then the role's fallback models, then without a model: degraded"
    remedy = "raise `--model-seconds` if the model is slow, lower `--model-at-once`, or set `fallback_models`"


class RateLimited(ModelUnavailable):
    """The provider asks for fewer requests (HTTP 429)."""

    unbilled = True
    code = "E2001"
    retryable = True
    reaction = (
        "all calls to the service wait as long as it asks, at most a minute, for five attempts in all; then the role's "
        "fallback models, then without a model: degraded"
    )
    remedy = "lower `--model-at-once`, or set `fallback_models`"


class ProviderFailed(ModelUnavailable):
    """The provider or the connection to it failed: 5xx, no connection, an unusable answer."""

    code = "E2004"
    retryable = True


class AnswerTooLarge(ModelUnavailable):
    """The answer is far longer than the tokens asked for allow, or an error page is larger than 64 KB."""

    code = "E2007"
    retryable = True
    reaction = "not read any further; " + ModelTimeout.reaction
    remedy = "check the address of the service, or set `fallback_models`"


class CircuitOpen(ModelUnavailable):
    """The service failed five times in a row, and again after a rest; or it asked for a pause of more than a minute."""

    unbilled = True
    code = "E2006"
    reaction = "no request is made; the role's fallback models, then without a model: degraded"


class ContextOverflow(ModelError):
    """The prompt is larger than the model's window."""

    unbilled = True
    window: int | None = None  # tokens, if the refusal tells
    code = "E2002"
    reaction = "the least relevant half of the material is left out, up to four times; then without the model: degraded"
    remedy = "lower `max_context_tokens` or `compression.max_input_tokens`, or choose a model with a larger window"


class ModelUnreachable(ModelUnavailable):
    """No server answers at the model's address, and none of this provider has answered the run before.

    Connections are refused, or the host name has no address.
    """

    unbilled = True
    code = "E2009"
    retryable = True
    reaction = (
        "the role's fallback models answer; without one, tried again once, then the run stops; it can be resumed, and "
        "no finished call is repeated"
    )
    remedy = "start the server, or correct its address in the variable that the message names, then `fathom resume RUN`"


class Refused(ModelError):
    """The provider's safety filter blocked the request or the answer."""

    unbilled = True
    code = "E2003"
    remedy = "word the question differently, or choose another model for the role"


class ModelRejected(ModelError):
    """The provider will never accept this: wrong key, unknown model, no quota."""

    unbilled = True
    code = "E2005"
    reaction = "the run stops at once; it can be resumed, and no finished call is repeated"
    remedy = "correct the key, name or quota that the message names, then `fathom resume RUN`"


class RequestRejected(ModelRejected):
    """The provider does not accept the form of the request (HTTP 400 or 422)."""

    code = "E2008"
    reaction = "sent again without the part that the provider names; if it names none, the run stops and can be resumed"
    remedy = "set the role's `structured_output`, or choose another model"


class AnswerInvalid(ModelError):
    """The model's answer was not in the requested form, and neither was its second attempt."""

    code = "E4004"
    reaction = "the model is asked once more and told what was wrong; then the role answers without the model: degraded"
    remedy = "choose another model for the role, or another `structured_output`"


class ToolError(FathomError):
    """A tool call failed."""

    code = "E3000"
    reaction = "the step continues without it; the report's coverage table lists it: degraded"
    source = ""  # address of the page that could not be read, if it is about one


class ToolNotFound(ToolError):
    """No tool with that name is enabled."""

    code = "E3001"
    remedy = "enable it with `--tools`"


class ToolTimeout(ToolError):
    """The tool did not answer in time."""

    code = "E3002"
    retryable = True
    reaction = "tried again 1 and 2 seconds later; then the next vendor, then the step continues without it: degraded"


class ToolRateLimited(ToolError):
    """The tool's vendor asks for fewer requests (HTTP 429)."""

    code = "E3003"
    retryable = True
    reaction = "tried again twice, if allowed; then the next vendor, then the step continues without it: degraded"


class ToolUnavailable(ToolError):
    """The tool's vendor or the connection to it failed: 5xx, no connection, an unreadable answer."""

    code = "E3004"
    retryable = True
    reaction = ToolTimeout.reaction


class ToolRejected(ToolError):
    """The tool will never accept this request, however often it is sent."""

    code = "E3005"
    remedy = "check the vendor's key and quota: `fathom doctor`"


class RunCancelled(FathomError):
    """The run was cancelled, with `fathom cancel` or in Prefect's UI."""

    code = "E5005"
    reaction = "no further request is made; the results so far are kept, and the command ends with exit code 130"
    remedy = "`fathom resume RUN` continues where it stopped"
    exit_code = 130


class RunTerminated(FathomError):
    """The process of the run was told to end (SIGTERM)."""

    code = "E5006"
    reaction = "no further request is made; the results so far are kept, and the command ends with exit code 143"
    remedy = RunCancelled.remedy
    exit_code = 143


class ServerLost(FathomError):
    """The Prefect server stopped answering during a run, and did not come back."""

    code = "E4006"
    reaction = "the run stops after 15 seconds, because it could no longer be cancelled; it can be resumed"
    remedy = "start the server again, then `fathom resume RUN`"


class RecordMissing(FathomError):
    """A replay needs a call that the run did not record."""

    code = "E5003"
    reaction = "the replay ends and names the call"
    remedy = "replay with the version, prompts and settings that `run.json` names"


class NoReport(FathomError):
    """There is nothing to check or export: the run has no report, has not finished, or its evidence was removed."""

    code = "E5008"
    reaction = "the command ends with exit code 3"
    remedy = "`fathom show RUN` says what was searched; `fathom resume RUN` finishes a run that was interrupted"
    exit_code = 3


class StoreError(FathomError):
    """The artifact store cannot be read or written."""

    code = "E6001"
    remedy = "check the root's free space, permissions and credentials, then `fathom resume RUN`"


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


class TooSlow(UserError):
    """The request did not arrive in time."""

    code = "E7014"
    reaction = "the request is answered with 408 and the connection closed; nothing is written"
    remedy = "send the whole request without a pause; a proxy that collects slow requests helps slow clients"


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
