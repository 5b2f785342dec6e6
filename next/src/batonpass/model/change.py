"""What one receipt expects of the rows, and what it makes of them, as one value. Nothing is read to make it.

`change_of` is the only place that knows. Both stores compare and set by it in the commit, and the verifier folds all
receipts with it: so what verification would refuse cannot be written, and a rule stands once.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import ConflictError
from batonpass.model.bodies import (
    Body,
    GrantRevoked,
    HandoffAccepted,
    HandoffCancelled,
    HandoffCompleted,
    HandoffEnded,
    HandoffFailed,
    HandoffInitiated,
    HandoffRetried,
    KeyEnrolled,
    RunClosed,
    RunRekeyed,
    RunStarted,
    ToolCompleted,
    ToolEnded,
    ToolFailed,
    ToolLateResult,
    ToolRequested,
    ToolSettled,
    public_kind,
)
from batonpass.model.lifecycle import TRANSITIONS, Event, RunState, State
from batonpass.model.receipt import Signed
from batonpass.model.values import RunHead


class Change(Struct, kw_only=True):
    """What a receipt expects and makes. `None` is: not asked, or as it was. Lists are words with spaces between."""

    # The stream: its compare-and-set, or its first row.
    stream: str
    seq: int
    previous: str
    epoch: int
    head: str
    at: int
    state: str
    recorder: str
    from_epoch: int
    from_recorder: str | None
    root: str | None = None
    agent: str | None = None
    principal: str | None = None
    handoff: str | None = None
    attempt: int | None = None
    # The ledger that it hangs from, and whether it may be the first receipt of all.
    genesis: str | None = None
    founds: int = 0
    # The handoff that it offers or moves.
    moves: str | None = None
    from_states: str | None = None  # None: there must be no such handoff yet
    from_attempt: int | None = None
    from_run: str | None = None
    from_last: str | None = None
    from_parent: str | None = None
    from_agent: str | None = None
    to_state: str | None = None
    to_attempt: int | None = None
    to_run: str | None = None
    to_last: str | None = None
    to_agent: str | None = None
    # The run that it ends, at exactly this head.
    fenced: str | None = None
    fenced_seq: int | None = None
    fenced_head: str | None = None
    fenced_state: str | None = None
    # The run that withdraws, in the epoch in which it held its own stream.
    holder: str | None = None
    holder_epoch: int | None = None
    # The call that it opens, or closes; and a run that has to be an attempt at the handoff.
    opens_call: str | None = None
    call_key: str | None = None
    closes_call: str | None = None
    settles_call: str | None = None
    call_run: str | None = None
    attempt_run: str | None = None
    # The request that caused it, grants that it needs or ends, and the files that it touched.
    request: str | None = None
    request_part: str | None = None
    fingerprint: str | None = None
    charges: str | None = None
    revokes: str | None = None
    touches: str | None = None


def _states_before(event: Event) -> str:
    return " ".join(old for old, by in TRANSITIONS if by is event)


_BEFORE_ACCEPT: Final = _states_before(Event.ACCEPT)
_BEFORE_END: Final = _states_before(Event.COMPLETE)
_BEFORE_RETRY: Final = _states_before(Event.RETRY)
_ANY_STATE: Final = " ".join(State)
_BEGINNINGS: Final[dict[type[Body], str]] = {KeyEnrolled: "relay_", RunStarted: "run_", HandoffAccepted: "run_"}


def change_of(signed: Signed) -> Change:
    """Return what a receipt expects and makes. Raises `ConflictError` if its kind has no place there in a stream."""
    receipt = signed.receipt
    begins = _BEGINNINGS.get(type(receipt.body))
    if begins is None:  # a handoff's stream begins with whatever another does about it first
        is_there = receipt.seq > 1 or signed.stream.startswith("handoff_")
    else:
        is_there = receipt.seq == 1 and signed.stream.startswith(begins)
    if not is_there:
        detail = f"{signed.stream} has no {receipt.kind} at {receipt.seq}"
        raise ConflictError(detail, code="ledger.precondition_failed")
    change = Change(
        stream=signed.stream,
        seq=receipt.seq,
        previous=signed.previous,
        epoch=receipt.epoch,
        head=signed.digest,
        at=receipt.at,
        state=RunState.OPEN,
        recorder=receipt.recorder,
        from_epoch=receipt.epoch,
        from_recorder=receipt.recorder,
        root=receipt.root,
    )
    if receipt.request is not None:
        change.request, change.fingerprint = receipt.request, receipt.fingerprint
        change.request_part = public_kind(receipt.kind, receipt.body)
    rule = _RULES.get(type(receipt.body))
    if rule is not None:
        rule(receipt.body, change, signed)
    return change


def _found(_: KeyEnrolled, change: Change, signed: Signed) -> None:
    change.genesis, change.founds = signed.previous, 1


def _start(body: RunStarted, change: Change, signed: Signed) -> None:
    change.genesis = signed.previous
    change.agent, change.principal = body.agent, body.principal


def _rekey(_: RunRekeyed, change: Change, signed: Signed) -> None:
    # The only receipt that raises an epoch, and that another relay may write.
    change.from_epoch, change.from_recorder = signed.receipt.epoch - 1, None


def _close(body: RunClosed, change: Change, _: Signed) -> None:
    change.state = body.outcome


def _offer(body: HandoffInitiated, change: Change, signed: Signed) -> None:
    change.moves, change.to_agent, change.to_state, change.to_last = body.handoff, body.to, body.state, signed.digest


def _accept(body: HandoffAccepted, change: Change, signed: Signed) -> None:
    # The state alone would not tell: offered, accepted and retried it is offered as before. What it hangs from tells.
    change.agent, change.handoff, change.attempt = body.agent, body.handoff, body.attempt
    change.moves, change.from_states, change.to_state = body.handoff, _BEFORE_ACCEPT, State.RUNNING
    change.from_attempt, change.from_last = body.attempt - 1, signed.previous
    change.from_parent, change.from_agent = body.parent, body.agent
    change.to_attempt, change.to_run = body.attempt, signed.stream


def _end(body: HandoffEnded, change: Change, signed: Signed) -> None:
    ended = RunState.FAILED if isinstance(body, HandoffFailed) else RunState.COMPLETED
    change.state = change.to_state = ended
    change.moves, change.from_states, change.from_attempt = body.handoff, _BEFORE_END, body.attempt
    change.from_run, change.from_parent = signed.stream, body.parent


def _retry(body: HandoffRetried, change: Change, signed: Signed) -> None:
    _act_on_handoff(body.handoff, change, signed)
    change.from_attempt, change.to_state = body.attempt, State.OFFERED
    change.from_states = _BEFORE_RETRY
    _fence(body.ended_run, change, RunState.FENCED)


def _cancel(body: HandoffCancelled, change: Change, signed: Signed) -> None:
    _act_on_handoff(body.handoff, change, signed)
    change.from_attempt, change.to_state = body.attempt, State.CANCELLED
    change.from_states = State.OFFERED if body.ended_run is None else State.RUNNING
    change.holder, change.holder_epoch = body.holder, body.holder_epoch
    if change.request is not None:
        change.request_part = f"{change.request_part} {body.handoff}"  # one act may withdraw several
    if body.ended_run is not None:
        _fence(body.ended_run, change, RunState.CANCELLED)


def _act_on_handoff(handoff: str, change: Change, signed: Signed) -> None:
    """Let a receipt of a handoff's own stream follow the last one about it. Any relay may write there."""
    change.moves, change.from_states, change.from_recorder = handoff, _ANY_STATE, None
    change.from_last, change.to_last = signed.previous, signed.digest


