"""One run is killed at every change that it makes to its store, with and without its power, resumed, and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from simulator.scenario import Faults, Scenario

SEED = 1


def every_kill(objects: bool, every: int) -> Iterator[tuple[int, str, str]]:
    """Yield each change, or every nth, and way to die, with what is wrong then; empty if nothing is."""
    whole = Scenario(SEED, Faults(objects=objects))
    whole.run()
    for change in range(1, whole.changes + 1, every):
        for fault in ("kill",) if objects else ("kill", "power"):
            scenario = Scenario(SEED, Faults({change: fault}, objects=objects))
            try:
                scenario.run()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                yield change, fault, f"{type(error).__name__}: {error}"
            else:
                same = _outline(scenario) == _outline(whole)
                yield change, fault, "" if same else f"{_outline(scenario)} instead of {_outline(whole)}"


def _outline(scenario: Scenario) -> tuple[object, ...]:
    """Return what of a run does not depend on how often it was killed: its files, its lines, its computed events."""
    return sorted(scenario.files), scenario.lines, sorted(Counter(scenario.computed).items())
