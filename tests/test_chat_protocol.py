"""The endpoint that speaks OpenAI's protocol, used with OpenAI's own package."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionChunk

from fathom.extractive.questions import questions_of
from fathom.service import progress
from tests.server import Served, without_worker
from tests.stubs import Stubs

QUESTION = "What is a descriptor in Python?"
OPEN_WEBUI_TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: What is a descriptor in Python?
ASSISTANT: # Descriptors

## Next steps

- How does a data descriptor differ?

</chat_history>"""


@dataclass(frozen=True)
class Streamed:
    """A report that was streamed as a chat completion."""

    run_id: str
    reasoning: str
    text: str
    annotations: list[dict[str, Any]]
    last: ChatCompletionChunk


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{served.url}/v1", api_key="none-needed", timeout=60, max_retries=0) as made:
        yield made


@pytest.fixture
async def async_client(served: Served) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none-needed", timeout=60, max_retries=0) as made:
        yield made


@pytest.fixture(scope="module")
def streamed(client: OpenAI) -> Streamed:
    """A run that the tests of this module share."""
    chunks = list(
        client.chat.completions.create(
            model="fathom-quick",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            stream_options={"include_usage": True},
            max_tokens=100,
            user="somebody",
        )
    )
    assert [chunk.choices[0].finish_reason for chunk in chunks[-3:-1]] == [None, "stop"]
    deltas = [chunk.choices[0].delta for chunk in chunks[:-1]]
    extra = [delta.model_extra or {} for delta in deltas]
    first_text = next(position for position, delta in enumerate(deltas) if delta.content)
    assert not any("reasoning_content" in more for more in extra[first_text:])
    return Streamed(
        chunks[0].id.removeprefix("chatcmpl-"),
        "".join(more.get("reasoning_content", "") for more in extra),
        "".join(delta.content or "" for delta in deltas),
        [annotation["url_citation"] for more in extra for annotation in more.get("annotations", [])],
        chunks[-1],
    )


