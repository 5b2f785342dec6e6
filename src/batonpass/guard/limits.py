"""Limits, as they are counted: in which account, how much of each unit there is, and when nothing is left.

The relay counts by this before a call is made, and the verifier counts again what is recorded.
"""

from decimal import Decimal
from hashlib import sha256
from typing import Final

from batonpass.model.charge import MILLION, Unit, part_of, whole_of
from batonpass.model.grant import Terms
from batonpass.model.ids import StreamId
from batonpass.model.limits import Limits
from batonpass.model.permit import Permit

_DIGITS: Final = 16
# Known before a call is made. All else is known after it: such a call is made as long as something is left.
_BEFORE: Final = frozenset({Unit.CALLS})


def account_of(terms: Terms) -> StreamId:
    """Return where what is used under some terms is counted."""
    return whole_of(terms.handoff or terms.root)


def permit_account(account: StreamId, permit: Permit) -> StreamId:
    """Return where the uses of one permit are counted."""
    return part_of(account, sha256(permit.text.encode()).hexdigest()[:_DIGITS])


def most_of(limits: Limits, unit: Unit) -> int | None:
    """Return how much may be used of a unit, as charges count it; None if it is not limited."""
    given = getattr(limits, unit)
    if given is None:
        return None
    return int(Decimal(given) * MILLION) if unit is Unit.SPEND else int(given)


def most_with(limits: Limits, unit: Unit) -> int | None:
    """Return how much may be used, what a request itself uses counted in, for its call to be made; None: any amount."""
    most = most_of(limits, unit)
    if most is None or unit in _BEFORE:
        return most
    return max(0, most - 1)
