"""Where runs and handoffs stand, as the next receipt about them has to say it."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import NotFoundError
from batonpass.ledger.draft import Draft
from batonpass.model.base.ids import Digest, HandoffId, PrincipalId, PublicKey, RunId, SessionId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Label
from batonpass.model.bodies.body import Carried, ChildHead, HandoffInitiated, Part, RunRecorded
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.model.ledger.stream import Stream
from batonpass.store.port import LedgerView

# A flag of offers in a tree that tries a grant out: whoever takes them is told what it would have refused.
TRIED_OUT: Final = "grant.tried-out"


class Working(Struct, frozen=True, kw_only=True):
    """A run that this process works on: what every one of its receipts repeats."""

    run: Run
    mode: Mode = Mode.OBSERVED
    session: SessionId | None = None
    epoch: int | None = None  # in which it was opened or taken up; None: whoever has its key works on it, as hooks do


class Granted(Struct, frozen=True, kw_only=True):
    """What a receipt that opens a run says of its grant: digests to be signed, and the statements themselves."""

    terms: Digest | None = None
    certificate: Digest | None = None
    contents: tuple[Content, ...] = ()


# Who opens a run knows its id and its key only then; whoever grants binds them.
Granting: TypeAlias = Callable[[RunId, PublicKey], Granted]
UNGRANTED: Final = Granted()


def carried(items: tuple[tuple[Part, Content], ...]) -> tuple[Carried, ...]:
    """Return how receipts name items."""
    return tuple(Carried(item=content.ref.id, digest=content.ref.digest, part=part) for part, content in items)


def opened(entry: Entry) -> Working:
    """Return the run that a receipt opened."""
    run, receipt = entry.change.run_opened, entry.signed.receipt
    if run is None:
        raise AssertionError("only receipts that open a run come here")
    return Working(run=run, mode=receipt.mode, session=receipt.session, epoch=receipt.epoch)


def standing(view: LedgerView, handoff: HandoffId) -> tuple[Handoff, Digest]:
    """Return a handoff and the receipt from which the next thing that happens to it hangs."""
    known = view.get_handoff(handoff)
    return known, anchor_of(view, known)


def anchor_of(view: LedgerView, handoff: Handoff) -> Digest:
    """Return the receipt from which the next thing that happens to a handoff hangs."""
    try:
        return view.get_stream(StreamId(handoff.id)).head
    except NotFoundError:
        return handoff.initiated


def mode_of_child(offered: Receipt) -> Mode:
    """Return the mode of whoever takes an offer: with a grant of its own it is held to that, else it is as its parent.

    A run that is only watched may hand off with a grant; then that child is enforced, and whatever happens to its
    handoff is recorded so. Where a whole tree tries a grant out, nobody is.
    """
    body = offered.body
    granted = isinstance(body, HandoffInitiated) and body.terms is not None and TRIED_OUT not in body.flags
    return Mode.ENFORCED if granted else offered.mode


def child_head(stream: Stream) -> ChildHead:
    """Return how receipts name where a run stands."""
    return ChildHead(run=RunId(stream.id), seq=stream.seq, head=stream.head)


def children_of(view: LedgerView, run: RunId) -> tuple[ChildHead, ...]:
    """Return where the streams of a run's children stand."""
    children = sorted(child.id for child in view.find_runs(parent=run))
    return tuple(child_head(view.get_stream(StreamId(child))) for child in children)


def head_of(view: LedgerView, handoff: Handoff) -> ChildHead:
    """Return where the run of a handoff's latest attempt stands."""
    if handoff.run is None:
        raise NotFoundError("attempt at handoff", handoff.id)
    return child_head(view.get_stream(StreamId(handoff.run)))


def need(ended: ChildHead | None, handoff: Handoff) -> ChildHead:
    """Return where the running attempt stands. Raises `NotFoundError` if there is none."""
    if ended is None:
        raise NotFoundError("running attempt at handoff", handoff.id)
    return ended


def noted(
    started: Draft, run: RunId, by: PrincipalId, items: tuple[tuple[Part, Content], ...], label: Label | None
) -> Iterator[Draft]:
    """Yield what a principal says besides at the start of a run, as the next receipt of its stream."""
    if items:
        recorded = RunRecorded(run=run, by=by, items=carried(items), label=label)
        yield replace(started, new=False, body=recorded, contents=tuple(content for _, content in items))
