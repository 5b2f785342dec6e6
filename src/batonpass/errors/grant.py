"""Errors of grants: something was asked for, tried or shown that is not covered, or not proven."""

from batonpass.errors.base import BatonpassError


class GrantError(BatonpassError):
    """A grant does not cover something, or does not hold."""


class GrantExceededError(GrantError):
    """More was asked for a child than its parent may delegate."""

    code = "grant.exceeded"

    def __init__(self, holder: str, excess: tuple[str, ...], held: tuple[str, ...]) -> None:
        super().__init__(
            f"{holder} cannot give {'; '.join(excess)}: it may delegate {'; '.join(held) or 'nothing'}. "
            f"Ask for less, or have {holder}'s own grant widened by whoever gave it",
        )
        self.holder = holder
        self.excess = excess
        self.held = held


class GrantMissingError(GrantError):
    """A run with a grant hands work on, and nothing of what it may delegate would reach the child."""

    code = "grant.missing"

    def __init__(self, sender: str, to: str, held: tuple[str, ...], ceiling: tuple[str, ...] | None) -> None:
        most = "" if ceiling is None else f"; the card of {to} lets it hold {'; '.join(ceiling) or 'nothing'}"
        super().__init__(
            f"{to} would be granted nothing: say with may=[...] what it may do of {'; '.join(held) or 'nothing'}, "
            f"which {sender} can give{most}",
        )
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
    """What was shown as a grant cannot be read as one."""

    code = "grant.malformed"


class GrantTooLargeError(GrantError):
    """A grant is larger than what is sent, or read."""

    code = "grant.too_large"


class GrantVersionError(GrantError):
    """A part of a grant is of a format that is newer than this program."""

    code = "grant.version"


class GrantIntegrityError(GrantError):
    """A signature does not match the bytes that it stands under."""

    code = "grant.integrity"


class GrantRootError(GrantError):
    """A part of a grant is signed by a key that the root key has not enrolled for it."""

    code = "grant.root"


class GrantChainError(GrantError):
    """The parts of a grant do not hang together: one was removed, exchanged, or comes from elsewhere."""

    code = "grant.chain"


class GrantDepthError(GrantError):
    """A chain is deeper than one of its own terms, or the verifier, allows."""

    code = "grant.depth"


class GrantContextError(GrantError):
    """A proof was made for another call, another audience or another run."""

    code = "grant.context"


class GrantPolicyError(GrantError):
    """The verifier's own policy does not take this grant."""

    code = "grant.policy"


class GrantPossessionError(GrantError):
    """Whoever shows a grant has not proven to hold the key that it is bound to."""

    code = "grant.possession"


class GrantExpiredError(GrantError):
    """A part of a grant has ended, by the verifier's clock."""

    code = "grant.expired"


class GrantNotYetValidError(GrantError):
    """A part of a grant begins later than now, by the verifier's clock."""

    code = "grant.not_yet_valid"


class GrantBackdatedError(GrantError):
    """A part of a grant is dated before what it hangs from, or outside of its signer's time."""

    code = "grant.backdated"


class GrantRevokedError(GrantError):
    """A part of a grant was revoked, and with it everything that hangs from it."""

    code = "grant.revoked"


class StaleRevocationsError(GrantError):
    """There is no list of revocations that is still good, so nobody knows what was revoked."""

    code = "grant.stale_revocations"


class GrantReplayedError(GrantError):
    """The same proof was shown before."""

    code = "grant.replayed"
