"""How many bytes a handoff makes durable along a chain in which each agent hands on to the next."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench import batons
from bench.effort import Effort
from bench.peering import missing_peers, started
from bench.table import Figure, Note, Row, Unit, at_most, skipped

_DECIDED: Final = {
    "text": "The lines of this batch are summed exactly and rounded once, at the end, half-even.",
    "why": "Rounding each of them first doubles the error, as the invoices of the batch before have shown.",
}
_CONSTANT: Final = 1.01


def measure(scratch: Path, effort: Effort) -> Sequence[Row | Note]:
    """Measure the first and the last hop, where nothing is added and where each hop adds a decision."""
    with batons.open_relay(scratch / "ledger") as relay:
        plain = batons.chain(relay, effort.hops)
        adding = batons.chain(relay, effort.hops, _DECIDED)
    rows = [
        _row("hop {} of a chain", plain, effort.hops, goal=True),
        _row("hop {} of a chain, each hop adds a decision", adding, effort.hops),
    ]
    if (missing := missing_peers()) is not None:
        return [*rows, skipped("bytes along a chain, against LangGraph", missing)]
    return [*rows, *_langgraph(scratch, effort.hops, plain[-1], adding[-1])]


def _row(what: str, sizes: Sequence[int], hops: int, *, goal: bool = False) -> Row:
    return Row(
        what=what.format(f"{hops:,}"),
        ours=Figure(sizes[-1], Unit.BYTES),
        against="hop 1",
        theirs=Figure(sizes[0], Unit.BYTES),
        goal=at_most(_CONSTANT) if goal else None,
    )


def _langgraph(scratch: Path, hops: int, plain: int, adding: int) -> Iterator[Row | Note]:
    with started("LangGraph", scratch, str(scratch / "chain.db"), hops=hops + 1, note=_DECIDED) as peer:
        # The last has no writes that lead on: as with us, the hop before it is the last whole one.
        replaced, kept = (peer.tell(state)[:-1] for state in ("replaced", "kept"))
    yield Row(
        what=f"hop {hops:,} of a chain",
        ours=Figure(plain, Unit.BYTES),
        against=f"LangGraph, hop {hops:,} of a thread",
        theirs=Figure(replaced[-1], Unit.BYTES),
    )
    yield Row(
        what=f"hop {hops:,} of a chain, each hop adds a decision",
        ours=Figure(adding, Unit.BYTES),
        against=f"LangGraph, hop {hops:,} of a thread, state appended to",
        theirs=Figure(kept[-1], Unit.BYTES),
    )
    yield Note(
        f"LangGraph along a thread (SqliteSaver): hop 1 takes {replaced[0]:,} bytes and hop {hops:,} {replaced[-1]:,} "
        f"where the baton is replaced; {kept[0]:,} and {kept[-1]:,} where each hop adds a decision to a list: each "
        f"checkpoint holds the whole state, ours the digests of what is carried"
    )
