"""The style, script and icon of the page. Their addresses have a hash of their content, so browsers keep them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from fathom.errors import NotThere

PREFIX = "/static/"
_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


@cache
def _files() -> dict[str, tuple[str, bytes]]:
    """Return the name in an address, and the content, of each file by its own name."""
    found = {path: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in _TYPES}
    return {
        path.name: (f"{path.stem}.{hashlib.sha256(data).hexdigest()[:12]}{path.suffix}", data)
        for path, data in found.items()
    }


def address_of(name: str) -> str:
    """Return the address of a file."""
    return f"{PREFIX}{_files()[name][0]}"


@router.get(PREFIX + "{name}")
async def read(name: str) -> Response:
    """Return a file."""
    data = next((data for address, data in _files().values() if address == name), None)
    if data is None:
        raise NotThere("There is no such file.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(data, media_type=_TYPES[Path(name).suffix], headers=headers)
