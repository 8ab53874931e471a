"""Importing what a command needs: thousands of modules, which live until the process ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage while modules are imported inside the block, and never among what they have made.

    There is next to none, and Python would look through all of it again and again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
