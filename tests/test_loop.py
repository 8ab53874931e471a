"""What a run asks a model, and what it spares: queries, briefs, shared pages, sections side by side."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.models import Brief, Call, Note, PlanStep, RunResult, Source, SourceText, ToolCall, ToolResult
from fathom.retrieval.narrowing import Memory
from fathom.run.reading import EarlierReading, NotedBefore, Reading, bears_on, worth_reading
from fathom.text.urls import source_ids
from tests.inprocess import investigated
from tests.stubs import FACT, Record, Stubs

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run of two steps."""
    providers.settings.steps, providers.settings.breadth, providers.settings.results = 2, 1, 2
    providers.settings.follow_ups, providers.settings.page_bytes = 0, 2_000
    return providers


def said(record: Record, role: str = "") -> str:
    messages = record.body["messages"]
    return "\n".join(m["content"] for m in messages if not role or m["role"] == role)


def schema(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = record.body["response_format"]["json_schema"]["schema"]["properties"]
    return found


async def test_the_planners_queries_are_run_without_asking(providers: Stubs, tmp_path: Path) -> None:
    await investigated(tmp_path)
    assert providers.calls("researcher") == []
    assert len(providers.calls("search")) == 2


async def test_the_researcher_is_asked_where_a_query_found_nothing_and_is_told(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.noise = "causes"
    await investigated(tmp_path)
    (asked,) = providers.calls("researcher")
    assert "(found nothing useful that is new)" in said(asked, "user")
    assert "Suggested queries:" not in said(asked, "user"), "all of them were made"


async def test_a_step_without_queries_asks_first(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.suggests = False
    await investigated(tmp_path, profile="quick")
    assert len(providers.calls("researcher")) == 2, "one for each step: nobody else chooses its calls"


async def briefed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> RunResult:
    monkeypatch.setattr("fathom.tasks.research.BRIEF_FROM", 100)
    return await investigated(tmp_path, **settings)


async def test_briefs_stand_for_notes_where_the_research_is_seen_as_a_whole(
    providers: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await briefed(tmp_path, monkeypatch)
    briefs = [Brief.model_validate(one) for one in json.loads(Path(result.artifacts, "briefs.json").read_text())]
    assert [brief.step_id for brief in briefs] == [1, 2]
    for role in ("critic", "outline"):
        (asked,) = providers.calls(role)
        assert said(asked, "assistant") == "", "no note is sent whole"
        assert all(brief.text in said(asked, "user") for brief in briefs)
    *others, answer = providers.calls("section")
    assert said(answer, "assistant") == ""
    assert all(brief.text in said(answer, "user") for brief in briefs)
    for section in others:  # each of one step, whose notes it has whole
        own, told = said(section, "assistant"), said(section, "user")
        assert FACT.search(own)
        assert sum(brief.text in told for brief in briefs) == len(briefs) - own.count('"artifact_file"')


@pytest.mark.parametrize("role", ["critic", "outline"])
async def test_notes_may_be_wanted_whole_once(
    providers: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    providers.settings.reads_whole = True
    await briefed(tmp_path, monkeypatch)
    first, second = providers.calls(role)
    assert "read_whole" in schema(first)
    assert "read_whole" not in schema(second)
    assert said(second, "assistant").count('"artifact_file"') == 1


async def test_small_notes_need_no_brief(providers: Stubs, tmp_path: Path) -> None:
    result = await investigated(tmp_path)
    assert not Path(result.artifacts, "briefs.json").exists()
    assert said(providers.calls("critic")[0], "assistant").count('"artifact_file"') == 2


PAGE = "https://shared.example/page"


@pytest.mark.parametrize("execution", ["parallel", "sequential"])
async def test_a_page_that_two_steps_find_is_read_once(providers: Stubs, tmp_path: Path, execution: str) -> None:
    text = "In 2021, 41 causes and effects of tides on moons with liquid methane seas were counted in figures."
    providers.settings.planted = {PAGE: f"<p>{text}</p>"}
    providers.settings.results = 1
    result = await investigated(tmp_path, execution=execution)
    (read,) = [record for record in providers.calls("compressor") if "shared.example" in said(record)]
    assert "read once, for these steps too" in said(read, "user")
    assert "Effects of" in said(read, "user")
    notes = [Note.model_validate(one) for one in json.loads(Path(result.artifacts, "notes.json").read_text())]
    assert [note.steps for note in notes] == [{"1", "2"}], "the note serves both"
    plan = json.loads(Path(result.artifacts, "plan.json").read_text())
    assert [step["status"] for step in plan["steps"]] == ["done", "done"]


async def test_a_page_is_read_again_for_what_its_note_leaves_out(providers: Stubs, tmp_path: Path) -> None:
    """The note has most words of the second step, but not the one that only the second step asks for."""
    causes = "In 2021, 41 causes of tides on moons with liquid methane seas were counted in figures."
    providers.settings.planted = {PAGE: f"<p>{causes} Their effects are floods.</p>"}
    providers.settings.results, providers.settings.bullets = 1, [f"{causes} [ID]"]
    await investigated(tmp_path, execution="sequential")
    first, again = [said(one, "user") for one in providers.calls("compressor") if "shared.example" in said(one)]
    assert ("Step: Causes" in first, "Step: Effects" in again) == (True, True)


async def test_a_researcher_sees_what_a_step_beside_its_own_has_noted_for_it(
    providers: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "FACT-0a1b2c3d: the first study of tides on moons liquid causes effects figures counted 41 cases in 2021."
    providers.settings.planted, providers.settings.results = {PAGE: f"<p>{text}</p>", f"{PAGE}-2": f"<p>{text}</p>"}, 3
    await briefed(tmp_path, monkeypatch, execution="parallel")
    asked = {re.findall(r"Your step: (\w+)", said(one, "user"))[0]: one for one in providers.calls("researcher")}
    assert list(asked) and all("0a1b2c3d" in said(one, "assistant") for one in asked.values())
    assert said(asked["Effects"], "assistant").count('"artifact_file"') == 2, "once, and the note of its own page"


@pytest.mark.parametrize("execution", ["parallel", "sequential"])
@pytest.mark.parametrize(("says", "more"), [("", 0), ("Its critics live in other regions.", 1)])
async def test_a_useless_page_is_read_again_only_for_what_no_step_asked_of_it(
    providers: Stubs, tmp_path: Path, execution: str, says: str, more: int
) -> None:
    """Round 2 has a step of its own and tries the blocked ones again; each search finds the same page."""
    providers.settings.planted = {PAGE: f"<p>NOISE. Causes and effects of tides on moons, listed. {says}</p>"}
    providers.settings.results, providers.settings.follow_ups = 1, 1
    result = await investigated(tmp_path, execution=execution, depth=2)
    plan = json.loads(Path(result.artifacts, "plan.json").read_text())
    assert {str(step["retries"]) for step in plan["steps"][2:] if "retries" in step} == {"1", "2"}
    assert len(providers.calls("compressor")) == 1 + more


async def test_a_step_that_tries_again_reads_only_what_is_new(providers: Stubs, tmp_path: Path) -> None:
    """Every search finds the same page, and each try of step 1 another one."""
    providers.settings.planted = {PAGE: "<p>NOISE. Causes of tides, listed.</p>"}
    providers.settings.noise, providers.settings.results, providers.settings.follow_ups = "causes", 2, 1
    await investigated(tmp_path, depth=2)
    asked = [said(record, "user") for record in providers.calls("compressor")]
    again = [text for text in asked if "(again)" in text]
    assert again
    assert all("shared.example" not in text for text in again)


async def test_the_last_critic_is_asked_for_no_steps(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.follow_ups = 1
    await investigated(tmp_path, depth=2)
    first, last = providers.calls("critic")
    assert "follow_up_steps" in schema(first)
    assert "follow_up_steps" not in schema(last)
    whole = last.body["response_format"]["json_schema"]["schema"]
    named = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(whole)))
    assert set(whole["$defs"]) == named, "a definition that nothing names is read for nothing"
    assert "FollowUpStep" not in named


async def test_the_critic_is_told_what_it_named_before_and_which_searches_found_nothing(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.follow_ups, providers.settings.noise = 1, "critics"
    providers.settings.critique = {"contradictions": [{"claim_a": "It is 4 m.", "claim_b": "| Gate | 5 m |"}]}
    await investigated(tmp_path, depth=2)
    first, last = (said(record, "user") for record in providers.calls("critic"))
    assert "found nothing useful" not in first and "you named" not in first
    searched = last.partition("Searches that found nothing useful")[2].partition("\n\n")[0].splitlines()[1:]
    assert searched and all("critics" in query for query in searched)
    named = last.partition("you named what follows")[2]
    assert "- missing: Nothing was found on critics." in named
    assert "- in contradiction: It is 4 m. / Gate | 5 m\n" in named


@pytest.mark.parametrize("planted", ["", "https://tides.nasa.gov/titan"])
async def test_the_outline_is_told_of_trust_where_sources_differ_in_it(
    providers: Stubs, tmp_path: Path, planted: str
) -> None:
    providers.settings.planted = {planted: "<p>Tides of moons. FACT-0a0a0a0a: they rise twice.</p>"} if planted else {}
    await investigated(tmp_path)
    (outline,) = providers.calls("outline")
    assert ("How far each source can be trusted" in said(outline, "user")) is bool(planted)


async def test_who_weighs_the_notes_is_told_what_their_sources_are(providers: Stubs, tmp_path: Path) -> None:
    """A note names its sources by ids: an advertisement looks like a test, and an old page like a new one."""
    url = "https://tides.example.com/sponsored"
    providers.settings.planted = {url: "<p>Tides of moons. FACT-0a0a0a0a: they rise twice.</p>"}
    await investigated(tmp_path)
    for role in ("critic", "section"):
        told = said(providers.calls(role)[-1], "user")
        assert re.search(rf"- \[{source_ids([url])[url]}\][^\n]* \S.* \(tides\.example\.com[,)]", told), role


async def test_sections_are_written_side_by_side_where_steps_are(providers: Stubs, tmp_path: Path) -> None:
    await investigated(tmp_path / "sequential", execution="sequential")
    written = providers.calls("section")
    assert all(b.started > (a.ended or 0) for a, b in pairwise(written))
    providers.requests.clear()
    providers.settings.held = "section"
    run = asyncio.create_task(investigated(tmp_path / "parallel", profile="standard"))
    await asyncio.to_thread(providers.wait_for, len(written) - 1, "section", ended=False)
    providers.settings.held = ""
    await run
    *side_by_side, answer = providers.calls("section")
    assert len(side_by_side) == len(written) - 1 > 1
    assert answer.started > max(record.ended or 0 for record in side_by_side), "it sums up the others"


def step(number: int, title: str = "Tides") -> PlanStep:
    return PlanStep(step_id=number, title=title, description="Find it.")


FOUND = st.sets(st.tuples(st.sampled_from("abcd"), st.booleans()))  # sources, each whole or an excerpt


def found_text(key: str, *, full: bool) -> Source:
    said = "whole" if full else "excerpt"
    return Source(source_id=source(key), url="https://tides.example", title="Tides", kind="web", full=full, digest=said)


@given(st.lists(FOUND, min_size=1, max_size=6), st.data())
def test_each_page_is_read_by_the_first_step_that_finds_it(found: list[set[tuple[str, bool]]], data: Any) -> None:
    """The first that has it whole, if one has; whichever is faster, and also where a step ends before it has found
    anything."""
    steps = [step(n) for n in range(len(found))]
    ends = data.draw(st.sets(st.integers(0, len(found) - 1)))
    waits = data.draw(st.lists(st.integers(0, 3), min_size=len(found), max_size=len(found)))
    texts = [[found_text(key, full=full) for key, full in sorted(own)] for own in found]

    async def research(reading: Reading, n: int) -> tuple[list[str], dict[str, Note | None], list[PlanStep]]:
        try:
            for _ in range(waits[n]):
                await asyncio.sleep(0)
            if n in ends:
                return [], {}, []
            await reading.found(steps[n], texts[n])
            own = reading.reads(steps[n], texts[n])
            reading.noted(steps[n], {key: note(n, "a", key) for key in own})
            return own, await reading.others_noted(steps[n]), [*reading.others(steps[n], own).found]
        finally:
            reading.leave(steps[n])

    async def all_of_them() -> list[tuple[list[str], dict[str, Note | None], list[PlanStep]]]:
        reading = Reading(steps)
        return await asyncio.wait_for(asyncio.gather(*(research(reading, n) for n in range(len(steps)))), 10)

    there = [() if n in ends else own for n, own in enumerate(texts)]

    def reader(text: Source) -> tuple[int, str]:
        first = [(n, one) for n, own in enumerate(there) for one in own if one.source_id == text.source_id]
        whole = [(n, one.key) for n, one in first if one.full and not text.full]
        return next(iter([*whole, *((n, one.key) for n, one in first if one == text)]))

    for n, (own, reused, others) in enumerate(asyncio.run(all_of_them())):
        assert own == [text.key for text in there[n] if reader(text) == (n, text.key)]
        read = {text.key: reader(text) for text in there[n] if reader(text)[0] != n}
        assert {key: (noted.step_id, noted.extraction[0].split(" [")[0]) for key, noted in reused.items() if noted} == {
            key: (by, whole) for key, (by, whole) in read.items()
        }
        served = {m for m, texts in enumerate(there) if m != n for text in texts if reader(text)[0] == n}
        assert others == [steps[m] for m in sorted(served)]


def source(key: str) -> str:
    return f"S{ord(key):06x}"


def note(number: int, key: str, bullet: str = "A fact.") -> Note:
    return Note(
        step_id=number,
        summary_title="Tides",
        summary="It is about tides.",
        extraction=[f"{bullet} [{source(key)}]"],
        is_useful=True,
        artifact_file=f"{number}{key}.json",
        source_ids=[source(key)],
        tokens=100,
    )


def test_a_note_bears_on_another_step_if_it_has_what_the_page_has_for_it() -> None:
    page = "Tides of Titan reach nine metres. The lifetime of the methane cycle is unknown."
    noted = note(1, "a", "Tides of Titan reach nine metres.")
    assert bears_on(noted, source("a"), page, step(2, "Height of tides on Titan"))
    assert not bears_on(noted, source("a"), page, step(2, "Lifetime of the methane cycle"))
    assert not bears_on(noted, source("b"), page, step(2, "Height of tides on Titan")), "it does not quote that source"
    assert not bears_on(noted, source("a"), "Something else.", step(2, "Height of tides on Titan"))


def test_any_note_of_a_page_may_be_taken_over_by_a_later_run_not_the_last_alone() -> None:
    page = SourceText(
        source_id=source("a"),
        url="https://a.example",
        title="Tides",
        kind="web",
        full=True,
        text="Tides of Titan reach nine metres. The lifetime of the methane cycle is unknown.",
    )
    height = note(1, "a", "Tides of Titan reach nine metres.")
    before = NotedBefore(notes={page.source().key: [height, note(2, "a", "It is unknown.")]}, steps=[])
    assert before.bearing(page, [step(3, "Height of tides on Titan")]) == height
    assert before.bearing(page, [step(3, "Lifetime of the methane cycle")]) is None


def test_a_note_serves_a_later_step_only_with_what_that_step_alone_asks_for() -> None:
    """Steps of one question share most of their words."""
    said = "A saved exception is re-raised after the try and except clauses, unless the finally clause returns."
    groups = "Exceptions that no except* clause handled are re-raised in an exception group."
    page = SourceText(
        source_id=source("a"), url="https://a.example", title="try", kind="web", text=f"{said}\n\n{groups}"
    )
    first = step(1, "When a finally clause discards a saved exception of the try clause")
    later = step(2, "Which exceptions an except* clause re-raised in an exception group, not handled")
    before = NotedBefore(notes={page.source().key: [note(1, "a", said)]}, steps=[first])
    assert before.bearing(page, [later]) is None
    assert before.bearing(page, [step(2, "A saved exception is re-raised after the finally clause returns")])


HEIGHTS, PRICES = "The tides of Titan reach nine metres.", "A buoy costs 4,100 euros. Its anchor is sold apart."


@pytest.mark.parametrize(
    ("text", "bullets", "read_for", "serves", "again"),
    [
        (f"{HEIGHTS}\n\n{PRICES}", [HEIGHTS, "A buoy costs 4,100 euros."], ["2"], True, None),
        (f"{HEIGHTS}\n\n{PRICES}", [HEIGHTS, "A buoy costs 4,100 euros."], [], False, True),
        (f"{HEIGHTS}\n\n{PRICES}", [HEIGHTS], ["2"], False, True),
        (HEIGHTS, [HEIGHTS], ["2"], False, False),
    ],
    ids=["two words in a line", "made for the first step alone", "left out", "the page has nothing for it"],
)
def test_a_note_that_was_made_for_a_later_step_too_serves_it_with_one_line(
    text: str, bullets: list[str], read_for: list[str], serves: bool, again: bool | None
) -> None:
    """And the page is read again for that step only if it has something for it that the note has not."""
    page = SourceText(source_id=source("a"), url="https://a.example", title="Titan", kind="web", full=True, text=text)
    first, later = step(1, "Height of the tides"), step(2, "Costs of a buoy, its anchor, radio, and freight to Titan")
    noted = note(1, "a").model_copy(update={"extraction": [f"{bullet} [{source('a')}]" for bullet in bullets]})
    result = ToolResult(
        call=ToolCall(tool="web_search", input="tides"), artifact_file=noted.artifact_file, sources=[page.source()]
    )
    made = Call(result=result, useful=True, read_for=read_for)
    before = NotedBefore.of([first, later], {"1": [made]}, [noted])
    assert bool(before.bearing(page, [later])) is serves
    assert again is None or bool(EarlierReading(before, NotedBefore()).worth_reading([page], [later])) is again


@pytest.mark.parametrize("excerpt", [False, True])
@pytest.mark.parametrize(("bullet", "serves"), [("A buoy costs 4,100 euros.", True), (HEIGHTS, False)])
async def test_a_note_of_a_step_that_runs_beside_another_serves_it_with_one_line_too(
    bullet: str, serves: bool, *, excerpt: bool
) -> None:
    """The compressor was told of both steps, and says in few words what the page has for the second, which may have
    only an excerpt of it that lacks this."""
    text = f"{HEIGHTS}\n\n{PRICES} The radio is included, and so is the freight to Titan."
    page = SourceText(source_id=source("a"), url="https://a.example", title="Titan", kind="web", full=True, text=text)
    first, beside = step(1, "Height of the tides"), step(2, "Costs of a buoy, its anchor, radio, and freight to Titan")
    known = page.model_copy(update={"full": False, "text": "The radio is included."}) if excerpt else page
    reading = Reading([first, beside])
    await asyncio.gather(reading.found(first, [page.source()]), reading.found(beside, [known.source()]))
    assert (reading.reads(beside, [known.source()]), reading.others(first, [page.source().key]).found) == ([], [beside])
    reading.noted(first, {page.source().key: note(1, "a", bullet)})
    served = reading.served(beside, await reading.others_noted(beside))
    assert bool(served.bearing(known, [beside])) is serves


def test_what_had_nothing_in_an_earlier_run_is_read_for_a_follow_up_only_if_it_has_more_for_it() -> None:
    page = SourceText(
        source_id=source("a"),
        url="https://a.example",
        title="Moons",
        kind="web",
        text="Titan is a moon. We use cookies. The methane cycle has a lifetime. Each cycle of our bikes has a brake.",
    )
    result = ToolResult(call=ToolCall(tool="web_search", input="tides"), sources=[page.source()])
    made = Call(result=result, useful=False, useless=[page.source().key])
    before = NotedBefore.of([step(1, "Tides on Titan")], {"1": [made]}, []).by_another_run()
    before = NotedBefore.model_validate_json(before.model_dump_json())

    def read(title: str) -> bool:
        return worth_reading(page.source(), page.text, step(1, title), before.useless)

    assert not read("Tides on Titan"), "its step has the number of another one, and asks the same"
    assert not read("Use of tides"), "one common word says nothing"
    assert not read("Brakes of tidal power plants")
    assert read("Lifetime of the methane cycle")


def test_a_brief_goes_with_a_note_that_has_changed() -> None:
    first, second = note(1, "a"), note(2, "b")
    memory = Memory(
        notes=[first, second],
        briefs=[Brief(step_id=n.step_id, text="In short.", files=[n.artifact_file]) for n in (first, second)],
    )
    less = memory.of([first, second.model_copy(update={"extraction": []})])
    assert [brief.step_id for brief in less.briefs] == [1]
    assert [n.step_id for n in less.shown] == [2]
