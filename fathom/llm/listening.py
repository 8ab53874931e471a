"""Receiving an answer as it arrives: it is abandoned after a silence, cut where the model repeats itself, and put
together.

The total time is no reason to abandon it: a local model may make two tokens a second and be right. A server that
answers one request at a time lets the others wait. So a request that has no token yet goes on waiting for as long as
the service sends tokens to others.

Text that a model writes for a reader is published meanwhile: a section's beginning need not wait for its end.

Repetitions are detected while the model is still writing. A small model that decodes under a schema may say the same
words inside one string until it is cut off, and a JSON mode may send white space without end. Nothing useful follows,
and every token of it costs time and money.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from time import monotonic

from fathom.config.secrets import Scrubber
from fathom.errors import ModelTimeout, ProviderFailed
from fathom.llm.base import CutOff, ModelCall, ModelReply, Pace, StreamedPiece
from fathom.llm.parsing import draft_of
from fathom.llm.services import Pulse
from fathom.telemetry.progress import Event, publish

SPARE_TOKENS = 64  # beyond the limit that a server was given; then the answer is not read any further
LEAST_PACE_TOKENS = 10  # with fewer, the speed would be a guess
LEAST_PACE_SECONDS = 0.1  # what is sent in less was ready before it was sent, and says nothing of the model
TELL_SECONDS = 0.25  # at least, from one draft to the next


async def listen(
    pieces: AsyncGenerator[StreamedPiece, None], model: str, *, silence: float, left: float, most: int, pulse: Pulse
) -> ModelReply:
    """Return an answer when it is whole, or cut off.

    Args:
        pieces: the answer as it arrives; the request is made when the first is asked for.
        model: its name, for messages.
        silence: seconds without a token, after which the attempt is given up.
        left: seconds that the budget has left.
        most: tokens that the answer may have.
        pulse: of the service.

    Raises:
        ModelTimeout: the silence was too long, or the time of the budget is up.
        ProviderFailed: the answer broke off.
    """
    hearing = _Hearing(pulse)
    try:
        async with aclosing(pieces) as arriving:
            with hearing.given_up_after(silence, left) as patience:
                async with patience:
                    async for piece in arriving:
                        if hearing.add(piece, most):
                            break
    except TimeoutError:
        if hearing.now >= hearing.began + left:
            raise ModelTimeout(f"{model} had not answered when the time of the budget was up.") from None
        said = f"sent nothing more for {silence:g} s" if hearing.tokens else f"was silent for {silence:g} s"
        raise ModelTimeout(f"{model} {said}.") from None
    return hearing.reply(model)


async def telling(
    pieces: AsyncGenerator[StreamedPiece, None], call: ModelCall, scrubber: Scrubber
) -> AsyncGenerator[StreamedPiece, None]:
    """Pass an answer on as it arrives, and publish its whole sentences so far, without secrets.

    Each attempt begins anew, and what it says takes the place of the one before.
    """
    assert call.spec.draft
    text, told, told_last = "", "", 0.0
    async with aclosing(pieces) as arriving:
        async for piece in arriving:
            text += piece.text
            if piece.text and not piece.finish and monotonic() - told_last >= TELL_SECONDS:
                if (said := scrubber.text(draft_of(call, text))) and said != told:
                    publish(Event("draft", draft=call.spec.draft(call.request, said)))
                told, told_last = said, monotonic()
            yield piece


class _Hearing:
    """What was heard of one answer so far."""

    def __init__(self, pulse: Pulse) -> None:
        self._loop = asyncio.get_running_loop()
        self._pulse = pulse
        self._text: list[str] = []
        self._repetition = Repetition()
        self._choice = self._refused = self._thought = False
        self._finish: str | None = None
        self._model = ""
        self._cut_off: CutOff | None = None
        self._prompt_tokens = self._cached_tokens = self._cache_write_tokens = self._completion_tokens = 0
        self.began = self._first = self._last = self.now
        self.tokens = 0

    @property
    def now(self) -> float:
        """Seconds of the event loop's clock."""
        return self._loop.time()

    @contextmanager
    def given_up_after(self, silence: float, left: float) -> Iterator[asyncio.Timeout]:
        """Return a timeout that ends when nothing was heard for too long, or when no time is left."""
        patience = asyncio.timeout(None)
        timer: asyncio.Handle

        def look() -> None:
            nonlocal timer
            heard = self._last if self.tokens else max(self._last, self._pulse.last)
            until = min(heard + silence, self.began + left)
            if until <= self.now:
                patience.reschedule(self.now)
            else:
                timer = self._loop.call_at(until, look)

        timer = self._loop.call_soon(look)
        try:
            yield patience
        finally:
            timer.cancel()

    def add(self, piece: StreamedPiece, most: int) -> bool:
        """Add a piece, and return whether the answer is cut off with it."""
        self._choice |= piece.choice
        self._refused |= bool(piece.refusal) or piece.finish == "content_filter"
        self._thought |= bool(piece.thought)
        self._finish = self._finish or piece.finish
        self._model = self._model or piece.model
        self._prompt_tokens = piece.prompt_tokens or self._prompt_tokens
        self._cached_tokens = piece.cached_tokens or self._cached_tokens
        self._cache_write_tokens = piece.cache_write_tokens or self._cache_write_tokens
        self._completion_tokens = piece.completion_tokens or self._completion_tokens
        if heard := piece.text or piece.thought:
            self._last = self._pulse.last = self.now
            self._first = self._first if self.tokens else self._last
            self.tokens += 1
            self._text.append(piece.text)
            if self._finish:  # it came in one piece, or this is the last
                return False
            if self._repetition.found(heard):
                self._cut_off = CutOff.repetition
            elif self.tokens > most + SPARE_TOKENS:
                self._cut_off = CutOff.limit
        return self._cut_off is not None

    def reply(self, model: str) -> ModelReply:
        """Return the answer.

        Raises:
            ProviderFailed: it has no end.
        """
        if self._finish is None and self._cut_off is None and self._choice:
            raise ProviderFailed(f"{model}: the answer broke off after {self.tokens} tokens.")
        return ModelReply(
            text="".join(self._text) if self._choice else None,
            refused=self._refused,
            cut_off=self._cut_off or (CutOff.limit if self._finish == "length" else None),
            thought=self._thought,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            cache_write_tokens=self._cache_write_tokens,
            completion_tokens=self._completion_tokens,
            pace=self._pace(),
            finish=self._finish,
            model=self._model,
        )

    def _pace(self) -> Pace | None:
        seconds = self._last - self._first
        if self.tokens < LEAST_PACE_TOKENS or seconds < LEAST_PACE_SECONDS:
            return None
        tokens = max(self.tokens, self._completion_tokens) - 1
        return Pace(wait=round(self._first - self.began, 3), tokens_per_second=round(tokens / seconds, 3))


