"""Whether a model can answer a role at all: one that cannot is not asked again and again."""

from __future__ import annotations

from collections import Counter

MOST_FAILURES = 2  # calls of a role without a valid answer, before the run has had one


class Reliability:
    """Counts, for the length of a run, the calls that got a valid answer and those that got none, by role and model."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()
        self._able = set[tuple[str, str]]()

    def count(self, role: str, model: str, *, valid: bool) -> None:
        """Count a call whose answer was valid, at the first or second try, or was not."""
        if valid:
            self._able.add((role, model))
        else:
            self._failures[role, model] += 1

    def able(self, role: str, model: str) -> bool:
        """Return whether a model is worth asking."""
        return (role, model) in self._able or self._failures[role, model] < MOST_FAILURES
