"""What a run has found: the report in its forms, claims, sources, files, and whether all of it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response

from fathom.changes.model import Changes
from fathom.client.shapes import MEDIA_TYPES, ArtifactList, AuditTrail, Checkup, ClaimList, Form, NoteList, SourceList
from fathom.errors import NotAcceptable
from fathom.evidence.trace import Trace
from fathom.interfaces.dependencies import TheRun
from fathom.models import Plan, Verdict
from fathom.report.exporting import files_for
from fathom.report.html import unsafe
from fathom.service import reports
from fathom.storage.store import REPORT_PAGE

router = APIRouter(prefix="/api/v1/runs/{run_id}", tags=["reports"])
_BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_FORMS: dict[str, Any] = {
    media: {"schema": {"type": "string"} if media.startswith("text/") else {}} for media in MEDIA_TYPES.values()
}
_FORMS |= {MEDIA_TYPES[form]: _BYTES for form in ("docx", "pdf", "xlsx")}
_SANDBOX = "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'"
"""Added to the policy that a report has in itself: it cannot act for whoever reads it."""
_PLAIN = f"default-src 'none'; {_SANDBOX}"


@router.get(
    "/report",
    summary="Read the report",
    response_class=Response,
    responses={
        200: {"description": "The report in the form that you like best.", "content": _FORMS},
        304: {"description": "It is the one whose ETag you sent."},
        406: {"description": "The report does not exist in that form."},
        501: {"description": "The server lacks the library for this form."},
    },
)
async def read_report(
    run: TheRun,
    form: Annotated[Form | None, Query(description="Form of the report; overrides `Accept`.")] = None,
    accept: Annotated[str, Header(max_length=1_000, include_in_schema=False)] = "",
    if_none_match: Annotated[str, Header(max_length=1_000, include_in_schema=False)] = "",
) -> Response:
    """Return the report as html, md, json, docx, pdf, bib or ris, by `Accept` or by `form`."""
    chosen = form or _accepted(accept)
    # Of what it is made from: the same report as a PDF has other bytes each time.
    files = await run.files(files_for([chosen]))
    tag = f'W/"{hashlib.sha256(chosen.encode() + b"".join(files.values())).hexdigest()[:20]}"'
    headers = {"Vary": "Accept", "ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in [one.strip() for one in if_none_match.split(",")] or if_none_match.strip() == "*":
        return Response(status_code=304, headers=headers)
    data = await reports.exported(run, chosen)
    name = f"{reports.stem(run)}.{chosen}"
    headers["Content-Disposition"] = f'{"inline" if chosen == "html" else "attachment"}; filename="{name}"'
    headers |= _guarded(data) if chosen == "html" else {}
    return Response(data, media_type=MEDIA_TYPES[chosen], headers=headers)


@router.get("/claims", summary="List claims")
async def list_claims(
    run: TheRun, verdict: Annotated[Verdict | None, Query(description="Only claims with this verdict.")] = None
) -> ClaimList:
    """List the sentences of the report with the verdict on each, and the stored bytes that it rests on."""
    return await reports.claims(run, verdict)


@router.get("/claims/{number}/trace", summary="Trace a claim")
async def trace_claim(
    run: TheRun, number: Annotated[int, Path(ge=1, le=1_000_000, description="Number of the claim.", examples=[1])]
) -> Trace:
    """Return a claim with the way to each of its quotes: source, call, step, file and line."""
    return await reports.follow_claim(run, number)


@router.get("/sources", summary="List sources")
async def list_sources(run: TheRun) -> SourceList:
    """List what the run has read: how good each source is, how often it is used, and its reference."""
    return await reports.sources(run)


@router.get("/plan", summary="Read the plan")
async def read_plan(run: TheRun) -> Plan:
    """Return the plan of the run with the status of each step."""
    return await reports.plan(run)


@router.get("/notes", summary="List notes")
async def list_notes(run: TheRun) -> NoteList:
    """List what the run noted from what it read."""
    return await reports.notes(run)


@router.get("/changes", summary="List changes")
async def list_changes(run: TheRun) -> Changes:
    """Return what changed since the run of the watch before this one."""
    return await reports.changes(run)


@router.get("/audit", summary="Read the audit log")
async def read_audit(run: TheRun) -> AuditTrail:
    """Return the audit log of the run, and whether its chain of hashes is whole."""
    return await reports.audit(run)


@router.post("/verify", summary="Verify a report")
async def verify_run(run: TheRun) -> Checkup:
    """Check every file, quote and verdict of the run again, now. No model is asked."""
    return await reports.check(run)


@router.get("/artifacts", summary="List files")
async def list_artifacts(run: TheRun) -> ArtifactList:
    """List the files of the run."""
    return await reports.artifacts(run)


@router.get(
    "/artifacts/{name}",
    summary="Read a file",
    response_class=Response,
    responses={
        200: {
            "description": "The file.",
            "content": {"text/plain": _BYTES, "text/html": _BYTES, "application/gzip": _BYTES},
        }
    },
)
async def read_artifact(
    run: TheRun,
    name: Annotated[str, Path(max_length=300, examples=["report.md"], description="One of the listed names.")],
) -> Response:
    """Return a file of the run as plain text; `report.html` as a page, and a web archive as it is stored."""
    data = await reports.artifact(run, name)
    if name == REPORT_PAGE:
        return Response(data, media_type="text/html", headers=_guarded(data))
    headers = {
        "Content-Disposition": f'attachment; filename="{name.encode("ascii", "replace").decode()}"',
        "Content-Security-Policy": _PLAIN,
    }
    return Response(data, media_type="application/gzip" if name.endswith(".gz") else "text/plain", headers=headers)


def _accepted(accept: str) -> Form:
    """Return the form that an `Accept` header likes best.

    Raises:
        NotAcceptable: it takes none.
    """
    media = preferred(accept, [*MEDIA_TYPES.values()])
    if media is None:
        raise NotAcceptable(f"The report does not exist in that form. It exists as {', '.join(MEDIA_TYPES.values())}.")
    return next(form for form, own in MEDIA_TYPES.items() if own == media)


def _guarded(page: bytes) -> dict[str, str]:
    """Return the headers of a report as a page. A page that Fathom did not make so runs and loads nothing."""
    return {"Content-Security-Policy": _PLAIN if unsafe(page) else _SANDBOX, "Referrer-Policy": "no-referrer"}


def preferred(accept: str, offered: Sequence[str]) -> str | None:
    """Return the offered media type that an `Accept` header likes best; of equal ones the first; None if it takes none.

    For each type the most specific range that matches it counts. Without a header, everything is taken.
    """
    ranges = [*_ranges(accept)] if accept.strip() else [("*", "*", 1.0)]
    best, quality = None, 0.0
    for media in offered:
        if (liked := _quality(media, ranges)) > quality:
            best, quality = media, liked
    return best


def _quality(media: str, ranges: Sequence[tuple[str, str, float]]) -> float:
    kind, _, form = media.partition("/")
    for wanted in ((kind, form), (kind, "*"), ("*", "*")):
        named = [quality for *own, quality in ranges if tuple(own) == wanted]
        if named:
            return max(named)
    return 0.0


def _ranges(accept: str) -> Iterator[tuple[str, str, float]]:
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        kind, slash, form = media.partition("/")
        if slash and kind and form:
            given = next((value for value in parameters if value.startswith("q=")), "q=1")
            try:
                quality = float(given[2:])
            except ValueError:
                continue
            if 0 <= quality <= 1:
                yield kind, form, quality
