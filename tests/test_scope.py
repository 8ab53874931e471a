"""The scope of a run: what it may read and what may leave, kept by the tools, the model client and the network."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from fathom.config.environment import Environment
from fathom.config.groups import AccessScope, RoleModel
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import InvalidInput
from fathom.flows.preflight import check_settings
from fathom.llm.base import ModelCall
from fathom.llm.client import ModelBackend
from fathom.llm.model_checks import PROBE, ProbeRequest
from fathom.network import is_local, keeping_in, may_send
from fathom.service.options import Options
from fathom.tools.base import RunContext
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.client import Client, GuardedBackend
from fathom.tools.http import limited_client
from fathom.tools.registry import configured_tools
from fathom.tools.toolbox import open_toolbox
from tests.conftest import PrefectServer, new_ledger, quiet_port
from tests.inprocess import investigated
from tests.server import served_with
from tests.stubs import Stubs

ELSEWHERE = "http://93.184.215.14/"


@pytest.fixture
def docs(home: Path, tmp_path: Path) -> list[str]:
    (tmp_path / "plan.md").write_text("# Plans\n\nRefunds are paid within 14 days.\n")
    return [str(tmp_path / "plan.md")]


def tools(settings: ResearchSettings) -> set[str]:
    return set(configured_tools(settings, Environment.read())) - {"artifact_grep", "artifact_read", "compute"}


def test_a_scope_has_its_own_tools_and_tools_choose_among_them(
    docs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-1234567890")
    given = {scope: tools(ResearchSettings(docs=docs, scope=scope)) for scope in AccessScope}
    assert given[AccessScope.documents] == given[AccessScope.private] == {"documents"}
    assert given[AccessScope.web] == {"web_search", "web_extract", "fetch"}
    assert {"arxiv", "wikipedia"} <= given[AccessScope.public_sources]
    assert given[AccessScope.public_sources].isdisjoint({"web_search", "fetch", "documents"})
    chosen = ResearchSettings(docs=docs, scope=AccessScope.public_sources, tools=["wikipedia"])
    assert tools(chosen) == {"wikipedia"}


@pytest.mark.parametrize(
    ("given", "said", "step"),
    [
        ({"tools": ["web_search"]}, "web_search is outside the scope private", "another --scope"),
        ({"tools": ["mcp_wiki_search"]}, "mcp_wiki_search is outside", "another --scope"),
        ({"library": True}, "library is outside", "another --scope"),
        ({"docs": []}, "nothing to search", "--docs PATH"),
        ({"scope": "web"}, "nothing to search", "set a search key"),
        ({"model": "anthropic/claude-haiku-4-5"}, "asked at an address of its provider", "ollama"),
        ({"model": "openai/gpt-5-mini"}, "asked at https://api.openai.com", "OPENAI_BASE_URL"),
    ],
)
def test_what_is_outside_is_refused_with_what_to_change(
    docs: list[str], given: dict[str, object], said: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    settings = ResearchSettings.model_validate({"scope": "private", "docs": docs, **given})
    with pytest.raises(InvalidInput, match=said) as refused:
        check_settings(settings)
    assert step in str(refused.value.next_step)


async def test_it_is_kept_below_the_choice_of_tools_and_models(docs: list[str]) -> None:
    environment = Environment.read()
    resolved = resolve(ResearchSettings(docs=docs, scope=AccessScope.private), environment, ["documents", "fetch"])
    with pytest.raises(InvalidInput, match="fetch is outside"):
        open_toolbox(RunContext(resolved, environment))
    models = ModelBackend(
        Environment.read({"OPENAI_API_KEY": "sk-1234567890"}), new_ledger(), scope=AccessScope.private
    )
    with pytest.raises(InvalidInput, match=r"asked at https://api\.openai\.com"):
        await models.complete(ModelCall(PROBE, ProbeRequest(), RoleModel(model="openai/gpt-5-mini")))
    pages = Client(GuardedBackend(AllowList.parse([])))
    async with keeping_in(AccessScope.documents.kept_in), limited_client() as http:
        with pytest.raises(InvalidInput, match=r"its tools from 93\.184\.215\.14"):
            await http.get(ELSEWHERE)
        with pytest.raises(InvalidInput, match="nothing was sent"):
            await pages.get(httpx.URL(ELSEWHERE))
        assert may_send("models", ELSEWHERE) and may_send("traces", ELSEWHERE)
    async with keeping_in(AccessScope.private.kept_in):
        assert not may_send("models", ELSEWHERE) and not may_send("traces", ELSEWHERE)
        assert may_send("traces", "http://localhost:4318")
    assert may_send("tools", ELSEWHERE)
    here = {"http://127.0.0.1:1": True, "http://10.0.0.7/v1": True, "http://169.254.169.254": False, ELSEWHERE: False}
    assert {address: is_local(address) for address in here} == here


async def test_a_proxy_is_outside_too(docs: list[str], providers: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the documents go to it, with the key, on the way to a model on this machine."""
    for name in ("no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://93.184.215.14:3128")
    monkeypatch.setenv("NO_PROXY", "localhost")
    settings = ResearchSettings(docs=docs, scope=AccessScope.private, model="openai/gpt-5-mini")
    models = ModelBackend(Environment.read(), new_ledger(), scope=AccessScope.private)
    call = ModelCall(PROBE, ProbeRequest(), RoleModel(model="openai/gpt-5-mini"))
    with pytest.raises(InvalidInput, match=r"127\.0\.0\.1\S* through the proxy 93\.184\.215\.14") as refused:
        await models.complete(call)
    assert "NO_PROXY" in str(refused.value.next_step)
    with pytest.raises(InvalidInput, match="through the proxy"):
        check_settings(settings)
    async with keeping_in(AccessScope.private.kept_in), limited_client() as http:
        with pytest.raises(InvalidInput, match="through the proxy"):
            await http.get(providers.url)
    assert not providers.requests
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    check_settings(settings)
    async with aclosing(models):
        await models.complete(call)
    assert {request.kind for request in providers.requests} == {"llm"}
    for proxy, is_near in (("10.0.0.7:3128", True), ("socks5://user:secret@93.184.215.14", False)):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        assert is_local("http://10.0.0.8/v1") is is_near