def test_models_are_listed(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["fathom", "fathom-quick", "fathom-deep"]
    assert client.models.retrieve("fathom-deep").owned_by == "fathom"


def test_a_report_is_streamed_with_progress_before_it_and_references_behind_it(
    streamed: Streamed, served: Served
) -> None:
    lines = streamed.reasoning.splitlines()
    assert f"{served.url}/runs/{streamed.run_id}" in lines[0]
    assert any(line.startswith("Step 1 begins") for line in lines), lines
    assert any(re.match(r"A note from \d+ sources?: \S.*: \S", line) for line in lines), lines
    assert any(line.startswith("Draft of section 1 of ") and "not checked yet" in line for line in lines), lines
    assert streamed.text.startswith("# ") and "## Sources" in streamed.text
    stored = httpx.get(f"{served.url}/api/v1/runs/{streamed.run_id}", timeout=60).json()
    assert stored["settings"]["profile"] == "quick"
    assert streamed.annotations
    for cited in streamed.annotations:
        marker = streamed.text[cited["start_index"] : cited["end_index"]]
        number = int(marker.strip("[]"))
        assert f"\n{number}. {cited['title'].replace('_', chr(92) + '_')}" in streamed.text
        assert cited["url"] == f"{served.url}/runs/{streamed.run_id}#source-{number}"
    assert streamed.last.choices == [] and streamed.last.usage


async def test_a_conversation_goes_on_with_a_follow_up_although_the_client_went_away(
    async_client: AsyncOpenAI, streamed: Streamed, served: Served
) -> None:
    said: list[Any] = [
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": streamed.text},
        {"role": "user", "content": [{"type": "text", "text": "And what is a data descriptor?"}]},
    ]
    asked: dict[str, Any] = {"messages": said, "model": "fathom-quick", "extra_headers": {"Idempotency-Key": "again"}}
    stream = await async_client.chat.completions.create(**asked, stream=True)
    first = await anext(aiter(stream))
    await stream.close()
    answer: Any = await async_client.chat.completions.create(**asked)
    assert answer.id == first.id
    async with httpx.AsyncClient(base_url=served.url) as plain:
        run = (await plain.get(f"/api/v1/runs/{answer.id.removeprefix('chatcmpl-')}")).json()
    assert run["parent"] == streamed.run_id and run["question"] == "And what is a data descriptor?"
    message = answer.choices[0].message
    assert message.content.startswith("# ") and message.annotations[0].url_citation.start_index > 0
    assert message.reasoning_content
    assert answer.choices[0].finish_reason == "stop" and answer.usage.total_tokens == 0  # no model was asked


async def test_a_response_is_streamed_read_again_and_followed_up(
    async_client: AsyncOpenAI, streamed: Streamed, served: Served
) -> None:
    async with async_client.responses.stream(model="fathom-quick", input="How is a Python slice evaluated?") as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    kinds = list(dict.fromkeys(event.type.removeprefix("response.") for event in events))
    assert kinds == [
        *("created", "in_progress", "output_item.added"),
        *("reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done"),
        *("reasoning_summary_part.done", "output_item.done", "content_part.added", "output_text.delta"),
        *("output_text.annotation.added", "output_text.done", "content_part.done", "completed"),
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert final.output_text.startswith("# ")
    again = await async_client.responses.retrieve(final.id)
    assert again.output_text == final.output_text and again.status == "completed" and again.model == "fathom-quick"
    assert again.output[1].content[0].annotations
    earlier = f"resp_{streamed.run_id}"
    with without_worker(served) as idle:  # with one, a run this short may be over before it is cancelled
        async with AsyncOpenAI(base_url=f"{idle.url}/v1", api_key="none-needed", timeout=60, max_retries=0) as client:
            queued = await client.responses.create(
                model="fathom-quick", input="And on a class?", previous_response_id=earlier, background=True
            )
            assert queued.status == "queued" and not queued.output
            cancelled = await client.responses.cancel(queued.id)
            assert cancelled.status == "cancelled" and cancelled.previous_response_id


def test_a_conversation_clarifies_a_question_and_returns_all_that_was_done(
    client: OpenAI, providers: Stubs, served: Served
) -> None:
    """A model that asks back, and an assistant elsewhere that did: three turns are one question."""
    providers.settings.steps = providers.settings.breadth = 1
    extra = {"fathom": {"model": "openai/stub", "tools": ["documents"], "people": {"clarify": "always"}}}
    said: list[Any] = [
        {"role": "user", "content": "Hello!"},
        {"role": "assistant", "content": "What do you want to know?"},
        {"role": "user", "content": "Tell me about descriptors"},
        {"role": "assistant", "content": "Gladly. Which language?"},
        {"role": "user", "content": "Python"},
    ]
    answer: Any = client.chat.completions.create(model="fathom-quick", messages=said, extra_body=extra)
    run = httpx.get(f"{served.url}/api/v1/runs/{answer.id.removeprefix('chatcmpl-')}", timeout=60).json()
    assert run["question"] == "Tell me about descriptors" and not providers.calls("clarifier")
    [told] = run["plan"]["clarifications"]
    assert (told["question"], told["answer"], told["assumed"]) == ("Gladly. Which language?", "Python", False)
    assert "Gladly. Which language? Python" in str(providers.calls("planner")[0].body)

    state = answer.fathom
    messages = [(one["role"], one.get("name"), one["content"]) for one in state["messages"]]
    assert [content for _, _, content in messages[:5]] == [one["content"] for one in said]
    (planner, _, plan), (tool, search, asked), (_, results, found), *_, (role, _, last) = messages[5:]
    assert (planner, tool, search, results, role) == ("assistant", "tool", "documents", "search_results", "assistant")
    assert run["plan"]["plan_title"] in plan and asked and last == answer.choices[0].message.content
    [item] = state["checklist"]
    assert item["resolved"] and item["findings"]["key_points"] and item["findings"]["summary"]
    assert json.loads(found)["read"] and {one["url"] for one in item["findings"]["sources"]} <= {
        one["url"] for one in json.loads(found)["read"]
    }
    assert state["iteration_count"] == 1 and not state["needs_clarification"]


def test_titles_and_the_like_need_no_research(client: OpenAI, served: Served) -> None:
    def asked(prompt: str, **more: Any) -> str:
        messages: list[Any] = [{"role": "user", "content": prompt}]
        answer: Any = client.chat.completions.create(model="fathom", messages=messages, **more)
        if more.get("stream"):
            return "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        return str(answer.choices[0].message.content)

    before = set(served.root.glob(".serve/runs/*"))
    title = "What is a descriptor in Python"
    assert json.loads(asked(OPEN_WEBUI_TITLE)) == {"title": title}
    assert json.loads(asked(OPEN_WEBUI_TITLE, stream=True)) == {"title": title}
    follow_ups = OPEN_WEBUI_TITLE.replace('"title"', '"follow_ups"')
    assert json.loads(asked(follow_ups)) == {"follow_ups": ["How does a data descriptor differ?"]}
    assert json.loads(asked(OPEN_WEBUI_TITLE.replace('"title"', '"tags"')))["tags"][0] == "Research"
    libre_chat = "Provide a concise, 5-word-or-less title for the conversation. Only return the title itself."
    assert asked(f"{libre_chat}\n\nConversation:\nUser: {QUESTION}\nAI: It is") == title
    assert client.responses.create(model="fathom", input=OPEN_WEBUI_TITLE).output_text == json.dumps({"title": title})
    assert set(served.root.glob(".serve/runs/*")) == before


def test_long_prompts_are_read_in_a_time_that_grows_with_their_length(served: Served) -> None:
    """With the square of it they would take hours, in which the server answers nobody."""
    history = f"{OPEN_WEBUI_TITLE.partition('USER:')[0]}user: slots"
    with_documents = "### Task:\nRespond to the user query using the provided context"
    for prompt, status in (
        (history.removesuffix("user: slots") + "\n" * 1_000_000, 200),
        (history + "\n " * 500_000, 200),
        (with_documents + "<user_query>" * 80_000, 400),  # a question of more than 10,000 characters
    ):
        asked = {"model": "fathom", "messages": [{"role": "user", "content": prompt}]}
        assert httpx.post(f"{served.url}/v1/chat/completions", json=asked, timeout=60).status_code == status
    numbered = "How are slots stored?" + "\n" * 200_000 + "1. Are they fast?"
    assert questions_of(numbered) == ["How are slots stored", "Are they fast (slots)"]


def test_what_cannot_be_asked_is_refused_in_the_form_that_clients_know(client: OpenAI, served: Served) -> None:
    def refused(kind: type[openai.APIStatusError], **more: Any) -> dict[str, Any]:
        with pytest.raises(kind) as found:
            client.chat.completions.create(
                **{"model": "fathom-quick", "messages": [{"role": "user", "content": QUESTION}], **more}
            )
        assert isinstance(found.value.body, dict)
        return found.value.body

    assert refused(openai.NotFoundError, model="gpt-5")["code"] == "model_not_found"
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert "only text" in refused(openai.BadRequestError, messages=[{"role": "user", "content": [picture]}])["message"]
    assert refused(openai.BadRequestError, messages=[{"role": "system", "content": "x"}])["code"] == "E4001"
    assert refused(openai.BadRequestError, messages=[])["type"] == "invalid_request_error"
    assert "colour" in refused(openai.BadRequestError, extra_body={"fathom": {"colour": "red"}})["message"]
    deep = refused(openai.BadRequestError, extra_body={"fathom": {"report": {"words": 5}}})["message"]
    assert "report.words 5: it must be at least 100 and at most 20,000" in deep
    assert refused(openai.BadRequestError, response_format={"type": "json_object"})["code"] == "E4001"
    assert refused(openai.BadRequestError, messages=[{"role": "user", "content": "x" * 10_001}])["code"] == "E4001"
    assert "no word" in refused(openai.BadRequestError, messages=[{"role": "user", "content": "???"}])["message"]
    hello = [{"role": "user", "content": "hello"}]
    assert "asks for nothing" in refused(openai.BadRequestError, messages=hello)["message"]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_nothing")
    assert httpx.get(f"{served.url}/v1/nothing", timeout=60).json()["error"]["type"] == "invalid_request_error"


def test_silence_is_broken_and_a_run_asks_in_the_conversation(
    client: OpenAI, providers: Stubs, monkeypatch: pytest.MonkeyPatch, served: Served
) -> None:
    monkeypatch.setattr(progress, "KEEP_ALIVE", 0.1)
    providers.settings.ask_back = {"Which kind?": "every kind"}
    providers.settings.llm_delay = 0.15
    extra = {"fathom": {"people": {"clarify": "always"}, "tools": ["documents"], "model": "openai/stub"}}
    said: list[Any] = [{"role": "user", "content": QUESTION}]
    asking: Any = client.chat.completions.create(model="fathom-quick", messages=said, extra_body=extra)
    text = asking.choices[0].message.content
    assert "Which kind?" in text, (asking.choices[0].message.reasoning_content, asking.usage)
    assert text.rstrip().endswith("#answer)")
    state: Any = asking.model_extra["fathom"]
    assert state["needs_clarification"] and state["clarifying_questions"] == ["Which kind?"]
    assert state["messages"][-1] == {"role": "assistant", "content": text} and state["checklist"] == []
    said += [{"role": "assistant", "content": text}, {"role": "user", "content": "data descriptors"}]
    asked = {"model": "fathom-quick", "messages": said, "stream": True}
    with httpx.stream("POST", f"{served.url}/v1/chat/completions", json=asked, timeout=60) as stream:
        lines = list(stream.iter_lines())
    assert lines[-2] == "data: [DONE]"
    silences = [place for place, line in enumerate(lines) if line == ": still at work"]
    assert silences and json.loads(lines[silences[0] + 2].removeprefix("data: "))["choices"][0]["delta"] == {
        "content": ""
    }
    run = json.loads(lines[0].removeprefix("data: "))["id"].removeprefix("chatcmpl-")
    assert run == asking.id.removeprefix("chatcmpl-")
    assert "data descriptors" in "".join(lines)
