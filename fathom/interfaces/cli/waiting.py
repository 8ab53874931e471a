"""A process that has imported what a run needs, and forks for each question that a command hands over (`warm`).

What it forks is a process like any other: it has the environment, the folder, the input and the outputs of the command
that asked, gets that command's signals, and is terminated if the command is killed.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from time import monotonic
from typing import Any

from fathom.config.environment import Environment
from fathom.flows.server import be_patient, quieten
from fathom.interfaces.cli.exits import loading
from fathom.interfaces.cli.main import main
from fathom.interfaces.cli.warm import SECONDS_TO_ASK, inherited

_LOOK_SECONDS = 2.0
"""Between two looks at whether another process waits in the place of this one."""


def wait_for_questions(address: str, seconds: float) -> None:
    """Import the modules that standard input names, and run a command line in a fork for each that asks.

    Ends when nobody has asked for so many seconds.
    """
    names = json.load(sys.stdin)
    if os.fork():  # the command that started this process need not wait for it
        os._exit(0)
    quieten()  # as every command does before it imports Prefect
    Environment.read().quieten_litellm()
    with loading():  # so that no collection in a fork copies the memory that all share
        for name in names:
            with suppress(ImportError):  # made by another module, which has been imported too
                importlib.import_module(name)
    if threading.active_count() > 1:  # it would not survive a fork
        return
    inherited.update(sys.modules)
    if not (order := _next_order(address, seconds)):
        return
    os.umask(order["umask"])
    become(order["environment"], order["folder"], order["arguments"])
    main()


def become(environment: Mapping[str, str], folder: str, arguments: Sequence[str]) -> None:
    """Give this process, a fork, the environment, the current folder and the arguments of a command line."""
    Environment.replace(environment)
    os.chdir(folder)
    sys.argv = ["fathom", *arguments]
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    if "prefect" in sys.modules:
        from prefect.context import refresh_global_settings_context

        quieten()
        if arguments[0] in ("batch", "worker"):
            be_patient()
        refresh_global_settings_context()


def _next_order(address: str, seconds: float) -> dict[str, Any] | None:
    """Return the next command line, in a fork that has its input and outputs; None, in this process, at the end."""
    with socket.socket(socket.AF_UNIX) as listener:
        own = Path(f"{address}.{os.getpid()}")
        listener.bind(str(own))
        listener.listen()
        made = _inode(str(own))
        own.rename(address)  # in place of a process that was killed, or that has fewer modules and now ends
        listener.settimeout(min(seconds, _LOOK_SECONDS))
        asked = monotonic()
        while _inode(address) == made:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if _works():
                    asked = monotonic()
                elif monotonic() - asked >= seconds:
                    Path(address).unlink(missing_ok=True)
                continue
            with connection:
                if not os.fork():
                    listener.close()
                    return _asked_for(connection.dup())
    return None


def _inode(address: str) -> int:
    """Return what tells a socket from another one at the same path; 0 if none is there."""
    try:
        return Path(address).stat().st_ino
    except FileNotFoundError:
        return 0


def _works() -> bool:
    """Whether a process that this one forked still works; those that have ended are forgotten."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _asked_for(connection: socket.socket) -> dict[str, Any]:
    """Fork for the command at the other end and return its command line there; here, tell how the fork ends, and exit.

    Raises:
        OSError, ValueError: the command was killed before it had said what it wants.
    """
    connection.settimeout(SECONDS_TO_ASK)
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    asked: dict[str, Any] = json.loads(connection.makefile("rb").readline())
    connection.settimeout(None)
    if child := os.fork():
        connection.sendall(b"%d\n" % child)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(b"%d\n" % (code if code >= 0 else 128 - code))
        os._exit(0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if not connection.recv(1):  # the command has not waited so long, and works itself
        os._exit(1)
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    return asked


def _end_with(connection: socket.socket) -> None:
    """Terminate this process when the command at the other end has ended without it."""
    with suppress(ConnectionError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    wait_for_questions(sys.argv[1], float(sys.argv[2]))
