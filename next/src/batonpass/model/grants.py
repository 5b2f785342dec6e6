"""Grants as values: what a program asks for, what is recorded, and what each hop of a lineage holds."""

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from batonpass.model.values import Count, Digest

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    Expiry: TypeAlias = datetime | timedelta | str | None
else:  # in JSON all three are texts, between which no decoder can choose: `expiry_at` reads them
    Expiry = Any


class Grant(Struct, frozen=True, kw_only=True):
    """What a program asks for a run: what it may use, what it may pass on, until when."""

    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    expires: Expiry = None


class Terms(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A grant as it is recorded, with the digest of the terms that it was narrowed from."""

    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    expires_at: Count | None = None
    parent: Digest | None = None


class Held(Struct, frozen=True):
    """Terms and the account that they were given to: a root run, or a handoff. Revoking is by account."""

    account: str
    agent: str
    terms: Terms
