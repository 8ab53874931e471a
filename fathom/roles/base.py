"""What every role has: a typed request, a typed answer, a prompt, and the rules that the answer must keep.

A backend answers a role's request: `litellm` renders the prompt and asks a model, `extractive` computes the answer
from the request. Neither knows the other, and the pipeline knows neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from fathom.config.models import Role


class Request(BaseModel):
    """What a role is asked. Its fields are the variables of the role's prompt."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """What a model fills; its schema goes to the model, so every field is documented."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Complaint(NamedTuple):
    """A rule that an answer breaks. A fatal one makes the answer unusable, also after the one re-ask."""

    text: str
    fatal: bool = True


RequestT = TypeVar("RequestT", bound=Request)
AnswerT = TypeVar("AnswerT", bound=Answer)


def _unchanged(_request: Any, answer: Any) -> Any:
    return answer


def _no_complaints(_request: Any, _answer: Any) -> list[Complaint]:
    return []


@dataclass(frozen=True)
class RoleSpec(Generic[RequestT, AnswerT]):
    """A role's contract.

    Attributes:
        name: also the name of the prompt file.
        role: which model answers.
        request: type of the request.
        answer: type of the answer. Prose is `Text`: it goes to and fro without JSON around it.
        normalize: repairs what needs no model: cuts what is too long, drops ids that were never given.
        check: the rules, on the mended answer.
        addresses: whether an answer may hold web addresses: only where no reader sees it, as the input of a tool.
        schema: the answer's JSON schema for this request; tighter than the type where the request knows more.
    """

    name: str
    role: Role
    request: type[RequestT]
    answer: type[AnswerT]
    normalize: Callable[[RequestT, AnswerT], AnswerT] = _unchanged
    check: Callable[[RequestT, AnswerT], list[Complaint]] = _no_complaints
    addresses: bool = False
    schema: Callable[[RequestT], dict[str, Any]] | None = None


class Text(Answer):
    """Prose, in Markdown."""

    text: str
