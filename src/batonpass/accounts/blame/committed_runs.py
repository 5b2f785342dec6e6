"""The runs whose recorded changes a commit contains.

A file's changes are followed back by digests, from the committed bytes to those of the parent. Each change on the way
is in the commit, however old it is; changes after the bytes were staged are not. Where the digests have a gap, because
somebody unrecorded wrote in between, a change counts if it was made after the parent was committed. A change that left
the file as the parent has it ends the search: it was committed before, or undone.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.accounts.blame.file_changes import FilePlace
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import Digest, RunId
from batonpass.records.call import outcome_in
from batonpass.records.source import when
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, Touched

# The latest of one path: the cost of a commit must not grow with the ledger.
_MOST_TOUCHES: Final = 256


class Sides(Struct, frozen=True):
    """A file in the parent and in the commit; None if it does not exist there."""

    before: Digest | None
    after: Digest | None


class _Step(Struct, frozen=True, kw_only=True):
    run: RunId
    at: datetime
    before: Digest | None
    after: Digest | None


def find_touched(view: LedgerView, root: Path, paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that have recorded changes."""
    return (path for path in paths if next(_touches(view, root, path), None) is not None)


def find_committed_runs(
    view: LedgerView, root: Path, files: Mapping[str, Sides], *, since: datetime | None
) -> list[RunId]:
    """Return the runs behind a commit, the latest first; `since` is when its parent was committed."""
    latest: dict[RunId, datetime] = {}
    for path, sides in files.items():
        steps = sorted(_steps(view, root, path), key=lambda step: step.at, reverse=True)
        for step in _within(steps, sides, since):
            latest[step.run] = max(step.at, latest.get(step.run, step.at))
    return sorted(latest, key=lambda run: (latest[run], run), reverse=True)


def _within(steps: Iterable[_Step], sides: Sides, since: datetime | None) -> list[_Step]:
    """Return the steps between the two sides; they are given from last to first."""
    found: list[_Step] = []
    wanted = sides.after
    is_linked = False
    for step in steps:
        if _is_looked_at(step) and step.after == sides.before:
            break
        if _is_looked_at(step) and step.after == wanted:
            if not is_linked:
                found.clear()  # these came after the committed bytes
            is_linked = True
        elif since is not None and step.at <= since:
            break
        found.append(step)
        wanted = step.before if is_linked else wanted
        if _is_looked_at(step) and step.before == sides.before:
            break
    return found


def _is_looked_at(step: _Step) -> bool:
    return step.before is not None or step.after is not None


def _steps(view: LedgerView, root: Path, path: str) -> Iterator[_Step]:
    for touched in islice(_touches(view, root, path), _MOST_TOUCHES):
        try:
            receipt = read_receipt(view.get_receipt(touched.receipt))
        except NotFoundError:
            continue  # deleted; verification reports it, and here we need only the names of runs
        if (ended := outcome_in(receipt)) is not None:
            at = when(view, receipt)
            for changed in ended.changes:
                if changed.change == touched.content:
                    yield _Step(run=ended.run, at=at, before=changed.before, after=changed.after)


def _touches(view: LedgerView, root: Path, path: str) -> Iterator[Touched]:
    for spelling in dict.fromkeys(FilePlace(root=root, path=path).spellings(path)):
        yield from view.find_touches(spelling)
