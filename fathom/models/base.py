"""The base of all models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base of all models: frozen; unknown fields, infinite numbers and those that are none (NaN) are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
