"""What every failure has."""

from __future__ import annotations

from typing import ClassVar


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
