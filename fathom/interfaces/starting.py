"""What a server answers before its application is imported and Prefect answers: that it lives, and a page that waits.

A thread reads what new connections send without taking it from them. Whoever asks for anything else waits, and the
application then finds their requests whole. It imports nothing that loads slowly.
"""

from __future__ import annotations

import selectors
import socket
from threading import Thread
from types import TracebackType
from typing import Self

MOST = 64  # connections that wait, since the start needs files too; further ones wait where the system keeps them
_HEADERS = 8_192  # bytes of a request
_ALIVE = b"GET /api/v1/health "
_PROGRAMS = (b"/api/", b"/v1/", b"/mcp")
_HEALTH = b'{"status":"ok"}'
_PAGE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="1">
<title>Fathom is starting</title>
</head>
<body style="font-family: system-ui, sans-serif; margin: 15vh auto; max-width: 36rem; padding: 0 1rem">
<h1>Fathom is starting</h1>
<p role="status">This page opens by itself in a few seconds. The very first start takes about half a minute.</p>
</body>
</html>
"""


class Starting:
    """A context manager around the start of a server, on the socket on which it listens."""

    def __init__(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._waiting: set[socket.socket] = set()
        self._asked, self._ask = socket.socketpair()
        self._thread = Thread(target=self._answer, name="starting", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for connection in self.stop():
            connection.close()

    def stop(self) -> set[socket.socket]:
        """Answer nobody any more; return the connections that wait, with all that they have sent."""
        self._ask.close()
        self._thread.join()
        waiting, self._waiting = self._waiting, set()
        return waiting

    def _answer(self) -> None:
        with selectors.DefaultSelector() as selector, self._asked:
            for readable in (self._asked, self._listener):
                selector.register(readable, selectors.EVENT_READ)
            while len(self._waiting) < MOST:
                for key, _ in selector.select():
                    if key.fileobj is self._asked:
                        return
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    else:
                        assert isinstance(key.fileobj, socket.socket)
                        self._read(key.fileobj, selector)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it is gone again
            return
        connection.setblocking(False)
        self._waiting.add(connection)
        selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket, selector: selectors.BaseSelector) -> None:
        selector.unregister(connection)
        try:
            sent = connection.recv(_HEADERS, socket.MSG_PEEK)
            answer = _answer_to(sent)
            if sent and not answer:
                return  # the application answers it
            if answer:
                connection.recv(_HEADERS)
                connection.sendall(answer)
        except OSError:  # who asked has gone
            pass
        self._waiting.discard(connection)
        connection.close()


def _answer_to(sent: bytes) -> bytes | None:
    """Return the answer to a request that need not wait; None for another one, and for one that is not whole."""
    head, whole, _ = sent.partition(b"\r\n\r\n")
    if not whole:
        return None
    if head.startswith(_ALIVE):
        return _response(b"200 OK", b"application/json", _HEALTH)
    asks_for_a_page = head.startswith(b"GET /") and not head[4:].startswith(_PROGRAMS) and b"text/html" in head
    return _response(b"503 Service Unavailable", b"text/html; charset=utf-8", _PAGE) if asks_for_a_page else None


def _response(status: bytes, kind: bytes, body: bytes) -> bytes:
    lines = (
        b"HTTP/1.1 " + status,
        b"Content-Type: " + kind,
        b"Content-Length: %d" % len(body),
        b"Cache-Control: no-store",
        b"Retry-After: 1",
        b"Connection: close",
    )
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
