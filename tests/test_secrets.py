"""Secrets planted in the environment and echoed by every provider: they are found nowhere afterwards."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.environment import Environment
from fathom.config.groups import ModelCallSettings, Profile
from fathom.config.secrets import HIDDEN, Scrubber, guard_logs, without_credentials
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, ToolUnavailable
from fathom.flows.deep_research import deep_research
from fathom.models import Ending, Report, RunResult, ToolCall, ToolFailure
from fathom.storage.store import ArtifactStore
from tests.conftest import FathomCLI, PrefectServer
from tests.stubs import Stubs

MODEL_KEY, SEARCH_KEY = "sk-Planted7Model1Kq9/zX+w==", "tvly-Planted7Search2Mn4"
SECRETS = {
    "OPENAI_API_KEY": MODEL_KEY,
    "TAVILY_API_KEY": SEARCH_KEY,
    "AWS_SECRET_ACCESS_KEY": "/Planted7Cloud3'+<b>&Vq\"",
    "DATABASE_PASSWORD": "Planted7 Päss wort",
    "HTTPS_PROXY": "http://scott:Planted7Proxy5@proxy.example:3128",
}
VALUES = [*list(SECRETS.values())[:4], "Planted7Proxy5"]
BASIC = [base64.b64encode(text.encode()).decode() for text in (*VALUES, "scott:Planted7Proxy5")]
ECHO = " ".join(["Bearer", *VALUES, "Basic", *BASIC, *(quote(value, safe="") for value in VALUES)])
QUERY = "How do tides form? See https://ann:Planted7Typed6@example.com/tides please"
# All of them hold this, whatever is around it; encoded, these parts of them.
TRACES = [b"Planted7", *(BASIC[n][4:18].encode() for n in range(len(BASIC)))]
PATIENCE = ModelCallSettings(seconds=20, backoff_seconds=0.01)


def unpacked(data: bytes) -> bytes:
    """Return what a file says: also the responses that a run or a cache has stored."""
    if data.startswith(b'{"records":'):
        data = b"".join(base64.urlsafe_b64decode(record) for record in json.loads(data)["records"])
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def traces_in(folder: Path) -> Iterator[str]:
    """Yield the files that hold a trace of a secret, by name or content."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = unpacked(path.read_bytes())
        if found := [trace for trace in TRACES if trace in data or trace in str(path).encode()]:
            at = data.find(found[0])
            yield f"{path}: {data[max(0, at - 100) : at + 100]!r}"


@pytest.fixture
def leaky(stubs: Stubs) -> Stubs:
    """Providers that repeat every secret in all they say, for a small run."""
    stubs.settings.steps, stubs.settings.breadth, stubs.settings.results = 2, 1, 2
    stubs.settings.follow_ups, stubs.settings.page_bytes = 0, 2_000
    stubs.settings.echo = ECHO
    return stubs


def told_by(text: str) -> list[str]:
    """Return where a text holds a trace of a secret."""
    found = [text.find(trace.decode()) for trace in TRACES]
    return [text[max(0, at - 100) : at + 100] for at in found if at >= 0]


def seen_by_the_model(stubs: Stubs) -> list[str]:
    return [trace for call in stubs.calls("llm") for trace in told_by(json.dumps(call.body, ensure_ascii=False))]


def test_no_secret_is_stored_shown_or_sent(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, leaky: Stubs, tmp_path: Path
) -> None:
    env = {**prefect_server.env, **leaky.env, **SECRETS}
    done = fathom_cli(["research", QUERY, "--model", "openai/stub", "--json"], env)
    assert done.returncode == 0, done.stderr
    result = RunResult.model_validate_json(done.stdout)
    shown = fathom_cli(["show", result.run_id, "--json"], env)
    listed = fathom_cli(["runs"], env)

    leaky.settings.faults = {"section": ["401*"], "search": ["432"]}
    failed = fathom_cli(["--debug", "research", "How do tides end?", "--model", "openai/stub"], env)
    assert failed.returncode == 1
    assert "Tavily answered 432" in failed.stderr
    assert "E2005" in failed.stderr
    for process in (done, shown, listed, failed):
        assert told_by(process.stdout + process.stderr) == []
    assert HIDDEN in (Path(result.artifacts) / "report.json").read_text()
    assert f"https://{HIDDEN}@example.com/tides" in (Path(result.artifacts) / "run.json").read_text()
    assert list(traces_in(tmp_path)) == []  # the artifacts, the results, and the caches in the home folder
    assert seen_by_the_model(leaky) == []
    assert list(traces_in(Path(os.environ["PREFECT_HOME"]))) == []
    assert list(traces_in(prefect_server.log.parent)) == []
    assert HIDDEN.encode() in b"".join(path.read_bytes() for path in Path(os.environ["PREFECT_HOME"]).glob("*.db*"))


