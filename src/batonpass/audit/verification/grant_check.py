"""Grants, checked from receipts and contents: every hop of their chains, and whether calls stayed within them.

This is part of step 10, because terms are contents. If terms were erased or left out, neither they nor the calls under
them can be judged.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec import Struct

from batonpass.audit.verification.call_check import RecordedCall
from batonpass.audit.verification.charge_check import Charges
from batonpass.audit.verification.signatures import SignatureCheck
from batonpass.errors import (
    CertificateError,
    GrantError,
    TermsError,
    UngrantedError,
    VerificationError,
    WidenedError,
)
from batonpass.guard.grants.grant_chain import SKEW
from batonpass.guard.grants.narrower_terms import find_wider
from batonpass.guard.grants.recorded_call import REDACTED
from batonpass.model.base.content_names import CERTIFICATE, SCOPE, TERMS
from batonpass.model.base.ids import ContentId, Digest, KeyId, RelayId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import (
    GrantRevoked,
    HandoffAccepted,
    HandoffInitiated,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunSpent,
    RunStarted,
    ToolCompleted,
    ToolRequested,
)
from batonpass.model.bodies.tool_bodies import is_told_outside
from batonpass.model.grants.grant import Certificate, Signed, Terms
from batonpass.model.grants.permit import spell_time
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import Receipt
from batonpass.signing.ed25519 import is_signed
from batonpass.wire.grant_statements import signing_bytes
from batonpass.wire.token import decode_part

_GRANT: Final = "grant"
_LIMIT: Final = "limit"

Said = TypeVar("Said", Terms, Certificate)
Contents = Mapping[ContentId, StoredContent]


class GrantHeld(Struct, frozen=True):
    """The grant that a run, or the receiver of a handoff, is held to."""

    line: tuple[StreamId, ...]  # the root and each handoff down to it; each can be revoked
    digest: Digest | None = None  # of its terms; None without a grant
    chain: tuple[Terms, ...] | None = ()  # from the root down; None if a part was erased or left out
    tried_out: bool = False  # its root says that the grant is only observed


# For a run that began with a kind of receipt unknown to this version.
_UNKNOWN: Final = GrantHeld(())


class _Signer(Struct, frozen=True):
    relay: RelayId
    public_key: bytes


class _Revocation(Struct, frozen=True):
    at: datetime
    relay: RelayId


class Grants:
    """Takes receipts in position order and refuses the first that exceeds a grant. Raises `VerificationError`."""

    def __init__(self, check: SignatureCheck = is_signed) -> None:
        self._check = check
        self._signers: dict[KeyId, _Signer] = {}
        self._stopped: set[KeyId] = set()
        self._held: dict[StreamId, GrantHeld] = {}  # by run and by handoff
        self._revoked: dict[StreamId, list[_Revocation]] = {}
        self._charges = Charges()
        self.unjudged = 0  # calls whose arguments or terms are not available
        self._rules: Final[Mapping[type, Callable[[Receipt, Any, Contents], None]]] = {
            RelayEnrolled: self._enrol,
            RelayRotated: self._enrol,
            RelayRevoked: self._stop,
            GrantRevoked: self._revoke,
            RunStarted: self._start,
            HandoffInitiated: self._offer,
            HandoffAccepted: self._accept,
            ToolRequested: self._request,
            ToolCompleted: self._charge,
            RunSpent: self._charge,
        }

    def take(self, receipt: Receipt, contents: Contents) -> None:
        """Check the next receipt against the grants before it."""
        rule = self._rules.get(type(receipt.body))
        if rule is not None:
            rule(receipt, receipt.body, contents)

    def _enrol(self, _: Receipt, body: RelayEnrolled | RelayRotated, __: Contents) -> None:
        self._signers[key_id(body.public_key)] = _Signer(body.relay, bytes.fromhex(body.public_key))

    def _stop(self, _: Receipt, body: RelayRevoked, __: Contents) -> None:
        self._stopped.add(key_id(body.public_key))

    def _revoke(self, receipt: Receipt, body: GrantRevoked, _: Contents) -> None:
        self._revoked.setdefault(body.account, []).append(_Revocation(receipt.at, receipt.relay))

    def _start(self, receipt: Receipt, body: RunStarted, contents: Contents) -> None:
        line = (StreamId(body.run),)
        held = GrantHeld(line)
        if body.terms is not None:
            terms = self._read(receipt, TERMS, body.terms, Terms, contents)
            if terms is not None:
                said = terms.said
                _require_bound(
                    agent=(said.agent, body.agent),
                    principal=(said.principal, body.principal),
                    root=(said.root, body.run),
                    handoff=(said.handoff, None),
                    parent=(said.parent, None),
                )
            tried_out = receipt.mode is Mode.OBSERVED
            held = GrantHeld(line, body.terms, None if terms is None else (terms.said,), tried_out)
            self._know(held, terms)
        self._held[StreamId(body.run)] = held
        self._bind(receipt, body, held, contents, attempt=0)

    def _offer(self, receipt: Receipt, body: HandoffInitiated, contents: Contents) -> None:
        above = self._held.get(StreamId(body.run), _UNKNOWN)
        line = (*above.line, StreamId(body.handoff))
        if body.terms is None:
            if above.digest is not None and not above.tried_out:
                raise TermsError("a run with a grant handed this off, and nothing was granted with it", field="terms")
            self._held[StreamId(body.handoff)] = GrantHeld(line, tried_out=above.tried_out)
            return
        terms = self._read(receipt, TERMS, body.terms, Terms, contents)
        if terms is not None:
            said = terms.said
            # The first terms of a chain may name no run: the run itself holds no grant.
            run = said.run if above.digest is None and said.run is None else body.run
            _require_bound(
                handoff=(said.handoff, body.handoff),
                agent=(said.agent, body.to),
                root=(said.root, receipt.root),
                run=(said.run, run),
                parent=(said.parent, above.digest),
            )
            self._require_narrower(above, said)
        whole = None if terms is None or above.chain is None else (*above.chain, terms.said)
        held = GrantHeld(line, body.terms, whole, above.tried_out)
        self._know(held, terms)
        self._held[StreamId(body.handoff)] = held

    def _know(self, held: GrantHeld, terms: Signed[Terms] | None) -> None:
        # A grant that is only observed may be exceeded.
        if terms is not None and not held.tried_out:
            self._charges.know(terms.said)

    def _require_narrower(self, above: GrantHeld, said: Terms) -> None:
        if not above.chain:
            return
        parent = above.chain[-1]
        _require_bound(principal=(said.principal, parent.principal))
        wider = tuple(find_wider(parent, said, depth=len(above.chain) - 1))
        if wider:
            raise WidenedError(
                f"{said.agent} was granted {'; '.join(wider)}, which {parent.agent} may not delegate", field="terms"
            )

    def _accept(self, receipt: Receipt, body: HandoffAccepted, contents: Contents) -> None:
        held = self._held.get(StreamId(body.handoff), _UNKNOWN)
        self._held[StreamId(body.run)] = held
        self._bind(receipt, body, held, contents, attempt=body.attempt)

    def _bind(
        self,
        receipt: Receipt,
        body: RunStarted | HandoffAccepted,
        held: GrantHeld,
        contents: Contents,
        *,
        attempt: int,
    ) -> None:
        """Refuse a run whose key is not bound to its grant, or whose mode is not enforced."""
        if held.digest is None or body.certificate is None:
            if body.certificate is not None or (held.digest is not None and not held.tried_out):
                missing = "terms and no certificate" if body.certificate is None else "a certificate and no terms"
                raise CertificateError(f"it has {missing}", field=CERTIFICATE)
            return
        # A relay that could call such a run observed could lift every limit of its grant without changing a signed
        # statement.
        if receipt.mode is not Mode.ENFORCED and not held.tried_out:
            raise TermsError("it begins a run with a grant, and says that it is only observed", field="mode")
        certificate = self._read(receipt, CERTIFICATE, body.certificate, Certificate, contents)
        if certificate is None:
            return
        said = certificate.said
        _require_bound(
            CertificateError,
            terms=(said.terms, held.digest),
            run=(said.run, body.run),
            attempt=(said.attempt, attempt),
            epoch=(said.epoch, receipt.epoch),
            run_key=(said.run_key, body.run_key),
        )

    def _request(self, receipt: Receipt, body: ToolRequested, contents: Contents) -> None:
        held = self._held.get(StreamId(body.run))
        if held is not None and held.digest is not None and not held.tried_out:
            if receipt.mode is not Mode.ENFORCED:
                raise UngrantedError("its run has a grant, and the call says that it is only observed", field="mode")
            # A call flagged as outside the grant was made before anybody could stop it, and claims no authority.
            if not is_told_outside(body.flags, (_GRANT,)):
                self._require_unrevoked(receipt, held)
                self._require_covered(receipt, body, held, contents)
        self._charge(receipt, body, contents)

    def _charge(self, receipt: Receipt, body: ToolRequested | ToolCompleted | RunSpent, _: Contents) -> None:
        held = self._held.get(StreamId(body.run), _UNKNOWN)
        if held is not _UNKNOWN and not held.tried_out:
            self._charges.take(receipt, body, held.line, held.chain or ())

    def _require_covered(self, receipt: Receipt, body: ToolRequested, held: GrantHeld, contents: Contents) -> None:
        """Refuse a call unless every hop permits it with this target and these arguments, and counts it."""
        ref = receipt.content.get(SCOPE)
        if ref is None:
            raise UngrantedError("its run has a grant, and the call names no action and target", field=SCOPE)
        stored = contents.get(ref.id)
        if held.chain is None or stored is None or stored.body is None:
            self.unjudged += 1
            return
        ends = min((terms.until for terms in held.chain if terms.until is not None), default=None)
        if ends is not None and receipt.at >= ends + SKEW:
            raise UngrantedError(f"the grant ended at {spell_time(ends)}, before the call", field="at")
        text = stored.body.decode(errors="replace")
        # A target without its secret is not the target of the call. Whether a permit covers that is not guessed.
        if REDACTED in text:
            self.unjudged += 1
            return
        covering = RecordedCall(text, receipt, contents)
        hops = [
            (terms, covering.permits(held.chain[-1].agent, terms, last=number == len(held.chain)))
            for number, terms in enumerate(held.chain, 1)
        ]
        self.unjudged += covering.unjudged
        if not is_told_outside(body.flags, (_LIMIT,)):
            self._charges.require_counted(receipt, body, hops)

    def _require_unrevoked(self, receipt: Receipt, held: GrantHeld) -> None:
        # One relay has one clock, and its store refuses calls once a revocation is written: a later receipt came later.
        # Two relays have two clocks. Then a call certainly came later only if both its position and its time say so,
        # the time by more than clocks may differ.
        for account in held.line:
            for revoked in self._revoked.get(account, ()):
                if revoked.relay == receipt.relay or receipt.at > revoked.at + SKEW:
                    raise UngrantedError(f"the grant of {account} was revoked before the call", field="at")

    def _read(
        self, receipt: Receipt, name: str, named: Digest, kind: type[Said], contents: Contents
    ) -> Signed[Said] | None:
        """Return the statement that a receipt names; None if it is not available.

        Raises `TermsError` or `CertificateError` if it is another one, or no active relay signed it.
        """
        finding = TermsError if kind is Terms else CertificateError
        ref = receipt.content.get(name)
        if ref is None:
            raise finding(f"it names a {kind.__name__.lower()} and keeps none", field=name)
        stored = contents.get(ref.id)
        if stored is None or stored.body is None:
            return None
        try:
            signed = decode_part(stored.body, kind)
        except GrantError as error:
            raise finding(f"the stored statement cannot be read: {error}", field=name) from None
        if signed.digest != named:
            raise finding("the stored statement has another digest than the receipt names", field=name)
        key = signed.said.key
        signer = self._signers.get(key)
        if signer is None or key in self._stopped:
            state = "was never enrolled" if signer is None else "was revoked before"
            raise finding(f"it is signed with key {key[:16]}, which {state}", field=name)
        if not self._check(signer.public_key, signing_bytes(signed.payload), signed.signature):
            raise finding("the signature of the stored statement does not match it", field=name)
        return signed


def _require_bound(finding: type[VerificationError] = TermsError, /, **pairs: tuple[object, object]) -> None:
    for name, (said, expected) in pairs.items():
        if said != expected:
            raise finding(f"the stored statement is for {name} {said}, and the receipt is about {expected}", field=name)
