"""The API over HTTP: lists, reports in every form, what may be checked of them, watches, batches and sessions."""

from __future__ import annotations

import json
import pickle
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from prefect.client.orchestration import get_client

from fathom.client import Fathom
from fathom.errors import InvalidInput, WrongValue
from fathom.interfaces.api.reports import preferred
from fathom.service.options import Options
from tests.conftest import ROOT, PrefectServer, quiet_port
from tests.server import Served, served_with

STORED = "df99f416-1f7e-4c63-94d9-a70b9f20c5f2"
QUESTION = "What is a descriptor in Python?"
QUICK = {"profile": "quick"}


@pytest.fixture(scope="module")
def server(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server and a worker, with a run on the store that Prefect does not know."""
    root = tmp_path_factory.mktemp("api")
    shutil.copytree(ROOT / "tests" / "stored_run", root, dirs_exist_ok=True)
    with served_with(Options(str(root), port=quiet_port())) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def run(server: Served) -> dict[str, Any]:
    """A finished run that was asked of the server."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        started = client.post("/api/v1/runs", json={"question": QUESTION, "settings": QUICK}).json()
        return ended(client, f"/api/v1/runs/{started['id']}")


def ended(client: httpx.Client, path: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found: dict[str, Any] = client.get(path).json()
        if found["state"] not in ("queued", "running"):
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def test_the_list_has_every_run_once_and_pages_stay_where_they_are(client: httpx.Client, run: dict[str, Any]) -> None:
    first = client.get("/api/v1/runs", params={"limit": 1}).json()
    assert first["next"]
    # A run that comes in between does not move the next page.
    new = client.post("/api/v1/runs", json={"question": "What is a metaclass?", "settings": QUICK}).json()["id"]
    seen, cursor = [first["runs"][0]["id"]], first["next"]
    while cursor:
        page = client.get("/api/v1/runs", params={"limit": 1, "cursor": cursor}).json()
        seen += [one["id"] for one in page["runs"]]
        cursor = page["next"]
    assert new not in seen and len(seen) == len(set(seen)) and {run["id"], STORED} <= {*seen}

    def ids(**params: str) -> list[str]:
        return [one["id"] for one in client.get("/api/v1/runs", params=params).json()["runs"]]

    assert ids()[0] == new
    assert ids(q="tanks HOLD") == [STORED] == ids(until="2026-11-22T12:00:00")
    assert STORED not in ids(mine="true") and run["id"] in ids(mine="true", state="complete", since="2026-11-22")
    assert ids(watch="none") == ids(parent=new) == ids(owner="nobody") == []
    lines = {one["id"]: one for one in client.get("/api/v1/runs").json()["runs"]}
    assert lines[STORED]["state"] == "complete" and lines[STORED]["cost_usd"] == 0
    for one in (STORED, run["id"]):  # one that only the store knows, and one that Prefect knows
        assert lines[one].items() <= client.get(f"/api/v1/runs/{one}").json().items()
    assert client.delete(f"/api/v1/runs/{new}").status_code == 204
    for wrong in ({"cursor": "abc"}, {"limit": "0"}, {"state": "odd"}, {"since": "soon"}):
        assert client.get("/api/v1/runs", params=wrong).status_code == 422


def test_no_more_runs_wait_than_may(server: Served) -> None:
    """Also none of the other doors lets one in; who repeats a request that was accepted is answered."""
    options = replace(server.options, port=quiet_port(), pool="full", queue=2)
    asked = {"question": QUESTION, "settings": QUICK}
    with served_with(options, limit=0) as full, httpx.Client(base_url=full.url, timeout=60) as client:

        def ask(key: str) -> httpx.Response:
            return client.post("/api/v1/runs", json=asked, headers={"Idempotency-Key": f"room-{key}"})

        first, second = ask("one").json()["id"], ask("two").json()["id"]
        batch = {"questions": [asked["question"]], "name": "more"}
        chat = {"model": "fathom-quick", "messages": [{"role": "user", "content": QUESTION}]}
        refused = [
            ask("three"),
            client.post("/api/v1/batches", json=batch),
            client.post("/v1/chat/completions", json=chat),
        ]
        assert [(one.status_code, one.headers.get("Retry-After")) for one in refused] == [(429, "31")] * 3
        assert "2 runs wait" in refused[0].json()["detail"]
        assert ask("one").json()["id"] == first
        assert client.delete(f"/api/v1/runs/{second}").status_code == 204
        started = client.post(
            "/api/v1/batches", json={"questions": ["What is a slot?", QUESTION], "at_once": 500}
        ).json()
        with get_client(sync_client=True) as prefect:
            assert prefect.read_flow_run(uuid.UUID(started["run_id"])).parameters["at_once"] == 1, "one more may wait"
        assert client.delete(f"/api/v1/batches/{started['id']}").status_code == 204
        assert ask("three").status_code == 202
        for one in (first, ask("three").json()["id"]):
            client.delete(f"/api/v1/runs/{one}")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "text/html"),
        ("text/markdown;q=0.5, application/json", "application/json"),
        ("text/*, text/html;q=0", "text/markdown"),
        ("application/pdf", "application/pdf"),
        ("application/x-bibtex", "application/x-bibtex"),
        ("application/x-research-info-systems", "application/x-research-info-systems"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/vnd.openxml"),
    ],
)
def test_a_report_comes_in_the_form_that_is_liked_best(client: httpx.Client, accept: str, kind: str) -> None:
    path = f"/api/v1/runs/{STORED}/report"
    answer = client.get(path, headers={"Accept": accept})
    assert answer.status_code == 200 and answer.headers["Content-Type"].startswith(kind) and answer.content
    assert "Accept" in answer.headers["Vary"].split(", ")
    again = client.get(path, headers={"Accept": accept, "If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304 and not again.content
    form = "html" if kind == "text/html" else ""
    if form:
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert "allow-same-origin" not in answer.headers["Content-Security-Policy"]
    else:
        assert answer.headers["Content-Disposition"].startswith('attachment; filename="water_tanks_hold.')


def test_a_form_that_is_not_there_is_refused(client: httpx.Client) -> None:
    path = f"/api/v1/runs/{STORED}/report"
    refused = client.get(path, headers={"Accept": "image/png"})
    assert refused.status_code == 406 and "text/markdown" in refused.json()["detail"]
    assert client.get(path, params={"form": "md"}, headers={"Accept": "image/png"}).text.startswith("# ")
    unknown = client.get(path, params={"form": "exe"})
    assert unknown.status_code == 422
    assert not any("Content-Disposition" in answer.headers for answer in (refused, unknown)), "an error is no file"
    assert preferred("", ["a/b", "c/d"]) == "a/b"
    assert preferred("c/*;q=0.1, a/b;q=0", ["a/b", "c/d"]) == "c/d"
    assert preferred("c/d;q=x, nothing", ["c/d"]) is None


def test_claims_are_traced_and_checked_again(client: httpx.Client, server: Served, run: dict[str, Any]) -> None:
    base = f"/api/v1/runs/{run['id']}"
    claims = client.get(f"{base}/claims").json()
    assert claims["counts"]["supported"] == len(claims["claims"]) > 0
    assert client.get(f"{base}/claims", params={"verdict": "contradicted"}).json()["claims"] == []
    answer = client.get(base).json()["result"]["cited_answer"]
    assert "[1]" in answer["markdown"] and answer["sources"][0]["number"] == 1 and answer["sure"] == "not rated"
    quote = claims["claims"][0]["quotes"][0]
    stored = client.get(f"{base}/artifacts/{quote['artifact_file']}").content
    assert stored[quote["start"] : quote["end"]]
    traced = client.get(f"{base}/claims/1/trace").json()
    assert traced["links"][0]["quote"] == quote and traced["links"][0]["call"]["tool"]
    assert client.get(f"{base}/claims/999/trace").status_code == 404
    sources = client.get(f"{base}/sources").json()["sources"]
    assert sources[0]["number"] == 1 and sources[0]["claims"] and sources[0]["calls"] and sources[0]["quality"]
    assert client.get(f"{base}/plan").json()["steps"] and client.get(f"{base}/notes").json()["notes"]
    assert client.get(f"{base}/audit").json()["whole"]
    checked = client.post(f"{base}/verify").json()
    number = len(claims["claims"])
    assert checked["ok"] and checked["said"] == f"checked now: {number} of {number}"
    [file] = server.root.glob(f"research_artifacts/*/{quote['artifact_file']}")
    before = file.read_bytes()
    try:
        file.write_bytes(before.replace(before[quote["start"] : quote["end"]], b"forged"))
        assert not client.post(f"{base}/verify").json()["ok"]
    finally:
        file.write_bytes(before)


def test_files_are_named_by_the_list_only(client: httpx.Client, run: dict[str, Any], server: Served) -> None:
    base = f"/api/v1/runs/{run['id']}/artifacts"
    listed = {one["name"]: one for one in client.get(base).json()["artifacts"]}
    assert {"report.md", "provenance.json", "audit.jsonl"} <= listed.keys()
    answer = client.get(listed["report.json"]["link"])
    assert (
        answer.headers["Content-Type"].startswith("text/plain")
        and len(answer.content) == listed["report.json"]["bytes"]
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert client.get(f"{base}/report.html").headers["Content-Type"].startswith("text/html")
    for name in ("..%2Frun.json", "%2e%2e%2f%2e%2e%2fx", "report.md%00", "nothing", "a%2Fb", "%5C..%5Crun.json"):
        assert client.get(f"{base}/{name}").status_code in (404, 307), name
    assert str(server.root) not in client.get(f"/api/v1/runs/{run['id']}").text  # not even to an administrator


def test_a_run_is_followed_up_and_a_finished_one_not_resumed(client: httpx.Client, run: dict[str, Any]) -> None:
    base = f"/api/v1/runs/{run['id']}"
    follow = client.post(f"{base}/ask", json={"question": "And on a class?"})
    assert follow.status_code == 202 and follow.headers["Location"]
    assert client.delete(follow.headers["Location"]).status_code == 204
    assert [one["id"] for one in client.get(f"{base}/follow-ups").json()["runs"]] == [follow.json()["id"]]
    assert client.post(f"{base}/resume").json()["code"] == "E5002"
    assert client.get(f"{base}/changes").status_code == 404


def test_a_watch_is_kept_run_and_removed(client: httpx.Client) -> None:
    asked = {"question": QUESTION, "every": "1d", "name": "Descriptors, daily", "settings": QUICK}
    made = client.post("/api/v1/watches", json=asked)
    assert made.status_code == 201, made.text
    path = made.headers["Location"]
    assert path == "/api/v1/watches/descriptors-daily" and made.json()["schedule"] == "every 1 day"
    try:
        assert client.post("/api/v1/watches", json=asked).status_code == 409
        assert client.post("/api/v1/watches", json={**asked, "cron": "0 6 * * *"}).status_code == 422
        assert client.patch(path, json={"state": "paused"}).json()["state"] == "paused"
        assert client.patch(path, json={"state": "gone"}).status_code == 422
        assert "descriptors-daily" in [one["name"] for one in client.get("/api/v1/watches").json()["watches"]]
        started = client.post(f"{path}/run")
        assert started.status_code == 202 and started.json()["owner"] == "local"
        assert client.delete(started.headers["Location"]).status_code == 204
        [history] = client.get(f"{path}/history").json()["runs"]
        assert history["id"] == started.json()["id"] and history["watch"] == "descriptors-daily"
    finally:
        assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404 and client.get("/api/v1/watches/..%2Fx").status_code == 404


def test_the_questions_of_a_batch_are_runs_of_its_owner(client: httpx.Client) -> None:
    table = "question,profile\nWhat is a slot in Python?,quick\n"
    made = client.post("/api/v1/batches", content=table, headers={"Content-Type": "text/csv"})
    assert made.status_code == 202, made.text
    found = ended(client, made.headers["Location"])
    assert found["state"] == "ended" and found["ended"] == {"complete": 1}, found
    [row] = found["rows"]
    assert client.get(row["report"]).status_code == 200
    assert client.get(f"/api/v1/runs/{row['run_id']}").json()["owner"] == "local"
    assert client.get("/api/v1/batches").json()["batches"][0]["id"] == found["id"], "the newest first"
    assert client.delete(made.headers["Location"]).status_code == 204
    for body, kind, status in (
        (table, "image/png", 415),
        ("nothing\nx\n", "text/csv", 422),
        ('{"questions": []}', "application/json", 422),
        ('{"questions": [{"question": "x", "settings": {"artifacts": "/tmp"}}]}', "application/json", 422),
        (b"\xff", "text/csv", 422),
    ):
        refused = client.post("/api/v1/batches", content=body, headers={"Content-Type": kind})
        assert refused.status_code == status and refused.json()["status"] == status, refused.text


def test_a_session_is_created_and_executed_once(client: httpx.Client, server: Served) -> None:
    config = {"limits": {"maxIterations": 1, "maxStepsPerIteration": 2}, "budget": {"maxDurationMs": 60000}}
    made = client.post("/research/sessions", json={"config": config})
    assert made.status_code == 201 and made.json()["state"] == "created"
    path = f"/research/sessions/{made.json()['id']}"
    assert client.get(f"{path}/stream").json()["code"] == "E5002"
    with served_with(Options(str(server.root), port=quiet_port()), limit=0) as another:  # it needs no server's memory
        started = httpx.post(f"{another.url}{path}/execute", json={"query": QUESTION}, timeout=60)
    assert started.status_code == 202, started.text
    with client.stream("GET", started.json()["stream"]) as events:
        assert events.status_code == 200, events.read()
        lines = [*events.iter_lines()]
    told = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert told, lines
    assert {"state_change", "step_completed", "source_found"} <= {one["type"] for one in told}
    session = client.get(path).json()
    assert session["state"] == "completed" and session["result"]["report"].startswith("# ")
    assert session["plan"]["steps"][0]["status"] == "completed" and session["metrics"]["durationMs"] > 0
    assert client.post(f"{path}/execute", json={"query": "Another?"}).status_code == 409
    other = client.post("/research/sessions", json={"config": {}}).json()["id"]
    assert client.delete(f"/research/sessions/{other}").status_code == 204
    assert client.get(f"/research/sessions/{other}").json()["state"] == "cancelled"
    refused = client.post(f"/research/sessions/{other}/execute", json={"query": "x"})
    assert (refused.status_code, refused.json()["code"]) == (409, "E5002")
    missing = client.get(f"/research/sessions/{uuid.uuid4()}")
    assert (missing.status_code, missing.json()["code"]) == (404, "E5001")


def test_a_report_is_rated_through_the_api_and_on_its_page(client: httpx.Client, run: dict[str, Any]) -> None:
    base, page = f"/api/v1/runs/{run['id']}", f"/runs/{run['id']}"
    assert "Was this report of use?" in client.get(page).text
    before = client.get("/api/v1/costs").json()["rated_down"]
    (said,) = client.put(f"{base}/rating", json={"good": True, "note": "Short."}).json()
    assert (said["good"], said["note"]) == (True, "Short.") and said["by"]
    answer = client.post(f"{page}/rate", data={"good": "0", "note": "The <b>second</b> part is missing."})
    assert answer.status_code in (200, 303), answer.text
    assert [one["good"] for one in client.get(f"{base}/ratings").json()] == [False], "the second thought counts"
    assert "The &lt;b&gt;second&lt;/b&gt; part is missing." in client.get(page).text
    assert client.get("/api/v1/costs").json()["rated_down"] == before + 1
    assert "rated" in [one["action"] for one in client.get(f"{base}/activity").json()]
    assert client.put(f"{base}/rating", json={"good": "yes"}).status_code == 422
    assert client.put(f"/api/v1/runs/{uuid.uuid4()}/rating", json={"good": True}).json()["code"] == "E5001"


def test_the_server_says_what_it_can_do(client: httpx.Client, server: Served) -> None:
    assert client.get("/api/v1/status").json()["models"]["planner"]
    phases = client.post("/api/v1/estimates", json={"question": QUESTION, "settings": QUICK}).json()["phases"]
    assert phases[-1]["tool_calls"]["most"] > 0
    assert client.get("/api/v1/costs", params={"by": "day"}).json()["total"]["runs"] > 0
    assert client.get("/api/v1/costs", params={"since": "never"}).status_code == 422
    assert "artifacts" not in client.get("/api/v1/settings/schema").json()["properties"]
    names = [one["name"] for one in client.get("/api/v1/templates").json()["templates"]]
    assert client.get(f"/api/v1/templates/{names[0]}").json()["sections"]
    assert client.get("/api/v1/templates/..%2F..").status_code == 404


def test_a_body_must_be_json_of_the_documented_shape(client: httpx.Client) -> None:
    body = json.dumps({"question": QUESTION})
    form = client.post("/api/v1/runs", content=body, headers={"Content-Type": "text/plain"})
    assert form.status_code == 415 and form.headers["Content-Type"] == "application/problem+json"
    for wrong in ({"question": ""}, {"question": "x", "extra": 1}, {"question": "x", "settings": {"artifacts": "/"}}):
        assert client.post("/api/v1/runs", json=wrong).status_code == 422
    refused = client.put("/api/v1/runs", json={})
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, POST")
    assert refused.json()["detail"] == "/api/v1/runs does not take PUT."
    assert refused.json()["next_step"] == "use GET, POST"
    assert client.get("/api/v1/nothing").json()["status"] == 404


def test_wrong_settings_are_named_with_what_is_allowed(client: httpx.Client) -> None:
    wrong = {"depth": "two", "report": {"words": 5}, "sorces": {"allow": []}, "model_calls": {"at_once": 65}}
    told = client.post("/api/v1/runs", json={"question": "Why?", "settings": wrong}).json()
    assert told["code"] == "E4001" and "--" not in told["detail"]
    assert {one["path"]: (one["value"], one["message"]) for one in told["errors"]} == {
        "depth": ("two", "it must be a whole number, at least 1 and at most 5"),
        "report.words": (5, "it must be at least 100 and at most 20,000"),
        "sorces": (None, "there is no such setting; did you mean sources or sources.scores?"),
        "model_calls.at_once": (65, "it must be at least 1 and at most 64"),
    }
    broken = client.post("/api/v1/runs", content='{"question": "Why?"', headers={"Content-Type": "application/json"})
    assert broken.json()["detail"].startswith("The body is not JSON at character 19: ")
    empty = client.post("/api/v1/runs", json={"question": "", "extra": [1]}).json()["errors"]
    assert [one["path"] for one in empty] == ["question", "extra"]
    assert "no word" in client.post("/api/v1/runs", json={"question": "???"}).json()["detail"]
    assert "asks for nothing" in client.post("/api/v1/runs", json={"question": "hello"}).json()["detail"]
    assert client.get("/api/v1/nothing").json()["errors"] == []
    with Fathom(str(client.base_url)) as fathom, pytest.raises(InvalidInput) as refused:
        fathom.runs.start("Why?", settings={"depth": 9})
    assert refused.value.wrong == (WrongValue("depth", 9, "it must be at least 1 and at most 5"),)
    assert pickle.loads(pickle.dumps(refused.value)).wrong == refused.value.wrong
