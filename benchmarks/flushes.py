"""The command line, with its flushes to the disk counted: `python -m benchmarks.flushes FILE research ...`.

Flushes of files and folders count, and at the end of a run the flush of its whole file system; SQLite's own do not.
FILE gets the number when the command ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch


def main() -> None:
    """Run a command of Fathom."""
    from fathom.interfaces.cli.main import main as fathom

    counted: list[str] = []

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "ctypes.dlsym" and arguments[1] == "syncfs":
            counted.append(event)

    def fsync(number: int) -> None:
        counted.append("os.fsync")
        real(number)

    file, real = Path(sys.argv.pop(1)), os.fsync
    sys.addaudithook(hear)
    atexit.register(lambda: file.write_text(str(len(counted))))
    with patch("os.fsync", fsync):
        fathom()


if __name__ == "__main__":
    main()
