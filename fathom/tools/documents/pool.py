"""Reading many files: in this process where that is quick and safe, otherwise in others, none of which can hang."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import fathom
from fathom.telemetry.progress import Event, publish
from fathom.tools.documents.files import File
from fathom.tools.documents.layout import LaidOut
from fathom.tools.documents.readers import Unreadable, is_plain
from fathom.tools.documents.worker import decoded, read_file

SECONDS = 60.0  # for one file, and one more a megabyte
PLAIN_BYTES = 2_000_000  # plain text that is read before a process has started
FOREIGN = 10  # times slower than plain text: what has to be parsed
MAX_WORKERS = 8
REPORT_EVERY = 2.0  # seconds

Read = tuple[File, "LaidOut | Unreadable"]


class Unfinished(Unreadable):
    """A file that was given up; on another day it may be read."""


def read_files(files: Sequence[File]) -> Iterator[Read]:
    """Yield every file with what was read or why nothing was, in any order."""
    plain = [is_plain(file.path) for file in files]
    cost = sum(file.size * (1 if easy else FOREIGN) for file, easy in zip(files, plain, strict=True))
    if all(plain) and cost <= PLAIN_BYTES:
        for file in files:
            try:
                yield file, read_file(file.path)
            except Unreadable as error:
                yield file, error
        return
    workers = min(os.cpu_count() or 1, MAX_WORKERS, len(files), 1 + cost // PLAIN_BYTES)
    yield from _reported(_in_parallel(files, workers), len(files))


def _reported(reads: Iterator[Read], total: int) -> Iterator[Read]:
    """Tell whoever watches how far the reading is, if it takes a while."""
    told = time.monotonic()
    for done, read in enumerate(reads, 1):
        yield read
        if (now := time.monotonic()) - told >= REPORT_EVERY:
            told = now
            publish(Event("run", f"Reading documents: {done:,} of {total:,}"))


def _in_parallel(files: Sequence[File], workers: int) -> Iterator[Read]:
    waiting: queue.SimpleQueue[File] = queue.SimpleQueue()
    for file in files:
        waiting.put(file)
    done: queue.Queue[Read] = queue.Queue(maxsize=2 * workers)  # a few only: they may be large
    stopped = threading.Event()
    threads = [threading.Thread(target=_work, args=(waiting, done, stopped), daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    try:
        for _ in files:
            yield done.get()
    finally:
        stopped.set()
        with contextlib.suppress(queue.Empty):
            while True:
                done.get_nowait()  # so that a thread that waits to put can end
        for thread in threads:
            thread.join()


def _work(waiting: queue.SimpleQueue[File], done: queue.Queue[Read], stopped: threading.Event) -> None:
    """Have one process after another read files, until none are left."""
    process: subprocess.Popen[str] | None = None
    while not stopped.is_set():
        try:
            file = waiting.get_nowait()
        except queue.Empty:
            break
        if process is None or process.poll() is not None:
            process = _start()
        done.put((file, _ask(process, file)))
    if process:
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


def _ask(process: subprocess.Popen[str], file: File) -> LaidOut | Unreadable:
    assert process.stdin and process.stdout
    seconds = SECONDS + file.size / 1_000_000
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, give_up)
    timer.start()
    answer = ""
    try:
        process.stdin.write(json.dumps(os.fspath(file.path)) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except BrokenPipeError:
        pass
    finally:
        timer.cancel()
        timer.join()
    complete = answer.endswith("\n")
    if late.is_set() or not complete:
        _stop(process)  # the next file gets a process that no timer is about to kill
    if not complete:
        slow = f"it takes longer than {seconds:.0f} s to read"
        return Unfinished(slow if late.is_set() else "the reader broke down over it")
    try:
        return decoded(answer)
    except Unreadable as error:
        return error
