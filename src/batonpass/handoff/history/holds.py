"""Holds, read back from receipts, and whether the rulings about them are proven."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from batonpass.errors import ApprovalExpiredError, FourEyesError, UnprovenError
from batonpass.guard.policy.gates import opens_unproven, takes_proof
from batonpass.model.base.ids import KeyId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Gate, HandoffApproved, HandoffInitiated, Kind
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.ruling import Decided, Hold, hold_of_offer, ruling_of
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.policy_rules import Policy
from batonpass.records.hold import find_backers, find_held_receipt
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

_RULINGS: Final = (
    Kind.HANDOFF_BACKED,
    Kind.HANDOFF_APPROVED,
    Kind.HANDOFF_DENIED,
    Kind.TOOL_BACKED,
    Kind.TOOL_APPROVED,
    Kind.TOOL_REFUSED,
)


def is_opened(view: LedgerView, hold: Hold, approvals: Iterable[Decided]) -> bool:
    """Return whether these approvals open a hold: enough people, each with a proof if the hold requires one.

    If it takes several people, the principal of the run does not count, and a person with two keys counts once.
    """
    people = {body.by for body in approvals if not hold.proven or is_proven(view, hold, body)}
    return len(people - {hold.principal} if hold.approvals > 1 else people) >= hold.approvals


def require_opened(view: LedgerView, hold: Hold, last: Decided) -> None:
    """Refuse a hold that a store calls approved, if the approvals do not suffice.

    Raises `UnprovenError` and `FourEyesError`.
    """
    if is_opened(view, hold, (*find_backers(view, hold), last)):
        return
    if hold.proven and not is_proven(view, hold, last):
        raise UnprovenError(hold.name, last.by)
    raise FourEyesError(hold.name, last.by, approvals=hold.approvals, because="fewer approved it")


def has_expired(body: Decided, at: datetime) -> bool:
    """Return whether an approval could only be used until a time that has passed."""
    return body.expires is not None and body.expires <= at


def has_approver(view: LedgerView) -> bool:
    """Return whether anybody has an active approver key today."""
    return any(key.role is KeyRole.APPROVER and key.status is KeyStatus.ACTIVE for key in view.find_keys())


def takes_proof_today(view: LedgerView, policy: Policy, gate: Gate) -> bool:
    """Return whether a hold at this gate needs a ruling signed by an approver key, by today's policy and keys."""
    enrolled = policy.proven is None and has_approver(view)
    return takes_proof(policy, gate, enrolled=enrolled)


def needs_proof(view: LedgerView, policy: Policy, hold: Hold) -> bool:
    """Return whether an approval must be signed: the hold says so, or today's policy and keys do."""
    if hold.proven or not takes_proof_today(view, policy, hold.gate):
        return hold.proven
    return not opens_unproven(policy, _mode_of(view, hold), hold.rule)


def _mode_of(view: LedgerView, hold: Hold) -> Mode:
    """Return the mode that is signed into the receipt of a held call or handoff."""
    receipt = find_held_receipt(view, hold)
    if receipt is None and hold.handoff is not None:
        known = view.get_handoff(hold.handoff)
        receipt = decode_receipt(view.get_receipt_at(StreamId(known.parent), known.seq).payload)
    return Mode.ENFORCED if receipt is None else receipt.mode


def is_proven(view: LedgerView, hold: Hold, body: Decided) -> bool:
    """Return whether an approver key of the author signed exactly this ruling about exactly this hold.

    Whether the key was active at that time is a question of order. The store answers it when it accepts the ruling.
    """
    if body.proof is None:
        return False
    from batonpass.signing.approver_key import is_proof  # noqa: PLC0415 - ciphers and hashes of passphrases, for a proof alone

    key = next((key for key in approvers_of(view, body.by) if key.id == body.proof.key), None)
    ruling = ruling_of(view.info().id, hold, body, body.proof.at)
    return key is not None and is_proof(body.proof, ruling, key.public_key)


def require_proven(view: LedgerView, handoff: Handoff, offer: HandoffInitiated, at: datetime) -> None:
    """Refuse to begin a handoff that was held at its offer, if it has too few approvals, unproven or expired ones.

    Raises `UnprovenError`, `FourEyesError` and `ApprovalExpiredError`.
    """
    if offer.state is not State.HELD:
        return
    hold = hold_of_offer(offer, handoff.initiated, principal=view.get_run(handoff.parent).principal)
    query = ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_APPROVED)
    # All of them: a query that is not read to its end stays open as long as an error that we raise refers to it.
    bodies = [decode_receipt(stored.payload).body for stored in view.find_receipts(query)]
    first = next((body for body in bodies if isinstance(body, HandoffApproved)), None)
    if first is None:
        raise UnprovenError(handoff.id, "anybody")
    if offer.proven or offer.approvals > 1:
        require_opened(view, hold, first)
    if handoff.attempt == 0 and first.expires is not None and first.expires <= at:
        raise ApprovalExpiredError(handoff.id, first.by, first.expires)


def find_last_counter(view: LedgerView, key: KeyId) -> int:
    """Return how far an authenticator has counted in the rulings that it signed; 0 if it does not count."""
    bodies = (read_receipt(stored).body for kind in _RULINGS for stored in view.find_receipts(ReceiptQuery(kind=kind)))
    proofs = (body.proof for body in bodies if isinstance(body, Decided))
    return max((one.passkey.counter for one in proofs if one and one.passkey and one.key == key), default=0)


def approvers_of(view: LedgerView, principal: str) -> Iterator[Key]:
    """Yield the approver keys that somebody has or had."""
    return (key for key in view.find_keys() if key.role is KeyRole.APPROVER and key.principal == principal)
