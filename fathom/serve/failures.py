"""Errors in the form that whoever sent the request expects: a page, an error of OpenAI's API, or a problem."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from fathom.serve import problems
from fathom.serve.access.checks import is_program
from fathom.serve.chat import errors as openai
from fathom.serve.page import failures as page


async def on_error(request: Request, error: Exception) -> Response:
    """Answer with an error."""
    problem, headers = problems.told(request, error)
    if openai.speaks_openai(request):
        return openai.answer(problem, headers, error)
    if not is_program(request.url.path) and "text/html" in request.headers.get("accept", ""):
        return page.answer(request, problem, headers)
    return problems.answer(problem, headers)
