"""What models write around their answers: thoughts, the marks of chat templates, a fence."""

from __future__ import annotations

import re

_THINK = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
# Of ChatML, Llama 3, Gemma, harmony and DeepSeek; not where they are quoted. Those of Mistral and Llama 2, and `<s>`,
# which is HTML too, only at the ends.
_MARK = re.compile(
    r"(?<![`\"'])(?:<\|im_start\|>\w*|<\|start_header_id\|>\w*<\|end_header_id\|>|<(?:start|end)_of_turn>(?:model|user)?"
    r"|<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|begin_of_text|end|return|start|assistant|user|system)\|>"
    r"|<\uff5c[^<>\n]{1,40}\uff5c>)"
)
_ENDS = re.compile(r"^(?:\s*(?:<s>|\[/?INST\]))+|(?:(?:</s>|\[/?INST\])\s*)+$")
_FINAL = re.compile(r"<\|channel\|>final.{0,40}?<\|message\|>", re.DOTALL)
_CHANNEL = re.compile(r"<\|channel\|>")


def without_debris(text: str, *, is_json: bool) -> str:
    """Return the answer itself: empty where there are only thoughts. In JSON, marks inside of texts are left alone."""
    # Only up to the last end tag: after it, each block that was never closed would be searched to the end of the text.
    end = max((tag.end() for tag in _THOUGHT.finditer(text)), default=0)
    text = _THINK.sub("", text[:end]) + text[end:]
    # A reasoning block that was opened before the answer started has only its end tag here.
    text = _THOUGHT.split(text)[-1].strip()
    if _OPEN_THOUGHT.match(text):  # it never ended
        return ""
    text = _ENDS.sub("", _without_marks(text, is_json=is_json)).strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _without_marks(text: str, *, is_json: bool) -> str:
    """Return what a model said in its first turn."""
    if _CHANNEL.search(text):
        text = _FINAL.split(text)[-1] if _FINAL.search(text) else ""
    if not is_json:
        return next((part for part in _MARK.split(text) if part.strip()), "")
    opening, closing = text.find("{"), text.rfind("}")
    if opening < 0 or closing < opening:
        return text
    before, after = text[:opening], text[closing + 1 :]
    return (
        (_MARK.split(before)[-1] if _MARK.search(before) else before)
        + text[opening : closing + 1]
        + (_MARK.split(after)[0])
    )
