"""A process that reads documents: for each line of standard input it writes a line with the document or a reason.

A separate process can be stopped when a damaged or hostile file makes a parser run for ever, and does not end the
research when a parser uses up the memory.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

from fathom.tools.documents.files import portable
from fathom.tools.documents.layout import LaidOut, Span, lay_out
from fathom.tools.documents.readers import Unreadable, read_document
from fathom.tools.documents.sections import ReadDocument

MAX_BYTES = 100_000_000


def read_file(path: Path) -> LaidOut:
    """Read a file and lay it out; its name is its title if it has no other.

    Raises:
        Unreadable: it holds no readable text.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable(f"it is larger than {MAX_BYTES // 1_000_000} MB")
        document = read_document(path.name, path.read_bytes())
    except OSError as error:
        raise Unreadable(error.strerror or type(error).__name__) from error
    return lay_out(ReadDocument(document.title or portable(path.name), document.sections))


def encode_request(path: Path, data: bytes | None) -> str:
    """Return the line that requests a file, or bytes whose format the path's ending tells."""
    return json.dumps([str(path), None if data is None else base64.b64encode(data).decode()]) + "\n"


def decode_answer(answer: str) -> LaidOut:
    """Return the document of an answer.

    Raises:
        Unreadable: the answer is a reason.
    """
    content = json.loads(answer)
    if isinstance(content, str):
        raise Unreadable(content)
    title, title_terms, text, spans = content
    return LaidOut(title, title_terms, text, [Span(*span) for span in spans])


def _answer(line: str) -> str:
    path, data = json.loads(line)
    try:
        read = read_file(Path(path)) if data is None else lay_out(read_document(path, base64.b64decode(data)))
        return json.dumps(read)
    except Unreadable as error:
        return json.dumps(str(error))
    except (MemoryError, RecursionError) as error:
        return json.dumps(f"it takes too much memory ({type(error).__name__})")


def main() -> None:
    """Answer until the input ends; the argument is the memory that may be used, in bytes."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
    for line in sys.stdin:
        print(_answer(line), flush=True)  # noqa: T201 - the pipe to the parent


if __name__ == "__main__":
    main()