def _fence(ended: RunHead, change: Change, state: RunState) -> None:
    # Exactly this head: a process that only seemed dead may have written since, and what it wrote would hang from
    # nothing that the next attempt has read.
    change.from_run = change.fenced = ended.run
    change.fenced_seq, change.fenced_head, change.fenced_state = ended.seq, ended.head, state


def _request_call(body: ToolRequested, change: Change, signed: Signed) -> None:
    change.opens_call, change.call_key, change.call_run = body.call, body.key, signed.stream
    if body.charges:
        change.charges = " ".join(body.charges)


def _end_call(body: ToolEnded, change: Change, signed: Signed) -> None:
    change.closes_call, change.call_run = body.call, signed.stream
    if body.effects:
        change.touches = " ".join(dict.fromkeys(effect.target for effect in body.effects))


def _note_late(body: ToolLateResult, change: Change, signed: Signed) -> None:
    _act_on_handoff(body.handoff, change, signed)
    change.attempt_run = body.run
    if body.effects:
        change.touches = " ".join(dict.fromkeys(effect.target for effect in body.effects))


def _settle(body: ToolSettled, change: Change, signed: Signed) -> None:
    # Whether it is open or not: a call that was made, and of which no result could be kept, is in doubt as well.
    change.settles_call, change.call_run = body.call, body.run
    if signed.stream != body.run:
        _act_on_handoff(signed.stream, change, signed)
        change.attempt_run = body.run
    if change.request is not None:
        change.request_part = f"{change.request_part} {body.call}"  # one act may settle several


def _revoke(body: GrantRevoked, change: Change, _: Signed) -> None:
    change.revokes = body.account


# A kind that is not here only goes on with its stream.
_RULES: Final[dict[type[Body], Callable[[Any, Change, Signed], None]]] = {
    KeyEnrolled: _found,
    RunStarted: _start,
    RunRekeyed: _rekey,
    RunClosed: _close,
    HandoffInitiated: _offer,
    HandoffAccepted: _accept,
    HandoffCompleted: _end,
    HandoffFailed: _end,
    HandoffRetried: _retry,
    HandoffCancelled: _cancel,
    ToolRequested: _request_call,
    ToolCompleted: _end_call,
    ToolFailed: _end_call,
    ToolLateResult: _note_late,
    ToolSettled: _settle,
    GrantRevoked: _revoke,
}
