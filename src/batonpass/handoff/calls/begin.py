"""The beginning of a call: every check in one order, and a durable request before the call is made.

All doors use `begin_call`. That is why the same call gets the same answer and the same receipts everywhere.
"""

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
from batonpass.handoff.tools.tool_call import ToolCall
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
    """Check a call and record its request, so that it may be made; or return a result that is known already.

    Every door comes here: Python, async, programs, commands, native agents, hooks and proxies. A door adds its own
    contents with `beside`. `made` says that the call was made before anybody asked: it is checked in the same way, but
    nothing stops it, and the objections stand on its receipt. `noted` are further objections: codes and sentences.
    Raises a `CallError` or a `GrantError` if the call must not be made; the denial is recorded first. If the store
    cannot be written, an observed run goes on. A call that is in doubt is not repeated even then.
    """
    pending = PendingCall(desk=desk, holding=holding, call=call, declared=call.declared, beside=beside, made=made)
    pending.flags += noted
    pending.reasons += noted.values()
    # Before any check, because a refusal has to be recorded: its receipt names the call by this description.
    pending.identify()
    try:
        begun = _pass(pending)
    except BaseException:
        # Its number is free again. Under the next number, the same call would have another key, and neither a kept
        # result nor an approval would be found for it.
        pending.take_back()
        raise
    if isinstance(begun, Begun) and begun.looked:
        from batonpass.handoff.shell.call_intent import call_intent  # noqa: PLC0415 - most programs never look

        # As late as possible: whatever changes in the work tree from this look on may be the call's. The clock of the
        # call starts after it, so the look does not count as work of the tool.
        desk.files.begin(begun.call, desk.clock.now(), call_intent(call, begun.watched, desk.files.root))
        return replace(begun, began=time.perf_counter_ns())
    return begun


def _pass(pending: PendingCall) -> Begun | Replayed:
    """Run the checks one after the other. Each may refuse the call; the last step records it.

    If several checks would refuse a call, the order decides which reason the caller is told. First come the things
    that nobody may do, then the grant of this run, then its limits, and last the rules about this particular call.
    """
    require_open(pending)
    if pending.holding.replaying:
        return recall(pending)
    # First of all, and in observed runs too: whoever can write the record can also remove the trace of having done so.
    refuse_protected(pending)
    # Before earlier results: they are data as well, and a run whose grant was revoked gets no more of it.
    authorise(pending)
    # Before limits and gates: a call that an earlier attempt finished is neither counted nor held a second time.
    if (known := find_finished(pending)) is not None:
        return known
    # Another call on a target that an earlier attempt has changed is usually the same work in other words. A model that
    # starts over does not repeat itself exactly, so the key alone would not find it.
    check_changed_target(pending)
    # Only a look, which gives the better reason. Two calls can both find room here; the commit of the request counts
    # again, and refuses the second.
    check_limits(pending)
    check_constraints(pending)
    taint_from_files(pending)
    # The lock is held from reading the label until the receipt is written. So content that arrives meanwhile is
    # either in the label, or its receipt comes after this one.
    with pending.holding.taint.lock:
        find_taint(pending)
        pass_gates(pending)
        if pending.declared.credential is None:
            return find_cached(pending) or write_request(pending)
    # Without the lock: a provider of credentials may be slow. Content may arrive meanwhile, so taint and gates are
    # checked once more.
    credential = fetch_credential(pending)
    with pending.holding.taint.lock:
        find_taint(pending)
        pass_gates(pending)
        return find_cached(pending) or write_request(pending, credential)
