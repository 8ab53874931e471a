"""How much an MCP server may send for one call, counted while it arrives."""

from __future__ import annotations


class Meter:
    """Counts bytes against a limit."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.received = 0

    @property
    def exceeded(self) -> bool:
        """Whether more has come than may come."""
        return self.received > self.most

    def add(self, size: int) -> bool:
        """Count some bytes and return whether they are too many."""
        self.received += size
        return self.exceeded
