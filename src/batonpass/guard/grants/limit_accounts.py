"""How limits are counted: which account is charged, how much of each unit is allowed, and how much is left.

The relay counts this way before a call, and the verifier counts the recorded charges again.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Final

from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.grants.charge import MILLION, Charged, Unit, part_of, whole_of
from batonpass.model.grants.effective_grant import LimitLeft
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.limits import UNITS, Limits
from batonpass.model.grants.permit import Permit

_DIGITS: Final = 16
# Known before the call. All other units are known afterwards, so a call is made as long as anything is left.
_BEFORE: Final = frozenset({Unit.CALLS})
_COUNTED: Final = frozenset(Unit)  # counted by charges; time passes by itself


def account_of(terms: Terms) -> StreamId:
    """Return the account that is charged for calls under these terms."""
    return whole_of(terms.handoff or terms.root)


def permit_account(account: StreamId, permit: Permit) -> StreamId:
    """Return the account that is charged for uses of one permit."""
    # By its text and not by its place in the list: the verifier reads the same permit from the signed terms, and must
    # find the same account.
    return part_of(account, sha256(permit.text.encode()).hexdigest()[:_DIGITS])


def most_of(limits: Limits, unit: Unit) -> int | None:
    """Return the limit of a unit in the units of charges; None if there is none."""
    given = getattr(limits, unit)
    if given is None:
        return None
    return int(Decimal(given) * MILLION) if unit is Unit.SPEND else int(given)


def most_with(limits: Limits, unit: Unit) -> int | None:
    """Return the highest total, including the request's own charge, at which its call may be made; None: no limit.

    A unit that is known only after the call must have at least one left.
    """
    most = most_of(limits, unit)
    # Rows, bytes and cost of a call are known too late to refuse it. So the last call may go beyond its limit, and only
    # a limit with nothing left stops a call.
    if most is None or unit in _BEFORE:
        return most
    return max(0, most - 1)


def spelled_amount(unit: Unit | str, amount: int) -> int | str:
    """Return an amount as people write it: charges count `spend` in millionths."""
    return format((Decimal(amount) / MILLION).normalize(), "f") if unit == Unit.SPEND else amount


def find_left(
    limits: Limits,
    charged: Iterable[Charged],
    *,
    since: datetime | None = None,
    at: datetime | None = None,
    shared_with: AgentId | None = None,
    budget: bool = False,
) -> Iterator[LimitLeft]:
    """Yield for each limited unit how much is used and left. Time is included only if `since` and `at` are given."""
    used = {str(one.unit): one.used for one in charged}
    for name in UNITS:
        most = getattr(limits, name)
        if most is None or (name not in _COUNTED and (since is None or at is None)):
            continue
        if name in _COUNTED:
            # The total can be negative, when more was reserved than a call took in the end.
            spent, whole = max(0, used.get(name, 0)), most_of(limits, Unit(name)) or 0
            amounts = [spelled_amount(name, amount) for amount in (spent, max(0, whole - spent))]
        else:
            passed = max(0, int((at - since).total_seconds())) if at is not None and since is not None else 0
            amounts = [passed, max(0, int(most) - passed)]
        yield LimitLeft(unit=name, most=most, used=amounts[0], left=amounts[1], shared_with=shared_with, budget=budget)


def least_left(found: Iterable[LimitLeft]) -> Iterator[LimitLeft]:
    """Yield for each unit the limit with the least left, which is the one that stops a call.

    Of equal ones the first counts: it is the furthest up, and others may use it up as well.
    """
    least: dict[str, LimitLeft] = {}
    for one in found:
        known = least.get(one.unit)
        if known is None or Decimal(one.left) < Decimal(known.left):
            least[one.unit] = one
    return (least[unit] for unit in UNITS if unit in least)
