"""Stored results that come from elsewhere.

Prefect makes objects of a stored result as the result itself says: with which serializer, and of which class. One from
elsewhere could so have a replay run anything; only the form that Fathom writes is let in.
"""

from __future__ import annotations

import json
import re
from typing import Any

from fathom.errors import InvalidInput

_SERIALIZER = {
    "type": "json",
    "jsonlib": "json",
    "object_encoder": "prefect.serializers.prefect_json_object_encoder",
    "object_decoder": "prefect.serializers.prefect_json_object_decoder",
    "dumps_kwargs": {},
    "loads_kwargs": {},
}
_CLASS = re.compile(r"(fathom|tasks)(\.[a-z_]+)+\.[A-Z][A-Za-z]*")
_NAMING = ("__class__", "__exc_type__")


def checked(name: str, data: bytes) -> bytes:
    """Return a stored result as it was understood here.

    Raises:
        InvalidInput: it is none, or asks for something else than the models and errors of Fathom.
    """
    try:
        record = json.loads(data)
        metadata, result = record["metadata"], json.loads(record["result"])
        known = metadata["serializer"] == _SERIALIZER and metadata.get("storage_block_id") is None
        strange = _strange_class(result) if known else "another serializer"
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _refused(name, "something that is not a stored result") from error
    if strange:
        raise _refused(name, strange)
    # Written anew: of two values for one key, every reader now sees the one that was checked.
    return json.dumps({**record, "result": json.dumps(result)}).encode()


def _strange_class(value: Any) -> str | None:
    """Return what a value names that is no class of Fathom."""
    if isinstance(value, dict):
        for key in _NAMING:
            if key in value and not (isinstance(value[key], str) and _CLASS.fullmatch(value[key])):
                return f"{value[key]!r}"
        return next(filter(None, map(_strange_class, value.values())), None)
    if isinstance(value, list):
        return next(filter(None, map(_strange_class, value)), None)
    return None


def _refused(name: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"The bundle is not imported: {name} holds {what}.", next_step="import only what fathom export --bundle made"
    )
