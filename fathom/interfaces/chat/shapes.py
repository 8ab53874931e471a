"""What the endpoint reads of a request. All other fields are allowed, and have no effect on research."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from fathom.errors import InvalidInput

_TEXTS = ("text", "input_text", "output_text")
_UNSAID = ("reasoning", "refusal", "item_reference")


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


class Request(_Lenient):
    """What both kinds of request have."""

    model: str
    stream: bool | None = None
    fathom: Extras | None = None


class StreamOptions(_Lenient):
    """Of a stream: whether its last chunk has the usage."""

    include_usage: bool = False


class ChatRequest(Request):
    """The body of a request for a chat completion."""

    messages: list[Message] = Field(min_length=1, max_length=2_000)
    stream_options: StreamOptions | None = None
    n: int | None = None
    response_format: dict[str, Any] | None = None


class ResponseRequest(Request):
    """The body of a request for a response."""

    input: str | list[Message] = Field(max_length=2_000_000)
    instructions: str | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    metadata: dict[str, str] | None = None

    def messages(self) -> list[Message]:
        """Return the conversation."""
        said = [Message(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        return [*([Message(role="system", content=self.instructions)] if self.instructions else []), *said]
