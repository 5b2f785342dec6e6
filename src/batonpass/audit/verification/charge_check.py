"""Limits: counts the use again from signed receipts and compares it with the signed terms.

Calls are counted in the commit of their request, so their sum never exceeds a limit. Other units are known only after a
call, which may start while something is left. Two commits of the same moment may have either order. So only these
charges certainly came before a call: those in its own stream, and those that are older by more than clocks may differ.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from batonpass.errors import OverLimitError, UncountedError
from batonpass.guard.grants.grant_chain import SKEW
from batonpass.guard.grants.limit_accounts import account_of, most_of, most_with, permit_account
from batonpass.model.base.ids import CallId, StreamId
from batonpass.model.bodies.body import RunSpent, ToolCompleted, ToolRequested
from batonpass.model.bodies.tool_bodies import is_told_outside
from batonpass.model.grants.charge import Charge, Unit, is_revocation, whole_of
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.permit import Permit
from batonpass.model.ledger.receipt import Receipt

CHARGES: Final = "charges"
_LIMIT: Final = "limit"  # flag of a call that was made before anybody could stop it
_AFTER: Final = tuple(unit for unit in Unit if unit is not Unit.CALLS)
# Older charges certainly came before. They are summed up, so that the cost of a check does not grow with the tree.
_SETTLED: Final = timedelta(minutes=10)


class _Used(Struct):
    """The use of one account in one unit."""

    total: int = 0
    settled: int = 0
    recent: list[tuple[datetime, StreamId, int]] = field(default_factory=list)

    def add(self, receipt: Receipt, amount: int) -> None:
        self.total += amount
        self.recent.append((receipt.at, receipt.stream, amount))

    def surely(self, receipt: Receipt) -> int:
        """Return how much was certainly used when a receipt was recorded."""
        old = [one for one in self.recent if one[0] <= receipt.at - _SETTLED]
        if old:
            self.settled += sum(amount for _, _, amount in old)
            self.recent = [one for one in self.recent if one[0] > receipt.at - _SETTLED]
        # Two relays have two clocks, and a position is given after the commit. So of another stream, a charge counts as
        # earlier only if clocks cannot explain the difference; within a stream, the order is signed.
        return self.settled + sum(
            amount for at, stream, amount in self.recent if stream == receipt.stream or at <= receipt.at - SKEW
        )


class Charges:
    """Counts the charges of receipts. Raises `OverLimitError` and `UncountedError`."""

    def __init__(self) -> None:
        self._limits: dict[StreamId, Limits] = {}
        self._used: defaultdict[tuple[StreamId, Unit], _Used] = defaultdict(_Used)
        self._set_aside: dict[CallId, dict[tuple[StreamId, Unit], int]] = {}

    def know(self, terms: Terms) -> None:
        """Remember the limits of signed terms: in total, and for each permit."""
        account = account_of(terms)
        self._limits[account] = terms.limits
        for permit in (*terms.may.permits, *terms.may_delegate.permits):
            if permit.limits != UNLIMITED:
                self._limits[permit_account(account, permit)] = permit.limits

    def require_counted(
        self, receipt: Receipt, body: ToolRequested, hops: Sequence[tuple[Terms, tuple[Permit, ...]]]
    ) -> None:
        """Refuse a call that was not charged to a limit above it, or for which a limit had no room.

        `hops` are its terms, each with the permits that may have covered the call.
        """
        charged = {charge.account for charge in body.charges if charge.unit is Unit.CALLS and charge.amount > 0}
        for terms, permits in hops:
            account = account_of(terms)
            if terms.limits.calls is not None and account not in charged:
                raise UncountedError(
                    f"{terms.agent} may make {terms.limits.calls} calls, and this one is not counted", field=CHARGES
                )
            if (full := next(self._find_full(receipt, account, terms.limits), None)) is not None:
                raise OverLimitError(full, field=CHARGES)
            self._require_permit(receipt, account, permits, charged)

    def _require_permit(
        self, receipt: Receipt, account: StreamId, permits: tuple[Permit, ...], charged: set[StreamId]
    ) -> None:
        """Refuse a call unless one of the permits that may have covered it was charged and had room."""
        full = None
        for permit in permits:
            mine = permit_account(account, permit)
            full = next(self._find_full(receipt, mine, permit.limits), None)
            if full is None and (permit.limits.calls is None or mine in charged):
                return
        if full is not None:
            raise OverLimitError(full, field=CHARGES)
        if permits:
            raise UncountedError(f"the call is not counted where `{permits[0]}` is", field=CHARGES)

    def _find_full(self, receipt: Receipt, account: StreamId, limits: Limits) -> Iterator[str]:
        for unit in _AFTER:
            most = most_with(limits, unit)
            if most is not None and (account, unit) in self._used:
                used = self._used[account, unit].surely(receipt)
                if used > most:
                    yield f"{used} {unit} of {account} were used, and {limits} are given; nothing was left for the call"

    def take(
        self,
        receipt: Receipt,
        body: ToolRequested | ToolCompleted | RunSpent,
        line: tuple[StreamId, ...],
        chain: Sequence[Terms],
    ) -> None:
        """Count the charges of a receipt. Refuse it if they exceed a limit, or are less than the recorded use."""
        used = _used_by(body)
        for terms in chain:
            for unit, amount in used:
                if amount and getattr(terms.limits, unit) is not None:
                    _require_charged(body.charges, account_of(terms), unit, amount)
        for charge in body.charges:
            if whole_of(charge.account) not in line or is_revocation(charge.account):
                raise UncountedError(f"it is charged to {charge.account}, which its run is not under", field=CHARGES)
            if charge.amount < 0:
                self._give_back(body, charge)
            name = (charge.account, charge.unit)
            # Counted also if it was made outside of its limit: the calls after it share what is left.
            self._used[name].add(receipt, charge.amount)
            if not (isinstance(body, ToolRequested) and is_told_outside(body.flags, (_LIMIT,))):
                self._require_within(charge)
        if isinstance(body, ToolRequested):
            self._keep_aside(body)
        elif isinstance(body, ToolCompleted):
            self._set_aside.pop(body.call, None)

    def _require_within(self, charge: Charge) -> None:
        limits = self._limits.get(charge.account)
        if limits is None or charge.unit is not Unit.CALLS:
            return
        most, total = most_of(limits, charge.unit), self._used[charge.account, charge.unit].total
        if most is not None and total > most:
            raise OverLimitError(f"{charge.account} may make {most} calls, and this is call {total}", field=CHARGES)

    def _keep_aside(self, body: ToolRequested) -> None:
        aside: dict[tuple[StreamId, Unit], int] = {
            (one.account, one.unit): one.amount for one in body.charges if one.unit is not Unit.CALLS
        }
        if aside:
            self._set_aside[body.call] = aside

    def _give_back(self, body: ToolRequested | ToolCompleted | RunSpent, charge: Charge) -> None:
        """Refuse to give back more than was reserved for this call. The call itself stays counted."""
        if charge.account not in self._limits:
            return
        aside = self._set_aside.get(body.call, {}) if isinstance(body, ToolCompleted) else {}
        if -charge.amount > aside.get((charge.account, charge.unit), 0):
            raise OverLimitError(
                f"it gives back {-charge.amount} {charge.unit} of {charge.account} that were never set aside for it",
                field=CHARGES,
            )


def _used_by(body: ToolRequested | ToolCompleted | RunSpent) -> tuple[tuple[Unit, int], ...]:
    """Return the use that a receipt records, charged or not."""
    match body:
        case ToolCompleted():
            return ((Unit.SPEND, body.cost),)
        case RunSpent():
            return ((Unit.SPEND, body.cost), (Unit.TOKENS, body.tokens))
        case _:
            return ()


def _require_charged(charges: tuple[Charge, ...], account: StreamId, unit: Unit, amount: int) -> None:
    charged = sum(charge.amount for charge in charges if (charge.account, charge.unit) == (account, unit))
    if charged < amount:
        raise UncountedError(f"{amount} {unit} were used, and {charged} are charged to {account}", field=CHARGES)
