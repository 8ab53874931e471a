"""An invented run in memory: sources, calls, a report, and the files that a finished run leaves."""

from __future__ import annotations

import hashlib

from fathom.evidence.provenance import PROVENANCE, RoundRecord, build
from fathom.evidence.stored import StoredText, stored_texts
from fathom.evidence.verify import check_claims
from fathom.models import (
    Call,
    Note,
    Plan,
    PlanStep,
    Report,
    ReportSection,
    RunManifest,
    Source,
    SourceText,
    ToolCall,
    ToolOutput,
    ToolResult,
)
from fathom.models.evidence import SourceQuality
from fathom.report.markdown import render_markdown
from fathom.storage.store import json_bytes
from fathom.text.urls import source_ids

__all__ = ["BRIDGE", "GUIDE", "IDS", "NEWS", "PAGES", "finished_run", "in_memory", "source_text"]

BRIDGE = """# The Lyndhaven bridge

The Lyndhaven Bridge was opened on 12 March 1932 by Mayor Edith Vance. It spans 503 metres and carries eight lanes.
The bridge cost 4.2 million pounds, 12 % more than the council of Lyndhaven had planned.

Traffic rose to 180,000 vehicles a day in 2018. Trams did not return after the line was closed in 1958.
The steel came from Harmund, and the engineer was Anna Gruber. She was born in Graz and had studied in Vienna.

The World Health Organization measured the noise in 2007: it was louder at night than the limit of 45 decibels allows.
Tolls are paid southbound only. Cyclists use the western deck.\tNobody may fish from it.

A sign says: "No \\ anchors" – in a font called “Brücke”.
"""
GUIDE = """Lyndhaven travel guide. The bridge is the town's landmark.

Mayor Edith Vance opened the Lyndhaven Bridge on 12 March 1932, a Saturday. Eight lanes lead over the water.
Boats leave every hour. The museum of the harbour has a model of the steelworks, and a café with a view.
"""
NEWS = """Harbour Gazette

In 2018 traffic rose to 195,000 vehicles a day. The council wants a second deck.
The Lyndhaven Bridge spans 503 metres. Repairs of the joints are due in spring, at night.
"""
PAGES = {
    "https://roads.example.gov/bridge": ("Lyndhaven Bridge", BRIDGE),
    "https://guide.example.org/lyndhaven": ("Lyndhaven travel guide", GUIDE),
    "https://gazette.example.com/traffic": ("Harbour Gazette", NEWS),
}
IDS = {url: source_ids([url])[url] for url in PAGES}


def source_text(url: str) -> SourceText:
    """Return an invented page as a tool returns it."""
    title, text = PAGES[url]
    return SourceText(source_id=IDS[url], url=url, title=title, kind="web", text=text, snippet=text[:40])


def in_memory(text: str, title: str = "", url: str = "https://a.example.org/") -> StoredText:
    """Return a text that is stored nowhere."""
    return StoredText(Source(source_id=source_ids([url])[url], url=url, title=title, kind="web"), text)


def finished_run(sections: list[ReportSection], extra: dict[str, ToolOutput] | None = None) -> dict[str, bytes]:
    """Return the files of a run that read the invented pages, and more, and wrote a report of some sections."""
    outputs = {f"bridge__step1_find__web_extract__{n}.json": [source_text(url)] for n, url in enumerate(PAGES, 2)}
    raw = {name: json_bytes({"results": texts, "failures": []}, indent=1) for name, texts in outputs.items()}
    raw["bridge__step1_find__artifact_read.txt"] = NEWS.encode()
    sources = {name: [text.source() for text in texts] for name, texts in outputs.items()}
    sources["bridge__step1_find__artifact_read.txt"] = [source_text(list(PAGES)[2]).source()]
    for name, output in (extra or {}).items():
        raw[name] = json_bytes({"results": output.results, "failures": []}, indent=1)
        sources[name] = [text.source() for text in output.results]
    calls = [Call(result=_result(name, data, sources[name]), useful=True) for name, data in raw.items()]
    texts = stored_texts(raw, [call.result for call in calls])
    plan = Plan(plan_title="bridge", steps=[PlanStep(step_id=1, title="Find", description="Find all about it.")])
    report = Report(
        title="The bridge",
        query="What is known of the bridge?",
        extractive=False,
        sections=sections,
        sources=list({text.source.source_id: text.source for text in texts}.values()),
        qualities=[_quality(text.source.source_id) for text in texts[:3]],
    )
    credibility = {quality.source_id: quality.credibility for quality in report.qualities}
    report = report.model_copy(update={"claims": check_claims(report, texts, credibility)})
    note = Note(
        step_id=1,
        summary_title="What the bridge is",
        summary="A bridge.",
        extraction=[],
        is_useful=True,
        artifact_file=calls[0].result.artifact_file,
        source_ids=[IDS["https://roads.example.gov/bridge"]],
    )
    files = {
        **raw,
        "plan.json": json_bytes(plan),
        "notes.json": json_bytes([note]),
        "report.md": render_markdown(report).encode(),
        "report.json": json_bytes(report),
        "run.json": json_bytes(_MANIFEST),
    }
    rounds = [RoundRecord(number=1, step_ids=["1"], sufficiency=8)]
    record = build(manifest=_MANIFEST, plan=plan, rounds=rounds, calls={"1": calls}, report=report, files=files)
    return {**files, PROVENANCE: json_bytes(record)}


_MANIFEST = RunManifest(
    run_id="1a2b3c4d-0000",
    run_key="key",
    query="What is known of the bridge?",
    plan_title="bridge",
    started="2026-01-02T03:04:05+00:00",
    settings={"depth": 2},
    models={"reporter": "stub/model"},
    prompts={"section": "0" * 64},
    versions={"fathom-research": "0"},
)


def _result(name: str, data: bytes, sources: list[Source]) -> ToolResult:
    return ToolResult(
        call=ToolCall(tool=name.split("__")[2].partition(".")[0], input="the bridge"),
        artifact_file=name,
        sha256=hashlib.sha256(data).hexdigest(),
        raw_bytes=len(data),
        sources=sources,
        retrieved="2026-01-02T03:05:06+00:00",
    )


def _quality(source_id: str) -> SourceQuality:
    scores = dict.fromkeys(("credibility", "relevance", "recency", "corroboration", "overall"), 0.75)
    return SourceQuality.model_validate({"source_id": source_id, "type": "unknown", **scores})
