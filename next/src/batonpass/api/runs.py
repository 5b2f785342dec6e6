"""Acts about runs: start, resume, record, hand off, settle, close."""

from collections.abc import Sequence
from contextlib import suppress

from msgspec import structs

from batonpass.api.acts import DECIDE, WORK, Caller, Value, act, receipt_of
from batonpass.errors import ConflictError, FencedError, InvalidValueError, NotFoundError, StoreError
from batonpass.model.bodies import HandoffAccepted, HandoffInitiated
from batonpass.model.grants import Grant
from batonpass.model.items import AnyItem, Baton, OfferedParts, Report
from batonpass.model.lifecycle import RunState, State
from batonpass.model.receipt import Signed
from batonpass.model.values import Mode, Name, Outcome, Settlement
from batonpass.reading.batons import get_handoff, get_receipt, read_terms
from batonpass.reading.history import DoubtfulCall
from batonpass.runtime import accept as accepting
from batonpass.runtime import offer as offering
from batonpass.runtime import retry as deciding
from batonpass.runtime import start as starting
from batonpass.runtime.close import close as close_run
from batonpass.runtime.context import Context, Offer
from batonpass.runtime.context import open_run as read_run
from batonpass.runtime.run_state import ActiveRun


class InRun(Value, frozen=True, kw_only=True):
    """A request of who works in a run. The epoch is that in which they hold it: after a takeover it is another."""

    run: str
    epoch: int | None = None


class Opened(Value, frozen=True):
    """A run that is at work, with what it was handed."""

    run: str
    epoch: int
    root: str
    agent: str
    principal: str
    mode: Mode
    attempt: int
    baton: Baton
    parent: str | None = None
    handoff: str | None = None
    is_replayed: bool = False
    in_doubt: tuple[DoubtfulCall, ...] = ()
    is_recorded: bool = True  # False: its beginning could not be written, and an observed program goes on


def opened(run: ActiveRun) -> Opened:
    """Return what a caller needs to know of a run."""
    return Opened(
        run=run.id,
        epoch=run.writer.epoch,
        root=run.root,
        agent=run.agent,
        principal=run.principal,
        mode=run.mode,
        attempt=run.attempt,
        baton=run.baton,
        parent=run.parent,
        handoff=run.handoff,
        is_replayed=run.is_replayed,
        in_doubt=tuple(run.history.in_doubt.values()),
        is_recorded=not run.writer.is_lost,
    )


def opened_again(context: Context, signed: Signed) -> Opened:
    """Return the same of a run that a repeated request opened: it may have ended since.

    The epoch is that of its receipt: a holder that was fenced since does not hold it again by asking.
    """
    run, active = signed.stream, None
    row = context.recorder.store.find_stream(run)
    if row is not None and row.state == RunState.OPEN:
        with suppress(FencedError):  # or it ends at this moment
            active = context.find_run("", run)
    answer = opened(active or context.runs.get(run) or read_run(context.recorder, run, is_replayed=True))
    return structs.replace(answer, epoch=signed.receipt.epoch)


class Start(Value, frozen=True):
    """Begin a tree of runs."""

    intent: str
    by: str | None = None
    agent: Name = "lead"
    grant: Grant | None = None
    items: tuple[AnyItem, ...] = ()


@act("POST /v1/runs", roles=WORK)
def start(context: Context, caller: Caller, request: Start) -> Opened:
    """Begin a run for a principal. With a grant it is enforced, else observed."""
    by = caller.act_as(request.by)
    run = starting.start(context, request.intent, by=by, agent=request.agent, grant=request.grant, items=request.items)
    return opened(run)


@start.repeated
def _started(context: Context, _: Start, receipts: Sequence[Signed]) -> Opened:
    return opened_again(context, receipts[0])


class OfRun(Value, frozen=True):
    """A run, by its whole id."""

    run: str


