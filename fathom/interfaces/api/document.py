"""The OpenAPI document: what FastAPI makes of the routes, completed by what holds for all of them.

Every answer that is not a success is a problem (`application/problem+json`), also where FastAPI would document another
shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from fathom.client.resources import BatchRequest
from fathom.client.shapes import Problem
from fathom.interfaces.problems import MEDIA_TYPE, phrase_of

OURS = ("/api/v1/", "/research/")
OPEN = ("/api/v1/health", "/api/v1/ready")
_TAGS = {
    "runs": "A question becomes a run; a run ends in a report, or says why there is none.",
    "reports": "What a run has found, and whether all of it holds.",
    "watches": "Questions that are asked again on a schedule.",
    "batches": "Many questions at once, with one budget.",
    "server": "What the server can do and what it costs.",
    "corpora": "Documents that people upload for runs to read.",
    "sharing": "Who may read a run, and who did what with it.",
    "access": "Who you are to this server.",
    "sessions": "Runs by the names of the Research engine.",
    "health": "Whether the server lives and can work.",
}
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token that `fathom tokens add NAME` made."},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "fathom_session", "description": "The page's session."},
}
_WRITES = ("post", "put", "patch", "delete")
_PLACE = "#/components/schemas/{model}"
_METHODS = ("get", *_WRITES)


def describe(app: FastAPI) -> None:
    """Have an application answer with the completed document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                routes=app.routes,
                tags=[{"name": name, "description": about} for name, about in _TAGS.items()],
            )
            app.openapi_schema = completed(made)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as FastAPI has it extended


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with problems, security and operation ids on every route of ours."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = Problem.model_json_schema(ref_template=_PLACE, mode="serialization")
    batch = BatchRequest.model_json_schema(ref_template=_PLACE)
    for schema in (problem, batch):  # no route has them as its type
        for name, one in {**schema.pop("$defs"), schema["title"]: schema}.items():
            schemas[name] = one
    document["components"]["securitySchemes"] = _SCHEMES
    # Nothing is needed on a server that only its own machine can reach.
    document["security"] = [*({name: []} for name in _SCHEMES), {}]
    for path, item in document["paths"].items():
        for method in filter(item.__contains__, _METHODS):
            _complete(path, method, item[method])
    return document


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add to an operation of ours its problems; FastAPI's own shape of an error, which no route has, is left out."""
    if path in OPEN:
        operation["security"] = []
    responses, ours = operation["responses"], [*_problems(path, method, operation)] if path.startswith(OURS) else []
    for status in [one for one, own in responses.items() if "HTTPValidationError" in str(own.get("content"))]:
        del responses[status]
    for status in ours:
        own = responses.setdefault(str(status), {})
        own.setdefault("description", phrase_of(status))
        own["content"] = {MEDIA_TYPE: _example(status)}
    operation["responses"] = dict(sorted(responses.items()))


def _problems(path: str, method: str, operation: dict[str, Any]) -> Iterator[int]:
    """Yield the statuses of the problems that a route may answer with."""
    if path in OPEN:
        yield from (503,) if path == OPEN[1] else ()
        return
    yield from (int(status) for status in operation["responses"] if int(status) >= 400)
    yield from (401, 403, 422, 429, 503)
    if "{" in path:
        yield 404
    if method in _WRITES:
        yield 409
    if "requestBody" in operation:
        yield 400  # it is not JSON at all
        yield 415


def _example(status: int) -> dict[str, Any]:
    title = phrase_of(status)
    example = {"type": "about:blank", "title": title, "status": status, "detail": "What is wrong.", "next_step": ""}
    return {"schema": {"$ref": "#/components/schemas/Problem"}, "example": {**example, "code": None}}
