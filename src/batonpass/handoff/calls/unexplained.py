"""Find changes that no recorded call explains: compare the work tree at the end of a run with its beginning.

A recorded change leads from one state of a file to another. Recorded changes, by whichever run, have to lead from the
state at the beginning to the state at the end. If they do not, somebody wrote to the file without a call.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.changes.change_document import decode_change
from batonpass.attribution.changes.sides import printable
from batonpass.errors import InvalidValueError
from batonpass.handoff.files.work_tree import UNSEEN, unpaired
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.json_values import describe
from batonpass.model.base.ids import Digest, RunId, StreamId
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.pattern import ANY
from batonpass.model.ledger.content import Content
from batonpass.records.call import outcome_in
from batonpass.records.unexplained import LISTED, Unexplained, read_unexplained
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

if TYPE_CHECKING:
    from batonpass.attribution.worktree.tree_difference import Difference

UNEXPLAINED: Final = "changes.unexplained"

_VERSION: Final = 0
_MOST_LISTED: Final = 1000
_WRITE: Final = "write"


class _Step(Struct, frozen=True):
    """A recorded change: from one state of a file to another."""

    before: Digest | None
    after: Digest | None
    blind: bool = False  # nobody saw the state before it


def watch_by_default(desk: Desk, holding: Holding) -> None:
    """Watch the files of a run whose grant lets it write, if the work tree is a git repository: there it is cheap."""
    if holding.replaying or not holding.bounds.chain:
        return
    permits = holding.bounds.chain[-1].said.may.permits
    if any(permit.pattern.action in (_WRITE, ANY) for permit in permits) and desk.files.is_repository:
        watch_files(desk, holding)


def watch_files(desk: Desk, holding: Holding) -> None:
    """Watch the files from now on: the close of the run lists the changes that no call explains."""
    if holding.first_look is None and not holding.replaying:
        holding.looked_at = desk.clock.now()
        holding.first_look = desk.files.watch(holding.id)


def find_unexplained(desk: Desk, holding: Holding) -> tuple[tuple[Unexplained, ...], tuple[str, ...]]:
    """Return the changes since the files are watched that no call explains, and flags about them.

    While another call is under way in this process, it may still explain them: then nothing is returned. The run that
    handed off the work finds such changes at its own close.
    """
    if holding.first_look is None or holding.looked_at is None:
        return (), ()
    from batonpass.attribution.git.file_git import GitSilentError  # noqa: PLC0415 - only who watches needs it

    now = desk.files.look()
    if holding.first_look.blind is not None or now.blind is not None:
        return (), (UNSEEN,)
    try:
        found = [one for each in desk.files.differences(holding.first_look, now) for one in unpaired(each)]
    except GitSilentError:
        return (), (UNSEEN,)
    # A change of a call that is still under way has no receipt yet, and would be reported as nobody's.
    if not found or not desk.files.is_quiet():
        return (), ()
    with desk.store.view() as view:
        record = _Record(view, desk, holding.looked_at)
        steps = record.steps(found)
        left = [one for one in found if not _leads(steps.get(printable(one.path), ()), one)]
        told = _told_below(view, holding.root, holding.id) if left else {}
    unexplained = tuple(
        Unexplained(path=printable(one.path), before=one.before_digest, after=one.after_digest)
        for one in left
        if not _leads((*steps.get(printable(one.path), ()), *told.get(printable(one.path), ())), one)
    )
    return unexplained, (UNEXPLAINED,) if unexplained else ()


def list_unexplained(desk: Desk, found: Sequence[Unexplained]) -> Content:
    """Return unexplained changes as content: the count of all, and the first thousand by path."""
    changes = [
        {"path": one.path, **({} if one.before is None else {"before": one.before})}
        | ({} if one.after is None else {"after": one.after})
        for one in found[:_MOST_LISTED]
    ]
    return desk.json(LISTED, describe({"v": _VERSION, "count": len(found), "changes": changes}))


class _Record:
    """The recorded changes since a moment, by path."""

    def __init__(self, view: LedgerView, desk: Desk, since: datetime) -> None:
        self._view = view
        self._root = desk.files.root
        self._since = since

    def steps(self, found: "Iterable[Difference]") -> dict[str, list[_Step]]:
        steps: dict[str, list[_Step]] = {}
        for path in dict.fromkeys(printable(one.path) for one in found):
            for change in self._changes(path):
                if change.renamed_from is None:
                    blind = change.before is None and not change.is_creation
                    steps.setdefault(path, []).append(_Step(change.before, change.after, blind))
                else:
                    steps.setdefault(path, []).append(_Step(None, change.after))
                    steps.setdefault(change.renamed_from, []).append(_Step(change.before, None))
        return steps

    def _changes(self, path: str) -> Iterator[FileChange]:
        for spelling in (path, printable(str(self._root / path))):
            for touched in self._view.find_touches(spelling):
                receipt = decode_receipt(self._view.get_receipt(touched.receipt).payload)
                if receipt.at < self._since:
                    break  # the latest come first
                body = self._view.get_content(touched.content).body
                ended = outcome_in(receipt)
                if body is None or ended is None:
                    continue
                # A change that cannot be read explains nothing. It must not keep the run from being closed either.
                with suppress(InvalidValueError):
                    yield decode_change(body, call=ended.call, run=ended.run, at=receipt.at)


def _leads(steps: Iterable[_Step], difference: "Difference") -> bool:
    """Return whether recorded steps lead from the first state of a file to its last."""
    known = list(steps)
    if difference.too_large and difference.before_digest is None and difference.after_digest is None:
        return bool(known)  # too large to read: any recorded change counts as the explanation
    reached = {difference.before_digest}
    while new := {step.after for step in known if step.blind or step.before in reached} - reached:
        reached |= new
    return difference.after_digest in reached


def _told_below(view: LedgerView, root: RunId, own: RunId) -> dict[str, list[_Step]]:
    """Return the unexplained changes that other runs of the tree have reported, so that they are not reported twice."""
    told: dict[str, list[_Step]] = {}
    for kind in (Kind.HANDOFF_COMPLETED, Kind.HANDOFF_FAILED):
        for stored in view.find_receipts(ReceiptQuery(root=root, kind=kind)):
            if UNEXPLAINED.encode() not in stored.payload:
                continue
            receipt = decode_receipt(stored.payload)
            body = view.get_content(receipt.content[LISTED].id).body if LISTED in receipt.content else None
            if receipt.stream != StreamId(own) and body is not None:
                with suppress(InvalidValueError):
                    for one in read_unexplained(body)[1]:
                        told.setdefault(one.path, []).append(_Step(one.before, one.after))
    return told
