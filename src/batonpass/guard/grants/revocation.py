"""Lists of revocations: is a list authentic, is it the newest, and is it still good."""

from datetime import datetime, timedelta

from batonpass.errors import GrantIntegrityError, GrantNotYetValidError, StaleRevocationsError
from batonpass.guard.grants.grant_chain import SKEW, SignatureCheck, key_id, require_enrolled, verify_enrolments
from batonpass.model.base.ids import PublicKey
from batonpass.model.grants.grant import Purpose, RelayEnrolment, Revocations, Signed
from batonpass.model.grants.permit import spell_time
from batonpass.wire.grant_statements import signing_bytes


def verify_revocations(
    revocations: Signed[Revocations],
    enrolments: tuple[Signed[RelayEnrolment], ...],
    root_key: PublicKey,
    is_signed: SignatureCheck,
) -> Revocations:
    """Return a list if the root key signed it, or a relay that the root key allows to revoke.

    Raises `GrantRootError` and `GrantIntegrityError`.
    """
    said = revocations.said
    signer = root_key
    if said.key != key_id(root_key):
        enrolled = verify_enrolments(enrolments, root_key, is_signed)
        # A purpose of its own: with a key that may only grant, a thief could sign a new list that leaves a revocation
        # out.
        signer = require_enrolled(said.key, enrolled, Purpose.REVOKE).public_key
    if not is_signed(bytes.fromhex(signer), signing_bytes(revocations.payload), revocations.signature):
        raise GrantIntegrityError("the signature under the list of revocations does not match it; fetch it again")
    return said


def newer_of(new: Revocations, known: Revocations | None) -> Revocations:
    """Return the list to use from now on. Raises `StaleRevocationsError` if the new one would hide a revocation.

    Lists with the same number must name the same things, so a list may be signed again to extend it. Of two such lists,
    the one that is good for longer counts, whichever came first.
    """
    if known is None or new.number > known.number:
        return new
    # The number counts revocations and only grows. So an older number, or the same number with other names, can only be
    # an attempt to take a revocation back.
    if new.number < known.number or names_in(new) != names_in(known):
        raise StaleRevocationsError(
            f"list {new.number} of revocations would take back a revocation of list {known.number}, which is "
            "known already; fetch the newest list"
        )
    return max(known, new, key=lambda one: one.best_before)


def require_good(revocations: Revocations | None, at: datetime, *, skew: timedelta = SKEW) -> None:
    """Refuse to verify with no list, or with one that is not good at this time: step 8.

    Raises `StaleRevocationsError` and `GrantNotYetValidError`.
    """
    if revocations is None:
        raise StaleRevocationsError("no list of revocations is known here; fetch one")
    # No skew at the end: after it, nobody knows what was revoked since, and the safe answer is no.
    if at >= revocations.best_before:
        raise StaleRevocationsError(
            f"list {revocations.number} of revocations was good until {spell_time(revocations.best_before)}, and it is "
            f"{spell_time(at)}; fetch a new one"
        )
    if at < revocations.at - skew:
        raise GrantNotYetValidError(
            f"list {revocations.number} of revocations is of {spell_time(revocations.at)}, and it is {spell_time(at)}; "
            "compare the clocks"
        )


def names_in(revocations: Revocations) -> frozenset[str]:
    """Return everything that the list revokes: terms, runs and keys."""
    return frozenset((*revocations.terms, *revocations.runs, *revocations.keys))
