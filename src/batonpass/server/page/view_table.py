"""All views of the page, by address."""

from typing import Final

from batonpass.server.page import passkey
from batonpass.server.page.request import PageView
from batonpass.server.page.views import (
    agents,
    approvals,
    blame,
    drift,
    finder,
    handoff,
    ledger,
    now,
    policy,
    review,
    tasks,
    tree,
)

VIEWS: Final[tuple[PageView, ...]] = (
    PageView(path="/", name="Now", template="now.html", make=now.show_now),
    PageView(path="/tasks", name="Tasks", template="tasks.html", make=tasks.list_tasks),
    PageView(path="/tasks/{root}", name="Tasks", template="tree.html", make=tree.show_tree),
    PageView(path="/handoffs", name="Tasks", template="handoffs.html", make=tasks.list_handoffs),
    PageView(path="/handoffs/{handoff}", name="Tasks", template="handoff.html", make=handoff.show_handoff),
    *(
        PageView(path=f"/handoffs/{{handoff}}/{name}", name="Tasks", template="act.html", make=handoff.show_action)
        for name in handoff.ACTIONS
    ),
    PageView(path="/handoffs/{handoff}/calls/{call}", name="Tasks", template="settle.html", make=handoff.show_doubt),
    PageView(path="/blame", name="Blame", template="blame.html", make=blame.show_blame),
    PageView(path="/blame/diff", name="Blame", template="blame_diff.html", make=blame.show_diff, takes_form=True),
    PageView(path="/review", name="Review", template="review.html", make=review.show_review),
    PageView(path="/review/{root}/{finding}", name="Review", template="finding.html", make=review.show_finding),
    PageView(path="/drift", name="Drift", template="drift.html", make=drift.list_drift),
    PageView(path="/drift/{agent}", name="Drift", template="drift.html", make=drift.show_drift),
    PageView(path="/ledger", name="Ledger", template="ledger.html", make=ledger.list_receipts),
    PageView(path="/ledger/receipts/{receipt}", name="Ledger", template="receipt.html", make=ledger.show_receipt),
    PageView(path="/ledger/seals", name="Ledger", template="seals.html", make=ledger.show_seals),
    PageView(path="/ledger/verify", name="Ledger", template="check.html", make=ledger.show_check),
    PageView(path="/agents", name="Agents", template="agents.html", make=agents.list_agents),
    PageView(path="/agents/{agent}", name="Agents", template="agent.html", make=agents.show_agent),
    PageView(path="/policy", name="Agents", template="policy.html", make=policy.show_policy),
    PageView(path="/policy/try", name="Agents", template="policy_try.html", make=policy.try_policy, takes_form=True),
    PageView(path="/find", name="", template="find.html", make=finder.find),
    PageView(path="/passkey", name="", template="passkey.html", make=passkey.show_passkey),
    PageView(path="/keys", name="", template="keys.html", make=finder.show_keys),
    PageView(path="/approvals", name="Approvals", template="approvals.html", make=approvals.list_approvals),
    PageView(path="/approvals/{held}", name="Approvals", template="decide.html", make=approvals.decide),
    PageView(path="/questions/{handoff}", name="Approvals", template="question.html", make=approvals.show_question),
)
