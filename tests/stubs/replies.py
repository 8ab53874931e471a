"""What goes back over the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Reply"]


@dataclass(frozen=True)
class Reply:
    """One HTTP answer. `usage` is what the model stub counted, for the log."""

    status: int
    payload: Any
    headers: dict[str, str] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    content_type: str = "application/json"

    @property
    def body(self) -> bytes:
        """The payload as JSON; text stays as it is, to send what is no JSON."""
        return (self.payload if isinstance(self.payload, str) else json.dumps(self.payload)).encode()
