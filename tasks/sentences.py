"""The events of a run as sentences for its log; their fields are in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import shorten
from typing import Any

from fathom.telemetry.audit_events import AuditEvent, AuditType
from fathom.text.citations import without_addresses, without_citations
from fathom.text.plain import counted
from fathom.text.sentences import first_sentence

Found = Mapping[str, Any]
MOST_LEAD = 300  # characters of the first sentence of a note or a section


def sentence_of(event: AuditEvent) -> str:
    """Return an event as a sentence for a person."""
    write = _SENTENCES.get(event.type)
    return write(event.action, event.details) if write else event.action


def _created(query: str, found: Found) -> str:
    models = ", ".join(sorted(set(found["models"].values())))
    follows = f"follows the run {found['parent'][:8]}; " if "parent" in found else ""
    searched = f". Only {found['searched']}, is searched." if found.get("searched") else ""
    return f"Question: {query} ({follows}tools: {', '.join(found['tools'])}; models: {models}){searched}"


def _planned(title: str, found: Found) -> str:
    steps = "".join(f"\n{number}. {step}" for number, step in enumerate(found["steps"], 1))
    return f'The plan "{title}" has {counted(len(found["steps"]), "step")}:{steps}'


def _finished(_title: str, found: Found) -> str:
    cut = "; the budget ended it early" if found["cut"] else ""
    counts = f"{counted(found['calls'], 'tool call')}, {counted(found['notes'], 'useful note')}"
    return f"Step {found['step_id']} is finished: {counts}{cut}."


def _called(call: str, found: Found) -> str:
    if not found["artifact_file"]:
        return f"{call}: no answer."
    how = "from the cache" if found["cached"] else f"in {found['seconds']:.1f} s"
    return f"{call}: {found['raw_bytes'] / 1000:,.0f} kB {how}"


def _noted(title: str, found: Found) -> str:
    return f"A note from {counted(len(found['source_ids']), 'source')}: {_led(title, found['summary'])}"


def _section(heading: str, found: Found) -> str:
    draft = f"Draft of section {found['number']} of {found['of']}, not checked yet"
    return f"{draft}: {_led(heading, found['text'])}"


def lead_of(text: str) -> str:
    """Return the first sentence of a note's summary or of a section on one line, without citations and addresses."""
    return shorten(first_sentence(without_addresses(without_citations(text))), MOST_LEAD, placeholder=" …")


def _led(title: str, text: str) -> str:
    title = without_addresses(title)  # chat programs show it as Markdown
    return f"{title}: {lead}" if (lead := lead_of(text)) else title


def _written(title: str, found: Found) -> str:
    size = f"{counted(len(found['sections']), 'section')} and {counted(found['sources'], 'cited source')}"
    claims = ", ".join(f"{number} {verdict}" for verdict, number in found["claims"].items()) or "none"
    unsupported = counted(len(found["left_out"]), "sentence")
    left_out = f" No source supported {unsupported} of the draft." if found["left_out"] else ""
    return f'The report "{title}" has {size}. Its claims: {claims}.{left_out}'


def _ended(how: str, found: Found) -> str:
    if "metrics" not in found:
        return f"The run ends here: {how}."
    used, reason = found["metrics"], found["reason"].partition("\n")[0]
    cost = f", ${used['cost_usd']:.4f}" if used["cost_usd"] else ""  # neither unknown nor nothing
    calls = f"{counted(used['tool_calls'], 'tool call')}, {counted(used['llm_calls'], 'model call')}{cost}"
    ending = f"The run ends: {how.replace('_', ' ')}{f' ({reason})' if reason else ''}."
    return f"{ending} It took {used['seconds']:.0f} s, {calls}."


_SENTENCES: Mapping[AuditType, Callable[[str, Found], str]] = {
    AuditType.session_created: _created,
    AuditType.session_resumed: lambda query, _: f"The run continues where it stopped. Question: {query}",
    AuditType.plan_generated: _planned,
    AuditType.step_started: lambda title, found: f"Step {found['step_id']} begins: {title}",
    AuditType.step_completed: _finished,
    AuditType.tool_called: _called,
    AuditType.note_created: _noted,
    AuditType.steered: lambda text, found: f"{found['author']} {f'said: {text}' if text else 'stopped the research.'}",
    AuditType.section_written: _section,
    AuditType.synthesis_completed: _written,
    AuditType.session_completed: _ended,
}
