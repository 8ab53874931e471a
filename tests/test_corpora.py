"""Uploaded corpora: what is stored of them, who may read them, and what runs make of them."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from fathom.client.shapes import RunRequest
from fathom.config.environment import Environment
from fathom.errors import Conflict, InvalidInput, NotAllowed, NotThere, TooLarge
from fathom.evidence.verify import verify_run
from fathom.flows.housekeeping import prune
from fathom.flows.replay import replay
from fathom.flows.runs.stored import files_of
from fathom.interfaces.uploads import Uploaded, upload_form
from fathom.models import RunResult
from fathom.service.caller import AccessRole, Caller, TokenLimits
from fathom.service.corpora import CorpusService
from fathom.service.options import Options
from fathom.service.runs import RunService
from fathom.service.tokens import Tokens
from fathom.storage.corpora import CorpusStore, prune_uploads
from fathom.storage.editions import CORPORA, StorageLimits, own_name
from fathom.storage.ownership import Asker
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.tools.documents.corpus import UploadedCorpora
from fathom.tools.documents.uploads import sorted_out
from tests.conftest import FathomCLI, quiet_port
from tests.inprocess import research
from tests.server import Served, served_with

LEAVE = b"# Leave\n\nEverybody has 30 days of paid leave a year. Unused leave expires on 31 March of the next year.\n"
TRAVEL = b"# Travel\n\nTrains are booked in second class. Flights need the approval of the head of the department.\n"
QUESTION = "How many days of paid leave does everybody have a year?"
ANN, BOB, EVE = Caller("ann", AccessRole.asker), Caller("bob", AccessRole.asker), Caller("eve", AccessRole.reader)
ROOT = Caller("root", AccessRole.admin)
HOSTILE = (
    "../../outside.txt", "/etc/passwd.txt", "C:\\Windows\\a.txt", "..\\..\\a.txt", "CON.txt", "a.txt ", "a\x00b.txt",
    "~/a.txt", ".txt", "ü" * 200 + ".md", "x" * 300 + ".txt", "\u202etxt.exe", "a/b/c.md", "$(rm -rf).md",
    "<script>.html", "%2e%2e%2fa.md",
)  # fmt: skip


def upload(name: str, data: bytes = LEAVE) -> Uploaded:
    return Uploaded(name, len(data), io.BytesIO(data))


def service_of(root: Path, **limits: int) -> CorpusService:
    return CorpusService(CorpusStore(ArtifactStore(str(root)), StorageLimits(**limits)))


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


file_names = st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=40).map(lambda name: f"{name}.md")
corpus_names = st.just("Handbook 2.0") | st.text(max_size=70)


@settings(max_examples=40)
@given(names=st.lists(file_names, min_size=1, max_size=4, unique=True), corpus=corpus_names)
@example(names=["e\u0301.md", "a.md", "A.md"], corpus="Handbook")
@example(names=["a  b.md", "a b.md"], corpus="ハンドブック")
@example(names=["a.md"], corpus="..")
def test_no_name_becomes_a_path(tmp_path_factory: pytest.TempPathFactory, names: list[str], corpus: str) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    root, cache = folder / "store", folder / "cache"
    corpora = CorpusStore(ArtifactStore(str(root)))
    uploads = [upload(name, f"# Text {number}\n\nWords.".encode()) for number, name in enumerate(names)]

    async def stored() -> list[str]:
        await corpora.create(corpus, uploads)
        (edition,) = await corpora.all()
        copies = await UploadedCorpora(corpora, [edition.used()]).files(cache)
        assert len({copy.url for copy in copies}) == len(copies)
        for copy, file in zip(copies, edition.files, strict=True):
            assert copy.path.parent == cache / CORPORA and copy.path.name[:64] == file.sha256
        return [file.name for file in edition.files]

    try:
        assert asyncio.run(stored()) == sorted(names)
    except InvalidInput:
        assert not files_below(root)
    else:
        places = [path.relative_to(root).parts for path in files_below(root)]
        assert {place[0] for place in places} == {CORPORA} and len({place[1] for place in places}) == 1
        assert {(place[2], len(place)) for place in places} == {("editions", 4), ("blobs", 4)}
    assert {path.name for path in folder.iterdir()} <= {"store", "cache"}


# -- limits, forgeries, access -------------------------------------------------------------------------------------


async def test_what_is_too_much_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    small = service_of(tmp_path, file_bytes=200, corpus_bytes=300, corpus_files=3, all_bytes=3_000)
    for uploads, of in (
        ([upload("a.md", b"a" * 201)], "a file may have 200 bytes"),
        ([upload(f"{n}.md", b"a" * 150) for n in range(3)], "it may have 300 bytes"),
        ([upload(f"{n}.md") for n in range(4)], "it may have 3"),
    ):
        with pytest.raises(TooLarge, match=of):
            await small.create(ANN, "handbook", uploads)
    with pytest.raises(InvalidInput, match="Two files"):
        await small.create(ANN, "handbook", [upload("\u00e9.md"), upload("e\u0301.md")])
    assert not files_below(tmp_path)
    await small.create(ANN, "handbook", [upload("a.md")])
    before = files_below(tmp_path)
    with pytest.raises(TooLarge, match="it may have 300 bytes"):
        await small.add(ANN, "handbook", [upload("b.md", b"b" * 199), upload("c.md", b"c")])
    for data in (b"0" * 150, b"1" * 150):  # what was replaced counts until it is pruned
        await small.add(ANN, "handbook", [upload("a.md", data)])
    with pytest.raises(TooLarge, match="All corpora together"):
        await service_of(tmp_path, all_bytes=700).create(ANN, "second", [upload("a.md", b"a" * 150)])
    assert len(files_below(tmp_path)) == len(before) + 4


async def test_no_more_of_a_request_is_read_than_is_allowed(tmp_path: Path) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.md"\r\n\r\n'
    read = 0

    async def receive() -> Message:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": head if read == 1 else b"a" * 1_000, "more_body": True}

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"multipart/form-data; boundary=x")]}
    with pytest.raises(TooLarge):
        async with upload_form(Request(scope, receive), StorageLimits(corpus_bytes=10_000, corpus_files=1)):
            pass
    assert read == 13


def test_forged_files_are_left_out_or_refused() -> None:
    forged = {
        "a.exe": (b"MZ\x90\x00", "it is not text"),
        "a.pdf": (b"not a pdf", "it is damaged, or no pdf file"),
        "a.docx": (b"not a docx", "it is damaged, or no docx file"),
        "a.zip": (b"PK\x03\x04...", "it is an archive"),
        "a.md": (b"PK\x03\x04...", "it is an archive"),
        "a.txt": (b"\x7fELF\x02\x01\x01\x00", "it is not text"),
        "b.txt": (b" \n", "it is empty"),
        "a.html": (b"", "it is empty"),
    }
    for name, (data, reason) in forged.items():
        with pytest.raises(InvalidInput, match=reason):
            sorted_out([upload(name, data)])
    good, left_out = sorted_out([upload("leave.md"), *(upload(name, data) for name, (data, _) in forged.items())])
    assert [one.name for one in good] == ["leave.md"] and {file.path for file in left_out} == set(forged)


async def test_who_may_read_and_change_a_corpus(tmp_path: Path) -> None:
    corpora, server = service_of(tmp_path), RunService(Options(str(tmp_path)))
    with pytest.raises(NotAllowed):
        await corpora.create(EVE, "eves", [upload("a.md")])
    await corpora.create(ANN, "handbook", [upload("a.md")])
    with pytest.raises(Conflict, match="taken by one that differs in case"):
        await corpora.create(ANN, "Handbook", [upload("a.md")])
    for caller in (BOB, EVE):
        assert not (await corpora.list(caller)).corpora
        with pytest.raises(NotThere):
            await corpora.read(caller, "handbook")
        with pytest.raises(NotThere):
            await corpora.add(caller, "handbook", [upload("b.md")])
    for asked in (
        RunRequest(question=QUESTION, settings={"corpora": ["handbook"]}),
        RunRequest(question=QUESTION, corpora=["handbook"]),
    ):  # wherever it is named
        with pytest.raises(InvalidInput, match="The corpus 'handbook' does not exist"):
            await server.start(BOB, asked)
    await corpora.share(ANN, "handbook", shared=True)
    assert (await corpora.read(EVE, "handbook")).documents == 1
    for refused in (corpora.remove(BOB, "handbook"), corpora.share(BOB, "handbook", shared=False)):
        with pytest.raises(NotAllowed):
            await refused
    await corpora.remove(ROOT, "handbook")
    with pytest.raises(NotThere):
        await corpora.read(ANN, "handbook")
    assert (await corpora.create(ANN, "Handbook", [upload("b.md")])).files == 1


async def test_a_name_of_a_corpus_belongs_to_its_owner(tmp_path: Path) -> None:
    """Nobody hears that others use it, and everybody reads their own by it, or else what is shared with them."""
    corpora = service_of(tmp_path)

    async def files(caller: Caller, name: str) -> list[str]:
        return [file.name for file in (await corpora.read(caller, name)).contents]

    for caller, file in ((ANN, "anns.md"), (ROOT, "roots.md"), (BOB, "bobs.md")):
        await corpora.create(caller, "handbook", [upload(file)])
        assert await files(caller, "Handbook") == [file]
        with pytest.raises(Conflict):
            await corpora.create(caller, "handbook", [upload(file)])
    with pytest.raises(NotThere):
        await corpora.read(EVE, "handbook")
    anns = (await corpora.share(ANN, "handbook", shared=True)).name
    assert await files(BOB, "handbook") == ["bobs.md"] and await files(BOB, anns) == ["anns.md"]
    bobs = (await corpora.share(BOB, "handbook", shared=True)).name
    with pytest.raises(InvalidInput, match=f"called 'handbook'.*{anns}.*of ann.*{bobs}.*of bob"):
        await corpora.read(EVE, "handbook")
    await corpora.add(BOB, bobs, [upload("more.md")])
    await corpora.remove(BOB, "handbook")
    assert await files(BOB, "handbook") == await files(EVE, "handbook") == await files(ANN, anns) == ["anns.md"]
    assert {one.name for one in (await corpora.list(ROOT)).corpora} == {"handbook", anns}


async def test_two_who_change_a_corpus_at_once_lose_nothing(tmp_path: Path) -> None:
    corpora = service_of(tmp_path)
    await corpora.create(ANN, "handbook", [upload("0.md")])
    await asyncio.gather(*(service_of(tmp_path).add(ANN, "handbook", [upload(f"{n}.md")]) for n in range(1, 8)))
    assert len((await corpora.read(ANN, "handbook")).contents) == 8


async def test_what_an_unfinished_run_reads_is_not_pruned(tmp_path: Path) -> None:
    store, corpora = ArtifactStore(str(tmp_path)), service_of(tmp_path)
    for name in ("handbook", "other"):
        await corpora.create(ANN, name, [upload("a.md")])
        await corpora.add(ANN, name, [upload("a.md", TRAVEL)])
    await corpora.remove(ANN, "other")
    manifest = {
        "query": QUESTION,
        "started": "2026-01-01T00:00:00+00:00",
        "corpora": {own_name("Handbook", ANN.name): "a digest"},
    }
    folder = await RunFolder.claim(store, "Leave", "1a2b3c4d", "a-key", manifest)
    old = timedelta(0)
    assert not (await prune(store, timedelta(days=1))).uploads.files  # all of it is young
    assert (await prune(store, old, dry_run=True)).uploads.files == 5  # three editions and two files of `other`
    assert (await prune(store, old)).uploads.files == 5 and len([*(tmp_path / CORPORA).iterdir()]) == 1
    await folder.save_json("result.json", {})
    assert (await prune(store, old, keep_reports=True)).uploads.files == 2  # the first edition and its file
    assert (await corpora.read(ANN, "handbook")).documents == 1


def test_the_commands(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "2026").mkdir(parents=True)
    (notes / "2026" / "Règles.md").write_bytes(LEAVE)
    (notes / "broken.pdf").write_bytes(TRAVEL)
    (notes / "blank.html").write_bytes(b"<html><body></body></html>")  # only who reads it knows
    root = ["--artifacts", str(tmp_path / "store")]
    added = fathom_cli(["corpora", "add", "handbook", str(notes), *root])
    assert added.returncode == 0 and "Added 2 files." in added.stdout and "1 document with" in added.stdout
    assert "notes/broken.pdf: it is damaged" in added.stdout and "not read: notes/blank.html: " in added.stdout
    shown = json.loads(fathom_cli(["corpora", "show", "handbook", "--json", *root]).stdout)
    assert [file["name"] for file in shown["corpus"]["files"]] == ["notes/2026/Règles.md", "notes/blank.html"]
    assert shown["reading"]["documents"] == 1
    listed = fathom_cli(["corpora", "list"]).stdout
    assert listed.startswith("No corpora.") and f"  {tmp_path / 'store'}  handbook\n" in listed, "another store has it"
    assert fathom_cli(["corpora", "remove", "handbook", *root]).returncode == 0
    assert "handbook" not in fathom_cli(["corpora", "list"]).stdout
    assert json.loads(fathom_cli(["corpora", "list", "--json", *root]).stdout) == []
    refused = fathom_cli(["research", QUESTION, "--corpus", "handbook", *root])
    assert refused.returncode == 2 and "The corpus 'handbook' does not exist" in refused.stderr


# -- over HTTP -----------------------------------------------------------------------------------------------------


def test_a_corpus_over_http_and_a_run_that_reads_it(served: Served) -> None:
    with httpx.Client(base_url=f"{served.url}/api/v1", timeout=60) as client:
        files = [
            ("files", ("../Leave rules.md", LEAVE)),
            ("files", ("photo.png", b"\x89PNG\0")),
            ("files", ("x.pdf", b"%PDF-1.4")),
        ]
        made = client.post("/corpora", data={"name": "Händbook of 2026"}, files=files)
        assert made.status_code == 201, made.text
        place = made.headers["Location"].removeprefix("/api/v1")
        found = client.get(place).json()
        assert [file["name"] for file in found["contents"]] == ["../Leave rules.md", "x.pdf"]
        assert [file["path"] for file in found["unread"]] == ["photo.png", "x.pdf"] and found["documents"] == 1
        assert client.post("/corpora", data={"name": "handbook-of-2026"}, files=files).status_code == 409
        assert client.put(f"{place}/files", files=[("files", ("travel.md", TRAVEL))]).json()["files"] == 3
        assert client.delete(f"{place}/files", params={"file": "x.pdf"}).json()["files"] == 2
        assert client.delete(f"{place}/files", params={"file": "x.pdf"}).status_code == 404
        assert client.patch(place, json={"shared": True}).json()["shared"]
        broken: tuple[dict[str, Any], ...] = (
            {"data": {"name": "b"}},
            {"data": {"name": "../b"}, "files": files},
            {"files": files},
            {"json": {}},
        )
        for wrong in broken:
            assert client.post("/corpora", **wrong).status_code == 422
        unknown = client.post("/runs", json={"question": QUESTION, "corpora": ["nothing"]})
        assert unknown.status_code == 422 and "The corpus 'nothing' does not exist" in unknown.json()["detail"]

        asked = {"question": QUESTION, "corpora": ["handbook of 2026"], "settings": {"profile": "quick"}}
        run = client.post("/runs", json=asked).json()
        client.get(run["links"]["events"].removeprefix("/api/v1"))  # until it ends
        assert client.delete(place).status_code == 204 and client.get(place).status_code == 404
        result = client.get(f"/runs/{run['id']}").json()["result"]
        report = client.get(f"/runs/{run['id']}/report", params={"form": "md"})
        # A follow-up does without a corpus that is gone, or is not for whoever asks.
        asked_on = client.post(f"/runs/{run['id']}/ask", json={"question": "And when does it expire?"}).json()
        assert asked_on["settings"]["corpora"] == []
        assert client.delete(f"/runs/{asked_on['id']}").status_code == 204
    assert "corpus:Händbook of 2026/../Leave rules.md" in [source["url"] for source in result["sources"]]
    assert "Leave rules.md" in report.text


def test_a_watch_reads_no_corpus_that_is_no_longer_shared(prefect_server: object, tmp_path: Path) -> None:
    add = Tokens(ArtifactStore(str(tmp_path))).add
    with ThreadPoolExecutor() as thread:  # beside the loop of other tests
        tokens = [
            thread.submit(asyncio.run, add(name, AccessRole.asker, TokenLimits())).result()[1]
            for name in ("ann", "bob")
        ]
    with served_with(Options(str(tmp_path), port=quiet_port(), sign_in=True), limit=1) as served:
        ann, bob = (
            httpx.Client(base_url=f"{served.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60)
            for token in tokens
        )
        with ann, bob:
            shared = {"name": "handbook", "shared": "true"}
            assert ann.post("/corpora", data=shared, files=[("files", ("leave.md", LEAVE))]).status_code == 201
            settings = {"profile": "quick", "corpora": ["handbook"]}
            watch = {"name": "leave", "question": QUESTION, "cron": "0 6 1 1 *", "settings": settings}
            assert bob.post("/watches", json=watch).status_code == 201
            ends = []
            for is_shared in (True, False):
                ann.patch("/corpora/handbook", json={"shared": is_shared})
                run = bob.post("/watches/leave/run").json()["links"]["run"].removeprefix("/api/v1")
                bob.get(f"{run}/events")  # until it ends
                ends.append((bob.get(run).json()["state"], bob.get(f"{run}/report?form=md").is_success))
            assert bob.delete("/watches/leave").status_code == 204
        assert ends == [("complete", True), ("failed", False)]


def test_a_large_upload_is_refused_over_http(prefect_server: object, tmp_path: Path) -> None:
    small = Options(str(tmp_path), port=quiet_port(), uploads=StorageLimits(corpus_bytes=10_000, corpus_files=2))
    with served_with(small, limit=0) as running, httpx.Client(base_url=f"{running.url}/api/v1") as client:
        before = files_below(tmp_path)
        for data in (b"a" * 15_000, iter([b"a" * 15_000])):  # the second without saying how long it is
            form = {"content-type": "multipart/form-data; boundary=x"}
            answer = client.post("/corpora", content=data, headers=form)
            assert answer.status_code == 413 and answer.json()["code"] == TooLarge.code
        assert files_below(tmp_path) == before


# -- runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("home", "prefect_server")
async def test_runs_keep_the_edition_that_they_began_with(tmp_path: Path) -> None:
    store, corpora = ArtifactStore(str(tmp_path / "store")), service_of(tmp_path / "store")
    name = (await corpora.create(ANN, "handbook", [upload("Leave.md"), upload("travel.md", TRAVEL)])).name
    used = await corpora.corpora.fixed(["handbook"], Asker())
    chosen: dict[str, Any] = {"model": "extractive", "profile": "quick", "corpora": ["handbook"], "run_key": "one"}

    async def asked(sufficiency: int) -> tuple[RunResult, set[str], str, str]:
        """Ask in another run with the same key, which takes over the folder."""
        result = await research(store.address(), QUESTION, sufficiency=sufficiency, **chosen)
        calls = {name for name in await store.list(".results/one") if name.startswith("tool-")}
        read = json.loads(Path(result.artifacts, "run.json").read_bytes())["corpora"][name]
        return result, calls, read, Path(result.report or "").read_text(encoding="utf-8")

    first, calls, read, report = await asked(8)
    assert [source.url for source in first.sources] == [f"corpus:{name}/Leave.md"] and "30 days" in report
    cache = Environment.read().cache
    assert all(str(cache).encode() not in path.read_bytes() for path in files_below(tmp_path / "store"))
    assert (await asked(7))[1:3] == (calls, read)

    await corpora.add(ANN, "handbook", [upload("Leave.md", LEAVE.replace(b"30 days", b"25 days"))])
    changed, more, other, report = await asked(6)
    assert more > calls and other != read and "25 days" in report
    (leave, _) = await UploadedCorpora(corpora.corpora, used).files(cache)
    assert leave.path.read_bytes() == LEAVE

    await corpora.remove(ANN, "handbook")
    assert (await prune_uploads(store, datetime.now(UTC), dry_run=False)).files
    shutil.rmtree(cache)
    manifest = next(run for run in await runs(store) if run.run_id == changed.run_id)
    assert {file.state for file in await replay(manifest)} == {"same"}
    assert verify_run(await files_of(manifest)).ok
