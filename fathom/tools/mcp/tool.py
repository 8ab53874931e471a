"""A tool of an MCP server as a tool of Fathom: its output is a source like a page, and as little to be trusted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fathom.errors import ToolRejected
from fathom.models import Holdings, SourceText, ToolOutput
from fathom.text.plain import clean_line, clean_text, clean_title
from fathom.text.urls import source_ids
from fathom.tools.base import Tool
from fathom.tools.documents.configuration import read_configuration
from fathom.tools.mcp.configuration import tool_name
from fathom.tools.mcp.connection import Connection
from fathom.tools.mcp.offer import OfferedTool

if TYPE_CHECKING:
    from mcp.types import CallToolResult

LONGEST_ERROR = 300  # characters of what a server says of a call that failed


class McpTool(Tool):
    """One allowed tool of a server. Without a connection, as in a replay, it cannot be called."""

    searches = True  # some do: each object says for itself
    network = True

    def __init__(self, server: str, offered: OfferedTool, connection: Connection | None) -> None:
        self.name = tool_name(server, offered.name)
        self.description = offered.told(server)
        self.searches = offered.searches
        self._server = server
        self._offered = offered
        self._connection = connection

    async def run(self, tool_input: str) -> ToolOutput:
        """Call the tool and return its whole result as one text.

        Raises:
            ToolRejected: the input does not fit, the call failed on the server, or nothing in the result can be read.
            ToolError: there was no answer.
        """
        if self._connection is None:
            how = f"set FATHOM_MCP to a file that has it and allows {self._offered.name}"
            raise ToolRejected(f"The MCP server {self._server} is not configured.", next_step=how)
        arguments = self._offered.read(tool_input)
        result = await self._connection.call(self._offered.name, arguments)
        text = _text(result)
        if result.is_error:
            said = clean_line(text)[:LONGEST_ERROR] or "it does not say why"
            raise ToolRejected(f"{self._offered.name} of the MCP server {self._server} failed: {said}")
        if not text and result.content:
            kinds = ", ".join(sorted({block.type for block in result.content}))
            raise ToolRejected(f"{self._offered.name} of the MCP server {self._server} returned no text but {kinds}.")
        return ToolOutput(results=[self._source(arguments, tool_input, text)] if text else [])

    async def holdings(self, words: Sequence[str]) -> Holdings | None:
        """Return the server as the place to find things, of a tool that searches."""
        return Holdings(tool=self.name, where=[f"the MCP server {self._server}"]) if self.searches else None

    def _source(self, arguments: dict[str, object], tool_input: str, text: str) -> SourceText:
        digest = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:16]
        url = f"mcp://{self._server}/{self._offered.name}?{digest}"
        title = clean_title(f"{self._server}: {self._offered.name} {tool_input}")
        return SourceText(source_id=source_ids([url])[url], url=url, title=title, kind="mcp", text=text)


def _text(result: CallToolResult) -> str:
    """Return all that a result says: its texts, else its structured content. JSON becomes a line for each value."""
    from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents

    parts: list[str] = []
    for block in result.content:
        if isinstance(block, TextContent):
            parts.append(block.text)
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            parts.append(block.resource.text)
        elif isinstance(block, ResourceLink):  # named, and never followed
            parts.append(" ".join(filter(None, [block.name, block.description, str(block.uri)])))
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    texts = (read_configuration(".json", part) if part.lstrip()[:1] in ("{", "[") else part for part in parts)
    return "\n\n".join(filter(None, map(clean_text, texts)))
