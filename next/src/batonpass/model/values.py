"""The small values that receipts are made of. Checked once, where they are decoded."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from batonpass.model.ids import RunId

Count: TypeAlias = Annotated[int, Meta(ge=0, lt=2**53)]  # larger integers are not the same in every JSON
Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]  # `$` alone also stands before a newline
Key: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]  # a public key, or a keyed digest
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]  # PostgreSQL keeps no NUL
Mode: TypeAlias = Literal["observed", "enforced"]
Outcome: TypeAlias = Literal["completed", "failed"]
Settlement: TypeAlias = Literal["repeat", "skip"]

NAME_LENGTH: Final = 200


class RunHead(Struct, frozen=True, forbid_unknown_fields=True):
    """A run's last receipt, as another receipt names it."""

    run: RunId
    seq: Count
    head: Digest


class Effect(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a call changed in one file. The target is a keyed digest of its path; the lines are content."""

    target: Key
    before: Digest | None = None  # None: there was no file
    after: Digest | None = None


class Hunk(Struct, frozen=True):
    """Lines that took the place of others: `removed` lines from the one at `at` on (the first is 1)."""

    at: int
    removed: int
    added: tuple[str, ...]
