"""What goes back over the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Delivery", "Reply"]


@dataclass(frozen=True)
class Delivery:
    """How a streamed answer is written, where not all at once.

    Attributes:
        seconds: before each token.
        share: of the tokens are written.
        ending: what follows them: "" the protocol's end; "silent" nothing for an hour; "loop" the last tokens again and
            again; "error" an error of the protocol; "cut" the connection is aborted.
        loop: how many of the last tokens are repeated.
    """

    seconds: float = 0.0
    share: float = 1.0
    ending: str = ""
    loop: int = 0


@dataclass(frozen=True)
class Reply:
    """One HTTP answer. `usage` is what the model stub counted, for the log; `delivery` matters to a stream only."""

    status: int
    payload: Any
    headers: dict[str, str] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    content_type: str = "application/json"
    delivery: Delivery = field(default_factory=Delivery)

    @property
    def body(self) -> bytes:
        """The payload as JSON; text stays as it is, to send what is no JSON."""
        return (self.payload if isinstance(self.payload, str) else json.dumps(self.payload)).encode()
