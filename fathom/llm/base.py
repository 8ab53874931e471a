"""Requests to a backend and its answers: the one seam between the roles and their models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import not_
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic import Field

from fathom.config.groups import RoleModel
from fathom.models import Model, Usage
from fathom.roles import Request, RoleSpec

if TYPE_CHECKING:
    from fathom.llm.dialects import Dialect


class CutOff(StrEnum):
    """Why an answer ended before it was complete."""

    limit = "limit"  # of tokens
    repetition = "repetition"  # the model said the same again and again


class SentMessage(Model):
    """A message of a prompt."""

    role: str
    content: str


class InvalidAnswer(Model):
    """The errors of an answer that broke the rules. `cut_off`: it was incomplete, so the rest was not checked."""

    complaints: list[str]
    cut_off: CutOff | None = None


@dataclass(frozen=True)
class ModelCall:
    """One request to a backend. `invalid`: the first answer, when this call asks again."""

    spec: RoleSpec[Any, Any]
    request: Request
    model: RoleModel
    invalid: InvalidAnswer | None = None


class Pace(Model):
    """How fast a model was. `wait`: seconds until its first token; `tokens_per_second`: from then on."""

    wait: float
    tokens_per_second: float


class Completion(Model):
    """A backend's answer. `model` names the model that gave it; `pace` is unknown if the answer came in one piece.

    `prompt` is empty if the model was sent the whole request, which can be rendered again.
    """

    text: str
    usage: Usage
    model: str
    cut_off: CutOff | None = None
    pace: Pace | None = None
    at: str = Field("", exclude_if=not_)  # ISO 8601, UTC; empty without a model
    prompt: list[SentMessage] = Field([], exclude_if=not_)


class ExchangeRecord(Model):
    """What a model was sent for a role, and what it answered: a line of `exchanges.jsonl`. `at` is ISO 8601 in UTC."""

    role: str
    model: str
    at: str
    prompt: list[SentMessage]
    response: str


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


class StreamedPiece(NamedTuple):
    """A piece of an answer as it arrives: about one token of a stream, or the whole answer of a server that waits.

    `finish` is the provider's `finish_reason`, in the last piece that has a choice. Token counts come once at most.
    """

    choice: bool = True  # False if the provider sends only figures, or nothing
    text: str = ""
    thought: str = ""  # thoughts of a reasoning model; never part of the answer
    refusal: str = ""
    finish: str | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of them, read from the provider's cache
    cache_write_tokens: int = 0  # of them, written to it
    completion_tokens: int = 0
    model: str = ""  # the provider's name of the answering model


class ModelReply(NamedTuple):
    """A provider's answer; token counts are 0 if the provider does not state them."""

    text: str | None  # None for an answer without content at all, empty for a refusal
    refused: bool
    cut_off: CutOff | None
    thought: bool  # it reasoned before it answered
    prompt_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    completion_tokens: int
    pace: Pace | None
    finish: str | None  # the provider's `finish_reason`; None if the answer was cut off here
    model: str  # the provider's name of the answering model; empty if not stated


class Transport(Protocol):
    """Speaks a protocol of providers."""

    def service(self, model: str) -> str:
        """Return the service that answers for a model; its failures and limits apply to all who ask it."""

    def address(self, model: str) -> str:
        """Return the address at which a model is asked; empty if only litellm knows it."""

    def own_server(self, model: str) -> bool:
        """Return whether a model is asked at an address of the user's own."""

    async def window(self, model: str) -> int | None:
        """Return how many tokens prompt and answer may have together, if the server or litellm's table says so."""

    def send(
        self, model: str, dialect: Dialect, options: Mapping[str, Any], most: int
    ) -> AsyncGenerator[StreamedPiece, None]:
        """Send one request, once, with the options of a chat completion, and yield the answer as it arrives.

        Args:
            model: its litellm name.
            dialect: how it is asked.
            options: the messages and how they are answered.
            most: tokens that the answer may have.

        Raises:
            ModelError: it failed.
        """

    async def aclose(self) -> None:
        """Close the connections."""
