"""A process between Fathom and the program of an MCP server, so that nothing of the program outlives the run.

It starts the program in a process group of its own, with the guard's own input and output, and waits. When the program
ends, or when the pipe that it is given closes, because Fathom closed it or was killed, it ends the whole group. It runs
alone, by its path, and so imports nothing of Fathom: `python guard.py DESCRIPTOR PROGRAM [ARGUMENT ...]`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

GRACE_SECONDS = 1.0  # seconds between asking the group to end and killing it
NOT_STARTED = 127  # as shells report it


def main(lifeline: int, command: list[str]) -> int:
    """Run a command until it ends or the lifeline closes; return its exit code."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    try:
        program = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - the user's own file names it
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED
    for descriptor in (0, 1):  # else an end of the program's pipes would stay open when it closes its own
        os.close(descriptor)
    while program.poll() is None:
        ready, _, _ = select.select([lifeline, woken], [], [])
        if lifeline in ready:
            break
        os.read(woken, 512)
    with suppress(ProcessLookupError, PermissionError):
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                program.wait(GRACE_SECONDS)
        os.killpg(program.pid, signal.SIGKILL)  # processes that it started and left behind, too
    return program.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
