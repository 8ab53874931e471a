"""`fathom replay`: a finished run once more, from its recorded calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from fathom.cli.options import Json, Root, Run
from fathom.cli.printing import line, output

if TYPE_CHECKING:
    from fathom.flows.runs.replay import ReplayedFile


def replay(run: Run, artifacts: Root = None, as_json: Json = False) -> None:
    """Repeat a run from its recorded calls and compare each file.

    Needs no provider and no server. Exits with 1 if a file differs or a call was not recorded.

    Example: fathom replay 1a2b3c4d
    """
    from fathom.flows.server import quieten

    quieten()  # before Prefect is imported, which would print a notice
    from fathom.flows.runs.replay import replay as repeat
    from fathom.flows.runs.stored import read_run

    files = read_run(run, artifacts, repeat)
    output(files, _show_replayed, as_json=as_json)
    raise typer.Exit(0 if all(file.state == "same" for file in files) else 1)


def _show_replayed(files: Sequence[ReplayedFile]) -> None:
    for file in files:
        line((f"{file.state:<10}", "green" if file.state == "same" else "red"), f"{file.name}, {file.bytes:,} bytes")
