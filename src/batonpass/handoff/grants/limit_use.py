"""Limits: each call is charged with its request, by everybody who shares the limit, and never beyond it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct, field

from batonpass.errors import (
    BudgetExhaustedError,
    CallError,
    ConstraintViolatedError,
    GrantError,
    GrantRevokedError,
)
from batonpass.guard.grants.limit_accounts import most_with, permit_account
from batonpass.handoff.runtime.bounds import Bounds, LimitAccount
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.ids import StreamId
from batonpass.model.grants.charge import MILLION, REVOKED, Charge, Unit, Within, is_revocation, part_of, whole_of
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.permit import Permit
from batonpass.store.port import LedgerView

# The rules that deny a call without room: for the budget of a brief, and for the limit of a grant.
BUDGET: Final = "budget"
LIMIT: Final = "limit"


class Counted(Struct, frozen=True):
    """An account, or one permit of it, that a call is charged to, with its limits."""

    account: StreamId
    limits: Limits


# How much was used, by account and unit.
Used: TypeAlias = Mapping[tuple[StreamId, Unit], int]


class Counting(Struct):
    """The accounts that one call is charged to: those above it, and for each hop one permit that has room."""

    accounts: tuple[LimitAccount, ...] = ()
    line: tuple[StreamId, ...] = ()  # the accounts that may be revoked
    permits: tuple[tuple[StreamId, tuple[Permit, ...]], ...] = ()  # by hop: all permits that allow the call
    full: set[StreamId] = field(default_factory=set)  # permits without room
    _known: tuple[object, int, tuple[Counted, ...]] | None = None  # cached: permits, number of full ones, result

    def counted(self) -> tuple[Counted, ...]:
        """Return the accounts that the call is charged to now, each once."""
        if not self.accounts and not self.permits:
            return ()
        if self._known is not None and self._known[0] is self.permits and self._known[1] == len(self.full):
            return self._known[2]
        found: list[Counted] = []
        for limited in self.accounts:
            found.append(Counted(limited.id, limited.limits))  # noqa: PERF401 - a comprehension is a call
        chosen = self.chosen() if self.full else None
        for number, (account, permits) in enumerate(self.permits):
            permit = permits[0] if chosen is None else chosen[number]
            if permit.limits is not UNLIMITED and permit.limits != UNLIMITED:
                found.append(Counted(permit_account(account, permit), permit.limits))
        self._known = self.permits, len(self.full), tuple(found)
        return self._known[2]

    def chosen(self) -> tuple[Permit, ...]:
        """Return the permit of each hop, from the first on, that allows the call now."""
        if not self.full:
            return tuple([permits[0] for _, permits in self.permits])
        return tuple(
            next((one for one in permits if permit_account(account, one) not in self.full), permits[-1])
            for account, permits in self.permits
        )

    def watched(self) -> set[StreamId]:
        """Return all accounts that may decide about the call."""
        watched: set[StreamId] = set()
        for limited in self.accounts:
            watched.add(limited.id)
        for account, permits in self.permits:
            for permit in permits:
                if permit.limits != UNLIMITED:
                    watched.add(permit_account(account, permit))
        for limit in revocations(self.line):
            watched.add(limit.account)
        return watched

    def within(self) -> tuple[Within, ...]:
        """Return the conditions for recording the call: nothing above it is revoked, and every account has room."""
        counted = self.counted()
        if not counted:
            return revocations(self.line)
        return (*revocations(self.line), *(limit for one in counted for limit in _within(one)))

    def has_other(self, refused: BudgetExhaustedError) -> bool:
        """Note that a permit is full. Return whether another permit of its hop may have room, to be tried next."""
        account = StreamId(refused.account)
        for hop, permits in self.permits:
            mine = [permit_account(hop, permit) for permit in permits]
            if account in mine:
                self.full.add(account)
                return not self.full.issuperset(mine)
        return False


@lru_cache(maxsize=1024)  # a run asks this for each of its calls
def revocations(line: tuple[StreamId, ...]) -> tuple[Within, ...]:
    """Return the conditions under which nothing in a line of accounts is revoked."""
    # A revocation is a charge on an account where 0 is allowed. So the store refuses a call under a revoked grant in
    # the same step in which it checks limits, and no call can slip in between.
    return tuple([Within(account=part_of(account, REVOKED), unit=Unit.CALLS, most=0) for account in line])


def require_unrevoked(view: LedgerView, bounds: Bounds) -> None:
    """Refuse an act under a revoked grant. Raises `GrantRevokedError`."""
    for account in bounds.line:
        if any(view.find_charged([part_of(account, REVOKED)])):
            raise revoked(bounds, account)


def find_revoked(bounds: Bounds, counting: Counting, used: Used) -> GrantRevokedError | None:
    """Return the error for a call whose grant, or one above it, was revoked; None if none was."""
    for account, limit in zip(counting.line, revocations(counting.line), strict=True) if used else ():
        if used.get((limit.account, Unit.CALLS)):
            return revoked(bounds, account)
    return None


def before_call(counted: Sequence[Counted]) -> tuple[Charge, ...]:
    """Return the charges of a request."""
    if not counted:
        return ()
    return _charges([(one.account, Unit.CALLS, 1) for one in counted if one.limits.calls is not None])


def after_call(counted: Sequence[Counted], *, cost: int, rows: int, size: int) -> tuple[Charge, ...]:
    """Return the charges of an outcome, in the units that have a limit."""
    if not counted:
        return ()
    return used_up(counted, {Unit.SPEND: cost, Unit.ROWS: rows, Unit.BYTES: size})


def used_up(counted: Iterable[Counted], amounts: Mapping[Unit, int]) -> tuple[Charge, ...]:
    """Return these amounts as charges on each account that has a limit for them."""
    return _charges(
        [
            (one.account, unit, amount)
            for one in counted
            for unit, amount in amounts.items()
            if amount and getattr(one.limits, unit) is not None
        ]
    )


def read_used(desk: Desk, counting: Counting) -> Used:
    """Return the use of every account of a call, including permits that it may fall back to.

    Nothing is read if the call is charged to nothing.
    """
    accounts = counting.watched()
    if not accounts:
        return {}
    with desk.store.view() as view:
        return {(one.account, one.unit): one.used for one in view.find_charged(accounts)}


def find_overspent(counting: Counting, used: Used, *, calls: bool = True) -> Iterator[BudgetExhaustedError]:
    """Yield an error for each account without room, revocations first. By default, one more call is counted."""
    within = counting.within()
    if not within:
        return
    wanted = before_call(counting.counted()) if calls else ()
    charged = {(charge.account, charge.unit): charge.amount for charge in wanted}
    for limit in within:
        name = (limit.account, limit.unit)
        then = used.get(name, 0) + charged.get(name, 0)
        if then > limit.most:
            yield BudgetExhaustedError(account=limit.account, unit=limit.unit, used=then, most=limit.most)


def find_overdue(accounts: Iterable[LimitAccount], at: datetime) -> Iterator[tuple[str, ConstraintViolatedError]]:
    """Yield the accounts whose time is over, each with the rule and the error."""
    for account in accounts:
        elapsed = (at - account.since).total_seconds()
        if account.limits.seconds is not None and elapsed >= account.limits.seconds:
            sentence = f"at most {account.limits.seconds} seconds"
            yield _rule(account), ConstraintViolatedError(sentence, f"{elapsed:.0f} have passed")


def explain_spent(bounds: Bounds, refused: BudgetExhaustedError) -> tuple[str, CallError | GrantError]:
    """Return the rule and the error for a call that the store refused for lack of room."""
    if is_revocation(refused.account):
        return "grant", revoked(bounds, whole_of(refused.account))
    rules = [_rule(account) for account in bounds.accounts if account.id == refused.account]
    return (BUDGET if BUDGET in rules else LIMIT), _overspent(Unit(refused.unit), refused.used, refused.most)


def _rule(account: LimitAccount) -> str:
    return BUDGET if account.budget else LIMIT


def revoked(bounds: Bounds, account: StreamId) -> GrantRevokedError:
    """Return the error for a run under a revoked grant."""
    own = bounds.line and bounds.line[-1] == account
    what = "the grant" if own else f"the grant of {account}, from which this one hangs,"
    return GrantRevokedError(f"{what} was revoked; stop, and say what is done and what is not")


def _charges(wanted: list[tuple[StreamId, Unit, int]]) -> tuple[Charge, ...]:
    if not wanted:
        return ()
    # A grant and a budget may limit the same handoff. A use of it is charged once.
    unique = {(account, unit): amount for account, unit, amount in wanted}
    return tuple(Charge(account=account, unit=unit, amount=amount) for (account, unit), amount in unique.items())


def _within(counted: Counted) -> tuple[Within, ...]:
    return tuple(
        Within(account=counted.account, unit=unit, most=most)
        for unit in Unit
        if (most := most_with(counted.limits, unit)) is not None
    )


def _overspent(unit: Unit, used: int, most: int) -> ConstraintViolatedError:
    if unit is Unit.CALLS:
        return ConstraintViolatedError(f"at most {most} calls", f"this is call {used}")
    shown = [Decimal(amount) / MILLION if unit is Unit.SPEND else amount for amount in (most + 1, used)]
    return ConstraintViolatedError(f"at most {shown[0]} {unit}", f"{shown[1]} are used")
