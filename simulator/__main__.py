"""`python -m simulator --seeds 1000`, or `--seed 7` to repeat one."""

from __future__ import annotations

import argparse
import gc
import sys
import time
import traceback

from simulator.scenario import Scenario


def main() -> int:
    """Run the seeds; print the first that fails, and how to repeat it."""
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument("--seed", type=int, metavar="N", help="only this one, and what happens in it")
    parser.add_argument("--go-on", action="store_true", help="after a failure")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.seeds) if args.seed is None else [args.seed]
    sys.unraisablehook = lambda _: None  # coroutines of processes that were killed have no end
    gc.freeze()
    began, failed = time.perf_counter(), []
    for number, seed in enumerate(seeds):
        scenario = Scenario(seed)
        try:
            scenario.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, its seed is told
            failed.append(seed)
            if args.seed is not None:
                print("\n".join(scenario.world.log))
                traceback.print_exc()
            print(f"seed {seed}: {type(error).__name__}: {error}\n  repeat it: make simulate SEED={seed}", flush=True)
            if not args.go_on:
                break
        else:
            if args.seed is not None:
                print("\n".join(scenario.world.log))
        if number % 100 == 99:
            gc.collect()
    print(f"{number + 1} seeds, {len(failed)} failed, {time.perf_counter() - began:.1f} s")
    return bool(failed)


sys.exit(main())
