"""Charges: how much of a limit was used, counted where everybody who shares the limit sees it."""

from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from msgspec import Struct

from batonpass.model.base.checked_value import FieldCheck, each_by
from batonpass.model.base.checks import Form, require_instance, require_integer, require_member
from batonpass.model.base.ids import HANDOFF, RUN, StreamId, require_id

# A revoked grant is an account with a limit of zero that is already charged. Every write under the grant needs room in
# that account, so it fails in its own commit, without a separate check that could come too early.
REVOKED: Final = "revoked"
MILLION: Final = 1_000_000
_PART: Final = Form(rf"{REVOKED}|[0-9a-f]{{16}}", f"a part of an account: {REVOKED}, or 16 hexadecimal digits")
_BETWEEN: Final = "/"


class Unit(StrEnum):
    """The unit of a limit. The text is signed, so it is forever."""

    CALLS = "calls"
    SPEND = "spend"  # in millionths, see `MILLION`
    ROWS = "rows"
    BYTES = "bytes"
    TOKENS = "tokens"


class Charge(Struct, frozen=True, kw_only=True):
    """An amount that one call uses of an account's limit.

    The account is shared by the handoff, or the root, and everything below it.
    """

    account: StreamId  # a handoff with all its attempts, or a root run; or a part of one
    unit: Unit
    amount: int  # negative if more was set aside than was used

    def __post_init__(self) -> None:
        require_account("account", self.account)
        require_member("unit", self.unit, Unit)
        require_integer("amount", self.amount, least=-(2**53 - 1))


class Within(Struct, frozen=True, kw_only=True):
    """A limit of an account. A write that would exceed it fails as a whole."""

    account: StreamId
    unit: Unit
    most: int

    def __post_init__(self) -> None:
        require_account("account", self.account)
        require_member("unit", self.unit, Unit)
        require_integer("most", self.most)


class Charged(Struct, frozen=True, kw_only=True):
    """How much of an account was used in one unit."""

    account: StreamId
    unit: Unit
    used: int

    def __post_init__(self) -> None:
        require_account("account", self.account)
        require_member("unit", self.unit, Unit)
        require_integer("used", self.used, least=-(2**53 - 1))

    @property
    def id(self) -> str:
        """Return the name of its row."""
        return name_of(self.account, self.unit)


def name_of(account: StreamId, unit: Unit) -> str:
    """Return the one name of an account's counter for a unit."""
    return f"{account} {unit}"


Charges: TypeAlias = Annotated[
    tuple[Charge, ...], FieldCheck(each_by(Charge, lambda charge: name_of(charge.account, charge.unit)))
]


def part_of(account: StreamId, part: str) -> StreamId:
    """Return the name of a part of an account that is counted separately: one permit, or the revocation."""
    return StreamId(f"{account}{_BETWEEN}{part}")


def whole_of(account: str) -> StreamId:
    """Return the account that a part belongs to; an account that is no part is returned as it is."""
    return StreamId(account.partition(_BETWEEN)[0])


def is_revocation(account: str) -> bool:
    """Return whether an account counts a revocation."""
    return account.endswith(f"{_BETWEEN}{REVOKED}")


def require_account(field: str, account: str) -> StreamId:
    """Return account if it names a handoff, a root run, or a part of one. Raises `InvalidValueError`."""
    whole, between, part = require_instance(field, account, str).partition(_BETWEEN)
    require_id(field, whole, HANDOFF if whole.startswith(HANDOFF) else RUN)
    if between:
        _PART.require(field, part)
    return StreamId(account)
