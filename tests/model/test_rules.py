"""The rules and the proxy themselves: an obedient model breaks none, and each broken one is found."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from fathom.config.groups import Budget
from fathom.models import Ending
from tests.inprocess import investigated
from tests.model.counts import counted, table
from tests.model.recording import Exchange, Recording, recording
from tests.model.rules import Finished, broken_rules
from tests.stubs import Stubs

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
async def run(providers: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Finished:
    """A run with the scripted model, recorded."""
    with recording(providers.llm_url) as proxy:
        monkeypatch.setenv("OPENAI_BASE_URL", proxy.url)
        result = await investigated(tmp_path, profile="quick")
    return Finished(result, proxy.exchanges, [])


async def test_an_obedient_model_breaks_no_rule_and_every_request_is_recorded(run: Finished, providers: Stubs) -> None:
    assert broken_rules(run, Budget()) == []
    assert [e.body for e in run.exchanges] == [record.body for record in providers.calls("llm")]
    assert {role: counts.requests - counts.valid for role, counts in counted(run.exchanges).items()} == dict.fromkeys(
        ("planner", "researcher", "compressor", "outline", "section"), 0
    )
    metrics = run.result.metrics
    assert table(run.exchanges).splitlines()[-1].split()[:2] == ["whole", str(metrics.llm_calls)]
    assert sum(e.usage["prompt_tokens"] for e in run.exchanges) == metrics.prompt_tokens


def added(text: str) -> Callable[[Finished], Finished]:
    def spoil(run: Finished) -> Finished:
        path = run.folder / "report.md"
        path.write_text(path.read_text().replace("\n## Sources", f"{text}\n\n## Sources"))
        return run

    return spoil


def ended(status: Ending, reason: str) -> Callable[[Finished], Finished]:
    def spoil(run: Finished) -> Finished:
        result = run.result.model_copy(update={"status": status, "reason": reason})
        return dataclasses.replace(run, result=result)

    return spoil


def instructed(run: Finished) -> Finished:
    system = next(m["content"] for m in run.exchanges[0].body["messages"] if m["role"] == "system")
    return added(" ".join(system.split()[20:30]))(run)


def unchecked(run: Finished) -> Finished:
    path = run.folder / "report.json"
    report = json.loads(path.read_text())
    path.write_text(json.dumps({**report, "claims": report["claims"][1:]}))
    return run


def objected(run: Finished) -> Finished:
    path = run.folder / "report.json"
    report = json.loads(path.read_text())
    said = {"verdict": "not_stated", "judgement": {"verdict": "not_stated", "model": "a/b", "reason": ""}}
    path.write_text(json.dumps({**report, "claims": [report["claims"][0] | said, *report["claims"][1:]]}))
    return run


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (added('{"title": "x"}'), "the report says '{"),
        (added("- [{'a': 1}]"), "the report says"),
        (added("```json"), "```json"),
        (added("&lt;|im_end|>"), "<|im_"),
        (added("He said. [99]"), "[99] is not in the list"),
        (added("He said. [S123abc]"), "shows the id S123abc"),
        (instructed, "repeats the instructions"),
        (unchecked, "were checked"),
        (objected, "not stated and not marked"),
        (ended(Ending.degraded, ""), "degraded with the reason ''"),
        (ended(Ending.degraded, "outline: answered without the model after E4004"), "names the outline"),
        (ended(Ending.failed, "x"), "the run failed"),
        (lambda run: dataclasses.replace(run, warnings=["planner: answered without the model"]), "name the planner"),
        (lambda run: dataclasses.replace(run, exchanges=[*run.exchanges, run.exchanges[0]]), "was sent 2 times"),
        (lambda run: dataclasses.replace(run, exchanges=[Exchange("judge", {"messages": []})]), "name the judge"),
    ],
)
async def test_what_breaks_a_rule_is_found(run: Finished, spoil: Callable[[Finished], Finished], found: str) -> None:
    broken = broken_rules(spoil(run), Budget())
    assert any(found in line for line in broken), broken


def test_a_stream_is_joined_and_one_that_breaks_off_is_not_valid() -> None:
    parts = [{"delta": {"content": "The sea "}}, {"delta": {"content": "rises."}, "finish_reason": "stop"}]
    lines = [f"data: {json.dumps({'choices': [part]})}\n\n" for part in parts]
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    lines += [f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n", "data: [DONE]\n\n"]
    whole, half = (Exchange("section", {}, status=200) for _ in range(2))
    whole.read("".join(lines).encode(), streamed=True)
    half.read("".join(lines).encode()[:60], streamed=True)
    assert (whole.text, whole.finished, whole.usage) == ("The sea rises.", "stop", usage)
    assert (half.text, half.finished) == ("The sea ", "")
    assert [counts.valid for counts in counted([whole, half]).values()] == [1]


def test_a_refused_and_a_given_up_request_are_recorded(stubs: Stubs) -> None:
    body = {"model": "stub", "messages": [{"role": "user", "content": "How high is the tide?"}]}
    with recording(stubs.llm_url) as proxy:
        url = f"{proxy.url}/chat/completions"
        assert httpx.post(url, json=body).status_code == 401  # it has no key
        stubs.settings.llm_delay = 60
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url, json=body, timeout=0.5)
        left(proxy)
    assert [(e.status, e.left) for e in proxy.exchanges] == [(401, False), (0, True)]


def left(proxy: Recording) -> None:
    """Wait until the proxy knows that its client went away."""
    deadline = time.monotonic() + 60
    while not proxy.exchanges[-1].left and time.monotonic() < deadline:
        time.sleep(0.01)
