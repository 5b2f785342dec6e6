"""A durable handoff on SQLite, from offer to close, and a guarded tool call: against the disk, and against peers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from batonpass.relay import Relay
from bench import batons
from bench.effort import Effort
from bench.limits import RawFile, SignedFile
from bench.measure import Act, Contender, Elsewhere, Samples, Visitor, race_in_turns, time_in_turns
from bench.peering import Peer, missing_peers, started
from bench.table import Figure, Goal, Note, Row, Unit, at_least, at_most, at_rate, p50, pace, rate, skipped, within

IN_FLIGHT: Final = 64

_RECEIPTS: Final = 3
_AS_IT_COMES: Final = " as it comes"
_IN_FILE: Final = 500
_USES_UP_LOG: Final = 300  # handoffs until the write-ahead log has its length and is written over


def measure(scratch: Path, effort: Effort) -> Sequence[Row | Note]:
    """Measure whole acts through the public names against one append+fsync of the bytes of one receipt."""
    with batons.open_relay(scratch / "ledger") as relay, ExitStack() as stack:
        # Of its own: where a run with a grant is open in a repository, every call there is looked at.
        granted = stack.enter_context(batons.open_relay(scratch / "granted"))
        peers = _peers(scratch, stack)
        hand_off = batons.hands_off(relay)
        for _ in range(_USES_UP_LOG):
            hand_off()
        sizes = batons.handoff_bytes(relay)
        size = batons.mean_bytes(sizes)
        raw = RawFile(scratch / "raw", size)
        signed = SignedFile(scratch / "signed", size, _RECEIPTS * IN_FLIGHT)
        return [
            *_alone(relay, granted, raw, peers, effort),
            *_together(relay, raw, signed, peers, effort),
            _room(scratch / "room", sum(sizes)),
            *([] if peers else [skipped("handoff, against peers", str(missing_peers()))]),
            _own_facts(sizes),
            *facts(peers),
        ]


def _peers(scratch: Path, stack: ExitStack) -> dict[str, Peer]:
    """Start those that are installed: as durable as we are, and as they come where that is something else."""
    if missing_peers() is not None:
        return {}
    peers = {}
    for name, url in (("LangGraph", "{}"), ("DBOS", "sqlite:///{}")):
        durable = stack.enter_context(started(name, scratch, url.format(scratch / f"{name}.db")))
        told = durable.tell("facts")
        peers[f"{name}, {_words(told['measured'])}"] = durable
        if told["as it comes"] != told["measured"]:
            default = started(name, scratch, url.format(scratch / f"{name}-default.db"), durable=False)
            peers[f"{name}{_AS_IT_COMES}, {_words(told['as it comes'])}"] = stack.enter_context(default)
    return peers


def _words(pragmas: Mapping[str, str]) -> str:
    return f"journal {pragmas['journal_mode']}, synchronous {pragmas['synchronous']}"


def _alone(relay: Relay, granted: Relay, raw: RawFile, peers: Mapping[str, Peer], effort: Effort) -> Iterator[Row]:
    acts, turns = max(effort.acts // 3, 1), effort.turns // 2
    batons.refills(relay, (turns + 1) * acts)
    contenders: dict[str, Act | Elsewhere] = {
        "handoff": batons.hands_off(relay),
        "anew": batons.hands_off_all_anew(relay),
        "call": batons.calls(relay),
        "granted": batons.calls_under_grant(granted),
        "worker": batons.works(relay),
        "raw": raw.append,
        "thrice": raw.append_thrice,
        **peers,
    }
    taken = time_in_turns(contenders, turns=turns, acts=acts)
    ours = {
        "handoff": ("handoff: offer, accept, close; p50", at_most(6, must=8)),
        "anew": ("the same, all 3 KB of the baton written anew; p50", None),
        "worker": ("worker: claim, accept, close; p50", within(0.0018, must=0.0025)),
        "call": ("tool call: request, finish; p50", at_most(3.5, must=5)),
        "granted": ("the same under a grant of three hops; p50", at_most(4, must=6)),
    }
    for name, (what, goal) in ours.items():
        against = "one raw append+fsync"
        yield Row(what=what, ours=p50(taken[name]), against=against, theirs=p50(taken["raw"]), goal=goal)
    three = "three raw append+fsyncs"
    yield Row(what=ours["handoff"][0], ours=p50(taken["handoff"]), against=three, theirs=p50(taken["thrice"]))
    yield from against_peers(
        "handoff, one after the other", pace, taken, peers, {"LangGraph": at_least(4.5, must=3.3), "DBOS": at_least(8)}
    )


def _together(
    relay: Relay, raw: RawFile, signed: SignedFile, peers: Mapping[str, Peer], effort: Effort
) -> Iterator[Row]:
    durable = {name: peer for name, peer in peers.items() if _AS_IT_COMES not in name}
    contenders: dict[str, Contender | Visitor] = {
        "handoff": Contender(make=lambda _: batons.hands_off(relay), threads=IN_FLIGHT),
        "raw": Contender(make=raw.share, threads=IN_FLIGHT),
        "signed": Contender(make=signed.share, threads=1, each=IN_FLIGHT),
        **{name: Visitor(peer=peer, threads=IN_FLIGHT) for name, peer in durable.items()},
    }
    rates = race_in_turns(contenders, turns=effort.race_turns, seconds=effort.race_seconds)
    what = f"handoff, {IN_FLIGHT} in flight"
    yield Row(
        what=what,
        ours=rate(rates["handoff"]),
        against=f"raw append+fsync, {IN_FLIGHT} threads",
        theirs=rate(rates["raw"]),
        goal=at_rate(1_200, must=900),
    )
    yield Row(
        what=what,
        ours=rate(rates["handoff"]),
        against=f"sign and append three receipts, one fsync for {IN_FLIGHT} handoffs",
        theirs=rate(rates["signed"]),
    )
    yield from against_peers(what, rate, rates, durable, {})


def against_peers(
    what: str,
    figure: Callable[[Samples], Figure],
    taken: Mapping[str, Samples],
    peers: Mapping[str, Peer],
    goals: Mapping[str, Goal],
) -> Iterator[Row]:
    """Yield a row for each peer. A goal is about a peer that is as durable as we are, not about one as it comes."""
    for name in peers:
        goal = next((goal for peer, goal in goals.items() if name.startswith(f"{peer},")), None)
        yield Row(what=what, ours=figure(taken["handoff"]), against=name, theirs=figure(taken[name]), goal=goal)


def facts(peers: Mapping[str, Peer]) -> Iterator[Note]:
    """Yield what each peer says of itself."""
    for name, peer in peers.items():
        told = peer.tell("facts")
        parts = [f"version {told['version']}"]
        if "saver" in told:
            parts.append(f"saver {told['saver']}")
        if "sqlite" in told:
            parts.append(f"SQLite {told['sqlite']}")
        if "as it comes" in told:
            parts.append(f"as it comes: {_words(told['as it comes'])}")
        if "commits" in told:
            parts.append(f"commits for a handoff: {told['commits']}")
        yield Note(f"{name}: {'; '.join(parts)}; no signatures")


def _room(folder: Path, said: int) -> Row:
    """Return how much longer a ledger gets by a handoff, when it is closed and its log is folded back."""
    lengths = []
    for handoffs in (_USES_UP_LOG, _IN_FILE):
        with batons.open_relay(folder) as relay:
            hand_off = batons.hands_off(relay)
            for _ in range(handoffs):
                hand_off()
        lengths.append(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
    return Row(
        what=f"a handoff on disk, {_IN_FILE:,} in a row",
        ours=Figure((lengths[1] - lengths[0]) / _IN_FILE, Unit.BYTES),
        against="what is signed and said",
        theirs=Figure(said, Unit.BYTES),
        goal=at_most(2),
    )


def _own_facts(sizes: Sequence[int]) -> Note:
    parts = ", ".join(f"{size:,}" for size in sizes)
    return Note(
        f"A handoff of ours: offer, accept and close make {parts} bytes durable (signed bytes, signatures, salts, "
        f"contents), in {len(sizes)} commits with synchronous full; "
        "the relay signs each, the run its acceptance and its close"
    )
