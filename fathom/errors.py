"""Every failure Fathom names, by who must react.

    FathomError
    ├── UserError                the user mends something; exit code 2, nothing was written
    │   ├── InvalidInput         E4001  a query, option or setting that cannot be used
    │   ├── MissingCredential    E4003  a model or service without its key
    │   └── RunNotFound          E5001
    ├── ModelError               a model call; the client tries again where `retryable`
    │   ├── RateLimited          E2001  retryable
    │   ├── ContextOverflow      E2002  the request must shrink
    │   ├── Refused              E2003  the safety filter; the step goes on without
    │   ├── ProviderFailed       E2004  retryable: 5xx, connection, timeout
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

Codes E1001 to E5002 are those of the engine design's appendix C; E2005, E3004, E3005, E4003, E4004 and E6001 extend it.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AnswerInvalid",
    "ContextOverflow",
    "FathomError",
    "InvalidInput",
    "MissingCredential",
    "ModelError",
    "ModelRejected",
    "PlanInvalid",
    "ProviderFailed",
    "RateLimited",
    "Refused",
    "RunNotFound",
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
        next_step: what the reader can do; empty when nothing needs doing.
        retry_after: seconds the provider asked to wait, if it did.
    """

    code: ClassVar[str] = "E0000"
    retryable: ClassVar[bool] = False
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
    exit_code = 2


class InvalidInput(UserError):
    """A query, option or setting that cannot be used."""

    code = "E4001"


class MissingCredential(UserError):
    """A model or service was chosen whose key is not set."""

    code = "E4003"


class RunNotFound(UserError):
    """No run of that id is known."""

    code = "E5001"


class ModelError(FathomError):
    """A model call failed."""

    code = "E2000"


class RateLimited(ModelError):
    """The provider asks for fewer requests (HTTP 429)."""

    code = "E2001"
    retryable = True


class ContextOverflow(ModelError):
    """The prompt is larger than the model's window."""

    code = "E2002"


class Refused(ModelError):
    """The provider's safety filter blocked the request or the answer."""

    code = "E2003"


class ProviderFailed(ModelError):
    """The provider or the way to it failed: 5xx, connection, timeout."""

    code = "E2004"
    retryable = True


class ModelRejected(ModelError):
    """The provider will never accept this: wrong key, unknown model, no quota."""

    code = "E2005"
    exit_code = 1


class AnswerInvalid(ModelError):
    """The model's answer is not what was asked for, also after the one re-ask."""

    code = "E4004"


class ToolError(FathomError):
    """A tool call failed."""

    code = "E3000"


class ToolNotFound(ToolError):
    """No tool of that name is enabled."""

    code = "E3001"


class ToolTimeout(ToolError):
    """The tool gave no answer in time."""

    code = "E3002"
    retryable = True


class ToolRateLimited(ToolError):
    """The tool's vendor asks for fewer requests (HTTP 429)."""

    code = "E3003"
    retryable = True


class ToolUnavailable(ToolError):
    """The tool's vendor or the way to it failed: 5xx, connection, unreadable answer."""

    code = "E3004"
    retryable = True


class ToolRejected(ToolError):
    """The tool cannot serve this request however often it is sent."""

    code = "E3005"


class PlanInvalid(FathomError):
    """The plan breaks a rule: no steps, duplicate ids, a cycle, a one-word query."""

    code = "E4002"


class StoreError(FathomError):
    """The artifact store cannot be read or written."""

    code = "E6001"
