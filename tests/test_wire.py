"""What servers of OpenAI's protocol do on the wire, and what their templates want."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jinja2
import pytest
from jinja2 import meta

from fathom.config.environment import Environment
from fathom.config.groups import EXTRACTIVE, RoleModel, StructuredOutput
from fathom.llm import prompts
from fathom.llm.base import Completion, ModelCall
from fathom.llm.client import ModelBackend
from fathom.llm.dialects import dialect_of
from fathom.llm.parsing import accept, not_prose, without_debris
from fathom.llm.prompts import GO_ON, messages, request_options
from fathom.models import Usage
from fathom.roles import PLANNER, SECTION, PlanRequest, Text
from fathom.text.citations import with_known_ids
from tests.conftest import new_ledger
from tests.inprocess import QUERY
from tests.stubs import Stubs
from tests.test_model_faults import SECTION_REQUEST, answer_to, note, section_call


def event(text: str, finish: str | None = None) -> bytes:
    """Return a piece of an answer as servers send it that do not escape what is no ASCII."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


@asynccontextmanager
async def sending(*events: bytes, ended: bool = True) -> AsyncIterator[str]:
    """Serve one chunked stream to everybody, and yield the address; `ended`: with the chunk that ends the response."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if length := re.search(rb"content-length: (\d+)", head.lower()):
            await reader.readexactly(int(length[1]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for data in events:
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        writer.write(b"0\r\n\r\n" if ended else b"")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize("text", ["One\u2028two", "One\u2029two", "One\u0085two", "One\x0btwo"])
async def test_a_separator_in_an_answer_is_part_of_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    async with sending(event(text), event("", "stop"), b"data: [DONE]\n\n") as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert (await answer_to(section_call())).text == text


@pytest.mark.parametrize("last", [b"data: [DONE]\n\n", b""])
async def test_an_answer_is_whole_however_the_connection_ends(monkeypatch: pytest.MonkeyPatch, last: bytes) -> None:
    async with sending(event("The whole answer."), event("", "stop"), last or b": the end\n\n", ended=False) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert (await answer_to(section_call())).text == "The whole answer."


async def test_a_server_that_drips_what_it_says_of_its_models_holds_nobody(
    providers: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fathom.llm.windows.SECONDS", 0.3)
    providers.settings.faults = {"models": ["drip"]}
    assert (await answer_to(section_call())).text


def test_roles_take_turns_where_there_is_no_system_role() -> None:
    request = SECTION_REQUEST.model_copy(update={"notes": [note(n, "methane seas") for n in range(3)]})
    call = ModelCall(SECTION, request, RoleModel(model="openai/gemma-3-4b-it"))
    sent = request_options(call, dialect_of("openai/gemma-3-4b-it", own_server=True))["messages"]
    roles = [message["role"] for message in sent]
    assert "system" not in roles
    assert all(one != other for one, other in pairwise(roles))
    said = "\n\n".join(message["content"] for message in sent if message["content"] != GO_ON)
    plain = messages(call, dialect_of("openai/qwen2.5", own_server=True))
    assert said == "\n\n".join(message["content"] for message in plain), "nothing is lost"


async def test_each_role_is_asked_in_the_form_of_its_own_setting(providers: Stubs) -> None:
    request = PlanRequest(query=QUERY, today="2026-11-22", max_steps=3, tools={"web_search": "searches"})
    async with aclosing(ModelBackend(Environment.read(), new_ledger())) as models:
        for form in (None, StructuredOutput.prompt):
            role_model = RoleModel(model="openai/stub", structured_output=form)
            await models.complete(ModelCall(PLANNER, request, role_model))
    first, second = (record.body for record in providers.calls("llm"))
    assert first["response_format"]["type"] == "json_schema"
    assert "response_format" not in second


async def test_only_the_words_of_a_refusal_change_how_a_model_is_asked(providers: Stubs) -> None:
    providers.settings.faults = {"section": ["500"]}
    call = section_call()
    await answer_to(replace(call, model=RoleModel(model="openai/llama3-tool-use-json-schema")))
    failed, answered = (record.body for record in providers.calls("llm"))
    assert failed == answered


@pytest.mark.parametrize(
    "text",
    [
        '["Attention is all you need"](https://x.example) introduced the model. [S1a2b3c]',
        '"Latency": the time until the first token. [S1a2b3c]',
        "{{ name }} is replaced by the value. [S1a2b3c]",
        '- It takes this:\n  {"key": "value"} is accepted at the start. [S1a2b3c]',
        'Write it so: [S1a2b3c]\n\n```json\n{"a": 1}\n```',
        "ChatML looks like this: [S1a2b3c]\n\n```\n<|im_start|>user\nHello<|im_end|>\n```\nThat is all.",
        "Harmony marks the kind of a message with `<|channel|>`. [S1a2b3c]",
        "```\none\n```\n\nBetween them stands text. [S1a2b3c]\n\n```\ntwo\n```",
        "Antimony is $\\mathrm{Sb}$, selenium \\ce{Se}; see [Seed](https://x.example) and Amazon (S3). [S1a2b3c]",
        "`pattern = r'[S3b]'` matches one letter. [S1a2b3c]",
    ],
)
def test_prose_about_anything_is_left_as_it_is(text: str) -> None:
    assert not_prose(text) == ""
    assert with_known_ids(without_debris(text, is_json=False), ["S1a2b3c"]) == text


def test_texts_in_json_are_left_as_they_are() -> None:
    text = json.dumps({"a": "uses <|channel|>, </think> and <|im_end|>"})
    assert without_debris(f"<|im_start|>assistant\n{text}<|im_end|>", is_json=True) == text


@pytest.mark.parametrize("text", ['{"key": "value"} [S1a2b3c]', "A turn ends with <|im_end|> in ChatML. [S1a2b3c]"])
def test_a_quotation_is_no_debris(text: str) -> None:
    call = ModelCall(SECTION, SECTION_REQUEST, RoleModel(model=EXTRACTIVE))
    assert accept(call, Completion(text=text, usage=Usage(), model=EXTRACTIVE)) == Text(text=text)


def test_the_hash_of_a_prompt_covers_all_that_it_imports(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As Jinja finds the imports, which takes too long at the start of a run."""
    source = {path.name: path.read_text(encoding="utf-8") for path in prompts.FOLDER.glob("*.md")}

    def reached(name: str) -> set[str]:
        imported = filter(None, meta.find_referenced_templates(jinja2.Environment().parse(source[name])))
        return {name}.union(*map(reached, imported))

    def hashes() -> dict[str, str]:
        prompts.prompt_hashes.cache_clear()
        return prompts.prompt_hashes()

    request.addfinalizer(prompts.prompt_hashes.cache_clear)
    monkeypatch.setattr(prompts, "FOLDER", tmp_path)
    for name, text in source.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    before = hashes()
    for name, text in source.items():
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
        changed = {role for role, found in hashes().items() if found != before[role]}
        assert changed == {role for role in before if name in reached(f"{role}.md")}
        (tmp_path / name).write_text(text, encoding="utf-8")
