"""`make simulate SEEDS=1000`; `SEED=7` repeats one; `ARGS=--planted` and `ARGS=--boundaries`: see docs/simulator.md."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections.abc import Iterator

from simulator.boundaries import every_kill
from simulator.machine import missing
from simulator.planted import BUGS, found_by
from simulator.scenario import Scenario


def main() -> int:
    """Run what is asked; print what fails, and how to repeat it."""
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument("--seed", type=int, metavar="N", help="only this one, and what happens in it")
    parser.add_argument("--planted", action="store_true", help="bugs that are planted, and the seeds that find them")
    parser.add_argument("--bug", choices=BUGS, help="of the planted ones, only this")
    parser.add_argument("--boundaries", action="store_true", help="one run, killed at every change that it makes")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of the changes, every Nth")
    args = parser.parse_args()
    if names := missing():
        parser.error(f"Python {sys.version.split()[0]} has no {', '.join(names)}: use 3.11, with which this was tried")
    sys.unraisablehook = lambda _: None  # coroutines of processes that were killed never end
    logging.getLogger("asyncio").disabled = True
    gc.freeze()
    began, failed = time.perf_counter(), 0
    if args.seed is not None:
        scenario = Scenario(args.seed)
        try:
            scenario.run()
        finally:
            print("\n".join(scenario.world.log))
        return 0
    seeds = range(args.first, args.first + args.seeds)
    if args.planted:
        tried = _planted([args.bug] if args.bug else [*BUGS], seeds)
    elif args.boundaries:
        tried = _boundaries(args.every)
    else:
        tried = _seeds(seeds)
    for number, problem in enumerate(tried, 1):
        failed += bool(problem)
        if problem:
            print(problem, flush=True)
        if number % 100 == 0:
            gc.collect()
    print(f"{number} tried, {failed} failed, {time.perf_counter() - began:.1f} s")
    return bool(failed)


def _seeds(seeds: range) -> Iterator[str]:
    for seed in seeds:
        try:
            Scenario(seed).run()
        except Exception as error:  # noqa: BLE001 - whatever it is, its seed is told
            yield f"seed {seed}: {type(error).__name__}: {error}\n  repeat it: make simulate SEED={seed}"
        else:
            yield ""


def _planted(bugs: list[str], seeds: range) -> Iterator[str]:
    for bug in bugs:
        seed = found_by(bug, seeds, lambda seed: Scenario(seed).run())
        print(f"{bug}: {f'found by seed {seed}' if seed is not None else 'not found'}")
        yield "" if seed is not None else f"not found by {len(seeds)} seeds: {bug}"


def _boundaries(every: int) -> Iterator[str]:
    for objects in (False, True):
        for change, fault, problem in every_kill(objects, every):
            where = "object store" if objects else "disk"
            yield f"{fault} at change {change} of the {where}: {problem}" if problem else ""


sys.exit(main())
