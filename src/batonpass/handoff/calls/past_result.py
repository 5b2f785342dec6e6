"""Calls of earlier attempts: a finished one is not made again, one in doubt stops, and its target is protected.

Without this, a retry would do everything a second time.
"""

from typing import Any

from msgspec.structs import replace

from batonpass.errors import (
    CallHeldError,
    CallInDoubtError,
    CallReplayError,
    ContentErasedError,
    DeadlinePassedError,
    FencedError,
    InvalidValueError,
    StreamClosedError,
)
from batonpass.handoff.calls.pending_call import PendingCall, Replayed
from batonpass.handoff.history.past_calls import read_settlement
from batonpass.handoff.runtime.deadlines import is_out_of_time
from batonpass.handoff.tools.json_values import give_back
from batonpass.model.base.ids import CallId, StreamId
from batonpass.model.bodies.body import Settlement
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.run import RunState
from batonpass.records.call import CallRecord

DEADLINE = "deadline"
IN_DOUBT = "call.in-doubt"
TARGET_CHANGED = "target-changed"


def require_open(pending: PendingCall) -> None:
    """Refuse a run that is over, out of time or was taken over.

    Raises `StreamClosedError`, `DeadlinePassedError` and `FencedError`.

    A commit finds that out by itself. But a result from an earlier attempt is returned without a commit, so this looks.
    """
    holding = pending.holding
    baton = holding.baton
    if baton is not None and baton.deadline is not None and is_out_of_time(pending.desk, holding):
        late = DeadlinePassedError(pending.declared.name, baton.handoff, f"{baton.deadline:%Y-%m-%d %H:%M:%S} UTC")
        if not pending.made:
            pending.deny(DEADLINE, late)
        pending.flags.append(f"would_deny.{DEADLINE}")
        pending.reasons.append(str(late))
    # Only a kept result can leave without a commit. For every other call, the commit of its request finds out that the
    # run is over, and a view here would be a second look.
    if holding.replaying or holding.find_past(pending.key) is None:
        return
    with pending.desk.store.view() as view:
        stream = view.get_stream(StreamId(holding.id))
        if view.get_run(holding.id).state is not RunState.OPEN:
            raise StreamClosedError(stream.id)
    if holding.working.epoch not in {None, stream.epoch}:
        raise FencedError(stream.id, holding.working.epoch or 0, stream.epoch)


def recall(pending: PendingCall) -> Replayed:
    """Return the recorded result of a call of a finished run. Raises `CallReplayError` if it never made that call."""
    known = find_finished(pending)
    if known is None:
        holding = pending.holding
        raise CallReplayError(pending.declared.name, str(holding.working.run.handoff or holding.id))
    return known


def find_finished(pending: PendingCall) -> Replayed | None:
    """Return the result that an earlier attempt got from this call, or an empty one if somebody settled to skip it.

    None if the call is to be made. Raises `CallInDoubtError` if the call is in doubt and nobody has settled it.
    """
    past = pending.holding.find_past(pending.key)
    if past is None:
        return None
    if past.is_finished:
        _keep(pending, past)
        return Replayed(_result(pending, past.result, past.id))
    # In doubt, but safe to repeat: the tool gets the same key and recognises the call.
    if pending.declared.idempotent:
        return None
    settled = read_settlement(pending.desk.store, pending.holding.scope, past.id)
    if settled is Settlement.SKIP:
        _keep(pending, past)
        return Replayed(None)
    if settled is Settlement.LATE:
        _keep(pending, past)
        return Replayed(_result(pending, past.late_result, past.id))
    if settled is None and not pending.made:
        # In an observed run too: making the call a second time is no way to find out whether it happened.
        pending.deny(IN_DOUBT, CallInDoubtError(pending.declared.name, past.id))
    return None


def recognise(pending: PendingCall) -> None:
    """Note that the caller has the result of this call already, from an earlier process, and goes on after it.

    The call is kept, and an identical call that comes later is another one. Nothing happens if it was not finished.
    """
    pending.identify()
    holding = pending.holding
    past = holding.find_past(pending.key)
    if past is None or not past.is_finished:
        pending.take_back()
        return
    _keep(pending, past)
    left = tuple(call for call in holding.resumption.finished if call.id != past.id)
    holding.resumption = replace(holding.resumption, finished=left)


def check_changed_target(pending: PendingCall) -> None:
    """Refuse a call on a target that another call of an earlier attempt has changed. Raises `CallHeldError`."""
    target = pending.target
    if target is None:
        return
    holding = pending.holding
    pending.target_key = pending.desk.secrets.digest(holding.root, b"target", target.encode())
    # It may have been this very call that changed the target: it is in doubt, and is safe or settled to be repeated.
    if holding.find_past(pending.key) is not None:
        return
    changed = holding.find_changed(pending.target_key)
    if changed is not None:
        pending.refuse(TARGET_CHANGED, CallHeldError(pending.declared.name, changed.id), would="would_hold")


def _keep(pending: PendingCall, past: CallRecord) -> None:
    """Remember a kept call: from now on, its effect counts as one of this attempt."""
    pending.holding.kept.append(past.id)
    # Then the close of the run finds out who changed it without reading the calls of earlier attempts.
    if (target := pending.target) is not None:
        pending.holding.changed.add(target)


def _result(pending: PendingCall, result: ContentRef | None, of: CallId) -> Any:  # noqa: ANN401 - a tool's own result
    if result is None:
        raise InvalidValueError("result", f"of {of} was not kept")
    with pending.desk.store.view() as view:
        stored = view.get_content(result.id)
    if stored.body is None:
        raise ContentErasedError(result.id)
    return give_back(stored.body, result.media_type, pending.declared.decode)
