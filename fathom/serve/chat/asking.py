"""A conversation as research: a run is started, followed up on or answered.

A client that goes away does not end the run: what was spent is not lost, and the link in the first line leads to it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fathom.client.shapes import AnswerRequest, FollowUpRequest, Run, RunRequest
from fathom.config.given import wrong_in
from fathom.errors import InvalidInput, NoReport, RunNotFound
from fathom.models import Matter, RunState
from fathom.serve.caller import Caller
from fathom.serve.chat.conversation import Conversation
from fathom.serve.chat.models import settings_of
from fathom.serve.chat.shapes import Extras, Request
from fathom.serve.runs.desk import Desk
from fathom.serve.runs.progress import Begun

_YES = re.compile(
    r"\W*(?:yes|y|ok(?:ay)?|accept(?:ed)?|approved?|go(?: on| ahead)?|looks good|fine|ja|oui|s[ií])\W*", re.I
)
_NO = re.compile(r"\W*(?:stop|cancel|reject(?:ed)?|no|abort|nein|non)\W*", re.I)
_NUMBER = re.compile(r"\A\s*(?:\d+[.):]|[-*])\s*")
_RequestT = TypeVar("_RequestT", bound=BaseModel)


async def begin(desk: Desk, caller: Caller, asked: Request, talk: Conversation, key: str) -> Begun:
    """Take up what a conversation asks: the answer to a run that waits for one, a follow-up, or a new question.

    Raises:
        FathomError: it cannot be researched, or the caller may not ask.
    """
    extras = asked.fathom or Extras()
    settings = {**settings_of(asked.model), **extras.settings()}
    if talk.earlier:
        with suppress(RunNotFound):  # of another server, or of somebody else
            earlier = await desk.get(caller, talk.earlier.run_id)
            if talk.earlier.asks:
                return await _answer(desk, caller, earlier, talk.question)
            with suppress(NoReport):
                follow_up = _checked(FollowUpRequest, question=talk.question, settings=settings)
                return Begun(await desk.ask(caller, earlier.id, follow_up, key))
    given = {"template": extras.template, "corpora": extras.corpora, "shared": extras.shared}
    request = _checked(RunRequest, question=talk.whole, settings=settings, **given)
    return Begun(await desk.start(caller, request, key))


async def _answer(desk: Desk, caller: Caller, run: Run, text: str) -> Begun:
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
    return Begun(await desk.answer(caller, run.id, request), since, (run.asked, run.complaint))


def _checked(kind: type[_RequestT], **fields: Any) -> _RequestT:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(wrong=wrong_in(error.errors())) from error