WINDOW = 20  # tokens; a window of this or less is a repetition when it was said again and again
REPEATED = 45  # tokens that say it again; with fewer, a wide table whose cells say the same would be cut off
LEAST = 240  # characters that three times a longer window take, or one of a server that sends many tokens at once
LONGEST = 800  # characters of a window, and of a rule across the page
RULER_MARKS = 3
_KEY = 24  # characters by which the last repetition is looked for


def _is_ruler(window: str) -> bool:
    """Whether a window is of few marks or digits: rules, the head of a wide table, rows of zeros repeat these."""
    marks = set(window) - set(" \t\r\n")
    return 0 < len(marks) <= RULER_MARKS and not any(map(str.isalpha, marks))


class Repetition:
    """Reads an answer piece by piece."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque(maxlen=WINDOW + REPEATED)
        self._tail = ""

    def found(self, piece: str) -> bool:
        """Add a piece, about one token, and return whether the answer now ends in repetitions of one window."""
        self._pieces.appendleft(piece)
        self._tail = (self._tail + piece)[-3 * LONGEST :]
        return self._in_pieces() or self._in_characters()

    def _in_pieces(self) -> bool:
        last = list(self._pieces)  # the newest first
        widths = range(1, min(WINDOW, len(last) - REPEATED) + 1)
        found = (w for w in widths if last[w] == last[0] and last[w : w + REPEATED] == last[:REPEATED])
        return any(not _is_ruler("".join(last[:w])) for w in found)

    def _in_characters(self) -> bool:
        tail = self._tail
        if len(tail) < LEAST or (before := tail.rfind(tail[-_KEY:], 0, -1)) < 0:
            return False
        width = len(tail) - _KEY - before
        taken = max(LONGEST if _is_ruler(tail[-width:]) else LEAST, 3 * width)
        return taken <= len(tail) and tail[width - taken :] == tail[-taken:-width]
