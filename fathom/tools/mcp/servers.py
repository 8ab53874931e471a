"""The MCP servers of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber, guard_logs
from fathom.errors import InvalidInput, ToolError
from fathom.tools.mcp.configuration import McpTools, read_servers, tool_name
from fathom.tools.mcp.connection import Connection, ServerChanged
from fathom.tools.mcp.offer import Offer
from fathom.tools.mcp.tool import McpTool


def allowed_tools(environment: Environment) -> list[str]:
    """Return the names of the tools of MCP servers that a run may use.

    Raises:
        InvalidInput: the file of servers cannot be used, or the extra is not installed.
    """
    names = list(read_servers(environment).names)
    if names and find_spec("mcp") is None:
        raise InvalidInput("MCP servers need the extra `mcp`.", next_step="pip install 'fathom-research[mcp]'")
    return names


class McpServers:
    """The servers of some chosen tools, or all. Nothing is started and no connection made before the first use."""

    def __init__(self, environment: Environment, chosen: Sequence[str] | None = None) -> None:
        file = read_servers(environment)
        self.chosen = list(file.names if chosen is None else chosen)
        self.secrets = file.secrets
        self._scrubber = Scrubber(environment.secrets | self.secrets)
        guard_logs(self._scrubber)  # those of `mcp` quote what a server says
        used = {server for name, (server, _) in file.names.items() if name in self.chosen}
        self._connections = {name: _connection(file, name) for name in sorted(file.servers if chosen is None else used)}

    async def offers(self) -> list[Offer]:
        """Ask every server what it offers; of one that cannot be asked, the offer says why."""

        async def ask(connection: Connection) -> Offer:
            try:
                with self._scrubber.errors():
                    return await connection.offer()
            except ToolError as error:
                return Offer(server=connection.name, failure=f"{error.code} {error.message}")

        found = await asyncio.gather(*map(ask, self._connections.values()))
        return [self._scrubber.model(offer) for offer in found]

    async def check(self, offers: Iterable[Offer]) -> None:
        """Compare the servers with what they offered when the run began; one that cannot be asked fails when called.

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

    def tools(self, offers: Iterable[Offer]) -> list[McpTool]:
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
    """Return the connection to a server of the file, which nothing has opened yet."""
    variables = {**file.inherited, **file.filled(name, "env")}
    return Connection(name, file.servers[name], variables, file.filled(name, "headers"))
