"""The whole pipeline against scripted providers over real HTTP."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from fathom.evidence.support import spaced_words
from fathom.models import Ending, Usage
from fathom.roles import PLANNER
from fathom.roles.planner import PlanRequest
from fathom.run.engine import Engine
from fathom.storage.store import EXCHANGES
from fathom.tasks.durable import outside_prefect, storing
from fathom.tasks.model_calls import ask
from tests.conftest import Bucket, is_own
from tests.inprocess import investigated, kept
from tests.stubs import Record, Stubs
from tests.stubs.reading import Prompt

QUERY = "How do tides form on moons with liquid methane seas?"
RAW = re.compile(r"RAW\w+")
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
NOTE_FIELDS = ["summary_title", "summary", "extraction", "artifact_file"]

pytestmark = pytest.mark.usefixtures("home")


def said_to(record: Record) -> str:
    return "\n".join(message["content"] for message in record.body["messages"])


def tokens_by_role(stubs: Stubs) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in stubs.calls("llm"):
        found.setdefault(record.role, []).append(record.usage["prompt_tokens"])
    return found


async def test_raw_output_reaches_the_compressor_alone_and_pages_may_grow(providers: Stubs, tmp_path: Path) -> None:
    seen: dict[int, dict[str, list[int]]] = {}
    providers.settings.suggests, providers.settings.steps = False, 1
    for page_bytes, reduction in ((20_000, 0.80), (100_000, 0.95)):
        providers.settings.page_bytes = page_bytes
        providers.requests.clear()
        result = await investigated(tmp_path / str(page_bytes), fresh=True)
        assert result.status is Ending.complete, result.reason
        assert result.metrics.context_reduction >= reduction
        assert result.metrics.llm_calls == len(providers.calls("llm"))
        assert result.metrics.narrowed_tokens == 0
        compressors = providers.calls("compressor")
        returned = {mark for record in providers.calls("search") for mark in RAW.findall(json.dumps(record.answer))}
        read = {mark for record in compressors for mark in RAW.findall(said_to(record))}
        assert returned and returned <= read, "every sentence of every page"
        leaks = [r.role for r in providers.calls("llm") if r.role != "compressor" and RAW.search(said_to(r))]
        assert leaks == []
        seen[page_bytes] = tokens_by_role(providers)
    small, large = seen.values()
    assert set(small) == {"planner", "researcher", "compressor", "critic", "outline", "section"}
    for role in set(small) - {"compressor"}:
        assert sum(large[role]) <= 1.25 * sum(small[role]), f"{role}: notes of several requests are a little longer"


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("suggests", [True, False], ids=["planner's queries", "researcher's calls"])
async def test_quick_is_the_core_specification_to_the_letter(providers: Stubs, tmp_path: Path, suggests: bool) -> None:
    providers.settings.suggests, providers.settings.noise = suggests, "effects"  # the second step finds little
    providers.settings.section = "Whether tides rise there is disputed by many. [ID]"  # which words alone do not settle
    result = await investigated(tmp_path, profile="quick", fresh=True)
    folder = Path(result.artifacts)
    plan = json.loads((folder / "plan.json").read_text())
    asked = providers.requests

    # One after another: each call of a tool, then the compression of its output, step by step.
    assert all(one.ended is not None and one.ended <= other.started for one, other in pairwise(asked))
    roles = "".join({"search": "t", "extract": "t", "compressor": "c"}.get(one.role, f" {one.role} ") for one in asked)
    deciding = "" if suggests else " researcher "
    assert re.fullmatch(rf" planner (?:{deciding}(?:tc)+){{3}} outline (?: section )+", roles), roles
    compressed = [said_to(one) for one in providers.calls("compressor")]
    order = [
        next(step["step_id"] for step in plan["steps"] if f"Step: {step['title']}\n" in said) for said in compressed
    ]
    assert order == sorted(order) and set(order) == {1, 2, 3}

    # The planner sees the question, the date and the tools; the compressor what guides it, and the raw output.
    [planner] = providers.calls("planner")
    [_, (role, told)] = [(message["role"], message["content"]) for message in planner.body["messages"]]
    assert (role, told.partition("\n\nTools the team can use:\n")[0]) == ("user", f"Question:\n{QUERY}")
    for said, number in zip(compressed, order, strict=True):
        step = plan["steps"][number - 1]
        assert f"Plan: {plan['plan_title']}\nStep: {step['title']}\n{step['description']}" in said
        assert re.search(r"^Output of the tool web_(search|extract):$", said, re.MULTILINE)
        assert RAW.search(said) and QUERY not in said

    # The whole output of each call is stored, useful or not, under the convention's name.
    stored = {name for path in folder.glob("*__step*") if (name := path.name).endswith(".json")}
    assert len(stored) == len(compressed)
    convention = re.compile(rf"{folder.name}__step([123])_[a-z0-9_]+?__web_(search|extract)(__\d)?\.json")
    assert {int(found[1]) for name in stored if (found := convention.fullmatch(name))} == {1, 2, 3}

    # Nobody else sees any of it; useful notes are one assistant message each, useless outputs are none.
    answers = [json.loads(one.answer["choices"][0]["message"]["content"]) for one in providers.calls("compressor")]
    notes = [note["artifact_file"] for note in json.loads((folder / "notes.json").read_text())]
    assert len(notes) == sum(one["is_useful"] for one in answers) > 1
    useless = stored - set(notes)
    assert useless and set(notes) < stored
    told_to_writers: list[str] = []
    for record in providers.calls("llm"):
        if record.role == "compressor":
            continue
        assert not RAW.search(said_to(record)), record.role
        injected = [message["content"] for message in record.body["messages"] if message["role"] == "assistant"]
        assert all(list(json.loads(note)) == NOTE_FIELDS for note in injected)
        told_to_writers += [json.loads(note)["artifact_file"] for note in injected if record.role == "outline"]
        assert not [name for name in useless if name in said_to(record)]
        assert "nothing useful" not in said_to(record)
    assert told_to_writers == notes


async def test_the_context_holds_injected_notes_only(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.noise = "history"  # the third step finds nothing
    result = await investigated(tmp_path, depth=1)
    folder = Path(result.artifacts)
    plan = json.loads((folder / "plan.json").read_text())
    assert [step["status"] for step in plan["steps"]] == ["done", "done", "blocked"]
    assert plan["steps"][2]["title"] in (folder / "report.md").read_text().split("## Not found")[1]
    step3 = list(folder.glob("*__step3_*.json"))
    assert step3, "raw output is stored although it was not useful"
    injected = []
    for record in providers.calls("llm"):
        for message in record.body["messages"]:
            assert message["role"] != "tool"
            if message["role"] == "assistant":
                note = json.loads(message["content"])
                assert list(note) == NOTE_FIELDS
                assert (folder / note["artifact_file"]).is_file()
                injected.append(note)
        if record.role == "compressor":
            assert [m["role"] for m in record.body["messages"]] == ["system", "user"]
    assert injected
    assert not any(step3[0].name.split(".")[0] in note["artifact_file"] for note in injected)


async def test_the_writer_is_shown_of_the_sources_what_concerns_a_section_and_no_note_quotes(
    providers: Stubs, tmp_path: Path
) -> None:
    quoted = "FACT-00004711: the study of tides on moons counted 4,711 cases in 1911"
    unquoted = "Tides on moons last 977 hours"
    page = "\n\n".join([f"{quoted}.", "The depot keeps its brooms. " * 40, f"{unquoted}."])
    providers.settings.planted = {"https://tides.example.org/rise": page}
    await investigated(tmp_path, passage_tokens=1_500)
    asked = [Prompt(record.body) for record in providers.calls("section")]
    head, foot = "Passages of the sources that bear on this section:", "Sources of the notes:"
    shown = [one.user.partition(head)[2].partition(foot)[0] for one in asked]
    assert any(unquoted in one for one in shown)
    noted = [any(quoted in said["content"] for said in one.body["messages"][:-1]) for one in asked]
    assert any(noted) and not [one for one, known in zip(shown, noted, strict=True) if known and quoted in one]


async def test_nothing_found_is_no_report(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.noise = "."
    result = await investigated(tmp_path)
    assert result.status is Ending.insufficient_evidence
    assert result.report is None
    assert not providers.calls("outline")
    assert list(Path(result.artifacts).glob("*__web_search.json"))


async def test_a_role_whose_model_fails_is_answered_without_it_and_the_run_says_so(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.faults = {"planner": ["broken_json*"], "critic": ["refusal*"], "search": ["400"]}
    result = await investigated(tmp_path)
    assert result.status is Ending.degraded
    assert "planner" in result.reason
    assert "critic" in result.reason
    assert "E3005" in result.reason
    assert "E3005" in Path(result.report or "").read_text()
    assert len(providers.calls("planner")) == 2  # one re-ask, then no more


async def test_s3_and_local_disk_hold_the_same_names_and_bytes(
    providers: Stubs, tmp_path: Path, moto_s3: Bucket
) -> None:
    import fsspec

    providers.settings.steps = providers.settings.breadth = 1
    local = await kept(tmp_path, fresh=True, depth=1)
    remote = await kept(f"{moto_s3.url}/nested/root", fresh=True, depth=1)
    assert remote.artifacts.startswith(moto_s3.url)
    s3 = fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True)
    objects = {Path(name).name: s3.cat_file(name) for name in s3.ls(remote.artifacts, detail=False)}
    files = {path.name: path.read_bytes() for path in Path(local.artifacts).iterdir()}
    assert set(objects) == set(files)
    assert {n: b for n, b in objects.items() if not is_own(n)} == {n: b for n, b in files.items() if not is_own(n)}
    assert s3.ls(f"{moto_s3.url}/nested/root/.results", detail=False)


async def test_without_a_model_every_sentence_is_cited_and_two_runs_are_the_same(tmp_path: Path) -> None:
    question = "How does Python look up an attribute on an instance?"
    first, second = [await investigated(tmp_path, question, model=None) for _ in range(2)]
    assert first.status is Ending.complete, first.reason
    assert first.metrics.llm_calls == 0
    assert first.artifacts != second.artifacts
    for name in ("plan.json", "notes.json", "report.md"):
        assert (Path(first.artifacts) / name).read_bytes() == (Path(second.artifacts) / name).read_bytes()
    report = json.loads((Path(first.artifacts) / "report.json").read_text())
    raw = [json.loads(path.read_text()) for path in Path(first.artifacts).glob("*__documents*.json")]
    texts: dict[str, str] = {}
    for result in (result for output in raw for result in output["results"]):
        texts[result["source_id"]] = texts.get(result["source_id"], "") + spaced_words(result["text"])
    assert len(report["sections"]) >= 3
    for section in report["sections"]:
        *quotations, rest = re.split(r"((?:\s*\[S[0-9a-f]{6,}\])+)", section["markdown"])
        assert not CODE.sub("", rest).strip(" `\n"), f"uncited: {rest}"  # code is cited above it
        for quotation in [*quotations[::2], rest]:
            blocks = [block for block in re.split(r"\n\n|The source reads:", quotation) if block.strip()]
            assert all(any(spaced_words(block) in text for text in texts.values()) for block in blocks), quotation


async def test_parallel_steps_leave_the_same_files_as_sequential_ones(providers: Stubs, tmp_path: Path) -> None:
    modes = ("sequential", "parallel")
    results = [await investigated(tmp_path / mode, fresh=True, execution=mode) for mode in modes]
    names = [sorted(path.name for path in Path(r.artifacts).iterdir()) for r in results]
    assert names[0] == names[1]
    assert results[1].status is Ending.complete


async def test_equal_requests_of_a_run_have_one_answer_that_is_paid_and_counted_once(
    providers: Stubs, tmp_path: Path
) -> None:
    counted: list[Usage] = []

    async def ask_twice(engine: Engine) -> None:
        request = PlanRequest(query=QUERY, today="2026-11-28", max_steps=2, tools={"web": "Searches the web."})
        with outside_prefect(storing(engine.store, engine.start.run_key)):
            counted.extend([(await ask(PLANNER, request, engine))[1] for _ in range(2)])

    result = await investigated(tmp_path, _before=ask_twice)
    first, again = counted
    assert first.llm_calls and not again.llm_calls
    # What was asked before the run is not in its result.
    assert len(providers.calls("llm")) == result.metrics.llm_calls + first.llm_calls
    exchanges = (Path(result.artifacts) / EXCHANGES).read_text(encoding="utf-8").splitlines()
    assert len(exchanges) == len(set(exchanges)) == len(providers.calls("llm"))
    times = [json.loads(line)["at"] for line in exchanges]
    assert times == sorted(times)
