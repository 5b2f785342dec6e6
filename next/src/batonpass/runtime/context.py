"""What acts work on: the ledger, and the runs and offers that this process has at hand.

The last two are memories and no truth: a run that another process of this relay began is opened again from its
receipts, and an offer is read. What remembers a request is the receipt that it caused.
"""

from pathlib import Path

from msgspec import Struct, field, structs

from batonpass.errors import FencedError, NotFoundError
from batonpass.log.append import Recorder, Request, StreamWriter
from batonpass.model.grants import Held
from batonpass.model.items import Baton
from batonpass.model.lifecycle import RunState
from batonpass.model.receipt import Place
from batonpass.reading.batons import principal_of, read_baton, read_hops, read_lineage, tree_secret
from batonpass.reading.history import History, read_run
from batonpass.runtime.run_state import ActiveRun
from batonpass.system import Lock
from batonpass.wire.canonical import encode, keyed_digest


class Offer(Struct, frozen=True, kw_only=True):
    """What an acceptance needs to know of a handoff."""

    id: str
    to: str
    parent: str
    root: str
    anchor: str  # the last receipt about it
    attempt: int  # how many attempts there were
    principal: str
    tree_secret: bytes
    baton: Baton
    baton_digest: str
    lineage: tuple[Held, ...]
    terms: str | None = None  # the digest under which the offer has the terms
    history: History = field(default_factory=History)

    def __repr__(self) -> str:
        """Return it without its secrets: a traceback may show it to others."""
        return f"Offer({self.id})"


class Context(Struct, frozen=True, kw_only=True):
    """One for each process and ledger."""

    recorder: Recorder
    work_tree: Path
    runs: dict[str, ActiveRun] = field(default_factory=dict)
    offers: dict[str, Offer] = field(default_factory=dict)
    requests: dict[str, Lock] = field(default_factory=dict)  # with idempotency keys, while they are at work

    def find_run(self, principal: str, run: str, epoch: int | None = None) -> ActiveRun:
        """Return an open run: at work here, or opened again from its receipts.

        Raises `NotFoundError`, in the same words if it is another principal's, and `FencedError` if it is held in
        another epoch than the caller's: another took it over, perhaps in this process.
        """
        active = self.runs.get(run)
        if active is None:
            # One for all threads: of two writers of one stream the second would find that its head has gone on.
            active = self.runs.setdefault(run, open_run(self.recorder, run, principal=principal))
        if principal and principal != active.principal:
            raise unknown_run(run)
        if epoch not in {None, active.writer.epoch}:
            raise FencedError(f"{run} was taken over: what it does now is not recorded in its name")
        return active

    def forget(self, run: ActiveRun) -> None:
        """Let go of a run that has ended, and of what it offered and nobody took."""
        self.runs.pop(run.id, None)
        for handoff in run.history.children:
            self.offers.pop(handoff, None)

    def request(self, principal: str, act: str, request: Struct, key: str) -> Request:
        """Return what the receipts of this request will say of it."""
        secret = self.recorder.secret
        if getattr(request, "epoch", None) is not None:  # the same request, also after a takeover
            request = structs.replace(request, epoch=None)
        return Request(
            keyed_digest(secret, b"request\0%s\0%s" % (principal.encode(), key.encode())),
            keyed_digest(secret, b"fingerprint\0" + encode((act, request))),
        )


def unknown_run(run: str) -> NotFoundError:
    """Return what is said of a run that there is not, and of one that is another principal's."""
    return NotFoundError(f"there is no run {run} in this ledger: `batonpass run list` shows what there is")


def open_run(recorder: Recorder, run: str, *, is_replayed: bool = False, principal: str = "") -> ActiveRun:
    """Return a run as its receipts have it; with a principal, only its own.

    Raises `NotFoundError`, and `FencedError` if it has ended.
    """
    store = recorder.store
    row = store.find_stream(run)
    if row is None or row.agent is None:
        raise unknown_run(run)
    if principal and principal != principal_of(read_hops(store, row.root or run)):
        raise unknown_run(run)
    if not is_replayed and row.state in {RunState.FENCED, RunState.CANCELLED}:
        raise FencedError(f"{run} was taken over: what it does now is not recorded in its name")
    if not is_replayed and row.state != RunState.OPEN:
        raise FencedError(f"{run} has ended: it is {row.state}", code="ledger.stream_closed")
    hops = read_hops(store, run)
    lineage = read_lineage(hops)
    place = Place(stream=run, seq=row.seq, head=row.head, epoch=row.epoch)
    mode = hops[-1].first.receipt.mode
    handoff = None if row.handoff is None else store.find_handoff(row.handoff)
    return ActiveRun(
        writer=StreamWriter(recorder, place, root=hops[0].run, mode=mode),
        agent=row.agent,
        principal=principal_of(hops),
        tree_secret=tree_secret(hops[0].first),
        baton=read_baton(store, hops),
        parent=None if len(hops) == 1 else hops[-2].run,
        handoff=row.handoff,
        attempt=row.attempt or 1,
        lineage=lineage,
        history=read_run(store, run, handoff),
        is_replayed=is_replayed,
    )