@pytest.mark.usefixtures("short_rests")
async def test_no_secret_is_in_what_a_deployment_logs(
    prefect_server: PrefectServer,
    leaky: Stubs,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, value in {**leaky.env, **SECRETS}.items():
        monkeypatch.setenv(name, value)
    leaky.settings.faults = {"compressor": ["500*"], "critic": ["broken_json*"], "search": ["432"]}
    settings = ResearchSettings(artifacts=str(tmp_path / "root"), model="openai/stub", model_calls=PATIENCE)
    with caplog.at_level(logging.INFO):
        result = await deep_research("How do tides form?", settings)
    assert isinstance(result, RunResult)
    assert result.status is Ending.degraded
    said = "".join([*capfd.readouterr(), caplog.text])
    assert HIDDEN in said
    assert told_by(said) == []
    assert list(traces_in(tmp_path)) == []
    assert seen_by_the_model(leaky) == []
    await asyncio.sleep(3)  # Prefect sends logs every two seconds
    assert list(traces_in(Path(os.environ["PREFECT_HOME"]))) == []


LIKE_A_KEY = "sk-proj-Planted7dZ3kQ0vBnW2xTf8Rm"  # of no variable


@pytest.mark.parametrize("key", [MODEL_KEY, LIKE_A_KEY])
def test_a_parameter_that_holds_a_key_is_named(key: str) -> None:
    parameters = {"query": f"What is {key}?", "settings": {"profile": "quick"}}
    assert [*Scrubber([MODEL_KEY]).names_in(parameters)] == ["query"]


@pytest.mark.usefixtures("home", "prefect_server")
async def test_a_secret_in_a_parameter_is_a_warning_that_does_not_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", MODEL_KEY)
    settings = ResearchSettings(artifacts=str(tmp_path / "root"), tools=["documents"], profile=Profile.quick)
    keys = f"{MODEL_KEY} or {LIKE_A_KEY}"
    result = await deep_research(f"How does attribute lookup work with the key {keys} in it?", settings)
    assert isinstance(result, RunResult)
    [warning] = result.warnings
    assert warning.startswith("The parameter query seems to hold a key or password")
    assert warning in Report.model_validate_json(Path(result.artifacts, "report.json").read_bytes()).warnings
    assert warning in caplog.text
    assert told_by(caplog.text) == []
    assert list(traces_in(tmp_path)) == []


def test_what_counts_as_a_secret() -> None:
    variables = {
        **SECRETS,
        "API_TOKEN": "short",
        "LOCAL_API_KEY": "not-needed",
        "PREFECT_API_DATABASE_CONNECTION_URL": "postgresql+asyncpg://postgres:postgres@db/prefect",
        "PREFECT_API_AUTH_STRING": "admin:Planted7Auth8",
        "GOOGLE_APPLICATION_CREDENTIALS": "/etc/google/credentials.json",
        "PWD": "/home/ann/project",
        "SEARXNG_URL": "http://ann:b%2Fc%20Planted7@searx.example",
        "FATHOM_MODEL": "openai/gpt-5-mini",
    }
    assert Environment.read(variables).secrets == {
        *VALUES, "scott:Planted7Proxy5", "postgres:postgres", "admin:Planted7Auth8",
        "ann:b%2Fc%20Planted7", "ann:b/c Planted7", "b/c Planted7",
    }  # fmt: skip
    assert "Planted7" not in repr(Environment.read(variables))


@given(st.sampled_from(VALUES), st.text(max_size=20), st.text(max_size=20))
def test_no_spelling_of_a_secret_survives(secret: str, before: str, after: str) -> None:
    scrubber = Scrubber(VALUES)
    for spelled in (
        secret,
        quote(secret, safe=""),
        base64.b64encode(secret.encode()).decode(),
        json.dumps(secret)[1:-1],
    ):
        clean = scrubber.text(f"{before}{spelled}{after}")
        assert spelled.rstrip("=") not in clean
        assert "Planted7" not in clean


@given(st.text(max_size=200))
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert Scrubber(VALUES).text(text) == text
    assert Scrubber(VALUES).model(ToolFailure(code="E3004", message=text)).message == text


@given(st.sampled_from(VALUES), st.integers(12, 40))
def test_a_message_that_was_cut_off_in_a_secret_tells_nothing(secret: str, kept: int) -> None:
    assert Scrubber(VALUES).message(f"Wrong key: {secret[:kept]}. Try another.") == f"Wrong key: {HIDDEN}. Try another."


def test_urls_lose_their_credentials() -> None:
    text = "ftp://ann:pw@host/x, https://token@git.example:8443?q=1#a@b and mail to ann@example.com, https://x.example/@ann"
    assert without_credentials(text) == text.replace("ann:pw@host", "***@host").replace("token@git", "***@git")


def test_failures_lose_what_they_say_of_secrets() -> None:
    with pytest.raises(ToolUnavailable) as caught, Scrubber(VALUES).errors():
        raise ToolUnavailable(f"Unauthorized: {SEARCH_KEY}", next_step=f"change {SEARCH_KEY}")
    assert "Planted7" not in f"{caught.value} {caught.value!r}"
    assert caught.value.message == f"Unauthorized: {HIDDEN}"


def test_log_records_hold_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    factory = logging.getLogRecordFactory()
    try:
        guard_logs(Scrubber([SEARCH_KEY]))
        guard_logs(Scrubber([MODEL_KEY]))
        log = logging.getLogger("any.library")
        log.warning("called with %s and %r, https://ann:pw@host", SEARCH_KEY, {"key": MODEL_KEY})
        log.warning("%d%% of %s", 5, "this")
        try:
            raise ValueError(MODEL_KEY) from KeyError(SEARCH_KEY)
        except ValueError:
            log.exception("failed")
    finally:
        logging.setLogRecordFactory(factory)
    assert "Planted7" not in caplog.text
    assert "called with *** and {'key': '***'}, https://***@host" in caplog.text
    assert "5% of this" in caplog.text
    assert "ValueError: ***" in caplog.text


def test_an_address_of_the_store_with_a_password_is_refused(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="contains a user name or password"):
        ArtifactStore("ftp://ann:Planted7Typed6@ftp.example/runs")
    done = fathom_cli(["research", "Tides?", "--artifacts", "ftp://ann:Planted7Typed6@ftp.example/runs"])
    assert done.returncode == 2
    assert "Planted7" not in done.stderr


def test_calls_are_models_too() -> None:
    call = Scrubber(VALUES).model(ToolCall(tool="web_search", input=f"what is {MODEL_KEY}"))
    assert call.input == f"what is {HIDDEN}"
