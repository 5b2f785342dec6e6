"""How much waits for somebody: the number beside the entry in the menu."""

from itertools import islice
from typing import Final

from batonpass.audit.meant_ids import find_waiting_calls
from batonpass.model.base.lifecycle import State
from batonpass.records.wait import find_wait
from batonpass.store.port import LedgerView

MOST_COUNTED: Final = 99


def count_waiting(view: LedgerView) -> int:
    """Return how many things are held or asked, and wait for somebody. More than 99 are counted as 100."""
    most = MOST_COUNTED + 1
    held = sum(1 for one in islice(view.find_held(), most) if find_wait(view, one) is None)
    calls = sum(1 for _ in islice(find_waiting_calls(view), most))
    asked = sum(1 for _ in view.find_handoffs(states=(State.ASKED,), limit=most))
    return min(most, held + calls + asked)
