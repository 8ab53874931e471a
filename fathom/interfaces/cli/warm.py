"""The next question is handed over to a process that has imported what a run needs (`waiting`).

Importing takes half of the processor time of a short run. After a run for somebody at a terminal, `leave_behind`
starts a process that imports the same modules; `handed_over` gives it the next question. It serves commands of the same
user, of the same code, and with the same settings of Python and Prefect; all others begin as if there were none.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from fathom.config.environment import Environment

_WAITING = "fathom.interfaces.cli.waiting"
_COMMANDS = ("research", "ask", "resume")
_READ_AT_IMPORT = ("PREFECT_", "LITELLM_", "PYTHON", "VIRTUAL_ENV", "HOME", "LANG", "LC_", "TZ")  # begin variables
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS_TO_ASK = 5.0  # a command hands over what it is asked at once
_WORTH_ANOTHER = 100  # modules that no waiting process has

_VARIABLES = dict(Environment.read().variables)  # as the command was given them, before Prefect's are set
inherited: set[str] = set()
"""The modules that this process was forked with; empty if it was not."""


def handed_over(arguments: Sequence[str]) -> int | None:
    """Have a waiting process do what a command line asks for, and return its exit code; None if there is none.

    Raises:
        InvalidInput: FATHOM_WARM_SECONDS is not a number of seconds.
    """
    if inherited or arguments[0] not in _COMMANDS or not Environment.read().warm_seconds:
        return None
    os.umask(umask := os.umask(0))
    order = {"environment": _VARIABLES, "umask": umask, "arguments": [*arguments]}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS_TO_ASK)
        try:
            order["folder"] = str(Path.cwd())
            connection.connect(_address())
            socket.send_fds(connection, [b"\n"], [0, 1, 2])
            connection.sendall(json.dumps(order).encode() + b"\n")
            answers = connection.makefile("r")
            child = int(answers.readline())
            connection.sendall(b"\n")  # now it begins
        except (OSError, ValueError):  # nobody waits, or no more
            return None
        connection.settimeout(None)
        with _forwarding_signals(child):
            code = answers.readline()
        if not code:  # the process that forked was killed
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        return int(code or 1)


@contextmanager
def _forwarding_signals(child: int) -> Iterator[None]:
    """Hand on to another process what a terminal sends to this one, Ctrl-Z included."""

    def forward(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    def pause(_number: int, _frame: object) -> None:
        forward(signal.SIGSTOP, None)
        os.kill(os.getpid(), signal.SIGSTOP)  # returns when the shell continues this process
        forward(signal.SIGCONT, None)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, pause)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@cache
def _address() -> str:
    """Return the path of the socket at which a process waits that a command such as this one may use.

    Raises:
        OSError: other users could wait there.
    """
    package = Path(__file__).parents[2]
    files = [Path(folder, name) for folder, _, names in os.walk(package, followlinks=True) for name in names]
    code = [str(package), max(file.stat().st_mtime_ns for file in files if file.suffix == ".py")]
    installed = [sys.executable, Path(sysconfig.get_path("purelib")).stat().st_mtime_ns]
    variables = sorted(one for one in _VARIABLES.items() if one[0].startswith(_READ_AT_IMPORT))
    same = hashlib.sha256(json.dumps([code, installed, variables]).encode()).hexdigest()[:16]
    folder = Path(_VARIABLES.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"fathom-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise PermissionError(f"{folder} is not only yours")
    return str(folder / same)


def leave_behind() -> None:
    """Start a process that imports what this one has imported, if somebody at a terminal may ask again."""
    seconds = Environment.read().warm_seconds
    if not seconds or not sys.stderr.isatty():
        return
    loaded = [name for name, module in [*sys.modules.items()] if getattr(module, "__spec__", None)]
    loaded = [name for name in loaded if not name.endswith("__main__")]
    if len({*loaded} - inherited) < _WORTH_ANOTHER:
        return
    with suppress(OSError):  # the answer is there; the next one takes a little longer
        subprocess.run(  # noqa: S603 - no part of the command is user input
            [sys.executable, "-m", _WAITING, _address(), str(seconds)],
            input=json.dumps(loaded).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_VARIABLES,
            start_new_session=True,
            check=False,
        )
