"""The base of all models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base of all models: frozen, and unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)
