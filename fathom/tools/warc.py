"""The responses that a tool call received, as they arrived: the records of a web archive (WARC 1.1, ISO 28500).

A tool returns readable text; these are the bytes that it was read from. `keep` is called where they arrive: by
`request` in `fathom/tools/http.py`, and by the reader of pages. Bodies are stored unpacked, and headers only as far as
they describe the body: others hold cookies and tokens. Each record is compressed by itself, as the format has it, so a
file of records is one behind the other.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from http.client import responses
from typing import NamedTuple
from uuid import uuid4

from pydantic import BaseModel, ConfigDict

from fathom.config.secrets import Scrubber
from fathom.storage.cache import TimedCache
from fathom.text.plain import clean_line

_HEADERS = (
    *("content-type", "content-language", "content-disposition", "date", "last-modified", "etag"),
    *("location", "retry-after"),
)
_LEVEL = 6  # of the compression, as of most archives


class _Recording(NamedTuple):
    scrubber: Scrubber
    records: list[bytes]


_recording: ContextVar[_Recording | None] = ContextVar("fathom_responses", default=None)


@contextmanager
def recording(scrubber: Scrubber) -> Iterator[list[bytes]]:
    """Yield the records of the responses that arrive inside the block, without secrets."""
    now = _Recording(scrubber, [])
    token = _recording.set(now)
    try:
        yield now.records
    finally:
        _recording.reset(token)


def keep(url: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Record a response, its body unpacked; the names of its headers are in lower case."""
    if now := _recording.get():
        lines = [f"HTTP/1.1 {status} {responses.get(status, '')}"]
        lines += [clean_line(f"{name}: {headers[name]}") for name in _HEADERS if name in headers]
        head = now.scrubber.message("\r\n".join(lines))
        _add(now, "response", url, "application/http;msgtype=response", f"{head}\r\n\r\n".encode() + _clean(now, body))


def keep_result(url: str, body: bytes) -> None:
    """Record a result in JSON that arrived in another way than as the response to one request."""
    if now := _recording.get():
        _add(now, "resource", url, "application/json", _clean(now, body))


@contextmanager
def kept_with(cache: TimedCache, *keys: str) -> Iterator[None]:
    """Cache the records of the block, too: they belong to the answers that are cached under some keys."""
    outer = _recording.get()
    if outer is None:
        yield
        return
    with recording(outer.scrubber) as own:
        try:
            yield
        finally:
            outer.records.extend(own)
    for key in keys if own else ():
        cache.put(_key(key), _Cached(records=own).model_dump_json())


def keep_cached(cache: TimedCache, key: str) -> None:
    """Record the responses from which the answer that is cached under a key was read, each once."""
    if (now := _recording.get()) and (cached := cache.load(_key(key), _Cached)):
        now.records.extend(record for record in cached.records if record not in now.records)


class _Cached(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    records: list[bytes]


def _key(key: str) -> str:
    return f"responses {key}"


def _clean(now: _Recording, body: bytes) -> bytes:
    """Return a body without secrets; any other byte stays as it is."""
    return now.scrubber.text(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _add(now: _Recording, kind: str, url: str, media_type: str, block: bytes) -> None:
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<{uuid4().urn}>",
        "WARC-Date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "WARC-Target-URI": now.scrubber.message(clean_line(url)),
        "WARC-Block-Digest": f"sha256:{hashlib.sha256(block).hexdigest()}",
        "Content-Type": media_type,
        "Content-Length": str(len(block)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    record = f"WARC/1.1\r\n{head}\r\n".encode() + block + b"\r\n\r\n"
    now.records.append(gzip.compress(record, _LEVEL, mtime=0))
