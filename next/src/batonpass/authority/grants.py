"""What grants allow: narrowing at each hop, and every hop asked again at each call. Pure.

A pattern is `action:segment/segment`; `*` is one segment, and `**` at the end is one or more. There are no regular
expressions, because nobody can tell whether one contains another. Nothing is repaired: a pattern or a permission that
could be read in two ways is refused.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from unicodedata import category, is_normalized

from msgspec import Struct

from batonpass.errors import GrantExceededError, InvalidValueError
from batonpass.model.grants import Expiry, Held, Terms
from batonpass.wire.canonical import digest, encode

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MOST_DIGITS: Final = 9
_END_OF_TIME: Final = 2**53


class Refusal(Struct, frozen=True):
    """Why a call is not allowed."""

    rule: Literal["grant.exceeded", "grant.expired", "grant.revoked", "value.invalid"]
    reason: str


def narrow(terms: Terms, *, may: Sequence[str], may_delegate: Sequence[str], expires_at: int | None = None) -> Terms:
    """Return the terms that a child may hold. Raises `GrantExceededError` if they are wider than may be delegated.

    The answer is an explanation, not the boundary: `find_refusal` asks every hop again at every call, so terms that
    were widened by force have no effect.
    """
    extra = [
        each
        for each in dict.fromkeys((*may, *may_delegate))
        if not any(covers(held, each) for held in terms.may_delegate)
    ]
    if extra:
        held = ", ".join(terms.may_delegate) or "nothing"
        detail = f"may delegate {held}, and not {', '.join(extra)}: ask for less, or grant the parent more"
        raise GrantExceededError(detail, facts={"extra": extra, "held": list(terms.may_delegate)})
    ends = [end for end in (expires_at, terms.expires_at) if end is not None]
    return make_terms(may, may_delegate, min(ends, default=None), parent=digest(encode(terms)))


def make_terms(
    may: Sequence[str], may_delegate: Sequence[str], expires_at: int | None, *, parent: str | None = None
) -> Terms:
    """Return terms. Raises `InvalidValueError` if a pattern is not clear."""
    for pattern in (*may, *may_delegate):
        require_pattern(pattern)
    if expires_at is not None and not 0 <= expires_at < _END_OF_TIME:
        raise InvalidValueError("expires= is further away than any time that can be recorded: leave it out")
    return Terms(may=tuple(may), may_delegate=tuple(may_delegate), expires_at=expires_at, parent=parent)


def expiry_at(expires: Expiry, now: int) -> int | None:
    """Return when something ends, in microseconds: of a moment, of a duration, or of text: "24h", RFC 3339."""
    if expires is None:
        return None
    if isinstance(expires, datetime):
        if expires.tzinfo is None:
            raise InvalidValueError("expires= needs a time zone: datetime.now(UTC) + timedelta(hours=24), or 24h")
        return int(expires.astimezone(UTC).timestamp() * 1_000_000)
    if isinstance(expires, str) and "T" in expires:
        return expiry_at(_read_moment(expires), now)
    if isinstance(expires, str):
        number, unit = expires[:-1], expires[-1:]
        if unit not in _UNITS or not (number.isascii() and number.isdigit()) or len(number) > _MOST_DIGITS:
            raise InvalidValueError(f"expires={expires!r} is no duration: write 30m, 24h or 7d")
        expires = timedelta(seconds=int(number) * _UNITS[unit])
    if not isinstance(expires, timedelta):
        raise InvalidValueError(f"expires={expires!r} is no text: write 24h, or a time such as 2026-01-31T12:00:00Z")
    return now + int(expires.total_seconds() * 1_000_000)


def _read_moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(f"expires={text!r} is no time: write it as 2026-01-31T12:00:00Z") from None


def find_refusal(lineage: Sequence[Held], permission: str, now: int) -> Refusal | None:
    """Return why a call is not allowed; None if it is. `lineage` is what each hop holds, the run's own last."""
    try:
        require_pattern(permission)
    except InvalidValueError:
        reason = f"{permission!r} is outside of the work tree, or written in another way than a permit can be"
        return Refusal("value.invalid", f"{reason}: name the target from the work tree on, as src/a")
    *ancestors, own = lineage
    if not any(covers(pattern, permission) for pattern in own.terms.may):
        may = ", ".join(own.terms.may) or "nothing"
        return Refusal("grant.exceeded", f"{own.agent} may {may}, tried {permission}")
    for held in ancestors:
        if not any(covers(pattern, permission) for pattern in held.terms.may_delegate):
            return Refusal("grant.exceeded", f"{own.agent} tried {permission}, which {held.agent} may not delegate")
    for held in lineage:
        if held.terms.expires_at is not None and held.terms.expires_at <= now:
            return Refusal(
                "grant.expired", f"{own.agent} tried {permission}, and the grant of {held.agent} has expired"
            )
    return None


def covers(outer: str, inner: str) -> bool:
    """Return whether everything that `inner` matches is matched by `outer`. A concrete permission matches itself."""
    mine, theirs = outer.replace(":", "/", 1).split("/"), inner.replace(":", "/", 1).split("/")
    for index, segment in enumerate(mine):
        if index == len(theirs):
            return False
        if segment == "**":
            return True
        if segment != theirs[index] and (segment != "*" or theirs[index] == "**"):
            return False
    return len(mine) == len(theirs)


def require_pattern(pattern: str) -> None:
    """Raise `InvalidValueError` if a pattern, or a permission, could be read in two ways."""
    action, colon, resource = pattern.partition(":")
    segments = resource.split("/")
    is_unclear = (
        not (action and colon)
        or "*" in action
        or "/" in action
        or "\\" in pattern
        or "%" in pattern
        or not is_normalized("NFKC", pattern)
        or any(category(letter) in _HIDDEN for letter in pattern)
        or any(part in {"", ".", ".."} or ("*" in part and part not in {"*", "**"}) for part in segments)
        or "**" in segments[:-1]
    )
    if is_unclear:
        raise InvalidValueError(f"{pattern!r} is not action:segment/segment, with ** only at the end")
