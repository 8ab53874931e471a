"""Questions that follow up on a run: what they mean, what they ask of the world, and how both runs name each other."""

from __future__ import annotations

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fathom.config.environment import Environment
from fathom.config.groups import CompressionSettings
from fathom.config.inputs import MAX_QUERY_CHARS
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import InvalidInput, NoReport
from fathom.evidence.computed import MARK
from fathom.evidence.provenance import FollowUp, with_follow_ups, without_follow_ups
from fathom.evidence.verify import verify_run
from fathom.extractive.following import asked_in, understood
from fathom.flows.deep_research import deep_research
from fathom.flows.housekeeping import prune
from fathom.flows.replay import replay
from fathom.flows.runs.endings import result_in
from fathom.flows.runs.following import find_parent
from fathom.flows.runs.stored import files_of, find
from fathom.models import Ending, RunResult, SourceText, ToolCall
from fathom.report.html import unsafe
from fathom.storage.bundles import pack, unpack
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.tools.base import RunContext
from fathom.tools.earlier import EarlierRun
from fathom.tools.earlier_run import EarlierRunTool
from fathom.tools.registry import configured_tools
from fathom.tools.toolbox import open_toolbox
from tests.conftest import FathomCLI, PrefectServer
from tests.inprocess import QUERY, investigated, kept, research
from tests.stubs import Stubs
from tests.test_loop import said

PUMPS = "How many heat pumps were sold in the USA in 2023?"
KIT = "What does the Floor cleaner Lumo cost?"
LOOKUP = "How does Python look up an attribute on an instance?"


@pytest.mark.parametrize(
    ("asked", "earlier", "meant"),
    [
        ("and in Europe?", PUMPS, "How many heat pumps were sold in Europe in 2023?"),
        ("What about 2024?", PUMPS, "How many heat pumps were sold in the USA in 2024?"),
        ("Why?", PUMPS, "Why (heat pumps USA 2023)?"),
        ("Compare it with Canada.", PUMPS, "Compare it with Canada (heat pumps USA 2023)"),
        ("and on a class?", LOOKUP, "How does Python look up an attribute on a class?"),
        ("and exit code 6?", "What does exit code 28 stand for?", "What does exit code 6 stand for?"),
        ("and without gas?", "What does heating cost with gas?", "What does heating cost without gas?"),
        (
            "und in Österreich?",
            "Wie viele Wärmepumpen wurden 2023 in Deutschland verkauft?",
            "Wie viele Wärmepumpen wurden 2023 in Österreich verkauft?",
        ),
        (
            "et en Italie ?",
            "Combien de pompes à chaleur ont été vendues en France en 2023 ?",
            "Combien de pompes à chaleur ont été vendues en Italie en 2023 ?",
        ),
        (
            "¿Y cuánto cuestan?",
            "¿Cuántas bombas de calor se vendieron en España?",
            "Cuánto cuestan (bombas calor vendieron España)?",
        ),
        ("ヨーロッパでは？", "日本のヒートポンプの販売台数は？", "ヨーロッパでは (日本のヒートポンプの販売台数は)?"),
        ("And what does the Window kit cost?", KIT, "What does the Window kit cost?"),
        ("And the Window kit?", KIT, "What does the Window kit cost?"),
        ("What about Maro Teles?", "When did Ida Brandt start?", "When did Maro Teles start?"),
        ("And Corvane?", "When does the agreement with Alder end?", "When does the agreement with Corvane end?"),
        (
            "And the second floor?",
            "Who replaces the carpet on the first floor?",
            "Who replaces the carpet on the second floor?",
        ),
        (
            "and the office in Ghent?",
            "What is the fee for the office in Harlow?",
            "What is the fee for the office in Ghent?",
        ),
        ("What is the warranty?", "What is the price of the vacuum X200?", "What is the warranty (vacuum X200)?"),
        ("And the population?", "What is the capital of Sweden?", "What is the population of Sweden?"),
        ("How long is the guarantee?", KIT, "How long is the guarantee (Floor cleaner Lumo)?"),
        ("Is there a discount on the Window kit from 10?", KIT, "Is there a discount on the Window kit from 10?"),
        ("What else does the price list offer?", "Who is Ida Brandt?", "What else does the price list offer?"),
        ("What else?", "Who is Ida Brandt?", "What else (Ida Brandt)?"),
        ("Which visitors that arrive late must sign in?", KIT, "Which visitors that arrive late must sign in?"),
        ("When does the mobile app come out?", KIT, "When does the mobile app come out?"),
        ("Wer ist für die Buchhaltung zuständig?", KIT, "Wer ist für die Buchhaltung zuständig?"),
        ("How do I reset my password?", KIT, "How do I reset my password?"),
        ("How long is the delivery time?", KIT, "How long is the delivery time (Floor cleaner Lumo)?"),
        ("Wie lang ist die Lieferzeit?", KIT, "Wie lang ist die Lieferzeit (Floor cleaner Lumo)?"),
        ("How fast do electric cars charge in winter?", PUMPS, "How fast do electric cars charge in winter?"),
    ],
)
def test_a_follow_up_is_a_question_of_its_own(asked: str, earlier: str, meant: str) -> None:
    assert understood(asked, earlier) == meant


