"""Review: what a person should look at, with the receipts that prove it; and the checklist for printing."""

from datetime import timedelta
from itertools import islice
from typing import Final

from batonpass.audit.meant_ids import get_run
from batonpass.model.base.ids import RunId
from batonpass.review.catalogue import KINDS
from batonpass.review.review import Review, review_roots
from batonpass.server.endpoint import DECIDERS
from batonpass.server.page.request import PageRequest, Shown

MOST_TREES: Final = 12
_DAYS: Final = 7


def show_review(asked: PageRequest) -> Shown:
    """Return the findings of one task, or of the latest ones."""
    kind, agent, severity, root = (asked.asked(name) for name in ("kind", "agent", "severity", "root"))
    with asked.looking() as view:
        if root:
            roots = [get_run(view, root).root]
            is_cut = False
        else:
            recent = [*islice(view.find_runs(roots=True, limit=MOST_TREES + 1), MOST_TREES + 1)]
            since = asked.now - timedelta(days=_DAYS)
            roots = [run.id for run in recent[:MOST_TREES] if run.started_at >= since]
            is_cut = len(recent) > MOST_TREES
        review: Review = review_roots(view, [RunId(one) for one in roots], asked.now)
    found = [
        one
        for one in review.findings
        if kind in {"", one.kind.code} and agent in {"", one.agent} and severity in {"", str(one.severity)}
    ]
    return {
        "review": review,
        "findings": found[:200],
        "acknowledged": [pair for one in review.roots for pair in one.acknowledged],
        "shows_acknowledged": asked.asked("acknowledged") == "yes",
        "kinds": sorted({(one.kind.code, one.kind.title) for one in review.findings}),
        "agents": sorted({one.agent for one in review.findings}),
        "kind": kind,
        "agent": agent,
        "severity": severity,
        "root": roots[0] if root else "",
        "is_cut": is_cut,
        "trees": len(roots),
        "most": MOST_TREES,
        "all_kinds": len(KINDS),
        "may_decide": asked.visitor.may(DECIDERS),
    }


def show_finding(asked: PageRequest) -> Shown:
    """Return the form with which somebody acknowledges a finding."""
    with asked.looking() as view:
        root = get_run(view, asked.names["root"]).root
        review = review_roots(view, [root], asked.now)
    found = next((one for one in review.findings if one.key == asked.names["finding"]), None)
    done = next(
        (pair for one in review.roots for pair in one.acknowledged if pair[0].key == asked.names["finding"]), None
    )
    return {"root": root, "finding": found, "done": done, "may_decide": asked.visitor.may(DECIDERS)}
