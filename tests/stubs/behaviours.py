"""What a model says when it works and when it does not, in no protocol yet.

Whole answers: ok, `untidy_json` (a fence and a trailing comma: can be mended), `broken_json` (cannot), `false` (a
sentence that its source does not have), `half_false` (the same behind true ones), `invented` (numbers, names, ids,
addresses and quotations that no page has), truncated, refusal, empty; `json_prose` and `fenced_json_prose` (a note's
JSON where prose is wanted), `echo_prompt` (the instructions), `debris` (chat markup around the answer, and inside
prose).

Thoughts: `thinks` (before the answer, in a field of their own), `think_tags` (in the answer), `think_open` (only
thoughts, which do not end), `thinks_only` (thoughts and no answer), `thinks_long` (the same because the room is used
up, unless there is room for 8,000 tokens).

Streams: slow, silent (after a third), `repeats` and `whitespace` (without end), `error_in_stream` and `cut_stream`
(after half). Who asks for no stream waits as long, gets an answer that fills its room, an error, no answer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.stubs.reading import Prompt
from tests.stubs.replies import Delivery
from tests.stubs.roles import answer
from tests.stubs.settings import Settings
from tests.stubs.streams import tokens

__all__ = ["INVENTED", "SECRET", "STREAMED", "THOUGHTS", "Answer", "behave", "invented", "room"]

INVENTED = (
    "The archive at https://invented.example/a has a full list of them [Sffffff]. "
    "Professor Quillon Vasterby counted 4711 of them in 1899. "
    'An official said: "nobody had ever measured the zeppelin tariffs of the lake" [S0a0a0a, Sabcdef01].'
)
"""Sentences without any source: an address, ids, a name, a number and a quotation that no page has."""

SECRET = "SECRET THOUGHT: the answer must not show this."
THOUGHTS = (
    "Okay, what is wanted here? Let me read the request again and go through it one by one. "
    f'{SECRET} A first draft might be {{"draft": true}}, but that is not yet what was asked for. '
    "Wait, the instructions name a form. I shall keep to it and write the answer now."
)

STREAMED: dict[str, Delivery] = {
    "silent": Delivery(share=1 / 3, ending="silent"),
    "repeats": Delivery(ending="loop", loop=12),
    "whitespace": Delivery(ending="loop", loop=1),
    "error_in_stream": Delivery(share=1 / 2, ending="error"),
    "cut_stream": Delivery(share=1 / 2, ending="cut"),
}
_ROOM_TO_THINK = 8_000
_USUAL_ROOM = 4_096
_FIRST = 8  # tokens before a loop
_AND_SO_ON = [" and", " so", " on"] * 4


@dataclass(frozen=True)
class Answer:
    """What a model says. `finish`: stop, or length when its room was used up."""

    text: str = ""
    thoughts: str = ""
    refusal: str | None = None
    finish: str = "stop"
    delivery: Delivery = field(default_factory=Delivery)

    @property
    def reasoning_tokens(self) -> int:
        """Tokens of the thoughts."""
        return len(self.thoughts.encode()) // 4

    @property
    def completion_tokens(self) -> int:
        """Tokens of the answer and of the thoughts before it."""
        return len(self.text.encode()) // 4 + self.reasoning_tokens


def room(body: dict[str, Any]) -> int:
    """Return how many tokens an answer may have, 0 when the request does not say."""
    options = body.get("options") or {}
    return int(body.get("max_completion_tokens") or body.get("max_tokens") or options.get("num_predict") or 0)


def behave(prompt: Prompt, behaviour: str, settings: Settings) -> Answer:
    """Return what the model says to a prompt.

    Raises:
        ValueError: the behaviour is unknown.
    """
    text = answer(prompt, settings)
    for found in (_spoilt(prompt, behaviour, text), _thinking(prompt, behaviour, text)):
        if found:
            return found
    if behaviour == "slow":
        return Answer(text, delivery=Delivery(seconds=settings.token_seconds))
    if behaviour in STREAMED:
        return _streamed(prompt, behaviour, text)
    raise ValueError(f"unknown behaviour {behaviour!r}")


def invented(text: str) -> str:
    """Return a text with another number in each of its sentences that has one, citations left as they are."""
    return re.sub(r"(?<![\w\[])(\d+)(?=\s[a-z])", lambda found: str(int(found[1]) + 1357), text)


def _spoilt(prompt: Prompt, behaviour: str, text: str) -> Answer | None:
    finish = "stop"
    match behaviour:
        case "ok" | "no_choices" | "no_usage":
            pass
        case "broken_json":
            text = "My answer is " + re.sub(r'[":,\[\]{}]', "", text)
        case "untidy_json":
            text = f"```json\n{text[:-1]},}}\n```"
        case "invented":
            text = invented(text) if text.startswith("{") else f"{invented(text)}\n\n{INVENTED}"
        case "false" | "half_false":
            said = f"Exactly 4711 zeppelins did it in 1899 [{prompt.cited_ids[0]}]."
            text = said if behaviour == "false" else f"{text}\n\n{said}"
        case "truncated":
            text, finish = text[: len(text) // 2], "length"
        case "refusal":
            return Answer(refusal="I'm sorry, but I can't help with that.")
        case "empty":
            text = ""
        case "json_prose" | "fenced_json_prose":
            text = _as_note(text, fenced=behaviour == "fenced_json_prose") if prompt.role == "section" else text
        case "echo_prompt":
            text = prompt.system or prompt.user
        case "debris":
            text = _with_debris(text)
        case _:
            return None
    return Answer(text, finish=finish)


def _as_note(text: str, *, fenced: bool) -> str:
    note = json.dumps({"summary_title": "What the notes say", "summary": text})
    return f"```json\n{note}\n```" if fenced else note


def _with_debris(text: str) -> str:
    opening, closing = "<|im_start|>assistant\n", "<|im_end|>"
    first, cited, rest = text.partition("] ")
    if cited and not text.startswith("{"):
        text = f"{first}]{closing}\n{opening}{rest}"
    return f"{opening}{text}{closing}\n"


def _thinking(prompt: Prompt, behaviour: str, text: str) -> Answer | None:
    if behaviour == "thinks_long":
        behaviour = "thinks" if room(prompt.body) > _ROOM_TO_THINK else "thinks_without_end"
    match behaviour:
        case "thinks":
            return Answer(text, THOUGHTS)
        case "think_tags":
            return Answer(f"<think>\n{THOUGHTS}\n</think>\n\n{text}")
        case "think_open":
            return Answer(f"<think>\n{THOUGHTS}", finish="length")
        case "thinks_only":
            return Answer("", THOUGHTS)
        case "thinks_without_end":
            return Answer("", THOUGHTS, finish="length")
        case _:
            return None


def _streamed(prompt: Prompt, behaviour: str, text: str) -> Answer:
    delivery = STREAMED[behaviour]
    if delivery.ending != "loop":
        return Answer(text, delivery=delivery)
    said = tokens(text)
    window = ["\n        "] if behaviour == "whitespace" else (said[_FIRST:] + _AND_SO_ON)[: delivery.loop]
    if not prompt.body.get("stream"):
        window *= (room(prompt.body) or _USUAL_ROOM) // len(window)
    return Answer("".join(said[:_FIRST] + window), finish="length", delivery=delivery)
