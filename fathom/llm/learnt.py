"""What a run learns of a model: how it is asked, how much it holds, whether it thinks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fathom.config.models import RoleModel, StructuredOutput
from fathom.llm.base import ModelCall
from fathom.llm.dialects import Dialect, conceded
from fathom.llm.prompts import request_options
from fathom.llm.shrinking import shrunk
from fathom.roles.base import AnswerT, RequestT, RoleSpec
from fathom.text.tokens import count_tokens

MARGIN = 1.25  # tokens of a model for one of our estimate: small vocabularies cut words into more pieces
MESSAGE_TOKENS = 8  # that a chat template puts around a message
ANSWER_SHARE = 1 / 3  # of the window, at most, is kept for the answer
LEAST_SHARE = 0.1  # of the material is left when it is cut to fit
CUTS = 8  # of the material, one after the other, until the request fits


class Learnt:
    """One model, for the length of a run.

    Attributes:
        dialect: how it is asked; changes when the server refuses something.
        window: tokens that prompt and answer may have together; None: unknown.
    """

    def __init__(self, dialect: Dialect, window: int | None, longest_answer: int | None) -> None:
        self.dialect = dialect
        self.window = window
        self._longest_answer = longest_answer
        self._refused = {dialect}

    def concede(self, asked: Dialect, refusal: str) -> bool:
        """Ask in another way from now on, and return whether there is one that was not refused before.

        Where several calls were refused at once, the first has changed the dialect in which they were `asked`.
        """
        if replace(asked, thinks=self.dialect.thinks) != self.dialect:
            return True
        other = conceded(self.dialect, refusal)
        if other is None or other in self._refused:
            return False
        self._refused.add(other)
        self.dialect = other
        return True

    def thinks(self) -> None:
        """Leave room for thoughts from now on."""
        self.dialect = replace(self.dialect, thinks=True)

    def holds(self, window: int | None) -> None:
        """Take note of the window that a refusal tells."""
        if window:
            self.window = min(window, self.window or window)

    def asks(self, call: ModelCall) -> tuple[dict[str, Any], int]:
        """Return what a call sends, and how long its answer may be."""
        options = request_options(call, self.dialect)
        return options, self.answer_tokens(call.model, sent_tokens(options))

    def answer_tokens(self, model: RoleModel, sent: int = 0) -> int:
        """Return how long an answer may be, thoughts included, beside a prompt of some tokens."""
        most = model.max_tokens + (model.thinking_tokens if self.dialect.thinks else 0)
        most = min(most, self._longest_answer or most)
        if self.window is None:
            return most
        return max(1, min(most, max(self.window - sent, int(self.window * ANSWER_SHARE))))

    def room(self, model: RoleModel) -> float:
        """Return how many tokens a prompt may have beside the answer."""
        if self.window is None:
            return math.inf
        return self.window - min(self.answer_tokens(model), int(self.window * ANSWER_SHARE))

    def fit(self, call: ModelCall) -> ModelCall:
        """Return the call with as much of its material as the window holds beside the answer.

        A call that does not fit without any is returned as it is: the server has the last word.
        """
        if self.window is None:
            return call
        room = self.room(call.model)
        fitting = call
        for _ in range(CUTS):
            sent = sent_tokens(request_options(fitting, self.dialect))
            if sent <= room:
                return fitting
            smaller = shrunk(fitting.request, max(LEAST_SHARE, 0.9 * room / sent))
            if smaller is None:
                break
            fitting = replace(fitting, request=smaller)
        return fitting


def fitting(spec: RoleSpec[RequestT, AnswerT], model: RoleModel, window: int | None) -> Callable[[RequestT], bool]:
    """Return whether a request leaves room for its answer in a window of some tokens; None: any does."""
    return lambda request: spare_tokens(spec, request, model, window) >= 0


def spare_tokens(spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, window: int | None) -> float:
    """Return how many more tokens of material fit a window beside a request and its answer; infinite of None.

    It is below 0 where these do not fit themselves. It says the same before and after something is learnt of the model,
    so requests may be made by it: with the schema in the prompt, and room for thoughts.
    """
    if window is None:
        return math.inf
    learnt = Learnt(Dialect(structured=StructuredOutput.prompt, thinks=True), window, None)
    sent = sent_tokens(request_options(ModelCall(spec=spec, request=request, model=model), learnt.dialect))
    return (learnt.room(model) - sent) / MARGIN


def sent_tokens(options: Mapping[str, Any]) -> int:
    """Return how many tokens a request takes, with a margin. A schema that the server makes a grammar of takes none."""
    messages = options["messages"]
    texts = [message["content"] for message in messages]
    texts.append(json.dumps(options.get("tools", "")))
    return math.ceil(sum(map(count_tokens, texts)) * MARGIN) + MESSAGE_TOKENS * len(messages)
