"""Which parts there are, in which order they run, and where the table goes."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench import (
    blaming,
    chaining,
    granting,
    growth,
    handing,
    holding,
    hooking,
    injection,
    ledger_blame,
    postgres_append,
    postgres_handing,
    proxying,
    sqlite_append,
    starting,
    verifying,
)
from bench.effort import Effort
from bench.machine import describe_machine
from bench.peering import PeerFailedError
from bench.table import Note, Row, skipped, write_json, write_markdown

RESULTS: Final = Path(__file__).resolve().parent / "results"
SCRATCH: Final = Path("/var/tmp")  # noqa: S108 - the one place for large files that by convention is on a disk

PARTS: Final[Mapping[str, Callable[[Path, Effort], Sequence[Row | Note]]]] = {
    "sqlite": sqlite_append.measure,
    "handoff": handing.measure,
    "postgres": postgres_append.measure,
    "postgres-handoff": postgres_handing.measure,
    "chain": chaining.measure,
    "verify": verifying.measure,
    "grant": granting.measure,
    "growth": growth.measure,
    "ledger-blame": ledger_blame.measure,
    "blame": blaming.measure,
    "start": starting.measure,
    "hook": hooking.measure,
    "mcp": proxying.measure,
    "hold": holding.measure,
    "injection": injection.measure,
}


def main() -> None:
    """Run what was asked for; keep the result only if all of it ran."""
    options = _options()
    effort = Effort.quick() if options.quick else Effort.full()
    names = options.only or list(PARTS)
    began = time.monotonic()
    rows: list[Row | Note] = []
    for name in names:
        print(f"{name} …", flush=True)
        with tempfile.TemporaryDirectory(prefix="batonpass-bench-", dir=options.scratch) as scratch:
            try:
                rows += PARTS[name](Path(scratch), effort)
            except PeerFailedError as error:
                # What others' software does wrong must not cost the rows of ten minutes.
                print(error, file=sys.stderr)
                rows.append(skipped(name, "a peer ended instead of answering; its last words are on standard error"))
    facts: dict[str, object] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "seconds": round(time.monotonic() - began),
        "machine": describe_machine(options.scratch),
    }
    print()
    print(write_markdown(facts, rows))
    if options.only:
        print("Not stored: only a part was measured.")
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(write_json(facts, rows), encoding="utf-8")
    (RESULTS / "latest.md").write_text(write_markdown(facts, rows), encoding="utf-8")
    print(f"Stored in {RESULTS.parent.name}/{RESULTS.name}/latest.json and latest.md")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Print and store one table of ratios.")
    parser.add_argument("--quick", action="store_true", help="fewer samples, and no ledger of a million receipts")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part; can be repeated")
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="where to measure: the disk that matters")
    return parser.parse_args()