def test_of_a_question_that_was_refused_no_word_is_taken_that_the_next_one_does_not_need() -> None:
    before = "When is Tom away?"
    assert understood("Who stands in for Tom?", before) == "Who stands in for Tom (away)?"
    assert understood("Who stands in for Tom?", before, refused=True) == "Who stands in for Tom?"
    assert understood("Who stands in for him?", before, refused=True) == "Who stands in for him (Tom)?"
    assert understood("and Marta?", before, refused=True) == "When is Marta away?"


def test_what_the_earlier_question_asks_about_comes_before_what_it_tells_of_the_asker() -> None:
    before = "We are a joiner's firm with six people in Germany. Which of Ledgerly, Factura Pro and Kontor24 fits us?"
    meant = "What does that cost us over three years (Ledgerly Factura Pro Kontor24 joiner's firm)?"
    assert understood("and what does that cost us over three years?", before) == meant


def test_thanks_after_an_answer_is_no_question() -> None:
    said = [("user", "hello"), ("user", "When is Tom away?"), ("assistant", "On Monday.")]
    assert asked_in(said, "thanks a lot!") == ("thanks a lot!", {})
    assert asked_in(said, "and Marta?") == ("When is Marta away?", {})


def test_a_short_answer_to_what_was_asked_back_is_kept() -> None:
    said = [("user", "How do pumps start?"), ("assistant", "Do you mean water pumps?"), ("user", "Yes")]
    said = [*said, ("assistant", "Electric ones?")]
    both = {"Do you mean water pumps?": "Yes", "Electric ones?": "no"}
    assert asked_in(said, "no") == ("How do pumps start?", both)


def test_of_a_message_that_is_too_long_for_a_question_no_more_is_read() -> None:
    page = "a b c " * 300_000
    question, clarified = asked_in([("user", page), ("assistant", "Which one?")], "the second")
    assert (len(question), clarified) == (MAX_QUERY_CHARS + 1, {"Which one?": "the second"})
    assert MAX_QUERY_CHARS < len(asked_in([("user", PUMPS)], page)[0]) < 2 * MAX_QUERY_CHARS, "which is refused"


def test_it_is_what_was_computed_only_where_the_question_says_it() -> None:
    earlier, answer = "Which plan is the cheapest?", f"{MARK}the lowest of the 2 values of “Price” is $5 (Basic)."
    assert understood("How many users does it have?", earlier, answer) == "How many users does it have (Basic)?"
    assert "Basic" not in understood("Is there a trial?", earlier, answer)


async def ask(root: Path, parent: RunResult | str, query: str, **settings: Any) -> RunResult:
    """Follow up on a run with its settings, as a deployment does."""
    reference = parent if isinstance(parent, str) else parent.run_id[:8]
    given = ResearchSettings.model_validate({"artifacts": str(root), **settings})
    return await result_in(await deep_research(query, given, parent=reference, return_state=True))


