"""A process that reads documents: for each line of standard input it writes a line with the document or a reason.

A separate process can be stopped when a damaged or hostile file makes a parser run for ever, and its memory can be
limited. Once a document has used that memory up, the process ends: leftovers of parsers must not reach another file.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fathom.tools.documents.files import portable
from fathom.tools.documents.header import readable
from fathom.tools.documents.index import LaidOut, StoredSpan, lay_out
from fathom.tools.documents.readers import HEAD, PicturesOnly, UnreadableFile, is_plain, read_document
from fathom.tools.documents.recognition import recognise

MEGABYTE = 1_000_000
MAX_BYTES = 100 * MEGABYTE  # of a file that is not plain text
PLAIN_BYTES = 20 * MEGABYTE  # bytes of plain text that are read; the rest of a longer file is skipped
MEMORY = 576 << 20
"""Bytes of data (`RLIMIT_DATA`) that the process may hold. Interpreter and parsers take 45 MB; beside that, a PDF of
76 MB took 227 MB, a docx of 13 MB with 22 MB of text 191 MB, a page of 10 MB that is
one table at most 416 MB and 20 MB of plain text 94 MB."""

RECOGNISING = "recognising\n"  # the line before an answer that takes longer


class Unfinished(UnreadableFile):
    """A file that could not be read within the limits of time and memory, but perhaps later."""


def read_file(path: Path, name: str = "", recognising: Callable[[], None] | None = None) -> LaidOut:
    """Read a file and lay it out. Of plain text, the first 20 MB are read.

    Its name (by default the path's name) becomes its title if it has no other. The text of pictures is recognised only
    with `recognising`, which is called before that, as it takes long.

    Raises:
        Unreadable: it holds no readable text, or is larger than 100 MB.
    """
    unread, name = "", name or path.name
    try:
        size = path.stat().st_size
        if not is_plain(path):
            if size > MAX_BYTES:
                raise UnreadableFile(f"it is larger than {MAX_BYTES // MEGABYTE} MB")
            data = path.read_bytes()
        else:
            with path.open("rb") as stream:
                data = stream.read(PLAIN_BYTES)
            if size > PLAIN_BYTES:
                data = data.rsplit(maxsplit=1)[0]  # no word is cut in two
                unread = f"only the first {PLAIN_BYTES // MEGABYTE} of {math.ceil(size / MEGABYTE):,} MB were read"
        try:
            document = read_document(name, data)
        except PicturesOnly:
            if not recognising:
                raise
            recognising()
            document = recognise(data, pdf=b"%PDF-" in data[:HEAD])
    except OSError as error:
        raise UnreadableFile(error.strerror or type(error).__name__) from error
    laid_out = lay_out(replace(document, title=document.title or readable(portable(name))))
    return laid_out._replace(unread="; ".join(filter(None, (unread, laid_out.unread))))


def encode_request(path: Path, data: bytes | None, name: str = "") -> str:
    """Return the line that requests a file, perhaps under another name, or bytes whose format the extension shows."""
    return json.dumps([str(path), None if data is None else base64.b64encode(data).decode(), name]) + "\n"


def decode_answer(answer: str) -> LaidOut:
    """Return the document of an answer.

    Raises:
        Unreadable: the answer is a reason.
        Unfinished: the process ran out of memory and has ended.
    """
    content = json.loads(answer)
    if content is None:
        raise Unfinished(f"reading it takes more than {MEMORY >> 20} MB of memory")
    if isinstance(content, str):
        raise UnreadableFile(content)
    title, title_terms, text, spans, *others = content
    return LaidOut(title, title_terms, text, [StoredSpan(*span) for span in spans], *others)


def _recognising() -> None:
    print(RECOGNISING, end="", flush=True)  # noqa: T201 - the pipe to the parent


def _answer(line: str) -> str:
    path, data, name = json.loads(line)
    try:
        read = (
            read_file(Path(path), name, _recognising)
            if data is None
            else lay_out(read_document(path, base64.b64decode(data)))
        )
        return json.dumps(read)
    except UnreadableFile as error:
        return json.dumps(str(error))
    except RecursionError:
        return json.dumps("its parts are nested too deeply")


def main() -> None:
    """Answer until the input or the memory ends."""
    if sys.platform == "linux":  # other systems do not enforce it
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    for line in sys.stdin:
        try:
            answer = _answer(line)
        except MemoryError:
            answer = ""
        print(answer or json.dumps(None), flush=True)  # noqa: T201 - the pipe to the parent
        if not answer:
            return


if __name__ == "__main__":
    main()
