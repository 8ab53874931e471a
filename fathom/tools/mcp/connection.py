"""One MCP server of a run: opened at the first use, asked one thing at a time, closed with the run.

A separate task enters and leaves the connection, because `mcp` is built on scopes that only the task which entered them
may leave. Requests are passed to that task. Any failure ends the connection, and with it the program; the next call
opens another one.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fathom.errors import ToolError, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.text.plain import clean_line, counted, size
from fathom.text.urls import host_of
from fathom.tools.mcp.configuration import McpServer
from fathom.tools.mcp.offer import OfferedTool, OfferedTools, offer_of
from fathom.tools.mcp.transports import Meter

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import CallToolResult

    from fathom.tools.mcp.transports import Address, ServerProgram

CLOSE_SECONDS = 6.0  # seconds for a server to close the session and for its program to end
PAGES = 50  # bytes of a list of tools
T = TypeVar("T")
Work = Callable[["ClientSession"], Awaitable[Any]]


class ServerChanged(ToolRejected):
    """A server offers other tools than when the run began, or describes them in another way."""

    def __init__(self, server: str) -> None:
        message = f"The MCP server {server} offers other tools than when the run began, or describes them differently."
        super().__init__(message, next_step="look at it with `fathom doctor`, then ask the question again in a new run")


class Connection:
    """The connection to a server, opened on first use."""

    def __init__(self, name: str, server: McpServer, variables: Mapping[str, str], headers: Mapping[str, str]) -> None:
        self.name = name
        self._server = server
        self._variables = variables
        self._headers = headers
        self._expected = ""
        self._offer: OfferedTools | None = None
        self._calls = 0
        self._turn = asyncio.Lock()
        self._meter = Meter(server.max_bytes)
        self._peer: Address | ServerProgram | None = None
        self._waiting: asyncio.Queue[tuple[Work, asyncio.Future[Any]] | None] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None

    async def offer(self) -> OfferedTools:
        """Return the allowed tools that the server offered when it was asked last.

        Raises:
            ToolError: it cannot be asked.
        """
        async with self._turn:
            if self._offer is None:
                await self._ask(_nothing)
            assert self._offer
            return self._offer

    async def expect(self, offer: OfferedTools) -> None:
        """Open the connection, and from now on refuse a server whose offer has changed.

        Raises:
            ServerChanged: the offer differs.
            ToolError: it cannot be asked.
        """
        self._expected = offer.hash
        if (await self.offer()).hash != offer.hash:
            raise ServerChanged(self.name)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool, once.

        Raises:
            ToolError: there is no answer, or one that cannot be used.
        """
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult

        # Not the session's `call_tool`: it checks the result by the server's schema, whose patterns may run away.
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        async with self._turn:
            if self._calls >= self._server.calls:
                most = counted(self._server.calls, "call")
                raise ToolRejected(f"The MCP server {self.name} may have {most} a run.", next_step="raise its `calls`")
            self._calls += 1
            result: CallToolResult = await self._ask(lambda session: session.send_request(request, CallToolResult))
            return result

    async def aclose(self) -> None:
        """Close the connection and end the program."""
        if self._owner and not self._owner.done():
            self._waiting.put_nowait(None)
            await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
        await self._drop()

    async def _ask(self, work: Work) -> Any:
        """Let the owner task do some work, and start it first if it is not running."""
        if self._owner is None or self._owner.done() or (self._peer and self._peer.ended):
            await self._drop()
            self._waiting, self._offer = asyncio.Queue(), None
            # Its scopes and spans must not belong to the call that happens to come first.
            self._owner = asyncio.create_task(self._own(self._waiting), context=contextvars.Context())
        owner, answer = self._owner, asyncio.get_running_loop().create_future()
        self._meter.received = 0
        self._waiting.put_nowait((work, answer))
        try:
            await asyncio.wait({owner, answer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not answer.done():
                answer.cancel()
                await self._drop()
        if answer.cancelled():
            raise self._failure(None if owner.cancelled() else owner.exception())
        if error := answer.exception():
            raise self._failure(error)
        return answer.result()

    async def _drop(self) -> None:
        if self._owner:
            self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
            if self._owner.done() and not self._owner.cancelled():
                self._owner.exception()  # which asyncio would else report as one that nobody has seen

    async def _own(self, waiting: asyncio.Queue[tuple[Work, asyncio.Future[Any]] | None]) -> None:
        """Hold the connection and serve requests, each within the server's time limit."""
        import anyio
        from mcp import Client, MCPError
        from mcp.types import CONNECTION_CLOSED

        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it prints failures, which `_failure` reports
        seconds = self._server.seconds
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            async with Client(self._transport(), cache=None) as client:
                self._offer = await self._listed(client)
                while True:
                    scope.deadline = float("inf")
                    if (asked := await waiting.get()) is None:
                        break
                    scope.deadline = anyio.current_time() + seconds
                    work, answer = asked
                    try:
                        result = await work(client.session)
                    except MCPError as error:
                        if self._server.url or error.code == CONNECTION_CLOSED:  # an expired session would stay so
                            raise
                        answer.set_exception(error)
                    else:
                        answer.set_result(result)
        if scope.cancelled_caught:
            raise TimeoutError

    def _transport(self) -> Any:
        server = self._server
        if server.url:
            from fathom.tools.mcp.transports import Address

            self._peer = Address(server.url, self._headers, server.seconds, self._meter)
        else:
            from fathom.tools.mcp.transports import ServerProgram

            self._peer = ServerProgram([server.command, *server.args], self._variables, self._meter)
        return self._peer.streams()

    async def _listed(self, client: Any) -> OfferedTools:
        tools: list[OfferedTool] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += [
                OfferedTool(name=tool.name, description=tool.description or "", input_schema=tool.input_schema)
                for tool in page.tools
            ]
            if not (cursor := page.next_cursor):
                break
        else:
            raise ToolRejected(f"The MCP server {self.name} lists its tools without end.")
        offer = offer_of(self.name, tools, self._server.allow)
        if self._expected and offer.hash != self._expected:
            raise ServerChanged(self.name)
        return offer

    def _failure(self, error: BaseException | None) -> ToolError:
        """Return the message about a failure for a person. An error of `mcp` may contain the server's words."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, PARSE_ERROR

        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        server = self._server
        if isinstance(error, ToolError):
            return error
        if self._meter.exceeded:
            said = f"The MCP server {self.name} sent more than {size(server.max_bytes)}."
            return ToolRejected(said, next_step="raise its `max_bytes`")
        code = error.code if isinstance(error, MCPError) else None
        kind: type[ToolError] = ToolUnavailable
        if isinstance(error, TimeoutError):
            kind, said = ToolTimeout, f"did not answer in {server.seconds:g} s"
        elif code == PARSE_ERROR or isinstance(error, ValueError | RuntimeError):
            said = "sent an answer that is not MCP's"
        elif isinstance(error, MCPError) and code != CONNECTION_CLOSED:
            said = f"refused: {clean_line(error.message)[:300]}"
        elif server.command:
            said = "ended before it answered"
        else:
            said = f"at {host_of(server.url)} cannot be reached ({type(error).__name__})"
        last_words = self._peer.last_words if self._peer else ""
        return kind(f"The MCP server {self.name} {said}. {last_words}".rstrip())


async def _nothing(_session: object) -> None:
    """Do nothing: opening the connection is the whole work."""
