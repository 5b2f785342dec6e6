"""The rules that decide whether a receipt may be written. They are pure functions, and the same for every store.

A store calls them inside its transaction, with the rows as they are at that moment.
"""

from batonpass.errors import (
    BudgetExhaustedError,
    FencedError,
    IllegalTransitionError,
    PremiseError,
    RewoundError,
    StaleHeadError,
    StreamClosedError,
    UnknownApproverError,
)
from batonpass.model.base.ids import Digest, KeyId
from batonpass.model.base.lifecycle import HandoffEvent, State, follow
from batonpass.model.bodies.body import ChildHead
from batonpass.model.grants.charge import Within
from batonpass.model.ledger.entry import Premise
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.projection import HandoffMoved
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.model.ledger.stream import Mark, Stream


def is_there(stream: Stream | None, signed: SignedReceipt) -> bool:
    """Return whether a receipt already is the head of its stream: it was written before, and the answer was lost."""
    return stream is not None and (stream.seq, stream.head) == (signed.receipt.seq, signed.digest)


def require_next(stream: Stream | None, signed: SignedReceipt, *, bumps: bool) -> None:
    """Refuse a receipt that is not the next one of its stream.

    Raises `RewoundError`, `FencedError`, `StreamClosedError` or `StaleHeadError`, whichever explains it best.
    """
    receipt = signed.receipt
    if stream is None:
        if receipt.seq != 1:
            raise RewoundError(receipt.stream, receipt.seq - 1, 0)
        return
    # The epoch first: an attempt that was taken over must learn that it was fenced, also if its stream has gone on or
    # closed.
    if receipt.epoch < stream.epoch:
        raise FencedError(receipt.stream, receipt.epoch, stream.epoch)
    if not stream.open:
        raise StreamClosedError(receipt.stream)
    if receipt.seq <= stream.seq:
        raise StaleHeadError(receipt.stream, receipt.seq)
    if (receipt.seq, receipt.previous) != (stream.seq + 1, stream.head):
        raise RewoundError(receipt.stream, receipt.seq - 1, stream.seq)
    if receipt.epoch != stream.epoch + bumps:
        raise FencedError(receipt.stream, receipt.epoch, stream.epoch + bumps)


def require_kept(mark: Mark, stream: Stream | None, then: Digest | None) -> None:
    """Refuse to go on in a store that lost an acknowledged receipt. Raises `RewoundError`.

    `then` is the digest of the receipt that the store now has at that seq of that stream, if any.
    """
    if stream is None or then != mark.head:
        raise RewoundError(mark.stream, mark.seq, 0 if stream is None else stream.seq)


def require_premise(premise: Premise, statements: int, refutations: int, *, touched: bool) -> None:
    """Refuse an entry whose premise no longer holds. Raises `PremiseError`."""
    # Counts are enough: statements and refutations are only ever added.
    if touched or (statements, refutations) != (premise.statements, premise.refutations):
        raise PremiseError(premise.root)


def require_fence(stream: Stream | None, at: ChildHead) -> None:
    """Refuse to end a run whose head is not the one that the receipt names. Raises `StaleHeadError`."""
    # Exactly this head, and not at least this one: a worker that only seemed dead may have written since. The receipt
    # that ends it would then name a head in the middle, and whatever comes after it would hang from nothing.
    if stream is None or not stream.open or (stream.seq, stream.head) != (at.seq, at.head):
        raise StaleHeadError(at.run, at.seq + 1)


def require_anchor(handoff: Handoff, stream: Stream | None, moved: HandoffMoved) -> None:
    """Refuse an attempt that does not follow the last event of its handoff. Raises `StaleHeadError`."""
    # The state alone would not tell: asked and answered, it is offered as it was before. The last receipt tells.
    last = handoff.initiated if stream is None else stream.head
    if moved.anchor not in {None, last}:
        raise StaleHeadError(handoff.id, 1 if stream is None else stream.seq)


def require_approver(key: Key | None, named: KeyId) -> None:
    """Refuse a ruling that is not signed with an active approver's key. Raises `UnknownApproverError`."""
    if key is None or key.role is not KeyRole.APPROVER or key.status is not KeyStatus.ACTIVE:
        raise UnknownApproverError(named)


def next_state(handoff: Handoff, moved: HandoffMoved) -> State:
    """Return the state of a handoff after an event. Raises `IllegalTransitionError`."""
    current = handoff.attempt + (moved.event is HandoffEvent.ACCEPT)
    if moved.attempt is not None and moved.attempt != current:
        raise IllegalTransitionError(f"{handoff.state} in attempt {handoff.attempt}", moved.event, handoff.carrier)
    # Every event of a running handoff ends its run, and no other event does.
    if moved.ends != (handoff.run if handoff.state is State.RUNNING else None):
        raise IllegalTransitionError(f"{handoff.state} with {handoff.run}", moved.event, handoff.carrier)
    return follow(handoff.state, moved.event, handoff.carrier)


def require_within(used: int, limit: Within) -> None:
    """Refuse an entry that exceeds a limit; `used` already includes its own charges. Raises `BudgetExhaustedError`."""
    if used > limit.most:
        raise BudgetExhaustedError(limit.account, limit.unit, used, limit.most)
