"""From a model's text to a typed answer: removing the text around it, a ladder of repairs, and the rules of the role.

Strip reasoning, fences and the marks of chat templates, and validate; else repair and validate; else send the
complaints to the model, once. An answer that was cut off is never repaired: the missing part cannot be guessed. JSON or
code alone does not count as prose, and no answer may consist of the model's instructions.

Models write thoughts, the marks of chat templates or a fence around their answers. Such debris is removed only at the
start or the end of an answer, and marks also in its middle, outside of code: an answer may be about chat templates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from fathom.config.groups import EXTRACTIVE, RoleModel
from fathom.config.secrets import each_text
from fathom.errors import AnswerInvalid
from fathom.llm.base import Backend, Completion, CutOff, InvalidAnswer, ModelCall
from fathom.llm.prompts import instructions
from fathom.models import Usage
from fathom.roles import Answer, Text
from fathom.roles.base import AnswerT, RequestT, RoleSpec
from fathom.text.citations import without_addresses, without_citations
from fathom.text.plain import without_controls
from fathom.text.sentences import fenced_code, fences, split_sentences

ECHO_WORDS = 8  # of a sentence of the instructions in an answer; fewer may be chance
_WORD = re.compile(r"\w+")
_CUT = {
    CutOff.limit: "The answer was cut off at the token limit; answer more briefly.",
    CutOff.repetition: "The answer said the same again and again; say each thing once.",
}


def accept(call: ModelCall, completion: Completion) -> Answer | InvalidAnswer:
    """Turn a completion into the role's answer, or into the request to ask again.

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
    """Return the complete sentences of prose that is still being written; empty if `accept` would refuse them.

    Text that begins with a brace or a fence may become JSON, and is not shown.
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


async def answer_of(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, backend: Backend
) -> tuple[AnswerT, Usage, str]:
    """Ask a role, once more if its answer breaks a rule; return the answer, its usage and the model that gave it.

    Raises:
        ModelError: the model does not answer.
        AnswerInvalid: it gave two answers that cannot be used.
    """
    invalid: InvalidAnswer | None = None
    usage = Usage()
    while True:
        call = ModelCall(spec=spec, request=request, model=model, invalid=invalid)
        completion = await backend.complete(call)
        usage += completion.usage
        outcome = accept(call, completion)
        if not isinstance(outcome, InvalidAnswer):
            assert isinstance(outcome, spec.answer)
            return outcome, usage, completion.model
        invalid = outcome


_THINK = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>", re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
# Of ChatML, Llama 3, Gemma, harmony and DeepSeek; not where they are quoted.
_MARK = re.compile(
    r"(?<![`\"'])(?:<\|im_start\|>\w*|<\|start_header_id\|>\w*<\|end_header_id\|>|<(?:start|end)_of_turn>(?:model|user)?"
    r"|<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|begin_of_text|end|return|start|assistant|user|system)\|>"
    r"|<\uff5c[^<>\n]{1,40}\uff5c>)(?![`\"'])"
)
_BEGINS = re.compile(r"\A(?:\s*(?:<s>|\[/?INST\]))+")  # of Mistral and Llama 2; in the middle, `<s>` is HTML
_ENDS = ("</s>", "[INST]", "[/INST]")
_CHANNEL = re.compile(r"\A\s*(?:<\|start\|>\w*)?<\|channel\|>")
_FINAL = re.compile(r"<\|channel\|>final.{0,40}?<\|message\|>", re.DOTALL)
_JSON = re.compile(r"\s*(?:```\w*\s*)?\{")
_INLINE = re.compile(r"`[^`\n]*`")


def without_debris(text: str, *, is_json: bool) -> str:
    """Return the answer itself: empty where there are only thoughts."""
    text = without_thoughts(text, is_json=is_json)
    if _CHANNEL.match(text):
        text = _FINAL.split(text)[-1] if _FINAL.search(text) else ""
    text = _BEGINS.sub("", _within_json(text) if is_json else _first_turn(text)).strip()
    while ending := next((mark for mark in _ENDS if text.endswith(mark)), ""):
        text = text.removesuffix(ending).rstrip()
    return fenced_code(text).strip() or text


def without_thoughts(text: str, *, is_json: bool) -> str:
    """Return what a model said without its thoughts, as far as tags mark them."""
    while thought := _THINK.match(text):
        text = text[thought.end() :]
    return "" if _OPEN_THOUGHT.match(text) else _behind_thoughts(text, is_json=is_json)  # open: it never ended


def _behind_thoughts(text: str, *, is_json: bool) -> str:
    """Return the text after thoughts that were opened before the answer started: only their end tag is here."""
    code = _code(text)
    ends = [tag.end() for tag in _THOUGHT.finditer(text) if not _is_in(code, tag.start())]
    if is_json:
        ends = [end for end in ends if _JSON.match(text, end)]
    return text[ends[-1] :] if ends else text


def _first_turn(text: str) -> str:
    """Return a model's text before the first mark that has text before it; marks at the start are skipped."""
    code, start = _code(text), 0
    for mark in _MARK.finditer(text):
        if _is_in(code, mark.start()):
            continue
        if text[start : mark.start()].strip():
            return text[start : mark.start()]
        start = mark.end()
    return text[start:]


def _within_json(text: str) -> str:
    """Return a text without the marks before and behind its JSON; the strings in the JSON are left alone."""
    opening, closing = text.find("{"), text.rfind("}")
    if opening < 0 or closing < opening:
        return text
    before, after = text[:opening], text[closing + 1 :]
    return _MARK.split(before)[-1] + text[opening : closing + 1] + _MARK.split(after)[0]


def _code(text: str) -> list[tuple[int, int]]:
    blocks = [(fence.start, fence.end) for fence in fences(text)]
    return blocks + [found.span() for found in _INLINE.finditer(text)]


def _is_in(places: list[tuple[int, int]], position: int) -> bool:
    return any(start <= position < end for start, end in places)


_OPENS = re.compile(r"[{\[]\s*(?:\"[^\"\n]*\"\s*(?:[:,]|\](?!\())|[{\[]\s*\"|\Z)|\"\w+\"[ \t]*:\s*[\"\[{\d]")
_CLOSES = re.compile(r"[}\],:{\[\"]\s*\Z")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t].*$", re.MULTILINE)
_MOST = 0.5  # share of a text's characters that is in lines of JSON


def not_prose(text: str) -> str:
    """Return the kind of a text that is not prose, such as `JSON`; empty if it is prose, perhaps with code in it."""
    outside, position = "", 0
    for fence in fences(text):
        outside += text[position : fence.start] + "\n"
        position = fence.end
    outside = (outside + text[position:]).strip()
    lines = [line for line in outside.splitlines() if line.strip()]
    json = [line for line in lines if _OPENS.match(line.strip()) and _CLOSES.search(without_citations(line))]
    if json and (json[0] is lines[0] or sum(map(len, json)) > _MOST * sum(map(len, lines))):
        return "JSON"
    if position and not _WORDS.search(_HEADING.sub("", outside)):
        return "only a code block"
    return ""
