"""The current state of runs and handoffs, in the form that their next receipt needs."""

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

# A flag of offers in a tree that only tries a grant out: the receiver is told what the grant would have denied.
TRIED_OUT: Final = "grant.tried-out"


class Working(Struct, frozen=True, kw_only=True):
    """A run that this process works on, with the fields that all its receipts repeat."""

    run: Run
    mode: Mode = Mode.OBSERVED
    session: SessionId | None = None
    epoch: int | None = None  # in which it was opened or taken over; None: whoever has its key may write, as hooks do


class Granted(Struct, frozen=True, kw_only=True):
    """The grant of a run that is being opened: digests for the receipt, and the statements as contents."""

    terms: Digest | None = None
    certificate: Digest | None = None
    contents: tuple[Content, ...] = ()


# Called when a run is opened: only then are its id and its key known, and the grant is bound to both.
Granting: TypeAlias = Callable[[RunId, PublicKey], Granted]
UNGRANTED: Final = Granted()


def carried(items: tuple[tuple[Part, Content], ...]) -> tuple[Carried, ...]:
    """Return items in the form in which receipts name them."""
    return tuple(Carried(item=content.ref.id, digest=content.ref.digest, part=part) for part, content in items)


def opened(entry: Entry) -> Working:
    """Return the run that a receipt opened."""
    run, receipt = entry.change.run_opened, entry.signed.receipt
    if run is None:
        raise AssertionError("only receipts that open a run come here")
    return Working(run=run, mode=receipt.mode, session=receipt.session, epoch=receipt.epoch)


def standing(view: LedgerView, handoff: HandoffId) -> tuple[Handoff, Digest]:
    """Return a handoff, and the digest that its next receipt follows."""
    known = view.get_handoff(handoff)
    return known, anchor_of(view, known)


def anchor_of(view: LedgerView, handoff: Handoff) -> Digest:
    """Return the digest that a handoff's next receipt follows: the head of its own stream, or its offer."""
    try:
        return view.get_stream(StreamId(handoff.id)).head
    except NotFoundError:
        return handoff.initiated


def mode_of_child(offered: Receipt) -> Mode:
    """Return the mode of an offer's receiver: enforced if the offer has a grant, else the mode of its parent.

    An observed run may hand off with a grant. Then the child is enforced, and so are the receipts about its handoff. In
    a tree that only tries a grant out, nobody is enforced by it.
    """
    body = offered.body
    granted = isinstance(body, HandoffInitiated) and body.terms is not None and TRIED_OUT not in body.flags
    return Mode.ENFORCED if granted else offered.mode


def child_head(stream: Stream) -> ChildHead:
    """Return the head of a run's stream in the form in which receipts name it."""
    return ChildHead(run=RunId(stream.id), seq=stream.seq, head=stream.head)


def children_of(view: LedgerView, run: RunId) -> tuple[ChildHead, ...]:
    """Return the heads of the streams of a run's children."""
    children = sorted(child.id for child in view.find_runs(parent=run))
    return tuple(child_head(view.get_stream(StreamId(child))) for child in children)


def head_of(view: LedgerView, handoff: Handoff) -> ChildHead:
    """Return the head of the run of a handoff's latest attempt. Raises `NotFoundError` if there is none."""
    if handoff.run is None:
        raise NotFoundError("attempt at handoff", handoff.id)
    return child_head(view.get_stream(StreamId(handoff.run)))


def need(ended: ChildHead | None, handoff: Handoff) -> ChildHead:
    """Return the head of the running attempt. Raises `NotFoundError` if there is none."""
    if ended is None:
        raise NotFoundError("running attempt at handoff", handoff.id)
    return ended


def noted(
    started: Draft, run: RunId, by: PrincipalId, items: tuple[tuple[Part, Content], ...], label: Label | None
) -> Iterator[Draft]:
    """Yield a draft with the principal's other items at the start of a run, as the next receipt of its stream."""
    if items:
        recorded = RunRecorded(run=run, by=by, items=carried(items), label=label)
        yield replace(started, new=False, body=recorded, contents=tuple(content for _, content in items))
