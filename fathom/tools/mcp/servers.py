"""The MCP servers of one run, and their tools as tools of Fathom."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fathom.config.environment import Environment, installing
from fathom.config.secrets import Scrubber, guard_logs
from fathom.errors import InvalidInput, ToolError, ToolRejected
from fathom.models import Holdings, SourceText, ToolOutput
from fathom.text.plain import clean_line, clean_text, clean_title
from fathom.text.urls import source_ids
from fathom.tools.base import Tool
from fathom.tools.documents.configuration import read_configuration
from fathom.tools.mcp.configuration import McpTools, read_servers, tool_name
from fathom.tools.mcp.connection import Connection, ServerChanged
from fathom.tools.mcp.offer import OfferedTool, OfferedTools
from fathom.tools.warc import keep_result

if TYPE_CHECKING:
    from mcp.types import CallToolResult


def allowed_tools(environment: Environment) -> list[str]:
    """Return the names of the tools of MCP servers that a run may use.

    Raises:
        InvalidInput: the file of servers cannot be used, or the extra is not installed.
    """
    names = list(read_servers(environment).names)
    if names and find_spec("mcp") is None:
        raise InvalidInput("MCP servers need the extra `mcp`.", next_step=installing("mcp"))
    return names


class McpServers:
    """The servers of some chosen tools, or all. Nothing is started and no connection made before the first use."""

    def __init__(self, environment: Environment, chosen: Sequence[str] | None = None) -> None:
        file = read_servers(environment)
        self.chosen = list(file.names if chosen is None else chosen)
        self.secrets = file.secrets
        self._scrubber = Scrubber(environment.secrets | self.secrets)
        guard_logs(self._scrubber)  # log records of `mcp` quote servers' words
        used = {server for name, (server, _) in file.names.items() if name in self.chosen}
        self._connections = {name: _connection(file, name) for name in sorted(file.servers if chosen is None else used)}

    async def offers(self) -> list[OfferedTools]:
        """Ask every server for its offer; if a server cannot be asked, its offer says why."""

        async def ask(connection: Connection) -> OfferedTools:
            try:
                with self._scrubber.errors():
                    return await connection.offer()
            except ToolError as error:
                return OfferedTools(server=connection.name, failure=f"{error.code} {error.message}")

        found = await asyncio.gather(*map(ask, self._connections.values()))
        return [self._scrubber.model(offer) for offer in found]

    async def check(self, offers: Iterable[OfferedTools]) -> None:
        """Compare the servers with their offers when the run began; a server that cannot be asked fails when called.

        Raises:
            InvalidInput: a server has changed, or the file of this process does not have it.
        """
        for offer in offers:
            if not offer.hash:
                continue
            if (connection := self._connections.get(offer.server)) is None:
                message = f"The run uses the MCP server {offer.server}, which is not configured here."
                raise InvalidInput(message, next_step="resume it with the same --mcp FILE, or FATHOM_MCP")
            try:
                await connection.expect(offer)
            except ServerChanged as error:
                raise InvalidInput(error.message, next_step=error.next_step) from None
            except ToolError:
                continue

    def tools(self, offers: Iterable[OfferedTools]) -> list[McpTool]:
        """Return the chosen tools that the servers offer."""
        return [
            McpTool(offer.server, tool, self._connections.get(offer.server))
            for offer in offers
            for tool in offer.tools
            if tool_name(offer.server, tool.name) in self.chosen
        ]

    async def aclose(self) -> None:
        """Close all connections and end all programs."""
        await asyncio.gather(*(connection.aclose() for connection in self._connections.values()))


def _connection(file: McpTools, name: str) -> Connection:
    """Return the still unopened connection to a server of the file."""
    variables = {**file.inherited, **file.filled(name, "env")}
    return Connection(name, file.servers[name], variables, file.filled(name, "headers"))


LONGEST_ERROR = 300  # characters of a server's message about a failed call


class McpTool(Tool):
    """One allowed tool of a server. Without a connection, as in a replay, it cannot be called."""

    searches = True  # some do: each object declares it
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
        answer = result.model_dump_json(by_alias=True, exclude_unset=True)
        keep_result(f"mcp://{self._server}/{self._offered.name}", answer.encode())
        text = _text(result)
        if result.is_error:
            said = clean_line(text)[:LONGEST_ERROR] or "it does not say why"
            raise ToolRejected(f"{self._offered.name} of the MCP server {self._server} failed: {said}")
        if not text and result.content:
            kinds = ", ".join(sorted({block.type for block in result.content}))
            raise ToolRejected(f"{self._offered.name} of the MCP server {self._server} returned no text but {kinds}.")
        return ToolOutput(results=[self._source(arguments, tool_input, text)] if text else [])

    async def holdings(self, words: Sequence[str]) -> Holdings | None:
        """Return the server as the holdings of a search tool."""
        return Holdings(tool=self.name, where=[f"the MCP server {self._server}"]) if self.searches else None

    def _source(self, arguments: dict[str, object], tool_input: str, text: str) -> SourceText:
        digest = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:16]
        url = f"mcp://{self._server}/{self._offered.name}?{digest}"
        title = clean_title(f"{self._server}: {self._offered.name} {tool_input}")
        return SourceText(source_id=source_ids([url])[url], url=url, title=title, kind="mcp", text=text)


def _text(result: CallToolResult) -> str:
    """Return the content of a result: its texts, else its structured content. JSON becomes a line for each value."""
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
