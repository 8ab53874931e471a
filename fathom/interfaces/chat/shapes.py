"""What the endpoint reads of a request, and the models that it offers. All other fields have no effect on research."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from fathom.config.groups import Profile
from fathom.config.settings import SETTINGS
from fathom.errors import InvalidInput, NotThere

_TEXTS = ("text", "input_text", "output_text")
_UNSAID = ("reasoning", "refusal", "item_reference")
MOST_MESSAGES = 2_000  # of a conversation


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Part(_Lenient):
    """A part of a message."""

    type: str = "text"
    text: str = ""


class Message(_Lenient):
    """A message of a conversation, or another item of the input of a response, whose role is empty."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant", "tool", "function", ""] = ""
    content: str | list[Part] | None = None

    def text(self) -> str:
        """Return what the message says.

        Raises:
            InvalidInput: a part of it is no text.
        """
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if part.type not in (*_TEXTS, *_UNSAID):
                raise InvalidInput(
                    f"A part of a message is of type {part.type[:40]!r}: only text can be researched.",
                    next_step="say it in words, or upload the document to Fathom",
                )
        return "\n".join(part.text for part in self.content if part.type in _TEXTS)


class Extras(_Lenient):
    """What only Fathom knows: `extra_body={"fathom": {...}}`. Settings are named as in docs/settings.md."""

    model_config = ConfigDict(extra="allow", frozen=True)

    template: str | None = None
    corpora: list[str] = []
    shared: bool = False

    def settings(self) -> dict[str, JsonValue]:
        """Return the settings."""
        return dict(self.model_extra or {})


class OpenAIRequest(_Lenient):
    """What both kinds of request have."""

    model: str
    stream: bool | None = None
    fathom: Extras | None = None


class StreamOptions(_Lenient):
    """Of a stream: whether its last chunk has the usage."""

    include_usage: bool = False


class ChatRequest(OpenAIRequest):
    """The body of a request for a chat completion."""

    messages: list[Message] = Field(min_length=1, max_length=MOST_MESSAGES)
    stream_options: StreamOptions | None = None
    n: int | None = None
    response_format: dict[str, Any] | None = None


class ResponseRequest(OpenAIRequest):
    """The body of a request for a response."""

    input: Annotated[str, Field(max_length=2_000_000)] | Annotated[list[Message], Field(max_length=MOST_MESSAGES)]
    instructions: str | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    metadata: dict[str, str] | None = None

    def messages(self) -> list[Message]:
        """Return the conversation."""
        said = [Message(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        return [*([Message(role="system", content=self.instructions)] if self.instructions else []), *said]


class NoModel(NotThere):
    """There is no model of that name."""

    remedy = "GET /v1/models lists the models"


MODELS: Mapping[str, Mapping[str, Any]] = {
    "fathom": {},
    **{f"fathom-{one}": {"profile": one.value} for one in Profile if one is not SETTINGS["profile"].default},
}
"""Their settings by name; `fathom` has the server's default, and in a follow-up the settings of the run before."""


def settings_of(model: str) -> dict[str, Any]:
    """Return the settings that a model stands for.

    Raises:
        NoModel: there is none of that name.
    """
    if model not in MODELS:
        raise NoModel(f"The model {model[:60]!r} does not exist.", next_step=f"choose one of {', '.join(MODELS)}")
    return dict(MODELS[model])


def model_of(settings: Mapping[str, Any]) -> str:
    """Return the name of the model that stands for a run's profile."""
    profile = settings.get("profile")
    return next((name for name, own in MODELS.items() if own.get("profile") == profile), "fathom")
