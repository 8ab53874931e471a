"""What a reader sees before the report is there: notes as they are made, and sections while they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from prefect.states import Running
from rich.text import Text

from fathom.client.shapes import EventType, RunEvent
from fathom.config.groups import Role, RoleModel
from fathom.interfaces.cli.progress import RunWatcher
from fathom.llm import listening
from fathom.llm.base import ModelCall
from fathom.llm.parsing import draft_of
from fathom.models import Draft
from fathom.roles import SECTION, SectionRequest
from fathom.roles.reporter import OutlinedSection
from fathom.service import events as feeds
from fathom.service.events import Feeds
from fathom.storage.store import ArtifactStore
from fathom.tasks.sentences import sentence_of
from fathom.telemetry import progress
from fathom.telemetry.audit_events import AuditEvent, AuditType
from fathom.telemetry.audit_log import AuditLog
from fathom.telemetry.progress import Event, listen, phase, publish, read_live, showing
from tests.conftest import Bucket
from tests.inprocess import QUERY, investigated
from tests.stubs import Stubs
from tests.test_audit import FOLDER, PENDING
from tests.test_feed import found, without_prefect
from tests.test_watch import drawn, planned

KEY = "key"
TEXT = "Tides rise twice a day. [ID] They fall as often [ID]. Nobody has seen it yet."


@pytest.fixture
def model(providers: Stubs, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """A model that streams its sections token by token, each of which may be told."""
    monkeypatch.setattr(listening, "TELL_SECONDS", 0.0)
    providers.settings.steps, providers.settings.follow_ups = 2, 0
    providers.settings.token_seconds = 0.001
    providers.settings.section = TEXT
    providers.settings.faults = {"section": ["slow*"]}
    return providers


async def heard(root: Path, **settings: Any) -> list[Event]:
    events: list[Event] = []
    with listen(events.append):
        await investigated(root, QUERY, profile="quick", **settings)
    return events


def recorded(events: list[Event], kind: AuditType) -> list[tuple[int, AuditEvent]]:
    found = ((n, event.recorded) for n, event in enumerate(events))
    return [(n, event) for n, event in found if event and event.type is kind]


async def test_what_can_be_read_comes_long_before_the_end(model: Stubs, tmp_path: Path) -> None:
    events = await heard(tmp_path)
    steps = [n for n, _ in recorded(events, AuditType.step_started)]
    note_at, note = recorded(events, AuditType.note_created)[0]
    assert len(steps) == 2 and note_at < steps[1], "a note can be read before the second step begins"
    assert sentence_of(note).startswith("A note from ") and sentence_of(note).endswith(".")
    asked = [n for n, event in enumerate(events) if event.kind == "begin" and "(section)" in event.message]
    told = [(n, event.draft) for n, event in enumerate(events) if event.draft]
    first_at, first = told[0]
    assert first.text.startswith("Tides rise twice a day.") and first_at < asked[1] < asked[-1]
    for written_at, written in recorded(events, AuditType.section_written):
        own = [draft for n, draft in told if draft.position == written.details["position"] and n < written_at]
        assert [draft.heading for draft in own] == [written.action] * len(own) and len(own) > 1
        assert all(later.text.startswith(earlier.text) for earlier, later in pairwise(own))
        assert str(written.details["text"]).startswith(own[-1].text), "what follows only adds to it"
        assert sentence_of(written).startswith("Draft of section ") and "not checked yet" in sentence_of(written)
    assert [draft.text for _, draft in told if "[ID]" in draft.text] == []


@pytest.mark.parametrize("fault", ["cut_stream", "silent", "error_in_stream"])
async def test_the_text_of_a_later_attempt_takes_the_place_of_the_earlier(
    model: Stubs, tmp_path: Path, fault: str
) -> None:
    model.settings.faults = {"section": [fault, "slow*"]}
    patience = {"model_calls": {"seconds": 0.5, "backoff_seconds": 0.01}}
    events = await heard(tmp_path, **patience)
    shown: dict[int, str] = {}
    for event in events:
        if event.draft:
            shown[event.draft.position] = event.draft.text
    assert {text.count("Tides rise twice a day.") for text in shown.values()} == {1}
    positions = [written.details["position"] for _, written in recorded(events, AuditType.section_written)]
    assert len(set(positions)) == len(positions)


async def test_a_server_that_does_not_stream_has_no_drafts(model: Stubs, tmp_path: Path) -> None:
    model.settings.refuses = {"stream"}
    model.settings.faults = {}
    events = await heard(tmp_path)
    assert not [event for event in events if event.kind == "draft"]
    assert recorded(events, AuditType.section_written)


async def test_a_draft_shows_no_secret(model: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", secret := "Zq-secret-of-the-searcher-81")
    model.settings.section = f"The key is {secret} [ID]. It opens http://evil.example/door [ID]. The end."
    told = [event.draft.text for event in await heard(tmp_path) if event.draft]
    assert any("The key is ***" in text for text in told)
    assert not [text for text in told if secret[:12] in text or "evil.example" in text]


async def test_what_an_earlier_attempt_told_is_not_told_again(tmp_path: Path) -> None:
    told: list[str] = []
    with listen(lambda event: told.append(event.recorded.action) if event.recorded else None):
        for sections in (["One"], ["One", "Two"]):  # one attempt, and another
            log = AuditLog(ArtifactStore(str(tmp_path)), "pending.jsonl")
            await log.record(AuditType.session_resumed, "user", "begin")
            for heading in sections:
                await log.record(AuditType.section_written, Role.reporter, heading, text="It is so.")
    assert told == ["begin", "One", "begin", "Two"]


def section_call() -> ModelCall:
    section = OutlinedSection(heading="Heading", focus="What it says.")
    request = SectionRequest(
        query=QUERY,
        today="2026-11-22",
        title="T",
        outlined=[section],
        position=0,
        notes=[],
        written=[],
    )
    return ModelCall(SECTION, request, RoleModel(model="openai/stub"))


@pytest.mark.parametrize(
    ("received", "shown"),
    [
        ("It rose. It fe", "It rose."),
        ("It rose", ""),
        ("<think>It may rise. It may fall. Or", ""),
        ("<think>It may rise.</think>It rose. It fe", "It rose."),
        ('{"summary_title": "It rose", "summary": "It rose. It fe', ""),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 ", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("It rose. See [the page](http://evil.example/x). It fe", "It rose. See the page."),
        ("彼は来た。彼は", "彼は来た。"),
        ("<|im_start|>assistant\nIt rose. It fell.<|im_e", "It rose."),
    ],
)
def test_a_draft_is_whole_sentences_of_prose(received: str, shown: str) -> None:
    assert draft_of(section_call(), received) == shown


# -- for whoever follows from another process


def draft(text: str, position: int = 0) -> Event:
    return Event("draft", draft=Draft(position=position, heading="Heading", text=text))


async def until(store: ArtifactStore, texts: list[str]) -> None:
    async with asyncio.timeout(60):
        while not (live := await read_live(store, KEY)) or [d.text for d in live.drafts] != texts:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.02)


async def test_a_draft_is_beside_the_log_until_the_section_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "WRITE_SECONDS", 0.01)
    store, log = ArtifactStore(str(tmp_path)), AuditLog(ArtifactStore(str(tmp_path)), "pending.jsonl")
    async with showing(store, KEY):
        phase("writing 1 of 2")
        publish(draft("It rose."))
        await until(store, ["It rose."])
        publish(draft("It rose. It fell. " + "x" * 10_000))
        await until(store, [("It rose. It fell. " + "x" * 10_000)[: progress.MOST_DRAFT]])
        await log.record(AuditType.section_written, Role.reporter, "Heading", text="It rose. It fell.")
        await until(store, [])
        publish(draft("Not so."))
        await until(store, ["Not so."])
        phase("checking")
        await until(store, [])


async def test_a_listener_hears_a_note_then_a_growing_draft_then_the_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((progress, "WRITE_SECONDS"), (feeds, "LOCAL_SECONDS"), (feeds, "STATE_SECONDS")):
        monkeypatch.setattr(module, name, 0.01)
    store = ArtifactStore(str(tmp_path))
    run, hub, log = found(store, Running()), Feeds(store), AuditLog(store, PENDING)
    without_prefect(hub, monkeypatch)
    await log.settle(FOLDER)
    events = hub.follow(run)

    async def heard(kind: EventType, text: str) -> RunEvent:
        async with asyncio.timeout(60):
            async for event in events:
                if event and event.type is kind and text in event.model_dump_json():
                    return event
        raise AssertionError("it ended")

    async with showing(store, run.stored.run_key):
        await log.record(AuditType.note_created, Role.compressor, "Tides", summary="They rise.", source_ids=["S1a2b3c"])
        assert (await heard(EventType.note_created, "")).message == "A note from 1 source: Tides: They rise."
        for text in ("It rose.", "It rose. It fell."):
            publish(draft(text))
            event = await heard(EventType.now, f'{text}"')
            assert event.id == 0 and event.data["drafts"] == [{"position": 0, "heading": "Heading", "text": text}]
        written = {"number": 1, "of": 1, "position": 0, "text": "It rose. It fell. Now it rests."}
        await log.record(AuditType.section_written, Role.reporter, "Heading", **written)
        assert (await heard(EventType.section, "Now it rests.")).data["position"] == 0
    await events.aclose()
    await hub.aclose()


async def test_a_growing_draft_alone_is_seldom_a_request(moto_s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "WRITE_SECONDS", 0.01)
    monkeypatch.setattr(progress, "REMOTE_DRAFT_SECONDS", 3_600.0)
    store = ArtifactStore(moto_s3.url)
    async with showing(store, KEY):
        phase("writing 1 of 2")
        publish(draft("It rose."))
        await until(store, ["It rose."])
        publish(draft("It rose. It fell."))
        await asyncio.sleep(0.2)
        await until(store, ["It rose."])
        publish(Event("begin", "asking", key=1))
        await until(store, ["It rose. It fell."])


# -- on the terminal


def note(title: str = "What the tides do", summary: str = "They rise [S1a2b3c]. They fall.") -> Event:
    details: dict[str, Any] = {"summary": summary, "source_ids": ["S1a2b3c", "S2a2b3c"]}
    event = AuditEvent(id="1", at="", type=AuditType.note_created, actor="compressor", action=title, details=details)
    return Event("recorded", recorded=event)


def section(position: int) -> Event:
    text = "### Below\n\nTides **rise** [S1a2b3c].\n\nThey fall, too."
    details: dict[str, Any] = {"number": 2, "of": 4, "position": position, "text": text, "whole": True}
    event = AuditEvent(id="2", at="", type=AuditType.section_written, actor="reporter", action="Why", details=details)
    return Event("recorded", recorded=event)


def test_a_log_has_a_line_for_each_note_and_section_and_quiet_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = note("![x](http://evil.example/a.png)", "See [the door](http://evil.example/b).")
    for options in ({}, {"quiet": True}, {"progress": False}):
        with RunWatcher(**options) as watch:
            for event in (note(), draft("It rose."), section(0), note("A note\x1b[2J", ""), hostile):
                watch(event)
        printed = capsys.readouterr()
        lines = [line[10:] for line in printed.err.splitlines()]
        assert printed.out == "" and lines == (
            []
            if options
            else [
                "A note from 2 sources: What the tides do: They rise.",
                "Draft of section 2 of 4, not checked yet: Why: Tides **rise**.",
                "A note from 2 sources: A note [2J",
                "A note from 2 sources: x: See the door.",
            ]
        )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    yield


def test_a_terminal_shows_the_answer_whole_and_the_beginning_of_other_sections(
    terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunWatcher() as watch:
        for event in (note(), section(1), section(0)):
            watch(event)
    shown = Text.from_ansi(capsys.readouterr().err).plain
    assert "What the tides do  2 sources" in shown and "They rise." in shown
    assert shown.count("draft, not checked yet, 2 of 4") == 2
    assert shown.count("Tides rise [S1a2b3c].") == 2 and shown.count("They fall, too.") == 1


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 9), (120, 50)])
def test_the_end_of_a_growing_draft_fits_into_the_live_view(width: int, height: int) -> None:
    text = " ".join(f"This is sentence {number} of a long draft." for number in range(200))
    events = [planned(30, 11), Event("phase", "writing 2 of 4: Why"), draft(text)]
    lines = drawn(events, width, height)
    assert len(lines) < height and max(map(len, lines)) <= width
    at = lines.index("    draft, not checked yet:")
    assert "sentence 199" in " ".join(lines[at + 1 :])
    assert "draft, not checked yet" not in " ".join(drawn([*events, Event("phase", "checking")], width, height))
