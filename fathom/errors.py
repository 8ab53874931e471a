"""Every failure Fathom names, by who must react.

    FathomError
    ├── UserError                the user mends something; exit code 2, nothing was written
    │   ├── InvalidInput         E4001  a query, option or setting that cannot be used
    │   ├── ServerUnreachable    E4005
    │   ├── MissingCredential    E4003  a model or service without its key
    │   └── RunNotFound          E5001
    ├── ModelError               a model call
    │   ├── ModelUnavailable     tried again where `retryable`, then the role's next model
    │   │   ├── ModelTimeout     E1003  retryable, once
    │   │   ├── RateLimited      E2001  retryable
    │   │   ├── ProviderFailed   E2004  retryable: 5xx, connection
    │   │   └── CircuitOpen      E2006  the service failed too often and rests
    │   ├── ContextOverflow      E2002  the request must shrink
    │   ├── Refused              E2003  the safety filter; the role answers without the model
    │   ├── ModelRejected        E2005  wrong key, unknown model, no quota: the user mends it
    │   └── AnswerInvalid        E4004  not the schema, truncated or empty after the re-ask; the role's fallback
    ├── ToolError                a tool call; the step goes on without and the coverage table says so
    │   ├── ToolNotFound         E3001
    │   ├── ToolTimeout          E3002  retryable
    │   ├── ToolRateLimited      E3003  retryable
    │   ├── ToolUnavailable      E3004  retryable: 5xx, connection
    │   └── ToolRejected         E3005  the vendor refuses the request: bad key, bad arguments
    ├── PlanInvalid              E4002  the planner's answer breaks a rule; asked again, then the default plan
    └── StoreError               E6001  the artifact store cannot be read or written

Codes E1001 to E5002 are those of the engine design's appendix C; E2005, E2006, E3004, E3005, E4003, E4004 and E6001
extend it. `docs/errors.md` is made from the classes.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AnswerInvalid",
    "CircuitOpen",
    "ContextOverflow",
    "FathomError",
    "InvalidInput",
    "MissingCredential",
    "ModelError",
    "ModelRejected",
    "ModelTimeout",
    "ModelUnavailable",
    "PlanInvalid",
    "ProviderFailed",
    "RateLimited",
    "Refused",
    "RunNotFound",
    "ServerUnreachable",
    "StoreError",
    "ToolError",
    "ToolNotFound",
    "ToolRateLimited",
    "ToolRejected",
    "ToolTimeout",
    "ToolUnavailable",
    "UserError",
]


class FathomError(Exception):
    """A failure with a code, one line on what happened and one on what to do next.

    Attributes:
        code: stable identifier, `E` and four digits.
        retryable: whether the same request may succeed when sent again.
        reaction: what Fathom does about it.
        remedy: what a person can do about it; empty when nothing needs doing.
        next_step: the same for this very failure: what the reader can do; empty when nothing needs doing.
        retry_after: seconds the provider asked to wait, if it did.
    """

    code: ClassVar[str] = "E0000"
    retryable: ClassVar[bool] = False
    reaction: ClassVar[str] = "the run fails; it can be resumed"
    remedy: ClassVar[str] = ""
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, next_step: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code} {self.message}" + (f" ({self.next_step})" if self.next_step else "")

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.next_step, self.retry_after))


def _rebuild(kind: type[FathomError], message: str, next_step: str, retry_after: float | None) -> FathomError:
    return kind(message, next_step=next_step, retry_after=retry_after)


class UserError(FathomError):
    """Something only the user can mend; nothing has been written."""

    code = "E4000"
    reaction = "the command ends with exit code 2 before anything is written"
    exit_code = 2


class ServerUnreachable(UserError):
    """The Prefect server does not answer, or none could be started."""

    code = "E4005"
    remedy = "do what the message says; without `PREFECT_API_URL` a local server is started"


class InvalidInput(UserError):
    """A query, option or setting that cannot be used."""

    code = "E4001"
    remedy = "mend what the message names"


class MissingCredential(UserError):
    """A model or service was chosen whose key is not set."""

    code = "E4003"
    remedy = "set the variable that the message names; `fathom doctor` shows what is set"


class RunNotFound(UserError):
    """No run of that id is known."""

    code = "E5001"
    remedy = "`fathom runs` lists the runs"


class ModelError(FathomError):
    """A model call failed."""

    code = "E2000"
    reaction = "the role answers without the model, and the run is degraded"


class ModelUnavailable(ModelError):
    """The model cannot be asked now; another one could."""

    reaction = (
        "tried again 2, 4, 8 and 16 seconds later; then the role's fallback models, then without a model: degraded"
    )
    remedy = "set `fallback_models`, or research again later"


class ModelTimeout(ModelUnavailable):
    """The model gave no answer in time."""

    code = "E1003"
    retryable = True
    reaction = "tried again once; then the role's fallback models, then without a model: degraded"
    remedy = "raise `model_calls.seconds`, or set `fallback_models`"


class RateLimited(ModelUnavailable):
    """The provider asks for fewer requests (HTTP 429)."""

    code = "E2001"
    retryable = True
    reaction = (
        "all calls to the service wait as long as it asks for, up to a minute, five attempts in all; then the role's "
        "fallback models, then without a model: degraded"
    )
    remedy = "lower `model_calls.at_once`, or set `fallback_models`"


class ProviderFailed(ModelUnavailable):
    """The provider or the way to it failed: 5xx, connection, an answer that is none."""

    code = "E2004"
    retryable = True


class CircuitOpen(ModelUnavailable):
    """The service failed five times in a row and rests for 30 seconds, or asked for a longer pause."""

    code = "E2006"
    reaction = "no request is made; the role's fallback models, then without a model: degraded"


class ContextOverflow(ModelError):
    """The prompt is larger than the model's window."""

    code = "E2002"
    reaction = "the least relevant half of the material is left out, up to four times; then without the model: degraded"
    remedy = "lower `max_context_tokens` or `compression.max_input_tokens`, or choose a model with a larger window"


