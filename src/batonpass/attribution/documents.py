"""A change of a file as the bytes that are kept as content: which file, from what to what, and which lines."""

from datetime import datetime
from typing import Any, Final

import msgspec

from batonpass.attribution.change import Certainty, FileChange, Hunk
from batonpass.errors import InvalidValueError
from batonpass.model.ids import CallId, Digest, RunId
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
    """Return a change as it is kept. Who made it and when, its receipt says."""
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
    """Return a change that a call made. Raises `InvalidValueError`."""
    try:
        document = _CHANGES.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValueError("change", str(error)) from None
    if document.v != VERSION:
        raise InvalidValueError("v", f"is not version {VERSION}; was it written by a newer version?")
    hunks = None if document.hunks is None else tuple(map(_hunk, document.hunks))
    return FileChange(
        call=call,
        run=run,
        at=at,
        path=document.path,
        before=document.before,
        after=document.after,
        hunks=hunks,
        renamed_from=document.renamed_from,
        overlapping=tuple(document.overlapping),
        certainty=document.certainty,
    )


def _hunk(hunk: _Hunk) -> Hunk:
    return Hunk(
        old_start=hunk.old,
        old_count=len(hunk.removed),
        new_start=hunk.new,
        new_count=len(hunk.added),
        removed=tuple(hunk.removed),
        added=tuple(hunk.added),
    )
