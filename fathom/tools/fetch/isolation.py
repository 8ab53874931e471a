"""Reading a page's body where it can do no harm: what may take long is read by a process of its own.

Parsers of HTML and PDF have no limits that hold: ten megabytes of links take a minute and more than a gigabyte. The
process is given 20 seconds and 2 GB, and then it is gone.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx

from fathom.errors import ToolRejected
from fathom.tools.fetch.client import Answer
from fathom.tools.fetch.page import Page, read_page

SECONDS = 20
MEMORY = 2 * 2**30  # of address space
SMALL = 256 * 1024  # bytes of HTML that any parser can do with
_ROOT = Path(__file__).parents[3]  # where the module below is found, however we were installed


async def read_apart(answer: Answer) -> Page:
    """Read a page; a PDF and a large one in a process of its own.

    Raises:
        ToolRejected: it is no text, holds none, or takes too long to read.
    """
    if len(answer.data) <= SMALL and b"%PDF-" not in answer.data[:1024]:
        return await asyncio.to_thread(read_page, answer)
    pipe = asyncio.subprocess.PIPE
    kind = answer.headers.get("content-type", "")[:200]
    command = (sys.executable, "-m", "fathom.tools.fetch.isolation", kind)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, cwd=_ROOT
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await process.communicate(answer.data)
    except TimeoutError as error:
        raise ToolRejected("The page takes too long to read.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ToolRejected(output.decode("utf-8", "replace")[:200] or "The page takes too much to read.")
    return Page.model_validate_json(output)


def _main() -> int:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    answer = Answer(httpx.URL(), 200, {"content-type": sys.argv[1]}, sys.stdin.buffer.read())
    try:
        output, code = read_page(answer).model_dump_json(), 0
    except ToolRejected as error:
        output, code = error.message, 1
    sys.stdout.buffer.write(output.encode())
    return code


if __name__ == "__main__":
    sys.exit(_main())
