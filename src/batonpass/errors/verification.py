"""Errors of verification: the ledger is damaged or was changed."""

from batonpass.errors.base import BatonpassError


class VerificationError(BatonpassError):
    """The first damage that was found in a ledger.

    `code` names the kind of damage; `stream`, `seq` and `field` say where it is, as far as known.
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
    """A receipt is missing, although another receipt, a head or a position proves that it existed."""

    code = "verify.missing"


class ChainError(VerificationError):
    """A receipt does not follow the one before it: reordered, duplicated or spliced."""

    code = "verify.chain"


class EditedError(VerificationError):
    """A stored column differs from the signed bytes, or the bytes cannot be read."""

    code = "verify.edited"


class SignatureError(VerificationError):
    """A signature does not match the signed bytes, or is missing."""

    code = "verify.signature"


class UnknownKeyError(VerificationError):
    """A receipt or seal is signed by a key that the root key never enrolled for this use."""

    code = "verify.unknown_key"


class UntrustedKeyError(VerificationError):
    """A receipt or seal that stands alone is signed by none of the keys that its reader trusts."""

    code = "verify.untrusted_key"


class RevokedKeyError(VerificationError):
    """A receipt was signed with a relay key that had already been revoked or replaced."""

    code = "verify.revoked_key"


class UnlinkedError(VerificationError):
    """A child run, a handoff stream or a close-out does not match the receipt that it refers to."""

    code = "verify.unlinked"


class ContentMismatchError(VerificationError):
    """Content is missing, belongs to no receipt, or differs from its receipt's digest."""

    code = "verify.content"


class DerivedStateError(VerificationError):
    """A derived row (stream, run, handoff, key) contradicts the receipts."""

    code = "verify.derived"


class PositionError(VerificationError):
    """Positions have a gap or a duplicate, or contradict the order of a stream."""

    code = "verify.position"


class SchemaAlteredError(VerificationError):
    """The store's tables, indexes or triggers differ from those that our migrations created."""

    code = "verify.schema"


class SealError(VerificationError):
    """The ledger does not match a seal."""

    code = "verify.seal"


class NewerVersionError(VerificationError):
    """A receipt was written in a format that is newer than this program."""

    code = "verify.version"


class TermsError(VerificationError):
    """Terms are missing, are signed by a key that may not, or belong to another handoff, agent or chain."""

    code = "verify.terms"


class WidenedError(VerificationError):
    """A grant is wider than its giver may delegate."""

    code = "verify.widened"


class CertificateError(VerificationError):
    """A certificate is missing, or its key, run, attempt or terms differ from the receipt that names it."""

    code = "verify.certificate"


class OverLimitError(VerificationError):
    """Everybody who shares a grant together used more than its limit."""

    code = "verify.over_limit"


class UncountedError(VerificationError):
    """A use under a limit was not counted, or was counted in the wrong place."""

    code = "verify.uncounted"


class UngrantedError(VerificationError):
    """A call was made that its run's grant did not cover, or no longer covered."""

    code = "verify.ungranted"
