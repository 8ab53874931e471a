"""What a tool is: a name, a description for the model, and one coroutine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fathom.models import ToolCall, ToolOutput, ToolResult


class Tool(Protocol):
    """A tool the researcher can call. A new one is one file in this folder and one line in the registry.

    Attributes:
        name: snake_case, part of artifact names and so of the run's contract.
        description: one or two sentences for the model: what it is good for and what its input is.
    """

    name: str
    description: str

    async def run(self, tool_input: str) -> ToolOutput:
        """Serve one call.

        Raises:
            ToolError: the call failed; the typed class says whether trying again can help.
        """
        ...

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that the results of one decision make necessary, such as reading pages a search left out.

        It is made by the pipeline, not offered to the model. Most tools return None.
        """
        ...
