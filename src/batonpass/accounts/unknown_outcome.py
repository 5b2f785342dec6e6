"""What is known of a call without an outcome, in the words that trail, page and tables share."""

from typing import Final

from batonpass.audit.short_ids import ending
from batonpass.model.bodies.body import Settlement
from batonpass.records.call import CallRecord

_SETTLED: Final = {
    Settlement.SKIP: "no outcome: taken as done",
    Settlement.REPEAT: "no outcome: to be made again",
    Settlement.LATE: "its outcome came late, and was accepted",
}


def unknown_in_brief(call: CallRecord) -> str:
    """Return the same in a few words, for a row of a table."""
    return "in doubt" if call.in_doubt else unknown_outcome(call)


def unknown_outcome(call: CallRecord) -> str:
    """Return what is known of a call without an outcome: whether one may still come, and what was decided if not."""
    if call.in_doubt:
        return "in doubt: requested, and nobody knows whether it happened"
    if call.settlement is not None:
        return _SETTLED[call.settlement]
    if call.again is not None:
        return f"no outcome: made again as {ending(call.again)}"
    # A call that only reads is never in doubt: whoever tries the task again makes it again.
    return "no outcome: its run is over, and it only reads" if call.is_over else "no outcome yet"
