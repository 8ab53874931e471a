"""Importing what a command needs: thousands of modules, which live until the process ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage while modules are imported inside the block, and never among what they have made.

    There is next to none, and Python would look through all of it again and again. Ctrl-C waits for the end of the
    block, unless it is pressed twice: in the middle of an import, it may come out as another error, or as none.
    """
    import signal
    import threading

    pressed = False

    def wait(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, wait)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if signal.getsignal(signal.SIGINT) is wait:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
