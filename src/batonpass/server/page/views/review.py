"""Review: findings with the receipts that prove them, and the checklist for printing."""

from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from batonpass.audit.meant_ids import get_run
from batonpass.model.base.ids import RunId
from batonpass.review.catalogue import KINDS
from batonpass.review.review import Review, review_roots
from batonpass.server.endpoint import DECIDERS
from batonpass.server.page.request import PageRequest, Shown

MOST_TREES: Final = 5  # on one page
MOST_FINDINGS: Final = 100
MOST_ROWS: Final = 200  # of the checklist
_DAYS: Final = 7
# The checklist is printed, so its tasks are shown whole. Those of a large tree share this many characters, because a
# page stays below 200 KB.
_ROOM: Final = 60_000
_LEAST_ROOM: Final = 100  # characters of a cell, of which a row has three


def show_review(asked: PageRequest) -> Shown:
    """Return the findings of one task, or of the latest ones."""
    kind, agent, severity, root = (asked.asked(name) for name in ("kind", "agent", "severity", "root"))
    before = asked.asked("before")
    with asked.looking() as view:
        if root:
            roots = [get_run(view, root).root]
            next_page = None
        else:
            since = asked.now - timedelta(days=_DAYS)
            older = RunId(before) if before else None
            found = view.find_runs(roots=True, before=older, limit=MOST_TREES + 1)
            recent = [run.id for run in found if run.started_at >= since]
            roots = recent[:MOST_TREES]
            is_cut = len(recent) > MOST_TREES
            next_page = f"/review?{urlencode({**asked.query, 'before': roots[-1]})}" if is_cut else None
        review: Review = review_roots(view, [RunId(one) for one in roots], asked.now)
    rows = sum(len(one.rows[:MOST_ROWS]) for one in review.roots)
    told = [
        one
        for one in review.findings
        if kind in {"", one.kind.code} and agent in {"", one.agent} and severity in {"", str(one.severity)}
    ]
    return {
        "review": review,
        "findings": told[:MOST_FINDINGS],
        "more": max(0, len(told) - MOST_FINDINGS),
        "next": next_page,
        "is_first": not before,
        "acknowledged": [pair for one in review.roots for pair in one.acknowledged],
        "shows_acknowledged": asked.asked("acknowledged") == "yes",
        "kinds": sorted({(one.kind.code, one.kind.title) for one in review.findings}),
        "agents": sorted({one.agent for one in review.findings}),
        "kind": kind,
        "agent": agent,
        "severity": severity,
        "root": roots[0] if root else "",
        "trees": len(roots),
        "all_kinds": len(KINDS),
        "most_rows": MOST_ROWS,
        "room": max(_LEAST_ROOM, _ROOM // (3 * max(1, rows))),
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
