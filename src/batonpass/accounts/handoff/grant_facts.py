"""A chain of grants for programs: giver and terms of each hop, how much is used, and whether it is still valid."""

from collections.abc import Iterable

from batonpass.accounts.handoff.grant_chain import HeldGrant, Revocation
from batonpass.guard.grants.limit_accounts import spelled_amount
from batonpass.ledger.position import mode_of_child
from batonpass.model.base.ids import HANDOFF, HandoffId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.charge import Charged
from batonpass.records.json_shapes import exact
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView


def mode_of(view: LedgerView, account: StreamId) -> Mode:
    """Return whether a handoff or a root run is observed or enforced."""
    if not account.startswith(HANDOFF):
        return read_receipt(view.get_receipt_at(account, 1)).mode
    handoff = view.get_handoff(HandoffId(account))
    return mode_of_child(read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq)))


def chain_facts(chain: tuple[HeldGrant, ...]) -> list[dict[str, object]]:
    """Return a chain for programs."""
    return [
        {
            "agent": terms.agent,
            "principal": terms.principal,
            "granted_by": held.by,
            "at": exact(terms.at),
            "account": held.account,
            "terms": held.terms.digest,
            "may": list(terms.may.lines),
            "may_delegate": list(terms.may_delegate.lines),
            "limits": str(terms.limits) or None,
            "until": exact(terms.until),
            "max_depth": terms.max_depth,
            "used": _amounts(held.used),
            "permits": {permit: _amounts(used) for permit, used in held.permits.items()},
            "revoked": None if held.revoked is None else revocation_facts(held.revoked),
        }
        for held in chain
        for terms in (held.terms.said,)
    ]


def revocation_facts(revoked: Revocation) -> dict[str, object]:
    """Return a revocation for programs."""
    reason = None if revoked.reason is None else revoked.reason.words
    return {"by": revoked.by, "at": exact(revoked.at), "reason": reason, "receipt": revoked.receipt}


def _amounts(charged: Iterable[Charged]) -> dict[str, int | str]:
    return {str(one.unit): spelled_amount(one.unit, one.used) for one in charged}
