"""What an earlier attempt did: its result is given again, its doubt is settled, its target is left alone."""

from typing import Any

from batonpass.errors import (
    CallHeldError,
    CallInDoubtError,
    CallReplayError,
    ContentErasedError,
    FencedError,
    InvalidValueError,
    StreamClosedError,
)
from batonpass.handoff.calls.pending_call import PendingCall, Replayed
from batonpass.handoff.history.past_calls import read_settlement
from batonpass.handoff.tools.json_values import give_back
from batonpass.model.base.ids import StreamId
from batonpass.model.bodies.body import Settlement
from batonpass.model.ledger.run import RunState
from batonpass.records.call import CallRecord

IN_DOUBT = "call.in-doubt"
TARGET_CHANGED = "target-changed"


def require_open(pending: PendingCall) -> None:
    """Refuse a run that is over, or that somebody else took over. Raises `StreamClosedError` and `FencedError`.

    A commit finds that out by itself. Only what comes from the record commits nothing, and so has to look.
    """
    holding = pending.holding
    if holding.replaying or holding.find_past(pending.key) is None:
        return
    with pending.desk.store.view() as view:
        stream = view.get_stream(StreamId(holding.id))
        if view.get_run(holding.id).state is not RunState.OPEN:
            raise StreamClosedError(stream.id)
    if holding.working.epoch not in {None, stream.epoch}:
        raise FencedError(stream.id, holding.working.epoch or 0, stream.epoch)


def recall(pending: PendingCall) -> Replayed:
    """Return what a finished run recorded of a call. Raises `CallReplayError` if it never made it."""
    known = find_finished(pending)
    if known is None:
        holding = pending.holding
        raise CallReplayError(pending.declared.name, str(holding.working.run.handoff or holding.id))
    return known


def find_finished(pending: PendingCall) -> Replayed | None:
    """Return what an earlier attempt got from this very call, or that somebody decided to go on without it.

    None if it is to be made. Raises `CallInDoubtError` while nobody knows whether it happened, and nobody settled that.
    """
    past = pending.holding.find_past(pending.key)
    if past is None:
        return None
    if past.is_finished:
        _keep(pending, past)
        return Replayed(_result(pending, past))
    if pending.declared.idempotent:
        return None
    settled = read_settlement(pending.desk.store, pending.holding.scope, past.id)
    if settled is Settlement.SKIP:
        _keep(pending, past)
        return Replayed(None)
    if settled is None and not pending.made:
        # Also where the run is only watched: nobody may find out by doing it twice.
        pending.deny(IN_DOUBT, CallInDoubtError(pending.declared.name, past.id))
    return None


def check_changed_target(pending: PendingCall) -> None:
    """Hold a call that would change what an earlier attempt changed by another call. Raises `CallHeldError`."""
    target = pending.target
    if target is None:
        return
    holding = pending.holding
    pending.target_key = pending.desk.secrets.digest(holding.root, b"target", target.encode())
    if holding.find_past(pending.key) is not None:
        return
    changed = holding.find_changed(pending.target_key)
    if changed is not None:
        pending.refuse(TARGET_CHANGED, CallHeldError(pending.declared.name, changed.id), would="would_hold")


def _keep(pending: PendingCall, past: CallRecord) -> None:
    """Remember a call whose effect an earlier attempt had: this attempt answers for it from now on."""
    pending.holding.kept.append(past.id)
    if (target := pending.target) is not None:
        pending.holding.changed.add(target)


def _result(pending: PendingCall, past: CallRecord) -> Any:  # noqa: ANN401 - a tool's own result
    if past.result is None:
        raise InvalidValueError("result", f"of {past.id} was not kept")
    with pending.desk.store.view() as view:
        stored = view.get_content(past.result.id)
    if stored.body is None:
        raise ContentErasedError(past.result.id)
    return give_back(stored.body, past.result.media_type, pending.declared.decode)
