"""Seeds: look for one that fails, make it small, print it. `python -m tests.simulation [--seed N | --seeds N]`."""

import argparse
import logging
import sys
import time
from multiprocessing import get_context
from os import cpu_count

from tests.simulation.plans import make_plan
from tests.simulation.runs import explain, run, shrink, try_seed


def show(seed: int) -> int:
    """Print a seed, as small as it can be made if it fails."""
    plan = make_plan(seed)
    kind = run(plan).kind
    sys.stdout.write(explain(shrink(plan, kind) if kind else plan) + "\n")
    return bool(kind)


def search(first: int, seeds: int, processes: int, *, is_all: bool) -> int:
    """Try seeds, and print those that fail."""
    began, found, receipts, count = time.monotonic(), 0, 0, 0
    with get_context("spawn").Pool(processes) as pool:
        for seed, wrong, length in pool.imap(try_seed, range(first, first + seeds), chunksize=8):
            count, receipts = count + 1, receipts + length
            if wrong:
                found += 1
                sys.stdout.write(f"seed {seed}: {wrong[0]}\n")
                sys.stdout.flush()
                if not is_all:
                    break
    seconds = time.monotonic() - began
    sys.stdout.write(f"{count} seeds, {receipts} receipts, {count / seconds:.0f} seeds/s, {found} failed\n")
    return bool(found)


def main() -> int:
    """Search, or show one seed."""
    logging.getLogger("batonpass").setLevel(logging.ERROR)  # observed runs say at each fault that they go on
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, shrink it if it fails, and print it")
    parser.add_argument("--seeds", type=int, default=20_000, help="try so many")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--processes", type=int, default=cpu_count() or 1)
    parser.add_argument("--all", action="store_true", help="do not end with the first that fails")
    options = parser.parse_args()
    if options.seed is not None:
        return show(options.seed)
    return search(options.first, options.seeds, options.processes, is_all=options.all)


if __name__ == "__main__":
    sys.exit(main())
