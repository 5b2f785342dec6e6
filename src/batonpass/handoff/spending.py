"""What calls cost."""

import math
from decimal import Decimal
from typing import Any, Final

from batonpass.handoff.tools import ToolCall
from batonpass.model.checks import LARGEST_INTEGER

_MILLION: Final = 1_000_000


def cost_of(call: ToolCall[Any], value: object) -> int | None:
    """Return what a call cost, in millionths; None if nobody can tell. The call was made, whatever this finds."""
    if call.declared.cost is None:
        return 0
    try:
        return min(max(0, math.ceil(Decimal(call.declared.cost(value)) * _MILLION)), LARGEST_INTEGER)
    except Exception:  # noqa: BLE001 - a function of whoever declared the tool
        return None
