"""The body of an HTTP answer, with a limit on its bytes on the wire and after unpacking that holds while it arrives.

httpx would unpack a whole chunk at once: a small one could hold gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

PIECE = 2**16  # bytes unpacked at once
ENCODINGS = "gzip, deflate"  # what a request may accept, where its answer is read here
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class TooLarge(Exception):
    """The body is larger than a limit in bytes."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer is larger than {most / 1024:,.0f} KB.")


class Unreadable(ValueError):
    """The body cannot be unpacked."""


async def unpacked(chunks: AsyncIterable[bytes], encoding: str, most: int) -> AsyncIterator[bytes]:
    """Yield a body in pieces, unpacked from what its Content-Encoding names.

    Raises:
        TooLarge: after the piece with which it exceeds `most` bytes, on the wire or unpacked.
        Unreadable: it is damaged, or compressed in another way than gzip or deflate.
    """
    unpacker = _Unpacker(encoding.strip().lower())
    received = size = 0
    async for chunk in chunks:
        received += len(chunk)
        for piece in unpacker.feed(chunk):
            size += len(piece)
            yield piece
            if size > most:
                raise TooLarge(most)
        if received > most:
            raise TooLarge(most)


def limit_body(response: httpx.Response, most: int) -> None:
    """Have a body that is yet to be read raise as `unpacked` does; for a response hook of an httpx client."""
    import httpx

    assert isinstance(response.stream, httpx.AsyncByteStream)
    stream: httpx.AsyncByteStream = response.stream
    encoding = response.headers.pop("content-encoding", "")

    class Limited(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in unpacked(stream, encoding, most):
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Limited()


class _Unpacker:
    """Unpacks a stream in pieces of limited size."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", *_WBITS):
            raise Unreadable(f"is compressed in an unsupported way: {encoding[:40]!r}")
        self._stream = zlib.decompressobj(_WBITS[encoding]) if encoding in _WBITS else None
        self._raw = encoding == "deflate"  # some servers leave out the header

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what a chunk holds, at most 64 KB at once."""
        if self._stream is None:
            yield chunk
            return
        try:
            while chunk and not self._stream.eof:
                try:
                    piece = self._stream.decompress(chunk, PIECE)
                except zlib.error:
                    if not self._raw:
                        raise
                    self._stream, self._raw = zlib.decompressobj(-15), False
                    continue
                self._raw = False
                yield piece
                chunk = self._stream.unconsumed_tail
        except zlib.error as error:
            raise Unreadable("is damaged: it cannot be decompressed") from error
