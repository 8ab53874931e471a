"""What a report says of the user's files that were not read, or only in part."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.models import UnreadFile
from fathom.text.plain import counted

LISTED = 20
NAMED = 3


def unread_lines(files: Sequence[UnreadFile]) -> list[str]:
    """Return a line of plain text for each of the first 20 files, and one for the others."""
    return _first(files, LISTED)


def unread_warnings(files: Sequence[UnreadFile]) -> list[str]:
    """Return a sentence of plain text that names the first files, or nothing if all were read."""
    if not files:
        return []
    were = "was" if len(files) == 1 else "were"
    return [
        f"{counted(len(files), 'file')} of yours {were} not read, or only in part: {'; '.join(_first(files, NAMED))}."
    ]


def _first(files: Sequence[UnreadFile], number: int) -> list[str]:
    more = [f"and {counted(len(files) - number, 'more file')}"] if len(files) > number else []
    return [*(f"{file.path}: {file.reason}" for file in files[:number]), *more]
