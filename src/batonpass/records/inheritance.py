"""The inheritance of a root: the earlier roots that it continues, and the recorded origin of each of its items.

A session that goes on records the inherited items again, each with its author and its time. So an item and its origin
are the same words of the same moment. If the origin is a report, the item is one of its parts.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final, TypeAlias

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import ContentId, HandoffId, RunId, StreamId
from batonpass.model.base.kinds import Kind, Part
from batonpass.model.baton.items import ItemValue, Report, WorkItem
from batonpass.model.baton.session import session_of
from batonpass.model.bodies.body import RunRecorded, SessionResumed
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.item import find_body
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_item, decode_report, is_report

# Questions and what binds everybody stay, whatever becomes of whoever said them.
_FALLIBLE: Final = frozenset({Part.DECISION, Part.COMPLETED, Part.ARTIFACT, Part.CLAIM, Part.ASSUMPTION, Part.REJECTED})
# Of a series that runs every minute for years, the oldest are of no interest here.
_MOST_ROOTS: Final = 256

_Moment: TypeAlias = tuple[ItemValue, datetime]


def find_resumed(view: LedgerView, root: RunId) -> SessionResumed | None:
    """Return the receipt body in which a root names its earlier roots; None if it began anew."""
    # There may be only one receipt yet.
    with suppress(NotFoundError):
        body = read_receipt(view.get_receipt_at(StreamId(root), 2)).body
        return body if isinstance(body, SessionResumed) else None
    return None


def find_earlier_roots(view: LedgerView, root: RunId) -> tuple[RunId, ...]:
    """Return the roots from which a root goes on; none if it began anew."""
    resumed = find_resumed(view, root)
    return () if resumed is None else tuple(RunId(head.run) for head in resumed.roots)


def find_later_roots(view: LedgerView, root: RunId) -> Iterator[Run]:
    """Yield the roots that go on from a root, also by way of others: those that are open, and those of its session."""
    first = view.get_run(root)
    found = {run.id: run for run in view.find_runs(states=(RunState.OPEN,), roots=True)}
    found |= {run.id: run for run in view.find_runs(session=session_of(first)) if run.parent is None}
    if first.series is not None:
        latest = view.find_runs(series=first.series, limit=_MOST_ROOTS)
        found |= {run.id: run for run in latest if run.parent is None}
    earlier: dict[RunId, tuple[RunId, ...]] = {}
    for run in found.values():
        if run.id != root and _goes_on_from(view, run.id, root, earlier):
            yield run


def _goes_on_from(view: LedgerView, root: RunId, first: RunId, earlier: dict[RunId, tuple[RunId, ...]]) -> bool:
    waiting, seen = [root], {root}
    while waiting:
        one = waiting.pop()
        if one not in earlier:
            earlier[one] = find_earlier_roots(view, one)
        for before in earlier[one]:
            if before == first:
                return True
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return False


def find_origins(view: LedgerView, root: RunId) -> Iterator[tuple[ContentId, Part, ContentId]]:
    """Yield each item that a root began with and that can lose its ground: its part, and where it comes from.

    This is an item, or a report that says it. Constraints, exclusions and questions are left out.
    """
    resumed = find_resumed(view, root)
    if resumed is None:
        return
    said: dict[_Moment, ContentId] = {}
    delivered: dict[HandoffId, ContentId] = {}
    for source in resumed.kept:
        with suppress(NotFoundError, InvalidValueError):  # erased, or of a tree that is not there
            said |= dict.fromkeys(_moments(view, source.item), source.item)
            if (handoff := _handoff_of(view, source.item)) is not None:
                delivered[handoff] = source.item
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(root), kind=Kind.RUN_RECORDED)):
        body = read_receipt(stored).body
        for ref in body.items if isinstance(body, RunRecorded) else ():
            origin = _origin(view, ref.item, said, delivered) if ref.part in _FALLIBLE else None
            if origin is not None:
                yield ref.item, ref.part, origin


def _origin(
    view: LedgerView, item: ContentId, said: dict[_Moment, ContentId], delivered: dict[HandoffId, ContentId]
) -> ContentId | None:
    body = find_body(view, item)
    try:
        value, _, at = decode_item(body or b"")
    except InvalidValueError:
        return None
    # Verified work has the time of its verdict. It names the handoff that delivered it.
    if isinstance(value, WorkItem) and value.evidence in delivered:
        return delivered[HandoffId(value.evidence)]
    return said.get((value, at))


def _moments(view: LedgerView, source: ContentId) -> Iterator[_Moment]:
    """Yield the statements of an item or a report, each with its moment."""
    body = find_body(view, source)
    if body is None:
        return
    if not is_report(body):
        value, _, at = decode_item(body)
        yield value, at
        return
    introduced = view.get_content(source).receipt
    report: Report = decode_report(body)
    if introduced is not None:
        at = read_receipt(view.get_receipt(introduced)).at
        said: tuple[ItemValue, ...] = (*report.decisions, *report.claims, *report.rejected_paths)
        yield from ((one, at) for one in said)


def _handoff_of(view: LedgerView, source: ContentId) -> HandoffId | None:
    """Return the handoff whose attempt recorded something; None for a root."""
    introduced = view.get_content(source).receipt
    if introduced is None:
        return None
    return view.get_run(RunId(view.get_receipt(introduced).stream)).handoff
