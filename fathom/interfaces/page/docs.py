"""*API*: every route with its fields and an example, from the OpenAPI document that the server answers with."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from markupsafe import Markup
from starlette.responses import Response

from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.interfaces.page.rendering import page, templates
from fathom.text.plain import counted

router = APIRouter(include_in_schema=False)
_METHODS = ("get", "post", "put", "patch", "delete")
_BOUNDS = (("minimum", "maximum", ""), ("minLength", "maxLength", "character"), ("minItems", "maxItems", "item"))
_TOKEN = '-H "Authorization: Bearer $FATHOM_TOKEN"'  # noqa: S105 - the name of a variable

Schema = Mapping[str, Any]


@router.get("/docs")
async def reference(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Show the reference of the API."""
    document, server = request.app.openapi(), str(request.base_url).rstrip("/")
    asks_token = not service.options.open and not service.options.user_header
    routes = _routes(request.app, server, _TOKEN if asks_token else "")
    return page(request, "docs", document=document, routes=routes)


@lru_cache(maxsize=8)
def _routes(app: FastAPI, server: str, token: str) -> Markup:
    """Return the routes and schemas as HTML: 55 ms of work, and the same for everybody at one address of a server."""
    document = app.openapi()
    schemas = document["components"]["schemas"]
    groups: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, item in document["paths"].items():
        for method in filter(item.__contains__, _METHODS):
            example = curl(server + path, method, item[method], schemas, token)
            groups[item[method]["tags"][0]].append(
                {**item[method], "method": method.upper(), "path": path, "curl": example}
            )
    template = templates().get_template("_routes.html.j2")
    shown = template.render(document=document, groups=groups, schemas=schemas, bounds=bounds)
    return Markup(shown)  # noqa: S704 - made by a template, which escapes


def bounds(schema: Schema) -> str:
    """Return what a value must keep to, and its default."""
    told: list[str] = []
    for lowest, highest, unit in _BOUNDS:
        least, most = schema.get(lowest), schema.get(highest)
        limits = [("at least", least)] if most is None else [(f"{least} to" if least is not None else "at most", most)]
        told += [f"{said} {counted(limit, unit) if unit else limit}" for said, limit in limits if limit is not None]
    if schema.get("default"):
        told.append(f"default {json.dumps(schema['default'])}")
    return ", ".join(told)


def curl(address: str, method: str, operation: Schema, schemas: Schema, token: str = "") -> str:
    """Return a command that uses an operation; what a path names is in capitals, for the reader to replace."""
    parts = ["curl -sN" if "text/event-stream" in str(operation["responses"]) else "curl -s"]
    wanted = [one for one in operation.get("parameters", ()) if one["required"]]
    for one in (one for one in wanted if one["in"] == "path"):
        address = address.replace(f"{{{one['name']}}}", one["name"].upper())
    query = "&".join(f"{one['name']}={one['name'].upper()}" for one in wanted if one["in"] == "query")
    if method != "get" and not (method == "post" and "requestBody" in operation):
        parts[0] += f" -X {method.upper()}"
    parts[0] += f" {shlex.quote(f'{address}?{query}') if query else address}"
    if token:
        parts.append(token)
    for kind, body in [*operation.get("requestBody", {}).get("content", {}).items()][:1]:
        value = example_of(body["schema"], schemas, whole=True)
        if kind == "multipart/form-data":
            parts += [f"-F {name}={'@FILE' if name == 'files' else shlex.quote(str(value[name]))}" for name in value]
        else:
            parts += [f"-H 'Content-Type: {kind}'", f"-d {shlex.quote(json.dumps(value, ensure_ascii=False))}"]
    return " \\\n  ".join(parts)


def example_of(schema: Schema, schemas: Schema, *, whole: bool = False) -> Any:
    """Return a value that a schema takes, with the fields that it needs; if `whole` needs none, with its first."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, whole=whole)
    if chosen := schema.get("examples") or schema.get("enum"):
        return chosen[0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], schemas)
    fields: Mapping[str, Schema] = schema.get("properties", {})
    needed: Sequence[str] = schema.get("required") or [*fields][: int(whole)]
    match schema.get("type"):
        case "object":
            return {name: example_of(fields[name], schemas) for name in needed}
        case "array":
            return [example_of(schema["items"], schemas)]
        case kind:
            return {"boolean": True, "integer": schema.get("minimum", 1), "number": 1.0}.get(str(kind), "...")
