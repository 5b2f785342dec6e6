"""Grants, and the signed statements that prove a grant to a verifier who is offline and knows only the root key.

root key ──signs──▶ RelayEnrolment: this key belongs to a relay
relay key ─signs──▶ Terms: the grant of a handoff; each names its parent's terms by digest, up to the first
relay key ─signs──▶ Certificate: this key belongs to an attempt at the handoff, for a limited time
run key ───signs──▶ Proof: exactly this call, for this audience, now
"""

from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    require_digest,
    require_instance,
    require_integer,
    require_text,
    require_unique,
    require_utc,
)
from batonpass.model.base.ids import (
    HANDOFF,
    LEDGER,
    RELAY,
    RUN,
    AgentId,
    Digest,
    HandoffId,
    KeyId,
    LedgerId,
    PrincipalId,
    PublicKey,
    RelayId,
    RunId,
    require_agent,
    require_id,
    require_principal,
)
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.resource import require_readable
from batonpass.model.grants.scope import NOTHING, Scope

_LONGEST_AUDIENCE = 512
_LEAST_NONCE = 16
_MOST_NONCE = 64
_MOST_REVOKED = 10_000


class Grant(Struct, frozen=True, kw_only=True):
    """The permits that somebody may use, and those that they may delegate. These are two separate rights."""

    may: Scope = NOTHING
    may_delegate: Scope = NOTHING
    limits: Limits = UNLIMITED  # of everything done under it together
    until: datetime | None = None
    max_depth: int | None = None  # the greatest depth of its chain; the first terms of a chain have depth 0

    def __post_init__(self) -> None:
        require_instance("may", self.may, Scope)
        require_instance("may_delegate", self.may_delegate, Scope)
        require_instance("limits", self.limits, Limits)
        if self.until is not None:
            require_utc("until", self.until)
        if self.max_depth is not None:
            require_integer("max_depth", self.max_depth)


class Terms(Grant, frozen=True, kw_only=True):
    """A grant for one handoff or one root run, at its place in a chain. It names no key of a run."""

    agent: AgentId  # who gets the grant
    principal: PrincipalId  # on whose behalf
    root: RunId  # the tree it belongs to
    at: datetime  # when it was issued
    key: KeyId  # of the relay that signs
    handoff: HandoffId | None = None  # None for a root run
    run: RunId | None = None  # the run that hands off; None if nobody above has a grant
    parent: Digest | None = None  # the terms of the sender; None for the first of a chain

    def __post_init__(self) -> None:
        super().__post_init__()
        require_agent("agent", self.agent)
        require_principal("principal", self.principal)
        require_id("root", self.root, RUN)
        require_utc("at", self.at)
        require_digest("key", self.key)
        if self.handoff is not None:
            require_id("handoff", self.handoff, HANDOFF)
        if self.run is not None:
            require_id("run", self.run, RUN)
        if self.parent is not None:
            require_digest("parent", self.parent)
            if self.handoff is None or self.run is None:
                raise InvalidValueError("parent", "is given without the handoff and the run that hands off")


class Certificate(Struct, frozen=True, kw_only=True):
    """The key of one attempt at a handoff, bound to the terms for a limited time."""

    terms: Digest
    run: RunId
    attempt: int
    epoch: int
    run_key: PublicKey
    valid_from: datetime
    valid_until: datetime
    key: KeyId  # of the relay that signs

    def __post_init__(self) -> None:
        require_digest("terms", self.terms)
        require_id("run", self.run, RUN)
        require_integer("attempt", self.attempt)  # 0 for a root run
        require_integer("epoch", self.epoch, least=1)
        require_digest("run_key", self.run_key)
        require_utc("valid_from", self.valid_from)
        if require_utc("valid_until", self.valid_until) <= self.valid_from:
            raise InvalidValueError("valid_until", "is not after valid_from")
        require_digest("key", self.key)


class Purpose(StrEnum):
    """The kinds of statements that the root key lets a relay's key sign, for verifiers that are offline."""

    GRANT = "grant"
    REVOKE = "revoke"


