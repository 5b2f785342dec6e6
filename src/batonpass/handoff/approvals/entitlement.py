"""Who may approve a hold: by its gate, by the table of approvers in the policy, and by the number of approvals."""

import json
from datetime import datetime

from batonpass.errors import FourEyesError, InvalidValueError, NotApproverError, OutOfScopeError
from batonpass.guard.policy.approvers import Approvable, find_approvers, may_approve
from batonpass.guard.policy.gates import is_for_approvers, may_let_go_on
from batonpass.model.base.content_names import ARGUMENTS, SCOPE, TERMS
from batonpass.model.base.ids import PrincipalId, StreamId
from batonpass.model.bodies.body import Gate, ToolHeld
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.scope import Scope
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.ruling import Decided, Hold
from batonpass.model.policy.policy_rules import Policy
from batonpass.records.hold import find_held_receipt
from batonpass.records.text import read_texts
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt
from batonpass.wire.token import decode_part


def require_entitled(view: LedgerView, policy: Policy, hold: Hold, by: PrincipalId, at: datetime) -> None:
    """Refuse somebody who may not approve this, even with a key. Raises `NotApproverError`, `OutOfScopeError`."""
    if hold.gate is not Gate.NONE and not may_let_go_on(hold.gate, by, worker=hold.worker, principal=hold.principal):
        raise NotApproverError(hold.name, by, hold.gate)
    if not policy.approvers or not is_for_approvers(hold.gate):
        return
    what = approvable(view, hold)
    scope = policy.approvers.get(by)
    # As soon as the policy lists one approver, everybody who is not listed may approve nothing.
    if scope is None or not may_approve(scope, what, at):
        who = tuple(find_approvers(policy.approvers, what, at))
        table = policy.file or "the policy"
        raise OutOfScopeError(hold.name, by, what=str(what), who=who, table=table)


def is_enough(hold: Hold, by: PrincipalId, backers: tuple[Decided, ...]) -> bool:
    """Return whether the approval of `by` is the last one that is needed.

    Raises `FourEyesError` if it would not count: the work is done for `by`, or `by` has approved already and others
    are still missing.
    """
    if hold.approvals == 1:
        return True
    if by == hold.principal:
        raise FourEyesError(hold.name, by, approvals=hold.approvals, because=f"it is done for {by}")
    # Count the others before a second approval is refused. If two people approve a call at the same moment, neither is
    # recorded as the last one: then one of them has to be able to approve again.
    others = {body.by for body in backers} - {by, hold.principal}
    if len(others) + 1 >= hold.approvals:
        return True
    if any(body.by == by for body in backers):
        raise FourEyesError(hold.name, by, approvals=hold.approvals, because=f"{by} is one of them already")
    return False


def approvable(view: LedgerView, hold: Hold) -> Approvable:
    """Return the held call or grant in the form that scopes of approvers are compared with, from receipts."""
    if hold.call is not None:
        receipt = find_held_receipt(view, hold)
        return Approvable(worker=hold.worker, call=None if receipt is None else _call(view, receipt))
    return Approvable(worker=hold.worker, granted=_granted(view, hold))


def _call(view: LedgerView, receipt: Receipt) -> Call | None:
    """Return a held call as a grant sees it; None if its content was erased, or no grant can name it."""
    texts = read_texts(view, receipt)
    scope, given = texts.get(SCOPE), texts.get(ARGUMENTS)
    if not isinstance(receipt.body, ToolHeld) or scope is None or scope.words is None:
        return None
    if given is None or given.body is None:
        return None
    action, _, resource = scope.words.partition(":")
    try:
        arguments = json.loads(given.body).get(ARGUMENTS)
        return Call(receipt.body.tool, action, resource, arguments)
    except (ValueError, RecursionError, AttributeError, InvalidValueError):
        return None


def _granted(view: LedgerView, hold: Hold) -> Scope | None:
    """Return everything that a held handoff would grant, to use or to delegate; None if it has no terms."""
    if hold.handoff is None:
        return None
    handoff = view.get_handoff(hold.handoff)
    offer = decode_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq).payload)
    ref = offer.content.get(TERMS)
    body = None if ref is None else view.get_content(ref.id).body
    if body is None:
        return None
    terms = decode_part(body, Terms).said
    return Scope((*terms.may.permits, *terms.may_delegate.permits))
