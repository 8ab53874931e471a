"""The one model seam: a backend completes a role's request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from fathom.config.models import RoleModel
from fathom.models import Usage
from fathom.roles import Request, RoleSpec


class InvalidAnswer(BaseModel):
    """An answer that broke the rules, and which."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    complaints: list[str]


@dataclass(frozen=True)
class ModelCall:
    """One request to a backend.

    Attributes:
        spec: the role's contract.
        request: what it is asked.
        model: which model answers, and how.
        invalid: the answer this call repeats, with what was wrong with it; the one re-ask.
    """

    spec: RoleSpec[Any, Any]
    request: Request
    model: RoleModel
    invalid: InvalidAnswer | None = None


class Completion(BaseModel):
    """What a backend answered. `model`: which one did; `truncated`: it stopped for want of tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    usage: Usage
    model: str
    truncated: bool = False


class Failure(BaseModel):
    """Why no model answered, when nobody needs to mend anything for the run to go on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    message: str


class Backend(Protocol):
    """Answers role requests."""

    async def complete(self, call: ModelCall) -> Completion:
        """Answer one request.

        Raises:
            ModelError: the call failed for good; retries are the backend's own.
        """
        ...
