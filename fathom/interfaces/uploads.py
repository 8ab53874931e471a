"""Forms with files, as the page and the API take them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import BinaryIO

from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from fathom.errors import InvalidInput, StoreError, TooLarge
from fathom.storage.editions import StorageLimits
from fathom.text.plain import size

FIELDS, FIELD_BYTES = 60, 50_000  # besides the files
_FRAMING = 2_000  # bytes around a file


@dataclass(frozen=True)
class Uploaded:
    """A file of a form, on this machine's disk until the request is answered."""

    name: str
    size: int
    file: BinaryIO

    def read(self, most: int = -1) -> bytes:
        """Return its first bytes, by default all."""
        self.file.seek(0)
        return self.file.read(most)


@dataclass(frozen=True)
class UploadForm:
    """What a form has: its fields, the last one of each name, and the files of all of its file fields.

    `data` has every field as it came.
    """

    fields: dict[str, str]
    files: Sequence[Uploaded]
    data: FormData


@asynccontextmanager
async def upload_form(request: Request, limits: StorageLimits) -> AsyncIterator[UploadForm]:
    """Read a `multipart/form-data` request; its files are there until the block ends.

    Raises:
        TooLarge: it has more bytes than a corpus may have; the rest is not read.
        InvalidInput: it is no such form, has too many files, or ends early.
        StoreError: the disk of the server is full.
    """
    if not has_files(request.headers):
        raise InvalidInput("The request is not a form with files.", next_step="send multipart/form-data")
    most = limits.corpus_bytes + _FRAMING * limits.corpus_files
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(limits)
    parser = MultiPartParser(
        request.headers,
        _limited(request, most, limits),
        max_files=limits.corpus_files,
        max_fields=FIELDS,
        max_part_size=FIELD_BYTES,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise InvalidInput(f"The form cannot be read: {error.message}") from error
    except OSError as error:
        raise StoreError(
            f"The server cannot keep the upload: {error.strerror}.", next_step="free some space on the disk"
        ) from error
    except ClientDisconnect as error:
        raise InvalidInput("The form is incomplete.") from error
    try:
        parts = form.multi_items()
        files = [part for _, part in parts if isinstance(part, UploadFile)]
        yield UploadForm(
            {name: part for name, part in parts if isinstance(part, str)},
            [Uploaded(file.filename, file.size or 0, file.file) for file in files if file.filename],
            form,
        )
    finally:
        await form.close()


def has_files(headers: Headers) -> bool:
    """Whether a request with these headers is a form that may have files."""
    return media_type(headers) == "multipart/form-data"


def media_type(headers: Headers) -> str:
    """Return the media type of a body, without its parameters; empty if it has none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def _limited(request: Request, most: int, limits: StorageLimits) -> AsyncGenerator[bytes, None]:
    read = 0
    async for chunk in request.stream():
        read += len(chunk)
        if read > most:
            raise _too_large(limits)
        yield chunk


def _too_large(limits: StorageLimits) -> TooLarge:
    return TooLarge(
        f"The upload is larger than a corpus may be, {size(limits.corpus_bytes)}.", next_step="upload less at once"
    )
