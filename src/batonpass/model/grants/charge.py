"""Charges: how much of a limit is used up, counted where everybody who shares the limit can see it."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from batonpass.model.base.checks import Form, require_instance, require_integer, require_member, require_unique
from batonpass.model.base.ids import HANDOFF, RUN, StreamId, require_id

# A grant that is revoked is a limit of nothing that is used up: whoever asks for room in it gets none, in the commit
# that would have used it.
REVOKED: Final = "revoked"
MILLION: Final = 1_000_000
_PART: Final = Form(rf"{REVOKED}|[0-9a-f]{{16}}", f"a part of an account: {REVOKED}, or 16 hexadecimal digits")
_BETWEEN: Final = "/"


class Unit(StrEnum):
    """What is counted. The text is signed, so it is forever."""

    CALLS = "calls"
    SPEND = "spend"  # in parts of a `MILLION`
    ROWS = "rows"
    BYTES = "bytes"
    TOKENS = "tokens"


class Charge(Struct, frozen=True, kw_only=True):
    """So much is used up of what one handoff, or one root, and everything below it may use."""

    account: StreamId  # a handoff, whichever attempt works on it, or a root run; or a part of one
    unit: Unit
    amount: int  # below zero where more was set aside than it took

    def __post_init__(self) -> None:
        require_account("account", self.account)
        require_member("unit", self.unit, Unit)
        require_integer("amount", self.amount, least=-(2**53 - 1))


class Within(Struct, frozen=True, kw_only=True):
    """A limit that an account may not go beyond with what is written now; else nothing of it is written."""

    account: StreamId
    unit: Unit
    most: int

    def __post_init__(self) -> None:
        require_account("account", self.account)
        require_member("unit", self.unit, Unit)
        require_integer("most", self.most)


class Charged(Struct, frozen=True, kw_only=True):
    """What is used up of an account in one unit."""

    account: StreamId
    unit: Unit
    used: int

    def __post_init__(self) -> None:
        require_account("account", self.account)
        require_member("unit", self.unit, Unit)
        require_integer("used", self.used, least=-(2**53 - 1))

    @property
    def id(self) -> str:
        """Return what names it among the derived rows."""
        return name_of(self.account, self.unit)


def name_of(account: StreamId, unit: Unit) -> str:
    """Return the one name of what is counted for an account."""
    return f"{account} {unit}"


def part_of(account: StreamId, part: str) -> StreamId:
    """Return the name of a part of an account, which is counted by itself: one permit, or that it is revoked."""
    return StreamId(f"{account}{_BETWEEN}{part}")


def whole_of(account: str) -> StreamId:
    """Return the account that a part belongs to; of one that is no part, itself."""
    return StreamId(account.partition(_BETWEEN)[0])


def is_revocation(account: str) -> bool:
    """Return whether an account counts that something is revoked."""
    return account.endswith(f"{_BETWEEN}{REVOKED}")


def require_account(field: str, account: str) -> StreamId:
    """Return the name of an account: a handoff, or a root run; or of a part of one."""
    whole, between, part = require_instance(field, account, str).partition(_BETWEEN)
    require_id(field, whole, HANDOFF if whole.startswith(HANDOFF) else RUN)
    if between:
        _PART.require(field, part)
    return StreamId(account)


def require_charges(charges: tuple[Charge, ...]) -> None:
    """Refuse a list of charges that names one account and unit twice."""
    if type(charges) is tuple and not charges:
        return
    require_instance("charges", charges, tuple)
    for charge in charges:
        require_instance("charges", charge, Charge)
    require_unique("charges", [name_of(charge.account, charge.unit) for charge in charges])
