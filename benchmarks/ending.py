"""How a command of the benchmarks ends: as Fathom's commands do, but an unexpected error shows where it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fathom.errors import InvalidInput
from fathom.interfaces.cli.exits import exits, show_where


@contextmanager
def ending() -> Iterator[None]:
    """Turn what ends the block into an exit: 1 failed, 2 bad input, 130 interrupted; a closed pipe ends it quietly."""
    with exits():
        sys.excepthook = show_where
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            if not error.filename:
                raise
            raise InvalidInput(f"{error.filename}: {error.strerror}.", next_step="give another path") from None
