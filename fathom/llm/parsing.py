"""From a model's text to a typed answer: the ladder, and the rules of the role.

Strip reasoning, fences and the marks of chat templates, and validate; else repair and validate; else send the
complaints to the model, once. An answer that was cut off is never repaired: what is missing cannot be guessed. Prose
is no prose when it is JSON or code only, and no answer may consist of what the model was told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from fathom.config.models import EXTRACTIVE
from fathom.config.secrets import each_text
from fathom.errors import AnswerInvalid
from fathom.llm.base import Completion, CutOff, InvalidAnswer, ModelCall
from fathom.llm.debris import without_debris
from fathom.llm.prompts import instructions
from fathom.roles import Answer, Text
from fathom.text.citations import without_addresses
from fathom.text.plain import without_controls
from fathom.text.prose import not_prose
from fathom.text.sentences import split_sentences

ECHO_WORDS = 8  # of a sentence of the instructions in an answer; fewer may be chance
_WORD = re.compile(r"\w+")
_CUT = {
    CutOff.limit: "The answer was cut off at the token limit; answer more briefly.",
    CutOff.repetition: "The answer said the same again and again; say each thing once.",
}


def accept(call: ModelCall, completion: Completion) -> Answer | InvalidAnswer:
    """Turn a completion into the role's answer, or into what to ask again.

    Raises:
        AnswerInvalid: it was the second try and the answer still cannot be used.
    """
    text = completion.text.strip()
    if not _quotes(call):
        text = without_debris(text, is_json=call.spec.answer is not Text)
    try:
        answer: Answer = _read(call, text, completion.cut_off)
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
    return InvalidAnswer(complaints=complaints, cut_off=completion.cut_off)


def draft_of(call: ModelCall, text: str) -> str:
    """Return the whole sentences of prose that is still being written; empty where `accept` would not take them.

    What begins with a brace or a fence may become JSON, and is not shown.
    """
    text = without_debris(text.strip(), is_json=False)
    sentences = [] if text.startswith(("{", "```")) else split_sentences(f"{text}.")  # else a short line is a heading
    try:
        answer = _read(call, text[: sentences[-1].start].strip() if sentences else "", None)
    except ValueError:
        return ""
    assert isinstance(answer, Text)
    return answer.text


def _read(call: ModelCall, text: str, cut_off: CutOff | None) -> Answer:
    if cut_off:
        raise ValueError(_CUT[cut_off])
    if not text:
        raise ValueError("The answer is empty.")
    answer = _parse(call.spec.answer, text)
    answer = type(answer).model_validate(each_text(answer.model_dump(), without_controls))
    if _quotes(call):
        return answer
    if isinstance(answer, Text) and (what := not_prose(text)):
        raise ValueError(f"The answer is {what}; write plain text in Markdown.")
    if echo := _echo(call, answer):
        raise ValueError(f'The answer repeats its instructions ("{echo}") instead of following them.')
    if call.spec.addresses:
        return answer
    return type(answer).model_validate(each_text(answer.model_dump(), without_addresses))


def _quotes(call: ModelCall) -> bool:
    """Whether the backend without a model answers: a quotation stays as it is."""
    return call.model.model == EXTRACTIVE


def _echo(call: ModelCall, answer: Answer) -> str:
    """Return words of the instructions that an answer repeats, empty if there are none."""
    told = instructions(call)
    for text in _texts(answer.model_dump()):
        for sentence in split_sentences(text):
            words = _WORD.findall(sentence.text.lower())
            if len(words) >= ECHO_WORDS and " ".join(words) in told:
                return " ".join(sentence.text.split()[:ECHO_WORDS])
    return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


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
