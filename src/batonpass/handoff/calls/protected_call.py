"""What no call may touch, asked first: the record, its keys, and what decides about calls."""

from typing import Final

from batonpass.errors import CallProtectedError
from batonpass.handoff.calls.pending_call import PendingCall
from batonpass.handoff.shell.call_reach import find_touched

PROTECTED: Final = "protected"


def refuse_protected(pending: PendingCall) -> None:
    """Refuse a call that would touch what is protected, also where its run is only watched.

    Whoever can change the record could make everything else here worthless. Raises `CallProtectedError`.
    """
    try:
        found = find_touched(pending.desk.protected, pending.call, enforced=pending.held_to_rules, looks=pending.looks)
        if found is None:
            return
        error = CallProtectedError(pending.declared.name, found.does, found.instead)
        if pending.made:
            pending.refuse(PROTECTED, error)
        else:
            pending.deny(PROTECTED, error)
    except Exception as failure:  # noqa: BLE001 - what a guard meets stops what is enforced
        pending.stop_unjudged(failure)
