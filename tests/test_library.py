"""The library: what earlier runs asked, answered, noted and read is found by whoever may read it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput
from fathom.evidence.verify import verify_run
from fathom.flows.replay import replay
from fathom.flows.runs.library import Library, library_of
from fathom.flows.runs.stored import files_of, find
from fathom.service.caller import AccessRole, TokenLimits
from fathom.service.options import Options
from fathom.service.tokens import Tokens
from fathom.storage.library import LibraryIndex, LibraryText
from fathom.storage.ownership import Owners, Ownership
from fathom.storage.runs import remember
from fathom.storage.store import ArtifactStore
from fathom.tools.registry import configured_tools
from tests.conftest import ROOT, FathomCLI, PrefectServer, quiet_port
from tests.inprocess import research
from tests.server import served_with

RUN = "df99f416-1f7e-4c63-94d9-a70b9f20c5f2"
FOLDER = "research_artifacts/water_tanks_hold"
SAID = "The plant keeps 400 cubic metres of treated water in two tanks."


@pytest.fixture
def root(home: Path, tmp_path: Path) -> Path:
    """A store with a finished run."""
    return shutil.copytree(ROOT / "tests/stored_run", tmp_path / "store")


async def kinds(root: Path, query: str = "treated water in tanks") -> set[str]:
    library = Library(ArtifactStore(str(root)), Environment.read().cache)
    return {hit.kind for hit in await library.search(query, 20)}


def test_a_sentence_is_found_with_its_question_and_source(root: Path, fathom_cli: FathomCLI) -> None:
    command = ["library", "How much treated water is there?", "--artifacts", str(root)]
    found = json.loads(fathom_cli([*command, "--json"]).stdout)
    hit = next(hit for hit in found["hits"] if hit["kind"] == "answer")
    assert (hit["sentence"], hit["run_id"], hit["asked"][:10]) == (SAID, RUN, "2026-11-22")
    assert hit["question"] == "How much water do the tanks hold?" and hit["url"].startswith("docs:")
    assert hit["link"] == str(root / FOLDER)
    shown = fathom_cli(command).stdout
    assert SAID in shown and "fathom show df99f416" in shown
    assert [hit["sentence"] for hit in found["hits"]].count(SAID) == 1, "its note and its source say the same"
    for word in ("zebra", "test"):  # the second asks for nothing, but may be searched for
        assert "No finished run" in fathom_cli(["library", word, "--artifacts", str(root)]).stdout


def test_what_the_present_store_lacks_is_found_in_another_that_was_used(root: Path, fathom_cli: FathomCLI) -> None:
    remember(str(root), Environment.read())
    found = fathom_cli(["library", "treated water"])
    assert SAID in found.stdout and found.stderr.endswith(f"found in {root}\n")
    listed = fathom_cli(["runs"]).stdout
    assert listed.startswith("No runs in ") and listed.endswith(f"\n  {root}\n")
    alone = fathom_cli(["library", "treated water", "--artifacts", str(root.parent)])
    assert SAID not in alone.stdout and not alone.stderr


def test_of_a_list_in_a_note_the_closest_item_is_shown(root: Path, fathom_cli: FathomCLI) -> None:
    path = root / FOLDER / "notes.json"
    kept = "Three pumps fill the tanks at night, when power is cheap."
    path.write_text(path.read_text().replace(kept, "- The gate is locked at nine.\\n- A key hangs in the pump house."))
    found = fathom_cli(["library", "Where is the key of the pump house?", "--artifacts", str(root)]).stdout
    assert "A key hangs in the pump house." in found and "The gate" not in found


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        (
            "| tank | filled by |\\n|---|---|\\n| north | pump 4 |\\n| south | pump 5 |",
            "tank | filled by: north | pump 4; south | pump 5",
        ),
        (
            "Pump house, key:\\n\\n- It hangs by the door.\\n- The gate is locked at nine.",
            "Pump house, key: It hangs by the door.",
        ),
    ],
)
def test_a_note_is_shown_on_one_line_as_people_read_it(
    note: str, shown: str, root: Path, fathom_cli: FathomCLI
) -> None:
    path = root / FOLDER / "notes.json"
    kept = "Three pumps fill the tanks at night, when power is cheap."
    path.write_text(path.read_text().replace(kept, f"{note}\\n\\n"))
    found = fathom_cli(["library", "Which pump has the key, or fills the north tank?", "--artifacts", str(root)])
    assert shown in found.stdout


def test_what_several_runs_say_is_one_hit_of_the_newest(root: Path, fathom_cli: FathomCLI) -> None:
    for number in (1, 2):
        again = shutil.copytree(root / FOLDER, root / f"{FOLDER}__{number}")
        for file in again.glob("*.json"):
            told = file.read_text().replace(RUN, RUN.replace("df99f416", f"aaaa000{number}"))
            file.write_text(told.replace("2026-11-22", f"2026-11-2{number + 3}").replace("400 cubic", "400 **cubic**"))
    command = ["library", "How much treated water is there?", "--artifacts", str(root)]
    hits = json.loads(fathom_cli([*command, "--json"]).stdout)["hits"]
    [hit] = [hit for hit in hits if hit["sentence"].replace("*", "") == SAID]
    assert (hit["run_id"][:8], hit["asked"][:10], hit["earlier_runs"]) == ("aaaa0002", "2026-11-25", 2)
    assert "(fathom show aaaa0002, and 2 earlier runs)" in fathom_cli(command).stdout
    [question] = [hit for hit in hits if hit["kind"] == "question"]
    assert question["earlier_runs"] == 2


async def test_what_is_removed_from_the_store_is_found_no_more(root: Path) -> None:
    assert {"answer", "question"} <= await kinds(root)
    assert "source" in await kinds(root, "storage")  # only the title of the document says it
    shutil.copy(root / FOLDER / "result.json", root / FOLDER / "pruned.json")
    assert "source" not in await kinds(root, "storage"), "its evidence was removed"
    assert "answer" in await kinds(root)
    (index,) = (Environment.read().cache / "library").glob("*.sqlite")
    index.write_bytes(b"no database" * 100)
    assert "answer" in await kinds(root), "the index is made again"
    shutil.rmtree(root / FOLDER)
    assert await kinds(root) == set()


async def test_a_run_with_the_library_cites_what_an_earlier_one_has_stored(
    root: Path, tmp_path: Path, prefect_server: PrefectServer
) -> None:
    (tmp_path / "moon.md").write_text("The moon is round.")
    query = "How many cubic metres of treated water does the plant keep?"
    given: dict[str, Any] = {"model": "extractive", "docs": [str(tmp_path / "moon.md")], "run_key": "new"}
    without = await research(root, query, **{**given, "run_key": "old"})
    result = await research(root, query, library=True, **given)
    assert SAID not in str(without.cited_answer)
    assert SAID in str(result.cited_answer)
    assert result.report
    assert f"read on 2026-11-22 by the run {RUN[:8]}" in Path(result.report).read_text()
    store = ArtifactStore(str(root))
    shutil.rmtree(root / FOLDER)  # what is cited is stored with the new run
    run = await find(store, result.run_id)
    assert verify_run(await files_of(run)).problems == []
    assert {file.state for file in await replay(run)} == {"same"}


async def test_only_those_who_may_read_a_run_find_it(root: Path, prefect_server: PrefectServer) -> None:
    store = ArtifactStore(str(root))
    await Owners(store).record(RUN, Ownership(owner="ann"))
    people = Tokens(store)
    tokens = {name: (await people.add(name, AccessRole.asker, TokenLimits()))[1] for name in ("ann", "bob")}
    tokens["root"] = (await people.add("root", AccessRole.admin, TokenLimits()))[1]

    async def texts(*tags: str) -> bool:
        return bool(await library_of(store, Environment.read().cache, tags)("treated water", 5))

    def seen(name: str) -> bool:
        headers = {"Authorization": f"Bearer {tokens[name]}"}
        with httpx.Client(base_url=served.url, headers=headers, timeout=60) as client:
            found = client.get("/api/v1/library", params={"q": "treated water"}).json()["hits"]
            assert all(hit["link"] == f"/runs/{RUN}" for hit in found)
            assert (SAID in client.get("/library", params={"q": "treated water"}).text) is bool(found)
            return bool(found)

    with served_with(Options(str(root), port=quiet_port(), sign_in=True), limit=0) as served:
        assert [seen(name) for name in ("ann", "bob", "root")] == [True, False, True]
        assert await texts("owner:ann") and not await texts("owner:bob")
        assert await texts("owner:root", "admin") and await texts(), "who has the store may read it"
        await Owners(store).record(RUN, Ownership(owner="ann", shared=True))
        assert seen("bob") and await texts("owner:bob")


def test_words_are_found_in_other_forms_and_writings(tmp_path: Path) -> None:
    index = LibraryIndex(tmp_path / "index.sqlite")
    texts = ["The tanks were refilled.", "東京の人口は1400万人です。\n大阪は270万人です。", "Die Gebühr beträgt 5 €."]
    for text in texts:
        index.put(f"folder of {text}", "run", [LibraryText("source", text)])
    asked: dict[str, int | None] = {"refilling a tank": 0, "東京の人口": 1, "gebuhr": 2, "zebra": None, '"': None}
    for query, number in asked.items():
        assert index.with_words(query) == ([] if number is None else [f"folder of {texts[number]}"])
        found = index.find(query, [*index.runs()], 5)
        assert [one.text.text for one in found[:1]] == ([] if number is None else [texts[number]]), query
    index.put(f"folder of {texts[0]}", "again", [LibraryText("source", "Empty.")])
    assert index.runs()[f"folder of {texts[0]}"] == "again" and not index.with_words("tanks")


async def test_whoever_may_read_one_run_finds_it_behind_300_others(root: Path, prefect_server: PrefectServer) -> None:
    store = ArtifactStore(str(root))
    owners, people = Owners(store), Tokens(store)
    await owners.record(RUN, Ownership(owner="ann"))
    for number in range(300):
        run_id, folder = str(UUID(int=number)), root / f"research_artifacts/other_{number}"
        folder.mkdir()
        for name in ("run.json", "result.json"):
            other = (root / FOLDER / name).read_text().replace(RUN, run_id)
            (folder / name).write_text(other.replace("How much water do the tanks hold?", "Treated water?"))
        await owners.record(run_id, Ownership(owner="bob"))
    changed = root / "research_artifacts/other_0/run.json"
    changed.write_text(changed.read_text().replace(str(UUID(int=0)), "../0"))
    token = (await people.add("ann", AccessRole.asker, TokenLimits()))[1]
    asking = {"Authorization": f"Bearer {token}"}
    with served_with(Options(str(root), port=quiet_port(), sign_in=True), limit=0) as served:
        async with httpx.AsyncClient(base_url=served.url, headers=asking, timeout=60) as client:
            answer = await client.get("/api/v1/library", params={"q": "treated water"})
    found = answer.json()["hits"]
    assert SAID in [hit["sentence"] for hit in found]
    assert {hit["run_id"] for hit in found} == {RUN}
    texts = await library_of(store, Environment.read().cache, ["owner:ann"])("treated water", 5)
    assert any("treated water" in text.text for text in texts)


def test_the_tool_comes_with_the_setting_alone(home: Path) -> None:
    environment = Environment.read({"HOME": str(home)})
    assert "library" not in configured_tools(ResearchSettings(), environment)
    chosen = configured_tools(ResearchSettings(library=True, tools=["fetch"]), environment)
    assert chosen == ["library", "fetch"]
    with pytest.raises(InvalidInput, match="needs the setting library"):
        configured_tools(ResearchSettings(tools=["library"]), environment)
