"""Findings about content from outside: where it could act."""

from collections.abc import Iterator
from typing import Final

from batonpass.accounts.taint.receipt_texts import item_text, source_text
from batonpass.guard.policy.taint_gate import CONSEQUENTIAL
from batonpass.model.base.kinds import Sanitising
from batonpass.model.bodies.body import HandoffContextSanitized
from batonpass.model.ledger.receipt_taint import brought_by
from batonpass.model.policy.policy_rules import TAINT
from batonpass.records.call import CallRecord
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import listed, quoted
from batonpass.review.reviewed_tree import ReviewedTree
from batonpass.scan.passages import Passages, mark

INJECTION_PATH: Final = FindingKind(
    code="injection-path",
    title="Injection path",
    severity=Severity.HIGH,
    matters="Words from outside reached a call that changes something, or look like orders to an agent.",
    owasp="ASI01",
)
TRUST_ESCALATION: Final = FindingKind(
    code="trust-escalation",
    title="Trust escalation",
    severity=Severity.HIGH,
    matters="Content from outside was taken for an order, or let an agent act with consequences that nobody approved.",
    owasp="ASI06",
)

_WOULD_HOLD: Final = ("would_hold", TAINT)


def find_injection_paths(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the calls that changed something and whose arguments repeat words from outside; then suspicious texts."""
    for call in tree.calls.values():
        if call.is_made and not call.reads and call.untrusted:
            worst = Severity.HIGH if not CONSEQUENTIAL.isdisjoint(call.tiers) else Severity.MEDIUM
            agent = tree.runs[call.run].agent
            yield tree.found(
                INJECTION_PATH,
                call,
                f"{agent} called {call.tool} with words from {_names(call)}",
                (call.receipt,),
                severity=worst,
                calls=(call,),
                go_on=(f"batonpass taint {call.id[-8:]}", f"batonpass why {call.id[-8:]}"),
            )
    for receipt in tree.receipts:
        body = receipt.body
        if isinstance(body, HandoffContextSanitized) and body.found and body.handoff in tree.handoffs:
            did = "reported" if body.action is Sanitising.REPORTED else "quoted as data"
            rules = listed(f"{one.rule} in {one.place.partition('.')[0]}" for one in body.found)
            handoff = tree.handoffs[body.handoff]
            yield tree.found(
                INJECTION_PATH,
                handoff,
                f"what {tree.runs[body.run].agent} wrote looks like injected orders ({rules}); it was {did}",
                (receipt,),
                severity=Severity.MEDIUM,
                by=body.run,
            )


def _names(call: CallRecord) -> str:
    return listed(str(source) for source in call.untrusted)


def find_trust_escalations(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield tasks in the words of a stranger, and calls of tainted runs that would wait for a person if enforced."""
    yield from _foreign_tasks(tree)
    for call in tree.calls.values():
        if call.is_made and _WOULD_HOLD in call.would:
            agent = tree.runs[call.run].agent
            yield tree.found(
                TRUST_ESCALATION,
                call,
                f"{agent} had read content from outside and called {call.tool}; enforced, it would wait for a person",
                (call.receipt,),
                calls=(call,),
                go_on=(f"batonpass why {call.id[-8:]}", f"batonpass taint {call.id[-8:]}"),
            )


def _foreign_tasks(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the tasks that repeat words from outside: data became an order, and no person had said it."""
    tainted = [(handoff, offer, body) for handoff, (offer, body) in tree.offers.items() if body.taint]
    if not tainted:
        return
    brought = {source: receipt for receipt in tree.receipts for source in brought_by(receipt)}
    foreign, own = Passages[str](), Passages[str]()
    for source, receipt in brought.items():
        foreign.add(source, source_text(tree.view, source, receipt) or "")
    for stated in tree.view.find_statements(tree.root):
        if stated.by.startswith("user:"):
            own.add(stated.item, item_text(tree.view, stated.item) or "")
    for handoff, offer, body in tainted:
        if handoff in tree.handoffs and (spans := mark(tree.task(handoff), foreign, own)):
            words = quoted(tree.task(handoff)[spans[0].start : spans[0].end])
            yield tree.found(
                TRUST_ESCALATION,
                tree.handoffs[handoff],
                f"{tree.runs[body.run].agent} gave {body.to} the words of a stranger as its task: {words}",
                (offer,),
                go_on=(f"batonpass taint {handoff[-8:]}",),
                by=body.run,
            )