def urls(result: RunResult) -> set[str]:
    return {source["url"] for source in stored(result, "provenance.json")["sources"]}


def stored(result: RunResult, name: str) -> Any:
    return json.loads(Path(result.artifacts, name).read_bytes())


def tools(result: RunResult) -> set[str]:
    return {call["tool"] for call in stored(result, "provenance.json")["calls"]}


@pytest.mark.usefixtures("home", "prefect_server")
async def test_it_asks_nothing_that_was_read_before(providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI) -> None:
    providers.settings.steps, providers.settings.breadth, providers.settings.page_bytes = 1, 1, 1_500
    first = await kept(tmp_path, profile="quick", fallback_models=["openai/other"])
    store = ArtifactStore(str(tmp_path))
    found = stored(first, "report.json")
    asked = len(providers.requests)
    second = await ask(tmp_path, first, "and on planets?")
    third = await ask(tmp_path, second.artifacts, "Why?")
    again = providers.requests[asked:]
    assert {request.kind for request in again} == {"llm"}
    assert urls(third) <= urls(second) <= urls(first)
    assert all(url.startswith("http") for url in urls(second))
    assert (second.status, third.status) == (Ending.complete, Ending.complete)

    planner = next(json.dumps(request.body) for request in again if request.role == "planner")
    assert "How do tides form on moons with liquid methane seas?" in planner
    assert "and on planets?" in planner
    assert all(question in planner for question in found["open_questions"])
    answer = re.sub(r" ?\[S\w+\]", "", found["sections"][0]["markdown"])[:60]
    section = next(json.dumps(request.body) for request in again if request.role == "section")
    assert f"The earlier report answered: {answer}" in section, "by which the reader understands the question"
    manifest = stored(second, "run.json")
    assert manifest["parent"]["run_id"] == first.run_id
    assert manifest["understood"] == "How do tides form on planets with liquid methane seas?"
    assert (manifest["settings"]["profile"], manifest["settings"]["fallback_models"]) == ("quick", ["openai/other"])
    assert stored(second, "provenance.json")["run"]["parent"]["query"] == QUERY

    # Each page names the others, and every run still verifies and replays.
    names = [Path(result.artifacts).name for result in (first, second, third)]
    pages = [Path(result.artifacts, "report.html").read_bytes() for result in (first, second, third)]
    for page, beside in zip(pages, [names[1:2], [names[0], names[2]], names[1:2]], strict=True):
        assert all(f'href="../{name}/report.html"'.encode() in page for name in beside)
        assert not unsafe(page)
    for result in (first, second, third):
        assert verify_run(await files_of(await find(store, result.run_id))).problems == []
    assert {file.state for file in await replay(await find(store, second.run_id))} == {"same"}
    listed = fathom_cli(["runs", "--artifacts", str(tmp_path)])
    assert f"(follows {first.run_id[:8]})" in listed.stdout

    # A follow-up has all that it is based on: in another store, and where the run before it is gone.
    bundle, elsewhere = tmp_path / "run.zip", ArtifactStore(str(tmp_path / "elsewhere"))
    with bundle.open("wb") as file:
        await pack(await find(store, second.run_id), file)
    await unpack(elsewhere, bundle, unsafe)
    assert verify_run(await files_of(await find(elsewhere, second.run_id))).problems == []
    shutil.rmtree(first.artifacts)
    assert verify_run(await files_of(await find(store, second.run_id))).problems == []
    # What is removed is not named any longer.
    manifest = Path(third.artifacts, "run.json")
    manifest.write_text(manifest.read_text().replace(stored(third, "run.json")["started"], "2020-01-02T00:00:00+00:00"))
    shutil.rmtree(tmp_path / ".results" / third.run_id)  # and with it, when it was worked on
    gone = await prune(store, timedelta(days=1))
    assert [run.run_id for run in gone.removed] == [third.run_id]
    assert "Followed by" not in Path(second.artifacts, "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("home", "prefect_server")
async def test_without_a_model_only_what_is_missing_is_read(tmp_path: Path) -> None:
    docs, root = tmp_path / "docs", tmp_path / "store"
    docs.mkdir()
    for town, people, power in (("Norden", 120, 412), ("Tarn", 85, 96)):
        text = (
            f"# The plant of {town}\n\nThe plant in {town} employs {people} people.\n\nIt makes {power} MW of power.\n"
        )
        (docs / f"{town.lower()}.md").write_text(text, encoding="utf-8")
    chosen: dict[str, Any] = {"model": "extractive", "docs": [str(docs)], "max_results": 1, "profile": "quick"}
    first = await kept(root, "How many people does the plant in Norden employ?", **chosen)
    assert urls(first) == {"docs:docs/norden.md"}

    known = await ask(root, first, "How much power does it make?")
    assert tools(known) == {"earlier_run"}
    assert "412 MW" in Path(known.report or "").read_text(encoding="utf-8")
    missing = await ask(root, first, "and in Tarn?")
    assert tools(missing) == {"earlier_run", "documents"}
    report = Path(missing.report or "").read_text(encoding="utf-8")
    assert report.startswith("# How many people does the plant in Tarn employ?")
    assert "employs 85 people" in report
    # Prefect's form writes every box, also those that were left as they are.
    form = ResearchSettings().model_dump(mode="json") | {"artifacts": str(root)}
    filled = await ask(root, first, "and in Tarn?", **form)
    assert tools(filled) == {"earlier_run", "documents"}
    assert stored(filled, "run.json")["settings"]["docs"] == [str(docs)]
    # Settings that are given count: nothing new is read.
    nothing = await ask(root, first, "and in Tarn?", tools=["earlier_run"])
    assert "85" not in json.dumps(stored(nothing, "notes.json"))


async def test_pages_that_were_read_are_not_requested_again(providers: Stubs, tmp_path: Path, home: Path) -> None:
    providers.settings.without_raw = 1.0  # so that pages are read after the search
    result = await investigated(tmp_path, profile="quick")
    folder = RunFolder(ArtifactStore(str(tmp_path)), f"research_artifacts/{Path(result.artifacts).name}")
    await folder.save_json("provenance.json", await _provenance(folder))
    url = next(text.source.url for text in await EarlierRun(folder).texts() if text.source.full)
    environment, asked = Environment.read(), ResearchSettings(artifacts=str(tmp_path))
    given = resolve(asked, environment, configured_tools(asked, environment, follow_up=True))
    for fresh, requests in ((False, 1), (True, 2)):
        settings = given.model_copy(update={"fresh": fresh})
        toolbox = open_toolbox(RunContext(settings, environment, folder, earlier=EarlierRun(folder)))
        before = len(providers.calls("extract"))
        called = ToolCall(tool="web_extract", input=f"{url} https://elsewhere.example/tides-on-titan-1")
        output = await toolbox.run(called)
        assert len(output.results) == 2
        sent = [address for call in providers.calls("extract")[before:] for address in call.body["urls"]]
        assert len(sent) == requests
        assert (url in sent) is fresh


@pytest.mark.usefixtures("home", "prefect_server")
async def test_a_run_that_cannot_be_followed_is_refused(
    prefect_server: PrefectServer, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    root, docs = tmp_path / "store", tmp_path / "tanks.md"
    docs.write_text("The tanks hold 400 cubic metres of water.", encoding="utf-8")
    chosen: dict[str, Any] = {"model": "extractive", "docs": [str(docs)], "profile": "quick"}
    whole = await kept(root, "How much water do the tanks hold?", **chosen)

    def refused(run: str, *options: str, code: int = 2) -> str:
        done = fathom_cli(["ask", run, "and in summer?", "--artifacts", str(root), *options], env=prefect_server.env)
        assert done.returncode == code, done.stderr
        assert done.stderr.count("\n") == 1
        return done.stderr

    assert "No run 'nothing'" in refused("nothing")
    assert "query is empty" in fathom_cli(["ask", whole.run_id[:8], " ", "--artifacts", str(root)]).stderr
    assert "must be stored there too" in refused(whole.artifacts, "--artifacts", str(tmp_path / "other"))
    assert "--depth 9" in refused(whole.run_id[:8], "--depth", "9")
    assert "--set report.words=5: it must be" in refused(whole.run_id[:8], "--set", "report.words=5")
    elsewhere = f"artifacts={tmp_path / 'other'}"
    assert "--artifacts and --set artifacts=" in refused(whole.run_id[:8], "--set", elsewhere)
    with pytest.raises(InvalidInput, match="not in the store"):
        await find_parent(ArtifactStore(str(tmp_path / "other")), whole.artifacts)
    with pytest.raises(InvalidInput, match="a follow-up only"):
        await research(root, "How deep are they?", **chosen, tools=["earlier_run"])
    docs.unlink()
    assert "tanks.md" in refused(whole.run_id[:8])
    Path(whole.artifacts, "pruned.json").write_text('{"removed": "2026-01-02T00:00:00+00:00"}')
    assert "was removed on 2026-01-02" in refused(whole.run_id[:8], code=3)
    Path(whole.artifacts, "result.json").unlink()
    with pytest.raises(NoReport, match="has not finished"):
        await find_parent(ArtifactStore(str(root)), whole.run_id)


@pytest.mark.usefixtures("home", "prefect_server")
async def test_a_question_without_an_answer_can_be_asked_in_other_words(tmp_path: Path) -> None:
    root, docs = tmp_path / "store", tmp_path / "tanks.md"
    docs.write_text("# Tanks of Norden\n\nThe cisterns of Norden hold 400 cubic metres of water.\n", encoding="utf-8")
    chosen: dict[str, Any] = {"model": "extractive", "docs": [str(docs)], "profile": "quick"}
    refused = await kept(root, "Who won the football match in Norden?", **chosen)
    assert refused.report is None
    found = await ask(root, refused, "How much water do the cisterns hold?")
    assert tools(found) == {"documents"}
    assert "400 cubic metres" in Path(found.report or "").read_text(encoding="utf-8")
    page = Path(found.artifacts, "report.html").read_text(encoding="utf-8")
    assert "Who won the football match" in page
    assert f"../{Path(refused.artifacts).name}/" not in page, "there is no page to link to"
    assert not unsafe(page.encode())
    assert verify_run(await files_of(await find(ArtifactStore(str(root)), found.run_id))).problems == []
    assert {file.state for file in await replay(await find(ArtifactStore(str(root)), found.run_id))} == {"same"}
    third = await ask(root, found, "How much do they hold?")
    assert tools(third) == {"earlier_run"}


def test_only_the_list_of_follow_ups_may_change_in_a_page() -> None:
    page = b"<header>\n<p>x</p>\n</header>\n<nav></nav>\n"
    named = with_follow_ups(page, [FollowUp("tides__1a2b3c4d", 'and <b>"here"</b>?'), FollowUp("../out", "no")])
    assert b"<b>" not in named
    assert b"out" not in named
    assert without_follow_ups(named) == page
    assert with_follow_ups(named, []) == page
    assert with_follow_ups(b"no header", [FollowUp("a", "b")]) == b"no header"
    for changed in (named.replace(b"../tides", b"https://evil"), named.replace(b"?</a>", b"?</a><img src=x>")):
        assert without_follow_ups(changed) == changed


async def _provenance(folder: RunFolder) -> dict[str, Any]:
    """Return as much of a record as an earlier run needs: `investigated` writes none."""
    calls: list[dict[str, Any]] = []
    sources: dict[str, SourceText] = {}
    for number, name in enumerate(await folder.list(), 1):
        found = (await folder.read(name)).results
        sources |= {text.source_id: text for text in found}
        ids = [text.source_id for text in found]
        made = {"step_id": "1", "tool": "web_search", "input": "", "sha256": "", "bytes": 0, "retrieved": ""}
        calls.append({**made, "number": number, "artifact_file": name, "useful": True, "source_ids": ids})
    kept = {"source_id", "url", "title", "kind", "published"}
    records = [{**source.model_dump(include=kept), "texts": []} for source in sources.values()]
    run, plan = await folder.load_json("run.json"), await folder.load_json("plan.json")
    return {"run": run, "plan": plan, "rounds": [], "calls": calls, "sources": records, "claims": [], "files": {}}


def test_limits_that_an_older_run_stored_are_read_as_they_are_now() -> None:
    old = {"max_input_tokens": 10_000, "max_note_tokens": 900}
    assert CompressionSettings.model_validate(old) == CompressionSettings(summary_tokens=300)
    chosen = {"max_input_tokens": 20_000, "max_note_tokens": 1_500}
    assert CompressionSettings.model_validate(chosen) == CompressionSettings(max_input_tokens=20_000)


async def test_of_what_was_read_only_what_is_close_is_looked_at_again(
    providers: Stubs, tmp_path: Path, home: Path
) -> None:
    providers.settings.steps, providers.settings.breadth, providers.settings.results = 1, 1, 3
    providers.settings.planted = {
        "https://a.example/lakes": "<p>FACT-0a1b2c3d: the lakes of Titan evaporate in summer, and refill later.</p>",
        "https://b.example/tides": "<p>FACT-1a1b2c3d: tides form on moons with liquid methane seas, in summer too.</p>",
    }
    result = await investigated(tmp_path, profile="quick")
    folder = RunFolder(ArtifactStore(str(tmp_path)), f"research_artifacts/{Path(result.artifacts).name}")
    await folder.save_json("provenance.json", await _provenance(folder))
    here = Environment.read()
    settings = resolve(ResearchSettings(), here, [])
    tool = EarlierRunTool.open(RunContext(settings, here, earlier=EarlierRun(folder)))
    found = await tool.run("how the lakes of Titan evaporate in summer")
    assert [text.url for text in found.results] == ["https://a.example/lakes"]


@pytest.mark.usefixtures("home", "prefect_server")
async def test_a_page_that_had_nothing_is_not_read_again_for_a_follow_up(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.steps, providers.settings.breadth, providers.settings.page_bytes = 1, 2, 1_500
    providers.settings.planted = {"https://shared.example/page": "<p>NOISE. Tides on moons and planets, listed.</p>"}
    first = await kept(tmp_path, profile="quick")
    assert any("shared.example" in said(record, "user") for record in providers.calls("compressor"))
    providers.requests.clear()
    await ask(tmp_path, first, "Which causes of tides on moons are known?")
    assert not any("shared.example" in said(record, "user") for record in providers.calls("compressor"))


@pytest.mark.usefixtures("home", "prefect_server", "wide")
async def test_only_a_page_that_has_more_for_a_follow_up_is_noted_again(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.steps, providers.settings.breadth, providers.settings.page_bytes = 1, 2, 1_500
    text = "FACT-0a1b2c3d: the first study of tides on moons liquid causes figures counted 41 cases in 2021."
    providers.settings.planted = {"https://shared.example/page": f"<p>{text} On planets, these are smaller.</p>"}
    first = await kept(tmp_path, profile="quick")
    (more,) = [
        source["source_id"] for source in stored(first, "provenance.json")["sources"] if "shared" in source["url"]
    ]
    asked = len(providers.requests)
    second = await ask(tmp_path, first, "and on planets?")
    again = [record for record in providers.requests[asked:] if record.role == "compressor"]
    assert [re.findall('<source id="(.+?)"', said(record, "user")) for record in again] == [[more]]

    calls = stored(second, "provenance.json")["calls"]
    assert [call["tool"] for call in calls] == ["earlier_run", "earlier_run"], "each query of the step"
    before, after = ({line for note in stored(r, "notes.json") for line in note["extraction"]} for r in (first, second))
    assert len(after) > 5
    assert after <= before
    store = ArtifactStore(str(tmp_path))
    shutil.rmtree(first.artifacts)
    assert verify_run(await files_of(await find(store, second.run_id))).problems == []
    assert {file.state for file in await replay(await find(store, second.run_id))} == {"same"}
