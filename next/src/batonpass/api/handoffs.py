"""Acts about handoffs: accept, retry, what travels, and what came out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from batonpass.api.acts import DECIDE, READ, WORK, Caller, Value, act
from batonpass.api.runs import Offered, Opened, opened, opened_again
from batonpass.errors import AccessError, InvalidValueError, LifecycleError, NotFoundError, StoreError
from batonpass.model.items import Baton, Report
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Signed
from batonpass.model.rows import HandoffRow
from batonpass.reading.batons import get_handoff, get_receipt, principal_of, read_baton, read_hops
from batonpass.reading.history import find_text, read_report
from batonpass.runtime import accept as accepting
from batonpass.runtime import retry as deciding
from batonpass.runtime.context import Context

if TYPE_CHECKING:
    from batonpass.model.values import Settlement


class OfHandoff(Value, frozen=True):
    """A handoff, by its whole id."""

    handoff: str


class Accept(Value, frozen=True):
    """Begin an attempt. With `replay` a completed handoff gives again what its attempt did."""

    handoff: str
    replay: bool = False


@act("POST /v1/handoffs/{handoff}/accept", roles=WORK)
def accept(context: Context, caller: Caller, request: Accept) -> Opened:
    """Begin an attempt at a handoff."""
    if caller.principal:
        find_row(context, caller, request.handoff)
    offer = context.offers.get(request.handoff)  # of this process: then nothing is read
    try:
        return opened(accepting.accept(context, request.handoff))
    except LifecycleError as error:
        if not request.replay or error.facts.get("state") != State.COMPLETED:
            raise
        return opened(accepting.replay(context, request.handoff))
    except StoreError as error:
        parent = None if offer is None else context.runs.get(offer.parent)
        if parent is None or offer is None or offer.lineage:
            raise
        parent.note_gap(f"acceptance by {offer.to}", error)
        return opened(accepting.unrecorded(context, parent, offer.to, offer.baton))


@accept.repeated
def _accepted(context: Context, _: Accept, receipts: Sequence[Signed]) -> Opened:
    return opened_again(context, receipts[0])


class Retry(Value, frozen=True):
    """Offer the same baton again, with decisions about the calls in doubt."""

    handoff: str
    by: str | None = None
    reason: str = ""
    repeat: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


@act("POST /v1/handoffs/{handoff}/retry", roles=WORK | DECIDE)
def retry(context: Context, caller: Caller, request: Retry) -> Offered:
    """End the last attempt and offer the same baton again. Finished calls are not made a second time."""
    by = caller.act_as(request.by)
    find_row(context, caller, request.handoff)
    if (request.repeat or request.skip) and caller.role not in DECIDE:
        raise AccessError("whether a call in doubt is repeated or skipped is decided by a person: ask an operator")
    settle: dict[str, Settlement] = dict.fromkeys(request.repeat, "repeat")
    if both := settle.keys() & set(request.skip):
        raise InvalidValueError(f"repeat or skip, not both: {', '.join(sorted(both))}")
    settle |= dict.fromkeys(request.skip, "skip")
    deciding.retry(context, request.handoff, by=by, settle=settle, reason=request.reason)
    return Offered(handoff=request.handoff, state=State.OFFERED)


@retry.repeated
def _retried(_: Context, request: Retry, __: Sequence[Signed]) -> Offered:
    return Offered(handoff=request.handoff, state=State.OFFERED)


class BatonOf(Value, frozen=True):
    """What travels with a handoff."""

    baton: Baton


@act("GET /v1/handoffs/{handoff}/baton", roles=READ)
def show_baton(context: Context, caller: Caller, request: OfHandoff) -> BatonOf:
    """Show everything that travels with a handoff."""
    row = find_row(context, caller, request.handoff)
    store = context.recorder.store
    offer = get_receipt(store, row.parent, row.seq)
    return BatonOf(baton=read_baton(store, read_hops(store, row.parent), offer))


class Result(Value, frozen=True):
    """What came out of a handoff: the caller's view of it."""

    handoff: str
    state: State
    attempt: int
    report: Report | None = None
    error: str | None = None


@act("GET /v1/handoffs/{handoff}/result", roles=READ)
def show_result(context: Context, caller: Caller, request: OfHandoff) -> Result:
    """Show what came out of a handoff so far."""
    row = find_row(context, caller, request.handoff)
    state = State(row.state)
    report, error = None, None
    if row.run is not None and state in {State.COMPLETED, State.FAILED}:
        head = context.recorder.store.find_stream(row.run)
        last = get_receipt(context.recorder.store, row.run, 0 if head is None else head.seq)
        report, error = read_report(last), find_text(last, "error")
    return Result(handoff=row.id, state=state, attempt=row.attempt, report=report, error=error)


def find_row(context: Context, caller: Caller, handoff: str) -> HandoffRow:
    """Return the row of a handoff. An agent finds its own principal's only, in the same words as none."""
    store = context.recorder.store
    row = get_handoff(store, handoff)
    if caller.principal and caller.role == "agent" and principal_of(read_hops(store, row.root)) != caller.principal:
        raise NotFoundError(f"there is no handoff {handoff} in this ledger: `batonpass run list` shows what there is")
    return row
