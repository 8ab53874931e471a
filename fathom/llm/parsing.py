"""From a model's text to a typed answer: the ladder, and the rules of the role.

Strip reasoning and fences, validate; else repair and validate; else the complaints go back to the model once. A
truncated answer is never repaired: what is missing cannot be guessed.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from fathom.config.models import EXTRACTIVE
from fathom.errors import AnswerInvalid
from fathom.llm.base import Completion, InvalidAnswer, ModelCall
from fathom.roles import Answer, Text
from fathom.text.citations import without_addresses

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
    complaints: list[str] = []
    fatal = False
    answer: Answer | None = None
    if not text:
        complaints, fatal = ["The answer is empty."], True
    elif completion.truncated:
        complaints, fatal = ["The answer was cut off at the token limit; answer more briefly."], True
    else:
        try:
            answer = _parse(call, text)
            # The extractive backend quotes, and a quotation stays as it is.
            if not call.spec.addresses and call.model.model != EXTRACTIVE:
                answer = type(answer).model_validate(_without_addresses(answer.model_dump()))
        except ValueError as error:
            complaints, fatal = _describe(error), True
    if answer is not None:
        answer = call.spec.normalize(call.request, answer)
        found = call.spec.check(call.request, answer)
        complaints, fatal = [c.text for c in found], any(c.fatal for c in found)
    if answer is not None and (not complaints or (call.invalid and not fatal)):
        return answer
    if call.invalid:
        raise AnswerInvalid(f"The {call.spec.name} answered twice against the rules: {' '.join(complaints)}")
    return InvalidAnswer(text=text[:_MAX_QUOTED], complaints=complaints)


def _strip(text: str) -> str:
    """Remove reasoning and code fences around the answer."""
    # Only as far as reasoning ends anywhere: each block that is begun and never ended would be searched to the end.
    end = max((tag.end() for tag in _THOUGHT.finditer(text)), default=0)
    text = _THINK.sub("", text[:end]) + text[end:]
    # A reasoning block that was opened before the answer started has only its end tag here.
    text = _THOUGHT.split(text)[-1].strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _parse(call: ModelCall, text: str) -> Answer:
    kind: type[Answer] = call.spec.answer
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


def _without_addresses(data: Any) -> Any:
    if isinstance(data, str):
        return without_addresses(data)
    if isinstance(data, dict):
        return {name: _without_addresses(value) for name, value in data.items()}
    return [_without_addresses(item) for item in data] if isinstance(data, list) else data


def _describe(error: ValueError) -> list[str]:
    if isinstance(error, ValidationError):
        return [f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors()[:8]]
    return [str(error)]


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON schema in the subset that providers enforce while decoding.

    Every property is required, nothing else is allowed, and a reference stands alone: the rules of OpenAI's strict
    structured outputs (https://platform.openai.com/docs/guides/structured-outputs), which others share.
    """
    definitions = schema.get("$defs", {})

    def strict(node: Any) -> Any:
        if isinstance(node, list):
            return [strict(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node and len(node) > 1:
            node = {**definitions[node["$ref"].rsplit("/", 1)[-1]], **node}
            del node["$ref"]
        kept: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in ("properties", "$defs"):  # here the keys are names, not keywords
                kept[keyword] = {name: strict(child) for name, child in value.items()}
            elif keyword not in ("default", "minLength", "title"):
                kept[keyword] = strict(value)
        if "properties" in kept:
            kept |= {"required": list(kept["properties"]), "additionalProperties": False}
        return kept

    converted: dict[str, Any] = strict(schema)
    return converted
