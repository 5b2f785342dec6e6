"""The bodies of rulings: somebody approved or denied a hold, and the signature that proves it."""

from datetime import datetime
from typing import ClassVar, Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Code
from batonpass.model.base.checks import (
    require_digest,
    require_instance,
    require_utc,
    shorten,
)
from batonpass.model.base.ids import (
    CallId,
    Digest,
    HandoffId,
    KeyId,
    PrincipalId,
    RunId,
)
from batonpass.model.base.kinds import Kind

_SIGNATURE_DIGITS: Final = 128
_LONGEST_SIGNATURE_DIGITS: Final = 1024
_LONGEST_CLIENT_DATA: Final = 4096
_AUTHENTICATOR_BYTES: Final = (37, 1024)


class PasskeyAnswer(Struct, frozen=True, kw_only=True):
    """The statements of a browser and an authenticator from which the signed bytes of a passkey are made."""

    client_data: str  # the browser's JSON, as it made it: what it asked the passkey to sign, and at which site
    authenticator_data: str  # in lower-case hexadecimal: the digest of the site, whether somebody was there, a counter

    def __post_init__(self) -> None:
        if not isinstance(self.client_data, str) or not 0 < len(self.client_data) <= _LONGEST_CLIENT_DATA:
            raise InvalidValueError("proof.passkey.client_data", f"has 1 to {_LONGEST_CLIENT_DATA} characters")
        given, (least, most) = self.authenticator_data, _AUTHENTICATOR_BYTES
        if not isinstance(given, str) or len(given) % 2 or given.strip("0123456789abcdef"):
            raise InvalidValueError("proof.passkey.authenticator_data", "is not lower-case hexadecimal")
        if not least <= len(given) // 2 <= most:
            raise InvalidValueError("proof.passkey.authenticator_data", f"has {least} to {most} bytes")

    @property
    def counter(self) -> int:
        """Return how often the authenticator has signed; 0 if it does not count."""
        return int.from_bytes(bytes.fromhex(self.authenticator_data)[33:37])


class RulingProof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The signature of an approver's key over a ruling. docs/spec/keys.md has the format."""

    key: KeyId
    at: datetime  # when the approver decided, by the clock of the machine that signed
    signature: str  # 64 bytes in lower-case hexadecimal; of an RSA passkey more
    passkey: PasskeyAnswer | None = None  # if the key is a passkey

    def __post_init__(self) -> None:
        require_digest("proof.key", self.key)
        require_utc("proof.at", self.at)
        given = self.signature
        most = _SIGNATURE_DIGITS if self.passkey is None else _LONGEST_SIGNATURE_DIGITS
        if not isinstance(given, str) or given.strip("0123456789abcdef") or len(given) % 2:
            raise InvalidValueError("proof.signature", f"{shorten(given)} is not lower-case hexadecimal digits")
        if not _SIGNATURE_DIGITS <= len(given) <= most:
            raise InvalidValueError("proof.signature", f"{shorten(given)} is not 128 lower-case hexadecimal digits")
        if self.passkey is not None:
            require_instance("proof.passkey", self.passkey, PasskeyAnswer)


class RecordedDecision(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """Who decided, the sheet that they were shown, and for how long."""

    by: PrincipalId
    hold: Digest | None = None  # the receipt of the hold that is decided, and no other; None: an older relay wrote it
    shown: Digest | None = None  # of the screen that they saw; None if nothing was shown
    looked_ms: int | None = None  # how long they looked at it, as the program that asked them claims
    measured_ms: int | None = None  # from showing it to the answer, measured by the relay; None: it did not show it
    proof: RulingProof | None = None  # None: only a name says whose decision it is
    flags: tuple[Code, ...] = ()  # for instance `approval.unproven`
    expires: datetime | None = None  # of an approval that lets something go on: it must be used by then

    @property
    def proven(self) -> bool:
        """Return whether it has an approver's signature. A verifier checks whether the signature is good."""
        return self.proof is not None


class _OfHandoff(RecordedDecision, frozen=True, kw_only=True):
    handoff: HandoffId


class HandoffBacked(_OfHandoff, frozen=True, kw_only=True):
    """Somebody approved a held handoff that needs more approvals."""

    kind: ClassVar = Kind.HANDOFF_BACKED


class HandoffApproved(_OfHandoff, frozen=True, kw_only=True):
    """Somebody approved a held handoff: it goes on."""

    kind: ClassVar = Kind.HANDOFF_APPROVED


class HandoffDenied(_OfHandoff, frozen=True, kw_only=True):
    """Somebody denied a held handoff."""

    kind: ClassVar = Kind.HANDOFF_DENIED


class _OfCall(RecordedDecision, frozen=True, kw_only=True):
    run: RunId  # the run that wanted to make the call
    call: CallId


class ToolBacked(_OfCall, frozen=True, kw_only=True):
    """Somebody approved a held call that needs more approvals."""

    kind: ClassVar = Kind.TOOL_BACKED


class ToolApproved(_OfCall, frozen=True, kw_only=True):
    """Somebody approved a held call of a run that goes on."""

    kind: ClassVar = Kind.TOOL_APPROVED


class ToolRefused(_OfCall, frozen=True, kw_only=True):
    """Somebody denied a held call of a run that goes on, for good."""

    kind: ClassVar = Kind.TOOL_REFUSED
