"""An append on SQLite: alone, by eight threads, and with 64 in flight."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from batonpass.testing.builders import Scribe
from bench.effort import Effort
from bench.ledgers import request_bytes, requests, sqlite_ledger, use_up_log
from bench.limits import BareSqlite, RawFile, SignedFile
from bench.measure import Contender, race_in_turns, time_in_turns
from bench.table import Row, p50, p99, rate

_IN_FLIGHT: Final = (8, 64)


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure requests, each a signed receipt with content, against the same bytes with nothing around them."""
    with sqlite_ledger(scratch / "ledger") as scribe:
        use_up_log(scribe)
        size = request_bytes(scribe)
        raw = RawFile(scratch / "raw", size)
        bare = BareSqlite(scratch / "bare.db", size, scratch / "ledger" / "ledger.db")
        rows = list(_alone(scribe, raw, bare, effort))
        for threads in _IN_FLIGHT:
            signed = SignedFile(scratch / f"signed-{threads}", size, threads)
            rows += _together(scribe, (raw, bare, signed), threads, effort)
        return rows


def _alone(scribe: Scribe, raw: RawFile, bare: BareSqlite, effort: Effort) -> Iterator[Row]:
    contenders = {"ours": requests(scribe), "raw": raw.append, "bare": bare.insert}
    taken = time_in_turns(contenders, turns=effort.turns, acts=effort.acts)
    for name, figure in (("p50", p50), ("p99", p99)):
        what = f"SQLite append, 1 thread, {name}"
        ours = figure(taken["ours"])
        yield Row(what=what, ours=ours, against="raw append+fsync", theirs=figure(taken["raw"]))
        yield Row(what=what, ours=ours, against="bare SQLite insert", theirs=figure(taken["bare"]))


def _together(
    scribe: Scribe,
    limits: tuple[RawFile, BareSqlite, SignedFile],
    threads: int,
    effort: Effort,
) -> Iterator[Row]:
    raw, bare, signed = limits
    contenders = {
        "ours": Contender(make=lambda _: requests(scribe), threads=threads),
        "raw": Contender(make=raw.share, threads=threads),
        "bare": Contender(make=bare.share, threads=threads),
        "signed": Contender(make=signed.share, threads=1, each=threads),
    }
    rates = race_in_turns(contenders, turns=effort.race_turns, seconds=effort.race_seconds)
    against = {
        "raw": f"raw append+fsync, {threads} threads",
        "bare": f"bare SQLite inserts, {threads} threads and a lock",
        "signed": f"sign twice and append, one fsync for {threads}",
    }
    for name, peer in against.items():
        what = f"SQLite append, {threads} in flight"
        yield Row(what=what, ours=rate(rates["ours"]), against=peer, theirs=rate(rates[name]))