@act("POST /v1/runs/{run}/resume", roles=WORK)
def resume(context: Context, caller: Caller, request: OfRun) -> Opened:
    """Take a root run over from its holder. Its finished calls are given again, and its old holder is fenced."""
    if caller.principal:
        context.find_run(caller.principal, request.run)
    return opened(starting.resume(context, request.run))


@resume.repeated
def _resumed(context: Context, _: OfRun, receipts: Sequence[Signed]) -> Opened:
    return opened_again(context, receipts[0])


@act("GET /v1/runs/{run}/work", roles=WORK)
def open_run(context: Context, caller: Caller, request: OfRun) -> Opened:
    """Go on with a run that another process of this relay began. One that has ended only gives again what it did."""
    row = context.recorder.store.find_stream(request.run)
    if row is not None and row.state == RunState.OPEN:
        return opened(context.find_run(caller.principal, request.run))
    run = read_run(context.recorder, request.run, is_replayed=True)
    if caller.principal and caller.principal != run.principal:
        raise NotFoundError(f"there is no run {request.run} in this ledger: `batonpass run list` shows what there is")
    context.runs[run.id] = run
    return opened(run)


class Record(InRun, frozen=True, kw_only=True):
    """What a run knows."""

    items: tuple[AnyItem, ...] = ()
    gaps: tuple[str, ...] = ()  # what could not be recorded when it happened, as an adapter says it


class Recorded(Value, frozen=True):
    """It is in the record."""

    count: int


@act("POST /v1/runs/{run}/items", roles=WORK)
def record(context: Context, caller: Caller, request: Record) -> Recorded:
    """Record what a run knows: its later children are given it."""
    if not (request.items or request.gaps):
        raise InvalidValueError("there is nothing to record: give items, or gaps")
    starting.record(
        context, context.find_run(caller.principal, request.run, request.epoch), request.items, request.gaps
    )
    return Recorded(count=len(request.items) + len(request.gaps))


@record.repeated
def _recorded(_: Context, request: Record, __: Sequence[Signed]) -> Recorded:
    return Recorded(count=len(request.items) + len(request.gaps))


class HandOff(InRun, frozen=True, kw_only=True):
    """Offer a task. With `accept` the child begins in the same commit: it runs where its parent runs."""

    to: Name
    task: str
    grant: Grant | None = None
    parts: OfferedParts = OfferedParts()
    key: str | None = None  # another than the words: the same key is the same handoff
    accept: bool = False


class Offered(Value, frozen=True):
    """The handoff, and with `accept` the attempt that began."""

    handoff: str
    state: State
    run: Opened | None = None


@act("POST /v1/runs/{run}/handoffs", roles=WORK)
def hand_off(context: Context, caller: Caller, request: HandOff) -> Offered:
    """Offer a task to an agent; durable when it returns. The same offer again is the same handoff."""
    parent = context.find_run(caller.principal, request.run, request.epoch)
    try:
        return _offer(context, parent, request)
    except StoreError as error:
        if request.grant is not None:
            raise
        parent.note_gap(f"handoff to {request.to}", error)
    baton = offering.baton_of(parent, request.task, request.parts)
    child = accepting.unrecorded(context, parent, request.to, baton)
    return Offered(handoff=child.id.replace("run", "handoff", 1), state=State.OFFERED, run=opened(child))


def _offer(context: Context, parent: ActiveRun, request: HandOff) -> Offered:
    child: ActiveRun | None = None

    def following(offer: Offer, _: Signed) -> Sequence[Signed]:
        nonlocal child
        child, accepted = accepting.accept_following(context, offer)
        return (accepted,)

    try:
        offer = offering.offer(
            context,
            parent,
            request.to,
            request.task,
            grant=request.grant,
            parts=request.parts,
            key=request.key,
            following=following if request.accept else None,
        )
    except ConflictError as error:
        existing = _offered_before(context, parent, request, error)
        return _accept_existing(context, existing.handoff) if request.accept else existing
    if child is None:
        context.offers[offer.id] = offer
        return Offered(handoff=offer.id, state=State.OFFERED)
    context.runs[child.id] = child
    return Offered(handoff=offer.id, state=State.RUNNING, run=opened(child))


