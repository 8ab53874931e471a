"""A conversation as research: a run is started, followed up on, answered and followed; or a chore is done without.

A client that goes away does not end the run: what was spent is not lost, and the link in the first line leads to it.

What chat programs ask a model beside the conversation: a title, tags, next questions. Answered without research.
They know the prompts of Open WebUI (0.6 to 0.9) and LibreChat (its package of agents); both can be changed by their
administrators, so the form of the answer is read from the prompt, and what is not recognised is a question.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from textwrap import shorten
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from fathom.client.shapes import AnswerRequest, FollowUpRequest, RunRequest
from fathom.config.given import wrong_in
from fathom.errors import FathomError, InvalidInput, NoReport, RunNotFound
from fathom.extractive.questions import keywords
from fathom.interfaces.chat.answers import ChatAnswer, Conversation, answer_of
from fathom.interfaces.chat.shapes import Extras, Message, OpenAIRequest, settings_of
from fathom.models import Matter, RunState
from fathom.report.own_words import Added
from fathom.service.caller import Caller
from fathom.service.outages import outage
from fathom.service.progress import Begun, progress
from fathom.service.runs import RunHandle, RunService
from fathom.text.plain import clean_line
from fathom.text.wording import in_every_language

_YES = re.compile(
    r"\W*(?:yes|y|ok(?:ay)?|accept(?:ed)?|approved?|go(?: on| ahead)?|looks good|fine|ja|oui|s[ií])\W*", re.I
)
_NO = re.compile(r"\W*(?:stop|cancel|reject(?:ed)?|no|abort|nein|non)\W*", re.I)
_NUMBER = re.compile(r"\A\s*(?:\d+[.):]|[-*])\s*")
_RequestT = TypeVar("_RequestT", bound=BaseModel)


async def begin(service: RunService, caller: Caller, asked: OpenAIRequest, talk: Conversation, key: str) -> Begun:
    """Take up what a conversation asks: the answer to a run that waits for one, a follow-up, or a new question.

    Raises:
        FathomError: it cannot be researched, or the caller may not ask.
    """
    extras = asked.fathom or Extras()
    settings = {**settings_of(asked.model), **extras.settings()}
    if talk.earlier:
        with suppress(RunNotFound):  # of another server, or of somebody else
            earlier = await service.open(caller, talk.earlier.run_id)
            if talk.earlier.asks:
                return await _answer(earlier, talk.question)
            with suppress(NoReport):
                follow_up = _checked(FollowUpRequest, question=talk.question, settings=settings)
                return Begun(await earlier.ask(follow_up, key))
    if talk.clarified:
        people = settings.get("people") or {}
        settings["people"] = {**people, "clarified": {**talk.clarified}} if isinstance(people, dict) else people
    given = {"template": extras.template, "corpora": extras.corpora, "shared": extras.shared}
    request = _checked(RunRequest, question=talk.question, settings=settings, **given)
    return Begun(await service.start(caller, request, key))


async def _answer(handle: RunHandle, text: str) -> Begun:
    run = await handle.read()
    if run.state is not RunState.waiting or not run.asked:
        return Begun(run)  # it was answered elsewhere
    since = datetime.now(UTC)
    if run.asked.matter is Matter.question:
        lines = [_NUMBER.sub("", line).strip() for line in text.splitlines() if line.strip()]
        request = _checked(AnswerRequest, answers=[text] if len(run.asked.questions) == 1 else lines)
    elif _YES.fullmatch(text):
        request = AnswerRequest()
    else:
        request = AnswerRequest(reject=True) if _NO.fullmatch(text) else _checked(AnswerRequest, remark=text)
    return Begun(await handle.answer(request), since, (run.asked, run.complaint))


def _checked(kind: type[_RequestT], **fields: Any) -> _RequestT:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(wrong=wrong_in(error.errors())) from error


async def said(text: str) -> AsyncIterator[str | ChatAnswer]:
    """Yield an answer that needs no research."""
    yield ChatAnswer(text, [])


async def researched(service: RunService, caller: Caller, begun: Begun, server: str) -> AsyncIterator[str | ChatAnswer]:
    """Yield lines on what happens, empty ones in silences, then the answer: nothing of it before it is verified."""
    yield f"{begun.run.state.value.capitalize()}: {server}{begun.run.links.page}"
    for notice in begun.run.notices:
        yield notice
    try:
        async with aclosing(progress(service, caller, begun)) as happening:
            async for line in happening:
                yield line
        yield await answer_of(service, caller, begun.run.id, server)
    except httpx.HTTPError as error:
        raise outage(error) from error
    except FathomError as error:  # it is told within the answer, past the handler of failures
        service.hide_paths(error, caller)
        raise


async def collected(parts: AsyncIterator[str | ChatAnswer]) -> tuple[ChatAnswer, list[str]]:
    """Return the answer and the lines before it."""
    lines = list[str]()
    async for part in parts:
        if isinstance(part, ChatAnswer):
            return part, lines
        lines += [part] if part else []
    raise AssertionError("an answer is the last part")


TITLE_CHARS, MOST_TAGS, MOST_QUESTIONS = 60, 3, 4
_HISTORY = re.compile(r"<chat_history>(.*?)(?:</chat_history>|\Z)", re.DOTALL)
_FIRST = re.compile(
    r"^[^\S\n]*user:\s*(.*?)(?=^[^\S\n]*(?:assistant|ai):|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
_TITLE_ALONE = re.compile(
    r"5-word-or-less title for the conversation|^\s*Write a concise title for this conversation"
    r"|generate a concise title \(max 40 characters\) for a conversation",
    re.IGNORECASE,
)
_TITLE_AND_LANGUAGE = re.compile(r"\A\s*Analyze this conversation and provide", re.IGNORECASE)
_FACE = re.compile(r"\AYour task is to reflect the speaker's likely facial expression")
_CHAT_TASK = re.compile(r"\A\s*### Task:")


def answer(messages: Sequence[Message]) -> str | None:
    """Return the answer to a request that is not a question to research; None to one that is."""
    last = next((message.text() for message in reversed(messages) if message.role == "user"), "")
    prompts = [message.text() for message in messages if message.role in ("system", "user")]
    if _CHAT_TASK.match(last) and (history := _HISTORY.search(last)):
        head, said = last[: history.start()], history[1]
        for key, make in _FORMS.items():
            if f'"{key}"' in head:
                return json.dumps({key: make(said)}, ensure_ascii=False)
        return None
    if _FACE.match(last):
        return "🔎"
    for prompt in prompts:
        if _TITLE_AND_LANGUAGE.match(prompt):
            return json.dumps({"language": "English", "title": _title(prompt)}, ensure_ascii=False)
        if _TITLE_ALONE.search(prompt[:2_000]):
            return _title(prompt)
    return None


def _asked(said: str) -> str:
    found = _FIRST.search(said)
    return clean_line(found[1] if found else said)


def _title(said: str) -> str:
    return shorten(_asked(said).rstrip("?!. "), TITLE_CHARS, placeholder=" …") or "Research"


def _tags(said: str) -> list[str]:
    return ["Research", *(word[:1].upper() + word[1:] for word in keywords(_asked(said)))][:MOST_TAGS]


@cache
def _left_open() -> re.Pattern[str]:
    heads = "|".join(map(re.escape, chain(*map(in_every_language, (Added.not_found, Added.next_steps)))))
    return re.compile(rf"^## (?:{heads})\s+((?:- .+\n?)+)", re.MULTILINE)


def _next_questions(said: str) -> list[str]:
    """Return what the report in a conversation says that it left open."""
    lines = [line for part in _left_open().findall(said) for line in part.splitlines()]
    return [clean_line(line.removeprefix("- ")) for line in lines][:MOST_QUESTIONS]


_FORMS: Mapping[str, Callable[[str], object]] = {
    "follow_ups": _next_questions,
    "queries": lambda _: [],  # Fathom searches by itself
    "tags": _tags,
    "title": _title,
    "prompt": _asked,  # of a picture
    "text": lambda _: "",  # the rest of what the user types
}
