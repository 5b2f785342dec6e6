"""Suggested grants: for each agent the least that covers its calls and those of the runs below it."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.guard.grants.least_grant import LeastScope, join_scopes, least_scope
from batonpass.handoff.history.written_files import OUTSIDE, SHELL, read_written
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.model.base.content_names import ARGUMENTS, SCOPE, TARGET
from batonpass.model.base.ids import AgentId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.call import Call, Resolver
from batonpass.records.call import CallRecord, arguments_in, find_calls, read_call
from batonpass.records.lineage import find_ancestors
from batonpass.records.text import read_contents, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_PATH: Final = "path"


class Suggested(Struct, frozen=True, kw_only=True):
    """The suggested grants, and how many calls they do not cover."""

    grants: tuple[LeastScope, ...]
    uncovered: int  # their contents are gone, no permit can express them, or the grant was full


def suggest(
    view: LedgerView,
    resolve: Resolver | None = None,
    *,
    since: datetime | None = None,
    agent: AgentId | None = None,
    repository: Path | None = None,
) -> Suggested:
    """Return for each agent the least grant that covers its observed calls, and those of the runs below it.

    The grant lets an agent delegate the calls of the runs below it. Absolute paths are resolved like in the guard, and
    become relative inside the work tree. Files that a command changed must be writable; their paths start at the root
    of the repository.
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
    """Yield the agent of a run, then those of all runs above it."""
    found = view.get_run(run)
    return (each.agent for each in (found, *find_ancestors(view, found)))


class _Leads(Struct, frozen=True):
    """Resolves paths, as far as the caller says how."""

    resolve: Resolver | None
    repository: Path | None

    def named(self, resource: str) -> str:
        """Return a resource that a call named, resolved."""
        return self.resolve(resource) if self.resolve and resource.startswith("/") else resource

    def changed(self, path: str) -> str:
        """Return a changed file, resolved from the root of the repository."""
        return path if self.repository is None else self.named(str(self.repository / path))


def _observed(view: LedgerView, since: datetime | None, leads: _Leads) -> Iterator[tuple[RunId, Call | None]]:
    query = ReceiptQuery(kind=Kind.TOOL_REQUESTED, since=since)
    for stored in view.find_receipts(query):
        for call in find_calls([read_receipt(stored)]).values():
            yield call.run, granted_call(view, call, leads.named)


def _written(view: LedgerView, since: datetime | None, leads: _Leads) -> Iterator[tuple[RunId, Call]]:
    """Yield the writes of commands: in an enforced run, a command may change only files that the run may write."""
    for kind in (Kind.TOOL_COMPLETED, Kind.TOOL_FAILED):
        for stored in view.find_receipts(ReceiptQuery(kind=kind, since=since)):
            call = read_call(view, read_receipt(stored)) if b'"changes"' in stored.payload else None
            if call is not None and call.tool == SHELL and not _is_breach(call):
                yield from ((call.run, written) for written in read_written(view, call, leads.changed))


def _is_breach(call: CallRecord) -> bool:
    # Calls of an enforced run beyond its grant are no reason to grant them, just like refused calls.
    return call.ending is not None and call.ending.mode is Mode.ENFORCED and OUTSIDE in call.flags


def granted_call(view: LedgerView, call: CallRecord, named: Resolver | None = None) -> Call | None:
    """Return a recorded call as a grant sees it; None if its contents are gone, or no grant could cover it."""
    names = {name: call.content[name] for name in (SCOPE, TARGET, ARGUMENTS) if name in call.content}
    texts = read_contents(view, names)
    arguments = arguments_in(texts[ARGUMENTS].body if ARGUMENTS in texts else None) or {}
    words = {name: (text.body or b"").decode("utf-8", "replace") for name, text in texts.items()}
    action, _, resource = words.get(SCOPE, "").partition(":")
    if not resource:
        path = arguments.get(_PATH)
        target = words.get(TARGET) or (path if isinstance(path, str) else None)
        action, resource = (READ if call.reads else WRITE, target) if target else (CALL, call.tool)
    try:
        granted = Call(call.tool, action, resource if named is None else named(resource), arguments)
        granted.place  # noqa: B018 - it is read to see whether it can be
    except InvalidValueError:
        return None
    return granted
