"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices.")]
Root = Annotated[
    str | None,
    typer.Option("--artifacts", metavar="URL", help="Folder or s3:// address of the artifacts. [FATHOM_ARTIFACTS]"),
]
Run = Annotated[str, typer.Argument(help="A run's id, its first digits, its folder or plan title.")]
