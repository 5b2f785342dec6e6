"""Suggesting grants: for each agent the least that covers what it, and those below it, were seen to do."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from batonpass.accounts.blame_makers import find_request
from batonpass.audit.lookup import read_receipt
from batonpass.errors import InvalidValueError
from batonpass.guard.least import LeastScope, join_scopes, least_scope
from batonpass.handoff.calls.past_calls import ARGUMENTS
from batonpass.handoff.calls.receipts import TARGET
from batonpass.handoff.calls.shell import OUTSIDE
from batonpass.handoff.calls.tools import CALL, READ, WRITE
from batonpass.handoff.calls.written_files import SHELL, read_written
from batonpass.handoff.using import SCOPE
from batonpass.model.bodies import Kind, ToolCompleted, ToolFailed, ToolRequested
from batonpass.model.call import Call, Resolver
from batonpass.model.ids import AgentId, RunId
from batonpass.model.receipt import Mode, Receipt, StoredReceipt
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
    repository: Path | None = None,
) -> Suggested:
    """Return for each agent the least grant that covers the calls that it, and those below it, were seen to make.

    What those below it did it has to be able to delegate: a grant without that would hand on nothing. Absolute paths
    are resolved as the guard does it: what lies in the work tree is suggested relative to it. What a command changed it
    has to be able to write; such paths begin at the root of the repository.
    """
    lines: dict[RunId, tuple[AgentId, ...]] = {}
    used: list[tuple[AgentId, Call]] = []
    passed_on: list[tuple[AgentId, Call]] = []
    uncovered = 0
    leads = _Leads(resolve, repository)
    for run, call in (*_observed(view, since, leads), *_written(view, since, leads)):
        if run not in lines:
            lines[run] = tuple(find_line(view, run))
        own, *above = lines[run]
        if call is None:
            uncovered += agent in {None, own}
            continue
        used += [(own, call)] if agent in {None, own} else []
        passed_on += [(one, call) for one in dict.fromkeys(above) if agent in {None, one}]
    grants = join_scopes(least_scope(used), least_scope(passed_on))
    return Suggested(grants=grants, uncovered=uncovered + sum(len(one.outside) for one in grants))


def find_line(view: LedgerView, run: RunId) -> Iterator[AgentId]:
    """Yield who works in a run, and then everybody above it."""
    found = view.get_run(run)
    yield found.agent
    while found.parent is not None:
        found = view.get_run(found.parent)
        yield found.agent


@dataclass(frozen=True, slots=True)
class _Leads:
    """Where paths lead, as far as somebody says how to find out."""

    resolve: Resolver | None
    repository: Path | None

    def named(self, resource: str) -> str:
        """Return where something leads that a call named."""
        return self.resolve(resource) if self.resolve and resource.startswith("/") else resource

    def changed(self, path: str) -> str:
        """Return where a file is that was changed, from the root of the repository."""
        return path if self.repository is None else self.named(str(self.repository / path))


def _observed(view: LedgerView, since: datetime | None, leads: _Leads) -> Iterator[tuple[RunId, Call | None]]:
    for stored in view.find_receipts(ReceiptQuery(kind=Kind.TOOL_REQUESTED, since=since)):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, ToolRequested):
            yield receipt.body.run, recorded_call(view, receipt, receipt.body, leads.named)


def _written(view: LedgerView, since: datetime | None, leads: _Leads) -> Iterator[tuple[RunId, Call]]:
    """Yield what commands wrote: in an enforced run they may change only what the run may write itself."""
    for kind in (Kind.TOOL_COMPLETED, Kind.TOOL_FAILED):
        for stored in view.find_receipts(ReceiptQuery(kind=kind, since=since)):
            if b'"changes"' in stored.payload:
                receipt = read_receipt(stored)
                if _is_command(view, stored, receipt) and not _is_breach(receipt):
                    yield from ((RunId(receipt.stream), call) for call in read_written(view, receipt, leads.changed))


def _is_command(view: LedgerView, stored: StoredReceipt, outcome: Receipt) -> bool:
    if not isinstance(outcome.body, ToolCompleted | ToolFailed):
        return False
    _, request = find_request(view, stored, outcome, outcome.body.call)
    return isinstance(request.body, ToolRequested) and request.body.tool == SHELL


def _is_breach(outcome: Receipt) -> bool:
    # What a held run did beyond its grant is no more a reason to grant it than a call that was refused.
    return outcome.mode is Mode.ENFORCED and OUTSIDE in getattr(outcome.body, "flags", ())


def recorded_call(
    view: LedgerView, receipt: Receipt, body: ToolRequested, named: Resolver | None = None
) -> Call | None:
    """Return a recorded call as a grant would see it; None if its words are gone, or nothing could grant it."""
    texts = {
        name: (view.get_content(receipt.content[name].id).body or b"").decode("utf-8", "replace")
        for name in (SCOPE, TARGET, ARGUMENTS)
        if name in receipt.content
    }
    arguments = _arguments_in(texts.get(ARGUMENTS, ""))
    action, _, resource = texts.get(SCOPE, "").partition(":")
    if not resource:
        path = arguments.get(_PATH)
        target = texts.get(TARGET) or (path if isinstance(path, str) else None)
        action, resource = (READ if body.reads else WRITE, target) if target else (CALL, body.tool)
    try:
        call = Call(body.tool, action, resource if named is None else named(resource), arguments)
        call.place  # noqa: B018 - it is read to see whether it can be
    except InvalidValueError:
        return None
    return call


def _arguments_in(described: str) -> Mapping[str, object]:
    try:
        found = json.loads(described)["arguments"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
