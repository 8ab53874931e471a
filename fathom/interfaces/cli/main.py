"""The entry point of the `fathom` command."""

from __future__ import annotations

import atexit
import gc
import os
import sys

TYPE_CHECKING = False  # as in `exits`
if TYPE_CHECKING:
    from typing import Any, NoReturn

try:
    from fathom.interfaces.cli.exits import check_text, exits, loading
except KeyboardInterrupt:
    sys.exit(130)


SWITCH_SECONDS = 0.0005
"""How long a thread that reads texts keeps the interpreter while the event loop has something to send: a tenth of
Python's default, which the loop would wait each time it has sent or stored something."""


def main() -> NoReturn:
    """Run the command line, then end this process with its objects as they are.

    Python would take them apart one by one: 30 ms, and in a fork a copy of the memory that is shared.
    """
    code: Any = 0
    try:
        run()
    except SystemExit as ending:
        code = ending.code
    import threading
    from contextlib import suppress

    # What Python does first at any end.
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as of pools
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(int(code or 0))


def run() -> None:
    """Run the command line; `fathom.interfaces.cli.exits` lists the codes with which it exits."""
    gc.set_threshold(10_000, 50, 10)  # a run makes many objects at once, and few of them are garbage
    sys.setswitchinterval(SWITCH_SECONDS)
    with exits():
        _share_memory()
        arguments = check_text(sys.argv[1:]) or ["--help"]
        with loading():
            from fathom.interfaces.cli.warm import handed_over

        if (code := handed_over(arguments)) is not None:
            sys.exit(code)
        # Imported here, so that Ctrl-C is an exit like any other.
        with loading():
            import typer

            from fathom.interfaces.cli.commands import with_command

        # Not by calling `app` or its `main`, which would replace our exception hook and say nothing after Ctrl-C.
        command = typer.main.get_command(with_command(arguments[0]))
        command._main_shell_completion({}, "fathom")  # exits if a shell asks what can be completed
        with command.make_context("fathom", arguments) as context:
            command.invoke(context)


def _share_memory() -> None:
    """Have threads take memory from one arena, and give that of large objects back: a run takes 14 MB less."""
    import ctypes

    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(-8, 1)  # M_ARENA_MAX of malloc.h
        mallopt(-3, 65_536)  # M_MMAP_THRESHOLD: of itself, it grows to the largest object that was freed
