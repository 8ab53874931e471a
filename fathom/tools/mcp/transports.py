"""The transports to an MCP server: streamable HTTP, or lines of JSON to a program; arriving bytes are counted.

A server at an address speaks streamable HTTP. The client of `mcp` does not follow redirects away from the address.

A server that is a program reads and writes lines of JSON over its input and output. The client of `mcp` reads a line
whatever its length, and leaves the program running when this process is killed. Here a line ends at the limit of the
meter, and the program has a guard.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathom.errors import ToolRejected
from fathom.network import ENCODINGS, BodyTooLarge, check_sending, tls, unpacked, user_agent
from fathom.text.plain import clean_line
from fathom.tools.mcp import guard

if TYPE_CHECKING:
    import httpx2
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage


class Meter:
    """Counts bytes against a limit."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.received = 0

    @property
    def exceeded(self) -> bool:
        """Whether more bytes have arrived than allowed."""
        return self.received > self.most

    def add(self, size: int) -> bool:
        """Count some bytes and return whether they are too many."""
        self.received += size
        return self.exceeded


class Address:
    """An address that serves MCP. `last_words` is a sentence on its last answer, if that was a failure."""

    ended = False  # it can always be asked again

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float, meter: Meter) -> None:
        self._url = url
        self._headers = headers
        self._seconds = seconds
        self._meter = meter
        self.last_words = ""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Yield the streams from the server and to it."""
        check_sending("tools", self._url)
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        client = httpx2.AsyncClient(
            headers={"User-Agent": user_agent(), "Accept-Encoding": ENCODINGS, **self._headers},
            timeout=httpx2.Timeout(self._seconds, read=None),  # the caller keeps the time; a stream may be silent long
            verify=tls(),
            event_hooks={"response": [self._limit]},
        )
        most = self._meter.most
        async with client, streamable_http_client(self._url, http_client=client, max_sse_event_size=most) as made:
            yield made

    async def _limit(self, response: httpx2.Response) -> None:
        """Make an unread body fail once the server has sent too much."""
        import httpx2

        self.last_words = f"It answered HTTP {response.status_code}." if response.status_code >= 300 else ""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        stream: httpx2.AsyncByteStream = response.stream
        encoding, meter = response.headers.pop("content-encoding", ""), self._meter

        class MeteredStream(httpx2.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                try:
                    async for piece in unpacked(stream, encoding, meter.most):
                        if meter.add(len(piece)):
                            raise BodyTooLarge(meter.most)
                        yield piece
                except BodyTooLarge as error:
                    meter.add(meter.most)  # also for a body that is too large before it is unpacked
                    raise httpx2.StreamError(str(error)) from None

            async def aclose(self) -> None:
                await stream.aclose()

        response.stream = MeteredStream()


END_SECONDS = 2.0  # seconds in which a program may end by itself once its input is closed
PIECE = 2**16
SAID = 500  # characters of the last words of a program that are shown


class ServerProgram:
    """A program that serves MCP."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], meter: Meter) -> None:
        self._command = command
        self._variables = variables
        self._meter = meter
        self._errors = b""
        self._stray = b""
        self.ended = False
        """Whether no further messages can arrive."""

    @property
    def last_words(self) -> str:
        """A sentence with its last line on stderr, else with the first output line that is not a message."""
        lines = [line for line in self._errors.decode(errors="replace").splitlines() if line.strip()]
        said = clean_line(lines[-1] if lines else self._stray.decode(errors="replace"))[:SAID]
        return f"Its last words: {said}" if said else ""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Start the program and yield the streams from it and to it; the program has ended when the block is left.

        Raises:
            ToolRejected: there is no such program.
        """
        import anyio
        from mcp.shared.message import SessionMessage

        said, hear = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        tell, told = anyio.create_memory_object_stream[SessionMessage](0)
        process, lifeline = await self._start()
        patience = 0.0  # for a program that hangs or sends too much
        async with said, hear, tell, told:
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._listen, process, said)
                    group.start_soon(self._talk, process, told)
                    group.start_soon(self._heed, process)
                    yield hear, tell
                    patience = END_SECONDS
                    group.cancel_scope.cancel()
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process, lifeline, patience)

    async def _start(self) -> tuple[asyncio.subprocess.Process, int]:
        name, *arguments = self._command
        program = shutil.which(name, path=self._variables.get("PATH"))
        if program is None:
            raise ToolRejected(f"There is no program {name!r}.", next_step="correct the command in the file of servers")
        closes, lifeline = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(Path(guard.__file__)), str(closes), program, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=self._meter.most,
                pass_fds=(closes,),
                env=dict(self._variables),
                start_new_session=True,  # the keys of a terminal are for Fathom
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(closes)
        return process, lifeline

    async def _listen(
        self, process: asyncio.subprocess.Process, said: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Pass on one message per line, and close once the program ends or sends too much."""
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        assert process.stdout
        try:
            with suppress(asyncio.IncompleteReadError, BrokenResourceError, ClosedResourceError):
                while True:
                    try:
                        line = await process.stdout.readuntil(b"\n")
                    except asyncio.LimitOverrunError as error:
                        self._meter.add(max(error.consumed, self._meter.most) + 1)
                        return
                    if self._meter.add(len(line)):
                        return
                    try:
                        message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                    except ValueError:  # a greeting, or a log line that went astray
                        self._stray = self._stray or line[:SAID]
                        continue
                    await said.send(message)
        finally:
            self.ended = True
            said.close()

    async def _talk(self, process: asyncio.subprocess.Process, told: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin
        with suppress(OSError):  # the program has ended, as its output shows
            async for message in told:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()

    async def _heed(self, process: asyncio.subprocess.Process) -> None:
        """Keep the end of what the program writes to stderr, so that it can go on writing."""
        assert process.stderr
        while piece := await process.stderr.read(PIECE):
            self._errors = (self._errors + piece)[-2 * SAID :]


async def _end(process: asyncio.subprocess.Process, lifeline: int, patience: float) -> None:
    """Wait some seconds for a program to end, then let its guard end it with all processes that it has started."""
    assert process.stdin and process.stdout and process.stderr
    process.stdin.close()
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
    finally:
        os.close(lifeline)
    with suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS + guard.GRACE_SECONDS):
            await asyncio.gather(_drain(process.stdout), _drain(process.stderr), process.wait())


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read a pipe to its end, for asyncio closes it only then."""
    while await stream.read(PIECE):
        pass
