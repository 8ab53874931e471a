"""A process that reads files: a path a line on standard input; on standard output a document or a reason a line.

A process of its own can be stopped when a damaged or hostile file makes a parser run for ever, and cannot take the
research down with it when one makes a parser eat up the memory.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fathom.tools.documents.files import portable
from fathom.tools.documents.layout import LaidOut, Span, lay_out
from fathom.tools.documents.readers import Unreadable, read_document
from fathom.tools.documents.sections import ReadDocument

MAX_BYTES = 100_000_000
MAX_MEMORY = 4 << 30


def read_file(path: Path) -> LaidOut:
    """Read a file and lay it out.

    Raises:
        Unreadable: no text can be had from it.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable(f"it is larger than {MAX_BYTES // 1_000_000} MB")
        document = read_document(path.name, path.read_bytes())
    except OSError as error:
        raise Unreadable(error.strerror or type(error).__name__) from error
    return lay_out(ReadDocument(document.title or portable(path.name), document.sections))


def decoded(answer: str) -> LaidOut:
    """Return the document of a worker's answer.

    Raises:
        Unreadable: the answer is a reason.
    """
    content = json.loads(answer)
    if isinstance(content, str):
        raise Unreadable(content)
    title, title_terms, text, spans = content
    return LaidOut(title, title_terms, text, [Span(*span) for span in spans])


def _encoded(path: Path) -> str:
    try:
        return json.dumps(read_file(path))
    except Unreadable as error:
        return json.dumps(str(error))
    except (MemoryError, RecursionError) as error:
        return json.dumps(f"it takes too much memory ({type(error).__name__})")


def main() -> None:
    """Answer until the input ends."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    for line in sys.stdin:
        print(_encoded(Path(json.loads(line))), flush=True)  # noqa: T201 - the pipe to the parent


if __name__ == "__main__":
    main()
