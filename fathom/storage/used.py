"""The artifact stores that a user has used on this machine, so that a run is found from every folder.

They are listed in a file in the user's folder of state: an address a line, in the order of their first use.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber

NAME = "stores"
_FAR = "://"


def remember(address: str, environment: Environment) -> None:
    """Add the address of a store to the list, unless it has it; an address with a secret is left out.

    A run needs no list: where it cannot be written, as in a container, its stores are not remembered.
    """
    if "\n" in address or Scrubber(environment.secrets).message(address) != address:
        return
    with suppress(OSError):
        path = environment.state / NAME
        if address not in _listed(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
                file.write(f"{address}\n")


def used_stores(environment: Environment) -> list[str]:
    """Return the addresses of the stores in the list: those on this machine that still exist, then the others.

    The last one added comes first.
    """
    try:
        addresses = _listed(environment.state / NAME)[::-1]
    except OSError:  # such as a folder in its place
        return []
    here = [address for address in addresses if _FAR not in address and Path(address).is_dir()]
    return [*here, *(address for address in addresses if _FAR in address)]


def _listed(path: Path) -> list[str]:
    if not path.exists():
        return []
    return list(dict.fromkeys(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()))
