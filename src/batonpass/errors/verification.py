"""What can be wrong with a ledger."""

from batonpass.errors.base import BatonpassError


class VerificationError(BatonpassError):
    """The first thing that is wrong with a ledger: what, and where.

    `code` tells what kind of wrong; `stream`, `seq` and `field` tell where, as far as they are known.
    """

    code = "verify.failed"

    def __init__(
        self,
        problem: str,
        *,
        stream: str | None = None,
        seq: int | None = None,
        field: str | None = None,
    ) -> None:
        place = " ".join(
            part
            for part in (stream or "", f"seq {seq}" if seq is not None else "", f"field {field}" if field else "")
            if part
        )
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.stream = stream
        self.seq = seq
        self.field = field


class MissingError(VerificationError):
    """A receipt that another one, a head or a position proves to have existed is not there."""

    code = "verify.missing"


class ChainError(VerificationError):
    """A receipt does not hang from the one before it: reordered, doubled or spliced."""

    code = "verify.chain"


class EditedError(VerificationError):
    """A stored column says something else than the signed bytes, or the bytes cannot be read."""

    code = "verify.edited"


class SignatureError(VerificationError):
    """A signature does not match the bytes it stands under, or is missing."""

    code = "verify.signature"


class UnknownKeyError(VerificationError):
    """A receipt or seal is signed by a key that the root key never enrolled for that."""

    code = "verify.unknown_key"


class RevokedKeyError(VerificationError):
    """A receipt was recorded with a relay key after that key had been revoked or replaced."""

    code = "verify.revoked_key"


class UnlinkedError(VerificationError):
    """A child run, a handoff stream or a close-out does not fit the receipt it must hang from."""

    code = "verify.unlinked"


class ContentMismatchError(VerificationError):
    """Content is missing, surplus, or not what its receipt committed to."""

    code = "verify.content"


class DerivedStateError(VerificationError):
    """A derived row (stream, run, handoff, key) says something that the receipts do not support."""

    code = "verify.derived"


class PositionError(VerificationError):
    """Positions have a gap, a double, or contradict the order of a stream."""

    code = "verify.position"


class SchemaAlteredError(VerificationError):
    """The store's tables, indexes or triggers are not those that our migrations made."""

    code = "verify.schema"


class SealError(VerificationError):
    """What a seal commits to is not what is here."""

    code = "verify.seal"


class NewerVersionError(VerificationError):
    """A receipt was written in a format that is newer than this program."""

    code = "verify.version"


class TermsError(VerificationError):
    """What was granted is not there, was signed by nobody who may, or belongs to another handoff, agent or chain."""

    code = "verify.terms"


class WidenedError(VerificationError):
    """Somebody was granted more than whoever handed off may delegate."""

    code = "verify.widened"


class CertificateError(VerificationError):
    """A certificate is missing, or binds another key, run, attempt or terms than the receipt that names it."""

    code = "verify.certificate"


class OverLimitError(VerificationError):
    """More was used than a grant gives, by everybody who shares it, or a call was made when nothing was left."""

    code = "verify.over_limit"


class UncountedError(VerificationError):
    """Something was used under a limit and was not counted there, or was counted where it does not belong."""

    code = "verify.uncounted"


class UngrantedError(VerificationError):
    """A call was made in a run with a grant, and was not covered by it, or not any more."""

    code = "verify.ungranted"
