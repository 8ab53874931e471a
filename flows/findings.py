"""What `fathom doctor` finds: one line for each thing that was checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fathom.errors import UserError


@dataclass(frozen=True)
class Finding:
    """One thing that was checked. `off`: a run works without it; `broken`: a run would fail."""

    name: str
    state: Literal["ok", "off", "broken"]
    detail: str
    how: str = ""  # to set or repair it


def checked(name: str, check: Callable[[], Finding]) -> Finding:
    """Return what a check finds; a setting that the user must mend is a finding too."""
    try:
        return check()
    except UserError as error:
        return Finding(name, "broken", f"{error.code} {error.message}", error.next_step)
