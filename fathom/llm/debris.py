"""What models write around their answers: thoughts, the marks of chat templates, a fence.

Only what stands at the start or the end of an answer is debris, and a mark in its middle, outside of code: an answer
may be about chat templates.
"""

from __future__ import annotations

import re

from fathom.text.sentences import fenced_code, fences

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
    while thought := _THINK.match(text):
        text = text[thought.end() :]
    if _OPEN_THOUGHT.match(text):  # it never ended
        return ""
    text = _behind_thoughts(text, is_json=is_json)
    if _CHANNEL.match(text):
        text = _FINAL.split(text)[-1] if _FINAL.search(text) else ""
    text = _BEGINS.sub("", _within_json(text) if is_json else _first_turn(text)).strip()
    while ending := next((mark for mark in _ENDS if text.endswith(mark)), ""):
        text = text.removesuffix(ending).rstrip()
    return fenced_code(text).strip() or text


def _behind_thoughts(text: str, *, is_json: bool) -> str:
    """Return what follows thoughts that were opened before the answer started: only their end tag is here."""
    code = _code(text)
    ends = [tag.end() for tag in _THOUGHT.finditer(text) if not _is_in(code, tag.start())]
    if is_json:
        ends = [end for end in ends if _JSON.match(text, end)]
    return text[ends[-1] :] if ends else text


def _first_turn(text: str) -> str:
    """Return what a model said before the first mark that has text before it, and behind those that have none."""
    code, start = _code(text), 0
    for mark in _MARK.finditer(text):
        if _is_in(code, mark.start()):
            continue
        if text[start : mark.start()].strip():
            return text[start : mark.start()]
        start = mark.end()
    return text[start:]


def _within_json(text: str) -> str:
    """Return a text without the marks before and behind its JSON; the texts in it are left alone."""
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
