"""Which model answers for a role, and how it is called."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fathom.config.form import FormModel, Setting

EXTRACTIVE = "extractive"
"""Name of the model-free backend, usable wherever a model name is."""


class Role(StrEnum):
    """The roles that a model can take."""

    clarifier = "clarifier"
    planner = "planner"
    researcher = "researcher"
    compressor = "compressor"
    critic = "critic"
    reporter = "reporter"
    judge = "judge"


ROLES = tuple(role.value for role in Role)


class StructuredOutput(StrEnum):
    """How a model is made to answer in JSON."""

    json_schema = "json_schema"  # the provider enforces the schema
    tool = "tool"  # the model must call a tool whose input has the schema
    json_object = "json_object"  # the provider promises JSON; the schema is part of the prompt
    prompt = "prompt"  # only the prompt asks for it


class ModelCallSettings(FormModel):
    """Limits and waits of model calls. They change no answer."""

    at_once: Annotated[int, Setting("--model-at-once", "N", page="models", most=8)] = Field(
        8,
        ge=1,
        le=64,
        description="Maximum number of model calls at the same time, over all roles and steps; 1 for a small server.",
        examples=[1],
    )
    seconds: Annotated[float, Setting("--model-seconds", "S", page="models", most=600)] = Field(
        120, gt=0, le=3_600, description="Seconds without a token after which an attempt is abandoned.", examples=[300]
    )
    backoff_seconds: float = Field(
        2,
        ge=0,
        le=60,
        description="Seconds before the second attempt; doubled before each of the three attempts after it.",
        examples=[5],
    )
    per_minute: Annotated[int | None, Setting(empty="no limit", page="models")] = Field(
        None,
        ge=1,
        description="Maximum requests per minute to one service, evenly spaced.",
        examples=[60],
    )


class RoleModel(FormModel):
    """The model of one role and how it is called."""

    model: str = Field(
        description="A litellm model name, or `extractive`.", examples=["openai/gpt-5-mini"], min_length=1
    )
    fallbacks: list[str] = Field(
        default_factory=list,
        description="litellm models to try in turn while this one is unavailable.",
        examples=[["openai/gpt-5-nano"]],
    )
    temperature: Annotated[float | None, Setting(empty="the provider's default")] = Field(
        None, ge=0, le=2, description="Sampling temperature.", examples=[0.2]
    )
    max_tokens: int = Field(4_096, ge=64, le=64_000, description="Maximum tokens in an answer.", examples=[8_192])
    thinking_tokens: int = Field(
        16_000,
        ge=0,
        le=200_000,
        description="Maximum tokens that a reasoning model may use for thinking, in addition to `max_tokens`.",
        examples=[32_000],
    )
    window: Annotated[int | None, Setting(empty="as the server or litellm's table says")] = Field(
        None,
        ge=1_024,
        description="Maximum tokens of prompt and answer together.",
        examples=[32_768],
    )
    structured_output: Annotated[StructuredOutput | None, Setting(empty="as the provider supports it")] = Field(
        None, description="How the model is asked for JSON."
    )

    @classmethod
    def from_text(cls, text: str) -> object:
        """Take the name of a model, too."""
        return {"model": text.strip()}
