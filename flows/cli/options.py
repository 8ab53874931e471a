"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Run = Annotated[str, typer.Argument(help="The run's id or its first digits, its folder, or its plan title.")]
Root = Annotated[
    str | None,
    typer.Option("--artifacts", metavar="URL", help="Where runs are stored: a folder or s3:// URL. [FATHOM_ARTIFACTS]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON: no progress and no notices.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notices.")]
