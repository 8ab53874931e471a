"""What every noun has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base of every noun: unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
