"""Which parts there are, in which order they run, and where the table goes."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench import (
    blame_peers,
    blaming,
    chaining,
    drifting,
    enduring,
    framework_cost,
    granting,
    growth,
    handing,
    holding,
    hooking,
    http_handing,
    injection,
    ledger_blame,
    notes,
    page_views,
    postgres_append,
    postgres_handing,
    profiles,
    proxying,
    quick,
    repeats,
    reviewing,
    sqlite_append,
    starting,
    verifying,
)
from bench.cost import Cost
from bench.cost_table import write_costs
from bench.effort import Effort
from bench.machine import describe_machine
from bench.peering import PeerFailedError
from bench.table import Note, Row, skipped, write_json, write_markdown

RESULTS: Final = Path(__file__).resolve().parent / "results"
SCRATCH: Final = Path("/var/tmp")  # noqa: S108 - the one place for large files that by convention is on a disk

PARTS: Final[Mapping[str, Callable[[Path, Effort], Sequence[Row | Note | Cost]]]] = {
    "cost": quick.measure,
    "sqlite": sqlite_append.measure,
    "handoff": handing.measure,
    "http": http_handing.measure,
    "repeat": repeats.measure,
    "postgres": postgres_append.measure,
    "postgres-handoff": postgres_handing.measure,
    "chain": chaining.measure,
    "verify": verifying.measure,
    "grant": granting.measure,
    "growth": growth.measure,
    "endure": enduring.measure,
    "ledger-blame": ledger_blame.measure,
    "review": reviewing.measure,
    "drift": drifting.measure,
    "page": page_views.measure,
    "blame": blaming.measure,
    "blame-peers": blame_peers.measure,
    "notes": notes.measure,
    "start": starting.measure,
    "hook": hooking.measure,
    "mcp": proxying.measure,
    "frameworks": framework_cost.measure,
    "hold": holding.measure,
    "injection": injection.measure,
}


def main() -> None:
    """Run what was asked for; keep the result only if all of it ran."""
    options = _options()
    if options.profile:
        profiles.run_profile(options.profile, options.scratch)
        return
    if options.quick:
        quick.run_quick(options.scratch, named=options.act or (), keep=options.keep)
        return
    effort = Effort.short() if options.short else Effort.full()
    names = options.only or list(PARTS)
    began = time.monotonic()
    found: list[Row | Note | Cost] = []
    for name in names:
        print(f"{name} …", flush=True)
        with tempfile.TemporaryDirectory(prefix="batonpass-bench-", dir=options.scratch) as scratch:
            try:
                found += PARTS[name](Path(scratch), effort)
            except PeerFailedError as error:
                # What others' software does wrong must not cost the rows of ten minutes.
                print(error, file=sys.stderr)
                found.append(skipped(name, "a peer ended instead of answering; its last words are on standard error"))
    facts: dict[str, object] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "short": options.short,
        "seconds": round(time.monotonic() - began),
        "machine": describe_machine(options.scratch),
    }
    rows = [each for each in found if not isinstance(each, Cost)]
    costs = [each for each in found if isinstance(each, Cost)]
    markdown = write_markdown(facts, rows, write_costs(costs) if costs else ())
    print()
    print(markdown)
    if options.only:
        print("Not stored: only a part was measured.")
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(write_json(facts, rows, [asdict(cost) for cost in costs]), encoding="utf-8")
    (RESULTS / "latest.md").write_text(markdown, encoding="utf-8")
    print(f"Stored in {RESULTS.parent.name}/{RESULTS.name}/latest.json and latest.md")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Print and store one table of ratios.")
    parser.add_argument("--quick", action="store_true", help="only what acts cost, beside what has landed: a minute")
    parser.add_argument("--act", action="append", metavar="WORDS", help="with --quick: acts whose name has these words")
    parser.add_argument("--keep", action="store_true", help="with --quick: these figures are what has landed")
    parser.add_argument("--profile", choices=profiles.LOOPS, help="only a flame graph of this act, into .profile/")
    parser.add_argument("--short", action="store_true", help="fewer samples, and no ledger of a million receipts")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part; can be repeated")
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="where to measure: the disk that matters")
    options = parser.parse_args()
    if (options.act or options.keep) and not options.quick:
        parser.error("--act and --keep go with --quick")
    return options
