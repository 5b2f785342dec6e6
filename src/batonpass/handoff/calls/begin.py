"""The one way of a call, from every door: judged in one order, and durable before it is made."""

import time
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from batonpass.handoff.calls.authority import authorise
from batonpass.handoff.calls.call_gates import pass_gates
from batonpass.handoff.calls.call_limits import check_limits
from batonpass.handoff.calls.constraints import check_constraints
from batonpass.handoff.calls.credential import fetch_credential
from batonpass.handoff.calls.past_result import check_changed_target, find_finished, recall, require_open
from batonpass.handoff.calls.pending_call import Begun, PendingCall, Replayed
from batonpass.handoff.calls.protected_call import refuse_protected
from batonpass.handoff.calls.request import write_request
from batonpass.handoff.calls.result_cache import find_cached
from batonpass.handoff.calls.taint_gate import find_taint
from batonpass.handoff.calls.tainted_files import taint_from_files
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.declaration import ToolCall
from batonpass.model.ledger.content import Content

_NOTHING: Final[Mapping[str, str]] = {}


def begin_call(
    desk: Desk,
    holding: Holding,
    call: ToolCall[Any],
    *,
    beside: tuple[Content, ...] = (),
    made: bool = False,
    noted: Mapping[str, str] = _NOTHING,
) -> Begun | Replayed:
    """Record that a call is about to be made, or return what it returned in an earlier attempt.

    Every door comes here: Python, async, programs, commands, native agents, hooks and proxies. A door adds contents of
    its own with `beside`. With `made` it says that the call was made already: it is judged as it would have been
    before, and what speaks against it is told on its receipt. `noted` says what else is wrong with it: codes, in words.
    Raises a `CallError` or a `GrantError` for a call that must not be made, once that is on record. Where nothing can
    be written, a run that is only watched goes on; but what may be done already is never done again.
    """
    pending = PendingCall(desk=desk, holding=holding, call=call, declared=call.declared, beside=beside, made=made)
    pending.flags += noted
    pending.reasons += noted.values()
    pending.identify()
    try:
        begun = _pass(pending)
    except BaseException:
        pending.take_back()
        raise
    if isinstance(begun, Begun) and begun.looked:
        from batonpass.handoff.shell.call_intent import call_intent  # noqa: PLC0415 - most programs never look

        desk.files.begin(begun.call, desk.clock.now(), call_intent(call, begun.watched, desk.files.root))
        return replace(begun, began=time.perf_counter_ns())
    return begun


def _pass(pending: PendingCall) -> Begun | Replayed:
    """Ask one question after the other; each may refuse the call, and the last one records it.

    The order decides what a caller is told where several things are wrong: first what nobody may do, then what this
    run may do, then what it has left, then what depends on this very call. It is the same for every door.
    """
    require_open(pending)
    if pending.holding.replaying:
        return recall(pending)
    refuse_protected(pending)
    authorise(pending)
    # Before limits and gates: what an earlier attempt did is neither counted nor held again.
    if (known := find_finished(pending)) is not None:
        return known
    check_changed_target(pending)
    check_limits(pending)
    check_constraints(pending)
    taint_from_files(pending)
    # Under the lock from the label to its receipt: what comes in meanwhile is in the label, or comes after it.
    with pending.holding.taint.lock:
        find_taint(pending)
        pass_gates(pending)
        if pending.declared.credential is None:
            return find_cached(pending) or write_request(pending)
    # Not under the lock: whoever gives credentials may take their time. What comes in meanwhile counts.
    credential = fetch_credential(pending)
    with pending.holding.taint.lock:
        find_taint(pending)
        pass_gates(pending)
        return find_cached(pending) or write_request(pending, credential)
