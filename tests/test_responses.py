"""What arrives for a tool call is stored as it came, beside the text that is read from it; also if the call fails."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from email.parser import BytesParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fathom.evidence.provenance import PROVENANCE, CallRecord, read
from fathom.evidence.verify import verify_run
from fathom.models import Ending
from fathom.run.engine import Engine
from fathom.tools import http
from fathom.tools.fetch import client
from tests.inprocess import investigated, kept
from tests.stubs import Stubs
from tests.stubs.pages import page

pytestmark = pytest.mark.usefixtures("home")
SMALL: dict[str, Any] = {"execution": "sequential", "tools": ["web_search"], "depth": 1, "turns": 1, "max_results": 2}


class Arrived(NamedTuple):
    url: str
    status: int
    headers: set[str]
    body: bytes


def arrived(data: bytes) -> Iterator[Arrived]:
    """Yield the HTTP responses of a web archive, read as ISO 28500 has it."""
    rest = gzip.decompress(data)
    while rest:
        version, _, rest = rest.partition(b"\r\n")
        head, _, rest = rest.partition(b"\r\n\r\n")
        fields = BytesParser().parsebytes(head)
        block, rest = rest[: int(fields["Content-Length"])], rest[int(fields["Content-Length"]) :]
        assert (version, fields["WARC-Type"], rest[:4]) == (b"WARC/1.1", "response", b"\r\n\r\n")
        assert fields["WARC-Block-Digest"] == f"sha256:{hashlib.sha256(block).hexdigest()}"
        http_head, _, body = block.partition(b"\r\n\r\n")
        line, *headers = http_head.decode().split("\r\n")
        yield Arrived(fields["WARC-Target-URI"], int(line.split()[1]), {one.partition(":")[0] for one in headers}, body)
        rest = rest[4:]


@pytest.fixture
def web(providers: Stubs, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """Tavily finds one page on the stub's own address, and cannot read it: `fetch` does."""
    monkeypatch.setenv("FATHOM_FETCH_ALLOW", providers.url.partition("//")[2])
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "APART_SECONDS", 0.0)
    providers.settings.steps, providers.settings.breadth, providers.settings.without_raw = 2, 1, 1.0
    providers.settings.fail_extract = "planted"
    planted = page(f"{providers.url}/planted/0", 600)
    html = f"<html><body><script>0</script><p>{planted.fact}</p><p>{planted.text}</p></body></html>"
    providers.settings.planted[planted.url] = html
    return providers


def calls_of(folder: Path) -> list[CallRecord]:
    return read((folder / PROVENANCE).read_bytes())[0].calls


def responses_of(folder: Path, calls: list[CallRecord]) -> list[Arrived]:
    names = [name for call in calls for name in call.files if name.endswith(".warc.gz")]
    return [one for name in names for one in arrived((folder / name).read_bytes())]


async def test_the_bytes_that_arrived_are_stored_beside_the_text(web: Stubs, tmp_path: Path) -> None:
    web.settings.faults = {"search": ["500", "500", "400"]}  # the first call is tried three times, and fails
    result = await kept(tmp_path, **SMALL)
    assert result.status is Ending.degraded
    folder = Path(result.artifacts)
    failed, *others = calls_of(folder)

    # Under the convention's name, whether the call failed or not.
    (archive, error), stem = failed.files, "__step1_"
    assert not failed.artifact_file
    assert stem in archive
    assert (archive.removesuffix(".warc.gz"), error) == (error.removesuffix(".json"), error)
    assert error.endswith("__web_search.json")
    stored = json.loads((folder / error).read_bytes())
    assert [stored["results"], stored["failures"][0]["code"]] == [[], "E3005"]
    assert [one.status for one in responses_of(folder, [failed])] == [500, 500, 400]
    for call in others:
        assert list(call.files) == [call.artifact_file.replace(".json", ".warc.gz")]

    # Byte for byte, and all of it: what the servers sent is there, and no header that may hold a cookie or a token.
    got = responses_of(folder, calls_of(folder))
    sent = [record.answer for kind in ("search", "extract") for record in web.calls(kind)]
    assert sorted(json.dumps(json.loads(one.body)) for one in got if "/planted" not in one.url) == sorted(
        json.dumps(answer) for answer in sent
    )
    [html] = web.settings.planted.values()
    assert {one.body for one in got if "/planted" in one.url} == {html.encode()}
    assert b"<script>" not in b"".join((folder / call.artifact_file).read_bytes() for call in others)
    assert set().union(*(one.headers for one in got)) <= {
        "content-type",
        "date",
        "retry-after",
        "last-modified",
        "etag",
    }

    # A changed byte is found.
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert verify_run(files).ok
    for name in (archive, error):
        [problem] = verify_run({**files, name: files[name] + b" "}).problems
        assert (problem.file, problem.message[:20]) == (name, "the file was changed")


async def test_an_answer_from_the_cache_has_its_bytes_and_redacted_runs_keep_none(web: Stubs, tmp_path: Path) -> None:
    first, again = [Path((await kept(tmp_path, **SMALL)).artifacts) for _ in range(2)]
    asked = len(web.calls("search"))
    assert asked == 2
    bodies = [{(one.url, one.body) for one in responses_of(folder, calls_of(folder))} for folder in (first, again)]
    assert bodies[0] <= bodies[1]  # a page that could not be read was asked for again
    assert len(bodies[0]) > asked

    redacted = Path((await kept(tmp_path, redact=True, **SMALL)).artifacts)
    assert len(web.calls("search")) == 2 * asked
    assert not list(redacted.glob("*.warc.gz"))


async def test_the_model_reads_texts_and_never_what_arrived(web: Stubs, tmp_path: Path) -> None:
    engines: list[Engine] = []

    async def hold(engine: Engine) -> None:
        engines.append(engine)

    folder = Path((await investigated(tmp_path, _before=hold, **SMALL)).artifacts)
    named = {path.name for path in folder.glob("*__step*")}
    assert {name.partition(".")[2] for name in named} == {"json", "warc.gz"}
    assert set(await engines[0].list()) == {name for name in named if name.endswith(".json")}