def _offered_before(context: Context, parent: ActiveRun, request: HandOff, error: ConflictError) -> Offered:
    """Return the same offer of before; raise the error if it is about something else."""
    if not offering.is_same_offer(error):
        raise error
    handoff = offering.handoff_id(
        parent, request.to, request.task, grant=request.grant, parts=request.parts, key=request.key
    )
    row = get_handoff(context.recorder.store, handoff)
    given = read_terms(get_receipt(context.recorder.store, row.parent, row.seq))
    asked = None if request.grant is None else (request.grant.may, request.grant.may_delegate)
    if row.to != request.to or asked != (None if given is None else (given.may, given.may_delegate)):
        detail = f"{handoff} was offered to {row.to} with another grant under this key: take another key"
        raise ConflictError(detail, code="handoff.already_offered", facts={"handoff": handoff})
    parent.history.children[handoff] = None
    return Offered(handoff=handoff, state=State(row.state))


def _accept_existing(context: Context, handoff: str) -> Offered:
    row = get_handoff(context.recorder.store, handoff)
    if row.state == State.COMPLETED:
        return Offered(handoff=handoff, state=State.COMPLETED, run=opened(accepting.replay(context, handoff)))
    # A repeated request: its attempt goes on.
    running = context.runs.get(row.run or "") if row.state == State.RUNNING else None
    return Offered(handoff=handoff, state=State.RUNNING, run=opened(running or accepting.accept(context, handoff)))


@hand_off.repeated
def _offered(context: Context, _: HandOff, receipts: Sequence[Signed]) -> Offered:
    initiated = receipt_of(receipts, "handoff.initiated")
    accepted = receipt_of(receipts, "handoff.accepted")
    if accepted is not None and isinstance(accepted.body, HandoffAccepted):  # alone, if the offer was there before
        run = opened_again(context, accepted)
        return Offered(handoff=accepted.body.handoff, state=State.RUNNING, run=run)
    if initiated is None or not isinstance(initiated.body, HandoffInitiated):
        raise NotFoundError("this request offered nothing")
    return Offered(handoff=initiated.body.handoff, state=State.OFFERED)


class SettleCall(InRun, frozen=True, kw_only=True):
    """Decide about a call in doubt."""

    call: str
    how: Settlement
    by: str | None = None
    reason: str = ""


class Settled(Value, frozen=True):
    """What was decided."""

    call: str
    how: Settlement


@act("POST /v1/runs/{run}/settle", roles=DECIDE)
def settle_run(context: Context, caller: Caller, request: SettleCall) -> Settled:
    """Decide about a call in doubt of an open run: make it again when it is asked for, or never."""
    run = context.find_run(caller.principal, request.run, request.epoch)
    by = caller.act_as(request.by)
    deciding.settle_call(context, run, request.call, request.how, by=by, reason=request.reason)
    return Settled(call=request.call, how=request.how)


@settle_run.repeated
def _settled(_: Context, request: SettleCall, __: Sequence[Signed]) -> Settled:
    return Settled(call=request.call, how=request.how)


class Close(InRun, frozen=True, kw_only=True):
    """End a run: its report, or the error that it ends with."""

    report: Report = Report()
    error: str | None = None


class Closed(Value, frozen=True):
    """How it ended."""

    outcome: Outcome


@act("POST /v1/runs/{run}/close", roles=WORK)
def close(context: Context, caller: Caller, request: Close) -> Closed:
    """End a run. `completed` is provisional, until it is verified. Offers that were not settled are withdrawn."""
    run = context.find_run(caller.principal, request.run, request.epoch)
    return Closed(outcome=close_run(context, run, request.report, request.error))


@close.repeated
def _closed(context: Context, request: Close, _: Sequence[Signed]) -> Closed:
    ended = read_run(context.recorder, request.run, is_replayed=True)
    return Closed(outcome=close_run(context, ended, request.report, request.error))
