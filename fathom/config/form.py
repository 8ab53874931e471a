"""Models that Prefect draws as a form: each field is one box, with what it means and an example.

Prefect's form draws a field that may be None as a choice of types, one of which reads `Property is type "None"`. So the
schema has such a field as one of its other type and without a default: it is drawn as an empty box, and Prefect's check
of the parameters takes None there. Each field has its position, because not every database keeps their order.
"""

from __future__ import annotations

import json

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fathom.models import Model

_NONE = {"type": "null"}


class FormModel(Model):
    """A model that is part of the form. A field has one type, or one type and None."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the form."""
        schema = handler(core_schema)
        for position, field in enumerate(handler.resolve_ref_schema(schema)["properties"].values()):
            if _NONE in field.get("anyOf", []):
                (kind,) = (kind for kind in field.pop("anyOf") if kind != _NONE)
                choices = handler.resolve_ref_schema(kind).get("enum")
                field.update({"type": "string", "enum": [*choices, None]} if choices else kind)
                field.pop("default", None)
            if examples := field.get("examples"):
                shown = examples[0] if isinstance(examples[0], str) else json.dumps(examples[0])
                field["description"] += f" Example: `{shown}`"
            field["position"] = position
        return schema
