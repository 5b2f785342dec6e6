"""Errors of grants: something is not covered by a grant, or a grant cannot be verified."""

from batonpass.errors.base import BatonpassError


class GrantError(BatonpassError):
    """A grant does not cover something, or is not valid."""


class GrantExceededError(GrantError):
    """More was asked for a child than its parent may delegate."""

    code = "grant.exceeded"

    def __init__(self, holder: str, excess: tuple[str, ...], held: tuple[str, ...]) -> None:
        super().__init__(
            f"{holder} cannot give {'; '.join(excess)}: it may delegate {'; '.join(held) or 'nothing'}. "
            f"Ask for less, or have {holder}'s own grant widened by its giver",
        )
        self.holder = holder
        self.excess = excess
        self.held = held


class GrantMissingError(GrantError):
    """A child of an enforced run would get an empty grant."""

    code = "grant.missing"

    def __init__(self, sender: str, to: str, held: tuple[str, ...], ceiling: tuple[str, ...] | None) -> None:
        most = "" if ceiling is None else f"; the card of {to} lets it hold {'; '.join(ceiling) or 'nothing'}"
        given = (
            f"pass may=[...] with a part of the permits that {sender} can give: {'; '.join(held)}"
            if held
            else f"{sender} may delegate nothing; have the grant of {sender} widened by its giver"
        )
        super().__init__(f"{to} would be granted nothing: {given}{most}")
        self.to = to


class GrantDeniedError(GrantError):
    """A call is not covered by the grant that it was made under."""

    code = "grant.denied"

    def __init__(self, problem: str, *, agent: str, tried: str, holder: str | None) -> None:
        super().__init__(problem)
        self.agent = agent
        self.tried = tried
        self.holder = holder


class GrantMalformedError(GrantError):
    """The grant cannot be parsed."""

    code = "grant.malformed"


class GrantTooLargeError(GrantError):
    """The grant exceeds the size limit for tokens."""

    code = "grant.too_large"


class GrantVersionError(GrantError):
    """A part of the grant has a format that is newer than this program."""

    code = "grant.version"


class GrantIntegrityError(GrantError):
    """A signature does not match the signed bytes."""

    code = "grant.integrity"


class GrantRootError(GrantError):
    """A part of a grant is signed by a key that the root key has not enrolled for it."""

    code = "grant.root"


class GrantChainError(GrantError):
    """The parts of a grant do not form a chain: one was removed, exchanged, or comes from elsewhere."""

    code = "grant.chain"


class GrantDepthError(GrantError):
    """The chain is deeper than one of its terms, or the verifier, allows."""

    code = "grant.depth"


class GrantContextError(GrantError):
    """A proof was made for another call, another audience or another run."""

    code = "grant.context"


class GrantPolicyError(GrantError):
    """The verifier's own policy does not accept this grant."""

    code = "grant.policy"


class GrantPossessionError(GrantError):
    """The caller has not proven that it holds the key that the grant is bound to."""

    code = "grant.possession"


class GrantExpiredError(GrantError):
    """A part of the grant has expired, by the verifier's clock."""

    code = "grant.expired"


class GrantNotYetValidError(GrantError):
    """A part of the grant is not valid yet, by the verifier's clock."""

    code = "grant.not_yet_valid"


class GrantBackdatedError(GrantError):
    """A part of the grant is dated before its parent, or outside of its signer's validity."""

    code = "grant.backdated"


class GrantRevokedError(GrantError):
    """A part of the grant was revoked, and with it everything below."""

    code = "grant.revoked"


class StaleRevocationsError(GrantError):
    """There is no current revocation list, so a revoked grant could not be recognised."""

    code = "grant.stale_revocations"


class GrantReplayedError(GrantError):
    """The same proof was used before."""

    code = "grant.replayed"