class RelayEnrolment(Struct, frozen=True, kw_only=True):
    """The root key's statement that a key belongs to a relay, and its purposes."""

    ledger: LedgerId
    relay: RelayId
    public_key: PublicKey
    purposes: tuple[Purpose, ...]
    at: datetime  # statements of this key may not be dated earlier
    key: KeyId  # the root key, which signs
    until: datetime | None = None  # nor later than this; set when the key was replaced

    def __post_init__(self) -> None:
        require_id("ledger", self.ledger, LEDGER)
        require_id("relay", self.relay, RELAY)
        require_digest("public_key", self.public_key)
        _require_sorted("purposes", self.purposes)
        if not self.purposes:
            raise InvalidValueError("purposes", "are none")
        require_utc("at", self.at)
        require_digest("key", self.key)
        if self.until is not None:
            require_utc("until", self.until)


class Proof(Struct, frozen=True, kw_only=True):
    """The holder of the run's key makes exactly this call, for this audience, at this moment."""

    certificate: Digest
    call: Digest  # of tool, action, resource and arguments
    tool: str
    audience: str
    nonce: str
    at: datetime

    def __post_init__(self) -> None:
        require_digest("certificate", self.certificate)
        require_digest("call", self.call)
        require_agent("tool", self.tool)
        require_readable("audience", require_text("audience", self.audience))
        if len(self.audience) > _LONGEST_AUDIENCE:
            raise InvalidValueError("audience", f"has more than {_LONGEST_AUDIENCE} characters")
        if not _LEAST_NONCE <= len(require_text("nonce", self.nonce)) <= _MOST_NONCE or not self.nonce.isascii():
            raise InvalidValueError("nonce", f"is not {_LEAST_NONCE} to {_MOST_NONCE} characters of ASCII")
        require_utc("at", self.at)


class Revocations(Struct, frozen=True, kw_only=True):
    """Everything that is revoked as of a moment. Each list replaces all lists with lower numbers."""

    number: int
    at: datetime
    best_before: datetime  # the list must not be used after that
    key: KeyId  # the root key, or the key of a relay that may revoke
    terms: tuple[Digest, ...] = ()  # revoked with all terms below them
    runs: tuple[RunId, ...] = ()  # revoked with everything that they handed off
    keys: tuple[KeyId, ...] = ()  # of relays, revoked with everything that they signed

    def __post_init__(self) -> None:
        require_integer("number", self.number, least=1)
        require_utc("at", self.at)
        if require_utc("best_before", self.best_before) <= self.at:
            raise InvalidValueError("best_before", "is not after at")
        require_digest("key", self.key)
        for name in ("terms", "runs", "keys"):
            _require_sorted(name, getattr(self, name))
        for digest in (*self.terms, *self.keys):
            require_digest("revoked", digest)
        for run in self.runs:
            require_id("runs", run, RUN)


Statement: TypeAlias = RelayEnrolment | Terms | Certificate | Proof | Revocations
Said_co = TypeVar("Said_co", bound=Statement, covariant=True)


class Signed(Struct, Generic[Said_co], frozen=True):
    """A statement and the exact bytes that were signed. The bytes decide; the digest is theirs."""

    said: Said_co
    payload: bytes
    signature: bytes
    digest: Digest


class Chain(Struct, frozen=True, kw_only=True):
    """Everything that a verifier needs besides the root key: enrolments, terms from the first on, the certificate."""

    enrolments: tuple[Signed[RelayEnrolment], ...]
    terms: tuple[Signed[Terms], ...]
    certificate: Signed[Certificate]


def _require_sorted(name: str, values: tuple[str, ...]) -> None:
    given = require_instance(name, values, tuple)
    if len(given) > _MOST_REVOKED:
        raise InvalidValueError(name, f"are more than {_MOST_REVOKED:,}")
    require_unique(name, given)
    if list(given) != sorted(given):
        raise InvalidValueError(name, "are not in order")
