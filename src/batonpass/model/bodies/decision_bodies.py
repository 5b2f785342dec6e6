"""What receipts about decisions say: somebody let what waited go on, or did not, and how far that is proven."""

from datetime import datetime
from typing import ClassVar, Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    require_codes,
    require_digest,
    require_instance,
    require_integer,
    require_utc,
    shorten,
)
from batonpass.model.base.ids import (
    CALL,
    HANDOFF,
    RUN,
    CallId,
    Digest,
    HandoffId,
    KeyId,
    PrincipalId,
    RunId,
    require_id,
    require_principal,
)
from batonpass.model.base.kinds import Kind

_SIGNATURE_DIGITS: Final = 128


class RulingProof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The signature of an approver's key over a ruling, which docs/spec/keys.md spells out."""

    key: KeyId
    at: datetime  # when it was decided, by the clock where it was signed
    signature: str  # 64 bytes in lower-case hexadecimal

    def __post_init__(self) -> None:
        require_digest("proof.key", self.key)
        require_utc("proof.at", self.at)
        given = self.signature
        if not isinstance(given, str) or len(given) != _SIGNATURE_DIGITS or given.strip("0123456789abcdef"):
            raise InvalidValueError("proof.signature", f"{shorten(given)} is not 128 lower-case hexadecimal digits")


class RecordedDecision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who decided, having been shown what, for how long."""

    by: PrincipalId
    hold: Digest | None = None  # the receipt of what it answers: this very hold, and no other; None: an older relay
    shown: Digest | None = None  # what was on the screen; None if nothing was shown
    looked_ms: int | None = None  # how long they looked at it, as whoever asked them says
    measured_ms: int | None = None  # from the moment the relay showed it until the answer; None: it did not show it
    proof: RulingProof | None = None  # None: it is only said to be theirs
    flags: tuple[str, ...] = ()  # what is to be known of it, such as that nothing proves it

    def __post_init__(self) -> None:
        require_principal("by", self.by)
        if self.hold is not None:
            require_digest("hold", self.hold)
        if self.shown is not None:
            require_digest("shown", self.shown)
        if self.looked_ms is not None:
            require_integer("looked_ms", self.looked_ms)
        if self.measured_ms is not None:
            require_integer("measured_ms", self.measured_ms)
        require_codes("flags", self.flags)
        if self.proof is not None:
            require_instance("proof", self.proof, RulingProof)

    @property
    def proven(self) -> bool:
        """Return whether an approver's key signed it; whether that signature is good is for a verifier to say."""
        return self.proof is not None


class _OfHandoff(RecordedDecision, frozen=True, kw_only=True):
    handoff: HandoffId

    def __post_init__(self) -> None:
        super().__post_init__()
        require_id("handoff", self.handoff, HANDOFF)


class HandoffBacked(_OfHandoff, frozen=True, kw_only=True):
    """Somebody would let a held handoff go on, and it takes somebody else as well."""

    kind: ClassVar = Kind.HANDOFF_BACKED


class HandoffApproved(_OfHandoff, frozen=True, kw_only=True):
    """Somebody let a held handoff go on."""

    kind: ClassVar = Kind.HANDOFF_APPROVED


class HandoffDenied(_OfHandoff, frozen=True, kw_only=True):
    """Somebody did not let a held handoff go on."""

    kind: ClassVar = Kind.HANDOFF_DENIED


class _OfCall(RecordedDecision, frozen=True, kw_only=True):
    run: RunId  # whose call it is
    call: CallId

    def __post_init__(self) -> None:
        super().__post_init__()
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)


class ToolBacked(_OfCall, frozen=True, kw_only=True):
    """Somebody would let a held call be made, and it takes somebody else as well."""

    kind: ClassVar = Kind.TOOL_BACKED


class ToolApproved(_OfCall, frozen=True, kw_only=True):
    """Somebody let a held call of a run that goes on be made."""

    kind: ClassVar = Kind.TOOL_APPROVED


class ToolRefused(_OfCall, frozen=True, kw_only=True):
    """Somebody did not let such a call be made, for good."""

    kind: ClassVar = Kind.TOOL_REFUSED
