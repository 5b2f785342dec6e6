"""A durable handoff (offer, accept, close) and a guarded tool call (request, finish) on SQLite."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Final

from batonpass.testing.builders import Scribe
from bench.effort import Effort
from bench.ledgers import ARGUMENTS, RESULT, TOOL, run_bytes, sqlite_ledger, use_up_log
from bench.limits import RawFile, SignedFile
from bench.measure import Act, Contender, race_in_turns, time_in_turns
from bench.table import Row, at_most, at_rate, p50, rate

TASK: Final = "Make total() round half-even, and show that no invoice of last year changes by more than a cent"
REPORT: Final = ("Changed src/billing/totals.py: total() rounds half-even; 1,204 of 1,204 tests pass. " * 40)[:3_072]

_IN_FLIGHT: Final = 64
_RECEIPTS: Final = 3


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure whole acts against one append+fsync of the bytes of one receipt."""
    with sqlite_ledger(scratch / "ledger") as scribe:
        use_up_log(scribe)
        size = _receipt_bytes(scribe)
        raw = RawFile(scratch / "raw", size)
        signed = SignedFile(scratch / "signed", size, _RECEIPTS * _IN_FLIGHT)
        return [*_alone(scribe, raw, effort), *_together(scribe, raw, signed, effort)]


def _hands_off(scribe: Scribe) -> Act:
    lead = scribe.start()

    def hand_off() -> None:
        child = scribe.delegate(lead, task=TASK)
        scribe.recording.close(child, report=REPORT)

    return hand_off


def _calls(scribe: Scribe) -> Act:
    run = scribe.start()
    return lambda: scribe.call(run, TOOL, ARGUMENTS, RESULT)


def _receipt_bytes(scribe: Scribe) -> int:
    lead = scribe.start()
    child = scribe.delegate(lead, task=TASK)
    scribe.recording.close(child, report=REPORT)
    _, offered = run_bytes(scribe, lead.run.id)
    return round(mean([offered, *run_bytes(scribe, child.run.id)]))


def _alone(scribe: Scribe, raw: RawFile, effort: Effort) -> Iterator[Row]:
    contenders = {"handoff": _hands_off(scribe), "call": _calls(scribe), "raw": raw.append}
    taken = time_in_turns(contenders, turns=effort.turns, acts=max(effort.acts // 3, 1))
    goals = {"handoff": ("handoff: offer, accept, close with 3 KB", 6), "call": ("tool call: request, finish", 3.5)}
    for name, (what, times) in goals.items():
        yield Row(
            what=f"{what}; p50",
            ours=p50(taken[name]),
            against="one raw append+fsync",
            theirs=p50(taken["raw"]),
            goal=at_most(times),
        )


def _together(scribe: Scribe, raw: RawFile, signed: SignedFile, effort: Effort) -> Iterator[Row]:
    contenders = {
        "ours": Contender(make=lambda _: _hands_off(scribe), threads=_IN_FLIGHT),
        "raw": Contender(make=raw.share, threads=_IN_FLIGHT),
        "signed": Contender(make=signed.share, threads=1, each=_IN_FLIGHT),
    }
    rates = race_in_turns(contenders, turns=effort.race_turns, seconds=effort.race_seconds)
    against = {
        "raw": f"raw append+fsync, {_IN_FLIGHT} threads",
        "signed": f"sign and append three receipts, one fsync for {_IN_FLIGHT} handoffs",
    }
    goals = {"raw": at_rate(1_200)}
    for name, peer in against.items():
        yield Row(
            what=f"handoff, {_IN_FLIGHT} in flight",
            ours=rate(rates["ours"]),
            against=peer,
            theirs=rate(rates[name]),
            goal=goals.get(name),
        )
