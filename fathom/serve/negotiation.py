"""Which of several media types a client likes best, by its `Accept` header (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def preferred(accept: str, offered: Sequence[str]) -> str | None:
    """Return the offered media type that an `Accept` header likes best; of equal ones the first; None if it takes none.

    For each type the most specific range that matches it counts. Without a header, everything is taken.
    """
    ranges = [*_ranges(accept)] if accept.strip() else [("*", "*", 1.0)]
    best, quality = None, 0.0
    for media in offered:
        if (liked := _quality(media, ranges)) > quality:
            best, quality = media, liked
    return best


def _quality(media: str, ranges: Sequence[tuple[str, str, float]]) -> float:
    kind, _, form = media.partition("/")
    for wanted in ((kind, form), (kind, "*"), ("*", "*")):
        named = [quality for *own, quality in ranges if tuple(own) == wanted]
        if named:
            return max(named)
    return 0.0


def _ranges(accept: str) -> Iterator[tuple[str, str, float]]:
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        kind, slash, form = media.partition("/")
        if slash and kind and form:
            given = next((value for value in parameters if value.startswith("q=")), "q=1")
            try:
                quality = float(given[2:])
            except ValueError:
                continue
            if 0 <= quality <= 1:
                yield kind, form, quality
