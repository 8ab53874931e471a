"""What a model writes for a reader, told while it arrives: a section's beginning need not wait for its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic

from fathom.config.secrets import Scrubber
from fathom.llm.base import ModelCall, Piece
from fathom.llm.parsing import draft_of
from fathom.telemetry.progress import Event, publish

TELL_SECONDS = 0.25  # at least, from one draft to the next


async def telling(
    pieces: AsyncGenerator[Piece, None], call: ModelCall, scrubber: Scrubber
) -> AsyncGenerator[Piece, None]:
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
