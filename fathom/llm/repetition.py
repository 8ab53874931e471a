"""Whether a model that is still writing only repeats itself.

A small model that decodes under a schema may say the same words inside one string until it is cut off, and a JSON mode
may send white space without end. Nothing useful follows, and every token of it costs time and money.
"""

from __future__ import annotations

from collections import deque

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
        self._pieces.append(piece)
        self._tail = (self._tail + piece)[-3 * LONGEST :]
        return self._in_pieces() or self._in_characters()

    def _in_pieces(self) -> bool:
        last = list(self._pieces)[::-1]
        widths = range(1, min(WINDOW, len(last) - REPEATED) + 1)
        found = (width for width in widths if last[:REPEATED] == last[width : width + REPEATED])
        return any(not _is_ruler("".join(last[:width])) for width in found)

    def _in_characters(self) -> bool:
        tail = self._tail
        if len(tail) < LEAST or (before := tail.rfind(tail[-_KEY:], 0, -1)) < 0:
            return False
        width = len(tail) - _KEY - before
        taken = max(LONGEST if _is_ruler(tail[-width:]) else LEAST, 3 * width)
        return taken <= len(tail) and tail[width - taken :] == tail[-taken:-width]
