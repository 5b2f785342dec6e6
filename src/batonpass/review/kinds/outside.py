"""Findings about content from outside: where it could act."""

from collections.abc import Iterator
from typing import Final

from batonpass.guard.policy.taint_gate import CONSEQUENTIAL
from batonpass.model.base.kinds import Sanitising
from batonpass.model.bodies.body import HandoffContextSanitized
from batonpass.model.policy.policy_rules import TAINT
from batonpass.records.call import CallRecord
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import listed
from batonpass.review.reviewed_tree import ReviewedTree

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
    matters="An agent that had read content from outside acted with consequences, and nobody approved.",
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
            )


def _names(call: CallRecord) -> str:
    return listed(str(source) for source in call.untrusted)


def find_trust_escalations(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the calls of tainted runs that would have waited for a person, if they were enforced."""
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
