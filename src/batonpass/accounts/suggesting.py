"""Suggesting grants: for each agent the least that covers what it, and those below it, were seen to do."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from batonpass.audit.lookup import read_receipt
from batonpass.errors import InvalidValueError
from batonpass.guard.least import LeastScope, join_scopes, least_scope
from batonpass.handoff.calling import TARGET
from batonpass.handoff.resuming import ARGUMENTS
from batonpass.handoff.tools import CALL, READ, WRITE
from batonpass.handoff.using import SCOPE
from batonpass.model.bodies import Kind, ToolRequested
from batonpass.model.call import Call, Resolver
from batonpass.model.ids import AgentId, RunId
from batonpass.model.receipt import Receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_PATH: Final = "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """The least grants, and how many calls none of them covers."""

    grants: tuple[LeastScope, ...]
    uncovered: int  # their words are gone, or no permit can name what they did


def suggest(
    view: LedgerView,
    resolve: Resolver | None = None,
    *,
    since: datetime | None = None,
    agent: AgentId | None = None,
) -> Suggested:
    """Return for each agent the least grant that covers the calls that it, and those below it, were seen to make.

    What those below it did it has to be able to delegate: a grant without that would hand on nothing. Absolute paths
    are resolved as the guard does it: what lies in the work tree is suggested relative to it.
    """
    lines: dict[RunId, tuple[AgentId, ...]] = {}
    used: list[tuple[AgentId, Call]] = []
    passed_on: list[tuple[AgentId, Call]] = []
    uncovered = 0
    for run, call in _observed(view, ReceiptQuery(kind=Kind.TOOL_REQUESTED, since=since), resolve):
        if run not in lines:
            lines[run] = tuple(_line(view, run))
        own, *above = lines[run]
        if call is None:
            uncovered += agent in {None, own}
            continue
        used += [(own, call)] if agent in {None, own} else []
        passed_on += [(one, call) for one in dict.fromkeys(above) if agent in {None, one}]
    grants = join_scopes(least_scope(used), least_scope(passed_on))
    return Suggested(grants=grants, uncovered=uncovered + sum(len(one.outside) for one in grants))


def _line(view: LedgerView, run: RunId) -> Iterator[AgentId]:
    """Yield who works in a run, and then everybody above it."""
    found = view.get_run(run)
    yield found.agent
    while found.parent is not None:
        found = view.get_run(found.parent)
        yield found.agent


def _observed(view: LedgerView, query: ReceiptQuery, resolve: Resolver | None) -> Iterator[tuple[RunId, Call | None]]:
    for stored in view.find_receipts(query):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, ToolRequested):
            yield receipt.body.run, _seen(view, receipt, receipt.body, resolve)


def _seen(view: LedgerView, receipt: Receipt, body: ToolRequested, resolve: Resolver | None) -> Call | None:
    """Return a recorded call as a grant would see it; None if its words are gone, or nothing could grant it."""
    texts = {
        name: (view.get_content(receipt.content[name].id).body or b"").decode("utf-8", "replace")
        for name in (SCOPE, TARGET, ARGUMENTS)
        if name in receipt.content
    }
    action, _, resource = texts.get(SCOPE, "").partition(":")
    if not resource:
        named = texts.get(TARGET) or _path_in(texts.get(ARGUMENTS, ""))
        action, resource = (READ if body.reads else WRITE, named) if named else (CALL, body.tool)
    try:
        call = Call(body.tool, action, resolve(resource) if resolve and resource.startswith("/") else resource)
        call.place  # noqa: B018 - it is read to see whether it can be
    except InvalidValueError:
        return None
    return call


def _path_in(described: str) -> str | None:
    try:
        found = json.loads(described)["arguments"][_PATH]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) and found else None
