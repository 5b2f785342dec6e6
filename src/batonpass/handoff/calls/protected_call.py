"""Protected files, checked before everything else: the ledger, its keys, and the files that decide about calls."""

from typing import Final

from batonpass.errors import CallProtectedError
from batonpass.handoff.calls.pending_call import PendingCall
from batonpass.handoff.shell.call_reach import find_touched

PROTECTED: Final = "protected"


def refuse_protected(pending: PendingCall) -> None:
    """Deny a call that would touch a protected file, in an observed run too. Raises `CallProtectedError`.

    If an agent could change the ledger or its keys, no other check would be worth anything.
    """
    try:
        found = find_touched(pending.desk.protected, pending.call, enforced=pending.held_to_rules, looks=pending.looks)
        if found is None:
            return
        error = CallProtectedError(pending.declared.name, found.does, found.instead)
        # A call that was made before anybody asked cannot be denied any more. It is recorded as made, with the
        # objection (ADR 50).
        if pending.made:
            pending.refuse(PROTECTED, error)
        else:
            pending.deny(PROTECTED, error)
    except Exception as failure:  # noqa: BLE001 - any error of a guard stops an enforced call
        pending.stop_unjudged(failure)
