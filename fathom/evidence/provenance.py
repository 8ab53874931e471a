"""`provenance.json`: how a report was made, so that every sentence of it can be traced and checked again.

`docs/evidence.md` documents the fields. The record holds the hash of every other file of the run and one of its own
content, so a changed byte is found in any file. It is not a signature: rewriting the whole record is not detected.

A run's page is hashed without the list of its follow-up runs. So nothing is recorded anew when a follow-up ends, and
still nothing else in the page can change: only links to reports beside it are taken for the list.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import not_
from textwrap import shorten
from typing import NamedTuple

from pydantic import Field, ValidationError

from fathom.errors import StoreError
from fathom.evidence.stored import StoredText, stored_texts
from fathom.models import (
    Call,
    Model,
    Plan,
    Referenced,
    Reflection,
    Report,
    RunManifest,
    Source,
    SourceKind,
    ToolCall,
    ToolFailure,
    ToolResult,
    described,
)
from fathom.models.evidence import Claim, SourceQuality
from fathom.storage.store import REPORT_PAGE, json_bytes
from fathom.text.plain import clean_line

PROVENANCE = "provenance.json"
RULES = 15
"""The rules by which claims are found and checked. The number increases when the same report over the same texts may
get other claims or verdicts."""
_OWN_DIGEST = b'"sha256": "%s"'
_KEPT = {"source_id", "url", "title", "kind", "published"}
_SHARED = {"artifact_file", "sha256", "files", "retrieved"}  # fields that a tool result and its record share


class RoundRecord(Model):
    """One round of research: its steps, and what the critic says of the evidence: its score, 1 to 10, or 0 without one.

    `reflection` is the critic's whole answer.
    """

    number: int
    step_ids: list[str]
    sufficiency: int = 0
    reflection: Reflection | None = Field(None, exclude_if=not_)


class CallRecord(Model):
    """One tool call, and the artifact with its whole output, empty if the call failed; `files` as in `ToolResult`."""

    number: int  # in the run, from 1
    step_id: str
    tool: str
    input: str
    artifact_file: str
    sha256: str
    files: dict[str, str] = Field({}, exclude_if=not_)
    bytes: int
    retrieved: str  # ISO 8601, UTC
    useful: bool  # a note was made of it
    narrowed_tokens: int = 0  # tokens of the output that the compressor was not shown, and so no note was made from
    useless: list[str] = Field([], exclude_if=not_)  # keys of its texts that were read whole and had nothing
    source_ids: list[str]
    failures: list[ToolFailure] = []


class TextRecord(Model):
    """A text of a source: its artifact, its length in characters, and its own SHA-256."""

    artifact_file: str
    characters: int
    sha256: str


class SourceRecord(Referenced):
    """A source that was retrieved, and all texts that were read from it."""

    source_id: str
    url: str
    title: str
    kind: SourceKind
    published: str
    texts: list[TextRecord]
    quality: SourceQuality | None = None


class Provenance(Model):
    """The record of a run. `sha256` is the hash of this record without that field, as `json_bytes` lays it out."""

    version: int = 1
    rules: int = 1  # the rules by which the claims were checked: `RULES` of the version that made the record
    run: RunManifest  # query, start, settings without secrets, models, hashes of the prompts, versions
    plan: Plan
    rounds: list[RoundRecord]
    calls: list[CallRecord]
    sources: list[SourceRecord]
    claims: list[Claim]
    files: dict[str, str]  # every other file of the run by name, with its SHA-256
    sha256: str = ""

    @property
    def qualities(self) -> dict[str, SourceQuality]:
        """The quality of each source that was scored."""
        return {source.source_id: source.quality for source in self.sources if source.quality}


def build(
    *,
    manifest: RunManifest,
    plan: Plan,
    rounds: Sequence[RoundRecord],
    calls: Mapping[str, Sequence[Call]],
    report: Report,
    files: Mapping[str, bytes],
) -> Provenance:
    """Return the record of a run; `calls` are by step id, `files` by name and without the record itself."""
    made = [(step_id, call) for step_id, of_step in calls.items() for call in of_step]
    texts = stored_texts(files, (call.result for _, call in made))
    record = Provenance(
        rules=RULES,
        run=manifest,
        plan=plan,
        rounds=list(rounds),
        calls=[
            CallRecord(
                number=number,
                step_id=step_id,
                **call.result.call.model_dump(),
                **call.result.model_dump(include=_SHARED),
                bytes=call.result.raw_bytes,
                useful=call.useful,
                narrowed_tokens=call.narrowed_tokens,
                useless=call.useless,
                source_ids=list(dict.fromkeys(source.source_id for source in call.result.sources)),
                failures=call.result.failures,
            )
            for number, (step_id, call) in enumerate(made, 1)
        ],
        sources=sources_of(texts, {quality.source_id: quality for quality in report.qualities}),
        claims=report.claims,
        files={name: digest_of(data) for name, data in sorted(files.items()) if name != PROVENANCE},
    )
    return record.model_copy(update={"sha256": digest_of(json_bytes(record))})


def read(data: bytes) -> tuple[Provenance, list[str]]:
    """Return a record from its bytes, and the errors found in them.

    Raises:
        StoreError: they are not a record.
    """
    try:
        record = Provenance.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise StoreError(f"{PROVENANCE} is damaged: {place} {first['msg']}.", next_step="restore the file") from error
    # Hash the bytes, not the model: fields may have other names in a later version of Fathom.
    before, own, after = data.rpartition(_OWN_DIGEST % record.sha256.encode())
    whole = bool(own) and digest_of(before + _OWN_DIGEST % b"" + after) == record.sha256
    return record, [] if whole else ["the file was changed: its SHA-256 is not the one that it records"]


def results_of(record: Provenance) -> list[ToolResult]:
    """Return the recorded calls as tool results, with what is needed to read their artifacts."""
    made = (Source.model_validate(source.model_dump(include={*_KEPT, "reference"})) for source in record.sources)
    sources = {source.source_id: source for source in made}
    return [
        ToolResult(
            call=ToolCall(tool=call.tool, input=call.input),
            **call.model_dump(include=_SHARED),
            sources=[sources[source_id] for source_id in call.source_ids if source_id in sources],
        )
        for call in record.calls
    ]


def sources_of(texts: Iterable[StoredText], qualities: Mapping[str, SourceQuality]) -> list[SourceRecord]:
    """Return the records of the sources of some texts, in the order of the texts."""
    by_id: dict[str, list[StoredText]] = {}
    for text in texts:
        by_id.setdefault(text.source.source_id, []).append(text)
    return [
        SourceRecord(
            **own[0].source.model_dump(include=_KEPT),
            reference=described(text.source for text in own),
            texts=[
                TextRecord(artifact_file=t.artifact_file, characters=len(t.text), sha256=digest_of(t.text.encode()))
                for t in own
            ],
            quality=qualities.get(source_id),
        )
        for source_id, own in by_id.items()
    ]


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


ASKED_CHARS = 300
_END = b"</header>\n"  # the list stands behind it; no text of a page can contain it
_LIST = '<p class="question" dir="auto"><span class="label">Followed by</span> {links}</p>\n'
_LINK = '<a href="../{folder}/report.html">{asked}</a>'
_LINKED = r'<a href="\.\./[a-z0-9_]+/report\.html">[^<>"]*</a>'
_LISTED = re.compile(
    rf'<p class="question" dir="auto"><span class="label">Followed by</span> {_LINKED}(?:<br>{_LINKED})*</p>\n'
    r"(?=</header>\n)".encode()
)
_OTHERS = re.compile(
    rb'<p class="question" dir="auto"><span class="label">Follow(?:ed by|-up to)</span> .*?</p>\n', re.DOTALL
)
_FOLDER = re.compile(r"[a-z0-9_]+")


class FollowUp(NamedTuple):
    """A run that followed another one: the name of its folder, and its question."""

    folder: str
    asked: str


def with_follow_ups(page: bytes, runs: Sequence[FollowUp]) -> bytes:
    """Return a report's page that names these runs and no others."""
    plain = without_follow_ups(page)
    links = [
        _LINK.format(
            folder=run.folder, asked=html.escape(shorten(clean_line(run.asked), ASKED_CHARS, placeholder=" …"))
        )
        for run in runs
        if _FOLDER.fullmatch(run.folder)
    ]
    added = _LIST.format(links="<br>".join(links)) if links else ""
    return plain.replace(_END, added.encode() + _END, 1)


def without_follow_ups(page: bytes) -> bytes:
    """Return a report's page as its run left it."""
    return _LISTED.sub(b"", page, count=1)


def alone(page: bytes) -> bytes:
    """Return a report's page without the questions of the runs before and after its own."""
    return _OTHERS.sub(b"", page)


def as_left(name: str, data: bytes) -> bytes:
    """Return the bytes of a file of a run as the run left them."""
    return without_follow_ups(data) if name == REPORT_PAGE else data
