"""From a model's text to a typed answer: the ladder, and the rules of the role.

Strip reasoning and fences and validate; else repair and validate; else send the complaints to the model, once. A
truncated answer is never repaired: what is missing cannot be guessed.
"""

from __future__ import annotations

import re

from pydantic import ValidationError

from fathom.config.models import EXTRACTIVE
from fathom.config.secrets import each_text
from fathom.errors import AnswerInvalid
from fathom.llm.base import Completion, InvalidAnswer, ModelCall
from fathom.roles import Answer, Text
from fathom.text.citations import without_addresses
from fathom.text.cleaning import without_controls

_THINK = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_MAX_QUOTED = 4_000  # characters of a rejected answer that are shown to the model again


def accept(call: ModelCall, completion: Completion) -> Answer | InvalidAnswer:
    """Turn a completion into the role's answer, or into what to ask again.

    Raises:
        AnswerInvalid: it was the second try and the answer still cannot be used.
    """
    text = _strip(completion.text)
    try:
        answer: Answer = _read(call, text, truncated=completion.truncated)
    except ValueError as error:
        complaints = _describe(error)
    else:
        answer = call.spec.normalize(call.request, answer)
        found = call.spec.check(call.request, answer)
        if not found or (call.invalid and not any(complaint.fatal for complaint in found)):
            return answer
        complaints = [complaint.text for complaint in found]
    if call.invalid:
        raise AnswerInvalid(f"The {call.spec.name} gave two invalid answers: {' '.join(complaints)}")
    return InvalidAnswer(text=text[:_MAX_QUOTED], complaints=complaints)


def _read(call: ModelCall, text: str, *, truncated: bool) -> Answer:
    if not text:
        raise ValueError("The answer is empty.")
    if truncated:
        raise ValueError("The answer was cut off at the token limit; answer more briefly.")
    answer = _parse(call.spec.answer, text)
    answer = type(answer).model_validate(each_text(answer.model_dump(), without_controls))
    if call.spec.addresses or call.model.model == EXTRACTIVE:  # which quotes, and a quotation stays as it is
        return answer
    return type(answer).model_validate(each_text(answer.model_dump(), without_addresses))


def _strip(text: str) -> str:
    # Only up to the last end tag: after it, each block that was never closed would be searched to the end of the text.
    end = max((tag.end() for tag in _THOUGHT.finditer(text)), default=0)
    text = _THINK.sub("", text[:end]) + text[end:]
    # A reasoning block that was opened before the answer started has only its end tag here.
    text = _THOUGHT.split(text)[-1].strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _parse(kind: type[Answer], text: str) -> Answer:
    if kind is Text:
        return Text(text=text)
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        import json_repair

        try:
            repaired = json_repair.loads(text)
        except RecursionError:  # nested deeper than any answer
            raise error from None
        if not isinstance(repaired, dict):
            raise
        try:
            return kind.model_validate(repaired)
        except ValidationError:
            raise error from None


def _describe(error: ValueError) -> list[str]:
    if isinstance(error, ValidationError):
        return [f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors()[:8]]
    return [str(error)]
