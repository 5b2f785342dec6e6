"""Suggesting grants: for each agent the least that covers what it, and those below it, were seen to do."""

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
from batonpass.records.text import read_contents, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_PATH: Final = "path"


class Suggested(Struct, frozen=True, kw_only=True):
    """The least grants, and how many calls none of them covers."""

    grants: tuple[LeastScope, ...]
    uncovered: int  # their words are gone, no permit can name what they did, or a grant had no room for one


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


class _Leads(Struct, frozen=True):
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
    query = ReceiptQuery(kind=Kind.TOOL_REQUESTED, since=since)
    for stored in view.find_receipts(query):
        for call in find_calls([read_receipt(stored)]).values():
            yield call.run, granted_call(view, call, leads.named)


def _written(view: LedgerView, since: datetime | None, leads: _Leads) -> Iterator[tuple[RunId, Call]]:
    """Yield what commands wrote: in an enforced run they may change only what the run may write itself."""
    for kind in (Kind.TOOL_COMPLETED, Kind.TOOL_FAILED):
        for stored in view.find_receipts(ReceiptQuery(kind=kind, since=since)):
            call = read_call(view, read_receipt(stored)) if b'"changes"' in stored.payload else None
            if call is not None and call.tool == SHELL and not _is_breach(call):
                yield from ((call.run, written) for written in read_written(view, call, leads.changed))


def _is_breach(call: CallRecord) -> bool:
    # What a held run did beyond its grant is no more a reason to grant it than a call that was refused.
    return call.ending is not None and call.ending.mode is Mode.ENFORCED and OUTSIDE in call.flags


def granted_call(view: LedgerView, call: CallRecord, named: Resolver | None = None) -> Call | None:
    """Return a recorded call as a grant would see it; None if its words are gone, or nothing could grant it."""
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
