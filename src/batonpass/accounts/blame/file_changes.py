"""The recorded changes of a file, under all of its names and spellings."""

from collections.abc import Iterable, Iterator, Mapping
from os import fspath
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.changes.change_document import decode_change
from batonpass.attribution.changes.sides import find_repository, printable
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.content_names import SOURCE
from batonpass.model.base.ids import CallId, ContentId
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.call import outcome_in
from batonpass.records.source import Source, happened_at, source_of
from batonpass.records.text import find_in_chunks, read_receipt
from batonpass.store.port import LedgerView


class FilePlace(Struct, frozen=True, kw_only=True):
    """A file: the root of its repository, its path there, and other directories that paths may start from."""

    root: Path
    path: str  # from the root, with slashes
    roots: tuple[Path, ...] = ()

    def spellings(self, path: str) -> Iterator[str]:
        """Yield the spellings under which a path may have been recorded, its own first."""
        whole = self.root / path
        yield printable(path)
        yield printable(fspath(whole))
        for root in self.roots:
            if whole.is_relative_to(root):
                yield printable(whole.relative_to(root).as_posix())


class RecordedChange(Struct, frozen=True, kw_only=True):
    """A change of a file, with its receipt."""

    change: FileChange
    receipt: Receipt
    stored: StoredReceipt
    source: Source | None


class RecordedChanges(Struct):
    """The recorded changes of a file, in the order they happened, and notes on those that cannot be read."""

    found: list[RecordedChange]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> list[FileChange]:
        """Return the changes alone."""
        return [recorded.change for recorded in self.found]

    def by_call(self) -> dict[CallId, list[RecordedChange]]:
        """Return the changes by call."""
        calls: dict[CallId, list[RecordedChange]] = {}
        for recorded in self.found:
            calls.setdefault(CallId(recorded.change.call), []).append(recorded)
        return calls


def read_changes(view: LedgerView, place: FilePlace, names: Iterable[str]) -> RecordedChanges:
    """Return the changes of a file under these names, and under earlier names that records mention."""
    found: dict[ContentId, RecordedChange] = {}
    notes: list[str] = []
    known: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name in known:
            continue
        known[name] = None
        for recorded, content in _under(view, place, name, notes):
            found.setdefault(content, recorded)
            if recorded.change.renamed_from is not None:
                waiting.append(recorded.change.renamed_from)
    # By the time they happened, then by the order of recording.
    ordered = sorted(found.values(), key=lambda one: (one.change.at, one.stored.position or 0, one.receipt.id))
    return RecordedChanges(ordered, tuple(known), tuple(notes))


def _under(
    view: LedgerView, place: FilePlace, name: str, notes: list[str]
) -> Iterator[tuple[RecordedChange, ContentId]]:
    spellings = list(dict.fromkeys(place.spellings(name)))
    touches = [touched for spelling in spellings for touched in reversed([*view.find_touches(spelling)])]
    receipts: dict[ContentId, tuple[StoredReceipt, Receipt]] = {}
    for touched in touches:
        try:
            stored = view.get_receipt(touched.receipt)
        except NotFoundError:
            notes.append(f"a change of {touched.path} names a missing receipt: {touched.receipt}")
            continue
        receipts[touched.content] = stored, read_receipt(stored)
    contents = _contents(view, receipts)
    for content, (stored, receipt) in receipts.items():
        held = contents.get(content)
        source = source_of(receipt, contents)
        ended = outcome_in(receipt)
        if ended is None or held is None or held.body is None:
            notes.append(f"a change of {name} cannot be read: {content}")
            continue
        at = happened_at(receipt, source)
        try:
            change = decode_change(held.body, call=ended.call, run=ended.run, at=at)
        except InvalidValueError as error:
            notes.append(f"a change of {name} cannot be read: {error.problem}")
            continue
        if change.path not in spellings:
            notes.append(f"a change of {change.path} is found under {name}; run `batonpass ledger verify`")
            continue
        yield RecordedChange(change=replace(change, path=name), receipt=receipt, stored=stored, source=source), content


def _contents(
    view: LedgerView, receipts: Mapping[ContentId, tuple[StoredReceipt, Receipt]]
) -> dict[ContentId, StoredContent]:
    sources = (receipt.content[SOURCE].id for _, receipt in receipts.values() if SOURCE in receipt.content)
    return {content.id: content for content in find_in_chunks(view, list(dict.fromkeys((*receipts, *sources))))}


def place_of(path: Path, *, roots: Iterable[Path] = ()) -> FilePlace:
    """Return the place of a file in its repository; outside of any, relative to the first matching root."""
    whole = path.absolute()
    resolved = whole.resolve()
    repository = find_repository(resolved.parent)
    given = tuple(dict.fromkeys(known for root in roots for known in (root.absolute(), root.resolve())))
    if repository is not None:
        return FilePlace(root=repository, path=resolved.relative_to(repository).as_posix(), roots=given)
    for root in given:
        for spelled in (whole, resolved):
            if spelled.is_relative_to(root):
                return FilePlace(root=root, path=PurePosixPath(spelled.relative_to(root)).as_posix(), roots=given)
    return FilePlace(root=resolved.parent, path=resolved.name, roots=given)
