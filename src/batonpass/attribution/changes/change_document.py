"""Encodes a file change as content, and reads the changes of a recorded call."""

from datetime import datetime
from typing import Any, Final

import msgspec

from batonpass.attribution.changes.change import Certainty, FileChange, Hunk
from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import CHANGE
from batonpass.model.base.ids import CallId, ContentId, Digest, RunId
from batonpass.records.call import CallRecord
from batonpass.records.text import read_texts
from batonpass.store.port import LedgerView
from batonpass.wire.canonical import encode

VERSION: Final = 0


class _Hunk(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    old: int
    new: int
    removed: list[str] = []
    added: list[str] = []


class _Change(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    v: int
    path: str
    before: Digest | None = None
    after: Digest | None = None
    renamed_from: str | None = None
    hunks: list[_Hunk] | None = None
    overlapping: list[str] = []
    certainty: Certainty = Certainty.CERTAIN


_CHANGES: Final = msgspec.json.Decoder(_Change)


def encode_change(change: FileChange) -> bytes:
    """Return a change as it is stored. Its author and time are in the receipt."""
    document: dict[str, Any] = {"v": VERSION, "path": change.path}
    optional = (("before", change.before), ("after", change.after), ("renamed_from", change.renamed_from))
    document.update((name, value) for name, value in optional if value is not None)
    if change.hunks is not None:
        document["hunks"] = [
            {"old": hunk.old_start, "new": hunk.new_start, "removed": hunk.removed, "added": hunk.added}
            for hunk in change.hunks
        ]
    if change.overlapping:
        document["overlapping"] = change.overlapping
    if change.certainty is not Certainty.CERTAIN:
        document["certainty"] = change.certainty
    return encode(document)


def decode_change(data: bytes, *, call: CallId, run: RunId, at: datetime) -> FileChange:
    """Return a stored change. Raises `InvalidValueError`."""
    try:
        document = _CHANGES.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValueError("change", str(error)) from None
    if document.v != VERSION:
        raise InvalidValueError("v", f"is not version {VERSION}; was it written by a newer version?")
    hunks = tuple(
        Hunk(one.old, len(one.removed), one.new, len(one.added), tuple(one.removed), tuple(one.added))
        for one in document.hunks or ()
    )
    return FileChange(
        call=call,
        run=run,
        at=at,
        path=document.path,
        before=document.before,
        after=document.after,
        hunks=None if document.hunks is None else hunks,
        renamed_from=document.renamed_from,
        overlapping=tuple(document.overlapping),
        certainty=document.certainty,
    )


def read_file_changes(view: LedgerView, call: CallRecord) -> tuple[FileChange, ...]:
    """Return the file changes of a call whose content still exists. Raises `InvalidValueError`."""
    return tuple(find_file_changes(view, call).values())


def find_file_changes(view: LedgerView, call: CallRecord) -> dict[ContentId, FileChange]:
    """Return the file changes of a call by content id. Raises `InvalidValueError`."""
    if call.ending is None or not call.changes:
        return {}
    return {
        text.ref.id: decode_change(text.body, call=call.id, run=call.run, at=call.ending.at)
        for name, text in read_texts(view, call.ending).items()
        if name.startswith(CHANGE) and text.body is not None
    }
