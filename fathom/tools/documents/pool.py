"""Reading files in this process if that is quick and safe, otherwise in other processes that can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path

import fathom
from fathom.telemetry.progress import Event, publish
from fathom.tools.documents import recognition
from fathom.tools.documents.files import File
from fathom.tools.documents.index import LaidOut
from fathom.tools.documents.readers import UnreadableFile, is_quick
from fathom.tools.documents.worker import RECOGNISING, Unfinished, decode_answer, encode_request, read_file

SECONDS = 60.0  # seconds for one file, and one more for each megabyte
RECOGNITION_SECONDS = recognition.SECONDS + 3 * recognition.PAGE_SECONDS  # more than the process itself allows
PLAIN_BYTES = 2_000_000  # of plain text are read sooner than a process starts
FOREIGN = 10  # how much longer other formats take than plain text
MAX_WORKERS = 8
REPORT_EVERY = 2.0  # seconds

Read = tuple[File, "LaidOut | UnreadableFile"]


def read_apart(path: Path, data: bytes, seconds: float) -> LaidOut:
    """Read a document's bytes in a separate process; only the extension of the path matters.

    Raises:
        Unreadable: they hold no readable text, or reading takes more seconds, or more memory than a reader may use.
    """
    process = _start()
    try:
        return _ask(process, encode_request(path, data), seconds)
    finally:
        _stop(process)


def read_files(files: Sequence[File]) -> Iterator[Read]:
    """Yield every file with its document, or the reason why it cannot be read, in any order."""
    quick = [is_quick(file.path) for file in files]
    cost = sum(file.size * (1 if easy else FOREIGN) for file, easy in zip(files, quick, strict=True))
    if all(quick) and cost <= PLAIN_BYTES:
        for file in files:
            try:
                yield file, read_file(file.path, file.name)
            except UnreadableFile as error:
                yield file, error
        return
    workers = min(os.cpu_count() or 1, MAX_WORKERS, len(files), 1 + cost // PLAIN_BYTES)
    yield from _reported(_in_parallel(files, workers), len(files))


def _reported(reads: Iterator[Read], total: int) -> Iterator[Read]:
    """Report progress if the reading takes a while."""
    reported = time.monotonic()
    for done, read in enumerate(reads, 1):
        yield read
        if (now := time.monotonic()) - reported >= REPORT_EVERY:
            reported = now
            publish(Event("phase", f"reading documents: {done:,} of {total:,}"))


def _in_parallel(files: Sequence[File], workers: int) -> Iterator[Read]:
    idle: list[subprocess.Popen[str]] = []

    def read(file: File) -> LaidOut | UnreadableFile:
        process = idle.pop() if idle else _start()
        try:
            answer: LaidOut | UnreadableFile = _ask(
                process, encode_request(file.path, None, file.name), SECONDS + file.size / 1_000_000
            )
        except Unfinished as error:
            _stop(process)
            return error
        except UnreadableFile as error:
            answer = error
        idle.append(process)
        return answer

    waiting = iter(files)
    with ThreadPoolExecutor(workers) as executor:
        try:
            # Only a few at a time, because documents may be large.
            reading = {executor.submit(read, file): file for file in islice(waiting, 2 * workers)}
            while reading:
                for future in wait(reading, return_when=FIRST_COMPLETED).done:
                    yield reading.pop(future), future.result()
                    reading |= {executor.submit(read, file): file for file in islice(waiting, 1)}
        finally:
            executor.shutdown(cancel_futures=True)
            for process in idle:
                _stop(process)


def _start() -> subprocess.Popen[str]:
    # A plain command, because multiprocessing would run the user's main module again in every process.
    return subprocess.Popen(
        [sys.executable, "-m", "fathom.tools.documents.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(fathom.__file__).parent.parent,  # where `-m` finds the package
        encoding="utf-8",
    )


def _stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()  # closes the pipes


def _ask(process: subprocess.Popen[str], request: str, seconds: float) -> LaidOut:
    """Let a process read a file or bytes; it is stopped when it takes too long."""
    assert process.stdin and process.stdout
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    answer = ""
    for limit in (seconds, RECOGNITION_SECONDS):
        timer = threading.Timer(limit, give_up)
        timer.start()
        try:
            if not answer:
                process.stdin.write(request)
                process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
            timer.join()
        if answer != RECOGNISING:
            break
    if late.is_set():
        raise Unfinished(f"it takes longer than {limit:.0f} s to read")
    if not answer.endswith("\n"):
        raise Unfinished("reading it crashed")
    return decode_answer(answer)
