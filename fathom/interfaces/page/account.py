"""Signing in to the page with a token, and out; and *Settings*, what is configured."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from fathom.errors import NotSignedIn
from fathom.interfaces.dependencies import TheCaller, TheGate, TheService
from fathom.interfaces.gate import SIGN_IN
from fathom.interfaces.page.forms import Wrong
from fathom.interfaces.page.rendering import page
from fathom.service.status import status
from fathom.service.tokens import COOKIE, SESSION_SECONDS, BrowserSession

ATTEMPTS = 20
"""In a minute, from one address."""
router = APIRouter(tags=["access"], include_in_schema=False)


@router.get(SIGN_IN)
async def show_sign_in(request: Request, next: str = "/") -> Response:
    """Show the form; where nobody need sign in, or somebody has, the page instead."""
    if request.state.caller:
        return RedirectResponse(local(next), HTTPStatus.SEE_OTHER)
    return _form(request, local(next))


@router.post(SIGN_IN)
async def sign_in(
    request: Request,
    gate: TheGate,
    token: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=2_000)] = "/",
) -> Response:
    """Begin a session of whoever has a token."""
    gate.rates.take(("sign-in", request.state.peer), ATTEMPTS)
    try:
        known = await gate.tokens.check(token.strip())
    except NotSignedIn as error:
        return _form(request, local(next), error.message)
    session = await gate.sessions.begin(known.id)
    answer = RedirectResponse(local(next), HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        COOKIE, session.cookie, max_age=SESSION_SECONDS, httponly=True, samesite="lax", secure=request.state.secure
    )
    return answer


@router.get("/settings")
async def settings(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Show what is configured, and never a secret."""
    return page(
        request,
        "settings",
        found=await status(service, caller),
        options=service.options,
        store=service.store_address(caller),
    )


@router.post("/sign-out")
async def sign_out(request: Request, gate: TheGate) -> Response:
    """End the session."""
    if isinstance(request.state.session, BrowserSession):
        await gate.sessions.end(request.state.session)
    answer = RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=request.state.secure)
    return answer


def local(path: str) -> str:
    """Return the path of a page of this server, the first page for anything else."""
    plain = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if plain and path != SIGN_IN else "/"


def _form(request: Request, next_path: str, problem: str = "") -> Response:
    wrong = Wrong(token=problem) if problem else None
    return page(request, "sign_in", HTTPStatus.UNAUTHORIZED if problem else None, wrong=wrong, next=next_path)