async def test_a_private_run_asks_a_model_on_this_machine_and_says_its_scope(
    docs: list[str], providers: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await investigated(tmp_path / "store", "When are refunds paid?", docs=docs, scope="private")
    assert {request.kind for request in providers.requests} == {"llm"}
    assert result.scope.startswith("private: only your documents") and result.report
    assert "scope private: only your documents" in Path(result.report).read_text()
    manifest = json.loads(Path(result.artifacts, "run.json").read_text())
    assert manifest["settings"]["scope"] == "private"


def test_an_operator_pins_it(
    docs: list[str], tmp_path: Path, prefect_server: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FATHOM_SCOPE", "documents")
    environment = Environment.read()
    pinned = resolve(ResearchSettings(docs=docs), environment, [])
    narrower = resolve(ResearchSettings(docs=docs, scope=AccessScope.private), environment, [])
    assert (pinned.scope, narrower.scope) == (AccessScope.documents, AccessScope.private)
    with served_with(Options(str(tmp_path / "store"), port=quiet_port()), limit=0) as served:
        asked = {"question": "Why?", "settings": {"docs": docs, "scope": "web"}}
        answer = httpx.post(f"{served.url}/api/v1/runs", json=asked, timeout=60)
    assert answer.status_code == 422
    assert answer.json()["next_step"] == "leave it out, or choose documents or private"
    monkeypatch.setenv("FATHOM_SCOPE", "everything")
    with pytest.raises(InvalidInput, match="which is no scope"):
        check_settings(ResearchSettings(docs=docs))
