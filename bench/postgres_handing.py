"""A durable handoff on PostgreSQL: alone, by eight workers, and with 64 in flight; against the disk and peers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from batonpass.relay import Relay
from bench import batons
from bench.effort import Effort
from bench.handing import against_peers, facts
from bench.limits import RawFile
from bench.measure import Act, Contender, Elsewhere, Visitor, race_in_turns, time_in_turns
from bench.peering import Peer, missing_peers, started
from bench.postgres_server import missing_part, new_database, running_server
from bench.table import Note, Row, at_least, at_rate, p50, pace, rate, skipped

_WORKERS: Final = 8
_IN_FLIGHT: Final = (_WORKERS, 64)
_WARM_UP: Final = 100


def measure(scratch: Path, effort: Effort) -> Sequence[Row | Note]:
    """Measure handoffs against raw append+fsync on the disk that the server uses, and peers on the same server."""
    if (part := missing_part()) is not None:
        return [skipped("PostgreSQL handoff", f"install {part}")]
    with running_server(scratch) as url, batons.open_relay(scratch / "home", url) as relay, ExitStack() as stack:
        peers = _peers(scratch, url, stack)
        hand_off = batons.hands_off(relay)
        for _ in range(_WARM_UP):
            hand_off()
        raw = RawFile(scratch / "raw", batons.mean_bytes(batons.handoff_bytes(relay)))
        return [
            *_alone(relay, raw, peers, effort),
            *(row for threads in _IN_FLIGHT for row in _together(relay, raw, peers, threads, effort)),
            *_workers(relay, raw, effort),
            *([] if peers else [skipped("PostgreSQL handoff, against peers", str(missing_peers()))]),
            *facts(peers),
        ]


def _peers(scratch: Path, url: str, stack: ExitStack) -> dict[str, Peer]:
    """Start those that are installed, each with a database of its own and as many connections as threads."""
    if missing_peers() is not None:
        return {}
    names = {"LangGraph": "LangGraph PostgresSaver", "DBOS": "DBOS on PostgreSQL"}
    return {
        shown: stack.enter_context(
            started(name, scratch, new_database(url, name.lower()), connections=_WORKERS),
        )
        for name, shown in names.items()
    }


def _alone(relay: Relay, raw: RawFile, peers: Mapping[str, Peer], effort: Effort) -> Iterator[Row]:
    acts, turns = max(effort.acts // 3, 1), effort.turns // 2
    batons.refills(relay, (turns + 1) * acts)
    contenders: dict[str, Act | Elsewhere] = {
        "handoff": batons.hands_off(relay),
        "worker": batons.works(relay),
        "call": batons.calls(relay),
        "raw": raw.append,
        **peers,
    }
    taken = time_in_turns(contenders, turns=turns, acts=acts)
    ours = {
        "handoff": "PostgreSQL handoff: offer, accept, close; p50",
        "worker": "PostgreSQL worker: claim, accept, close; p50",
        "call": "PostgreSQL tool call: request, finish; p50",
    }
    for name, what in ours.items():
        yield Row(what=what, ours=p50(taken[name]), against="one raw append+fsync", theirs=p50(taken["raw"]))
    yield from against_peers("PostgreSQL handoff, one after the other", pace, taken, peers, {})


def _together(relay: Relay, raw: RawFile, peers: Mapping[str, Peer], threads: int, effort: Effort) -> Iterator[Row]:
    contenders: dict[str, Contender | Visitor] = {
        "handoff": Contender(make=lambda _: batons.hands_off(relay), threads=threads),
        "raw": Contender(make=raw.share, threads=threads),
        **{name: Visitor(peer=peer, threads=threads) for name, peer in peers.items()},
    }
    rates = race_in_turns(contenders, turns=effort.race_turns, seconds=effort.race_seconds)
    what = f"PostgreSQL handoff, {threads} in flight"
    against = f"raw append+fsync, {threads} threads"
    yield Row(what=what, ours=rate(rates["handoff"]), against=against, theirs=rate(rates["raw"]))
    for row in against_peers(what, rate, rates, peers, {}):
        wanted = threads == _WORKERS and row.against.startswith("LangGraph")
        yield Row(
            what=row.what,
            ours=row.ours,
            against=row.against,
            theirs=row.theirs,
            goal=at_least(6, must=4) if wanted else None,
        )


def _workers(relay: Relay, raw: RawFile, effort: Effort) -> Iterator[Row]:
    contenders = {
        "ours": Contender(make=lambda _: batons.offers_and_works(relay), threads=_WORKERS),
        "raw": Contender(make=raw.share, threads=_WORKERS),
    }
    rates = race_in_turns(contenders, turns=effort.race_turns, seconds=effort.race_seconds)
    yield Row(
        what=f"PostgreSQL, {_WORKERS} workers: offer, claim, accept, close",
        ours=rate(rates["ours"]),
        against=f"raw append+fsync, {_WORKERS} threads",
        theirs=rate(rates["raw"]),
        goal=at_rate(800, must=400),
    )