class Refused(ModelError):
    """The provider's safety filter blocked the request or the answer."""

    code = "E2003"
    remedy = "word the question differently, or choose another model for the role"


class ModelRejected(ModelError):
    """The provider will never accept this: wrong key, unknown model, no quota."""

    code = "E2005"
    reaction = "the run stops at once; it can be resumed, and repeats nothing that had finished"
    remedy = "mend the key, name or quota that the message names, then `fathom resume RUN`"


class AnswerInvalid(ModelError):
    """The model's answer is not what was asked for, also after the one re-ask."""

    code = "E4004"
    reaction = "asked again once, with what was wrong; then the role answers without the model: degraded"
    remedy = "choose another model for the role, or another `structured_output`"


class ToolError(FathomError):
    """A tool call failed."""

    code = "E3000"
    reaction = "the step goes on without; the report's coverage table says so: degraded"


class ToolNotFound(ToolError):
    """No tool of that name is enabled."""

    code = "E3001"
    remedy = "enable it with `--tools`"


class ToolTimeout(ToolError):
    """The tool gave no answer in time."""

    code = "E3002"
    retryable = True
    reaction = "tried again 1 and 2 seconds later; then the step goes on without: degraded"


class ToolRateLimited(ToolError):
    """The tool's vendor asks for fewer requests (HTTP 429)."""

    code = "E3003"
    retryable = True
    reaction = "tried again when the vendor allows it, twice; then the step goes on without: degraded"


class ToolUnavailable(ToolError):
    """The tool's vendor or the way to it failed: 5xx, connection, unreadable answer."""

    code = "E3004"
    retryable = True
    reaction = "tried again 1 and 2 seconds later; then the step goes on without: degraded"


class ToolRejected(ToolError):
    """The tool cannot serve this request however often it is sent."""

    code = "E3005"
    remedy = "check the vendor's key and quota: `fathom doctor`"


class PlanInvalid(FathomError):
    """The plan breaks a rule: no steps, duplicate ids, a cycle, a one-word query."""

    code = "E4002"
    reaction = "the planner is asked again once; then the default plan is taken: degraded"


class StoreError(FathomError):
    """The artifact store cannot be read or written."""

    code = "E6001"
    remedy = "check the root's free space, permissions and credentials, then `fathom resume RUN`"
