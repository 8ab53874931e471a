"""What a backend is asked and what it answers: the one seam between the roles and their models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fathom.config.models import RoleModel
from fathom.models import Model, Usage
from fathom.roles import Request, RoleSpec


class InvalidAnswer(Model):
    """An answer that broke the rules, and what was wrong with it."""

    text: str
    complaints: list[str]


@dataclass(frozen=True)
class ModelCall:
    """One request to a backend. `invalid`: the first answer, when this call asks again."""

    spec: RoleSpec[Any, Any]
    request: Request
    model: RoleModel
    invalid: InvalidAnswer | None = None


class Completion(Model):
    """What a backend answered. `model`: which one did; `truncated`: it stopped at the token limit."""

    text: str
    usage: Usage
    model: str
    truncated: bool = False


class Failure(Model):
    """Why no model answered, where the run continues without one."""

    code: str
    message: str


class Backend(Protocol):
    """Answers role requests."""

    async def complete(self, call: ModelCall) -> Completion:
        """Answer one request.

        Raises:
            ModelError: the call failed for good; retries are the backend's own.
        """


class Reply(NamedTuple):
    """What a provider answered; token counts are 0 where it does not say."""

    text: str | None  # None for an answer without content at all, empty for a refusal
    refused: bool
    truncated: bool  # at the limit of tokens
    prompt_tokens: int
    completion_tokens: int


class Transport(Protocol):
    """Speaks a protocol of providers."""

    def service(self, model: str) -> str:
        """Return what answers for a model: its failures and limits are shared by all who ask it."""

    async def send(self, call: ModelCall, options: Mapping[str, Any], seconds: float) -> Reply:
        """Send one request, once, with the messages, `max_tokens` and `response_format` of the options.

        Raises:
            ModelError: it failed.
        """

    async def aclose(self) -> None:
        """Close the connections."""
