"""Converts facts from sessions into the form of receipts: names, codes, targets, changes and outcomes."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.session_files.conversation import TranscriptCall, TranscriptRun
from batonpass.adapters.session_files.session_values import FilePatch, PatchHunk
from batonpass.attribution.changes.change import FileChange, Hunk, digest_of
from batonpass.attribution.changes.change_document import encode_change
from batonpass.errors import InvalidValueError
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.tools.json_values import describe, readable
from batonpass.model.base.ids import CallId, RunId
from batonpass.model.bodies.body import Changed, Outcome
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Touch

NOT_THERE: Final = "(not in the transcript)"

# PostgreSQL stores no larger content; no human or model writes that much.
_LARGEST: Final = 16 * 1024 * 1024
_MOST_CHARACTERS: Final = _LARGEST // 4  # of up to four bytes each

_NO_CODE: Final = re.compile(r"[^a-z0-9_.-]")
_LONGEST_CODE: Final = 64
_FINISHED: Final = frozenset({None, "completed", "async_launched"})


class KeptChange(Struct, frozen=True, kw_only=True):
    """A file change as a receipt stores it: the content, its reference, and the path for the index."""

    content: Content
    changed: Changed
    touch: Touch


def as_code(name: str) -> str:
    """Return a name as a code; invalid characters become dashes."""
    return _NO_CODE.sub("-", name.lower())[:_LONGEST_CODE]


def within_limit(text: str) -> str:
    """Return a text, cut off at the size limit of a content."""
    return text[:_MOST_CHARACTERS]


def describe_arguments(tool: str, arguments: Mapping[str, Any]) -> bytes:
    """Return a tool and its arguments as content."""
    try:
        described = describe({"tool": tool, "arguments": arguments})
    except InvalidValueError as error:
        return describe({"tool": tool, "arguments": {"shown": error.problem}})
    if len(described) > _LARGEST:
        return describe({"tool": tool, "arguments": {"shown": f"{len(described):,} bytes"}})
    return described


def target_of(call: TranscriptCall) -> str | None:
    """Return the file that a call changes, relative to the project; None if it names none."""
    if call.changes:
        return call.changes[0].path
    return call.use.target if call.use.target is not None and call.use.target.strip() else None


def changes_of(call: TranscriptCall, desk: Desk, *, identifier: CallId, run: RunId) -> Iterator[KeptChange]:
    """Yield the changes of a call, ready to be recorded."""
    for number, patch in enumerate(call.changes, 1):
        change = change_of(patch, identifier, run, desk.clock.now())
        document = encode_change(change)
        if len(document) > _LARGEST:
            document = encode_change(replace(change, hunks=None))
        content = desk.json(f"change.{number}", document)
        changed = Changed(change=content.ref.id, before=change.before, after=change.after)
        yield KeptChange(content=content, changed=changed, touch=Touch(path=change.path, content=content.ref.id))


def outcome_of(run: TranscriptRun) -> Outcome:
    """Return how a sub-agent ended: completed if it is said so, or if it had last words and nothing says otherwise."""
    if run.parent is not None and run.parent.result is not None and not run.parent.result.ok:
        return Outcome.FAILED
    is_said = run.status == "completed" or run.report is not None
    return Outcome.COMPLETED if is_said and run.status in _FINISHED else Outcome.FAILED


def change_of(patch: FilePatch, call: CallId, run: RunId, at: datetime) -> FileChange:
    """Return the recorded form of a change that a result reports."""
    hunks = _hunks(patch)
    # A receipt has digests of a file's bytes. They are known only for a file that was written completely: of any other
    # text the transcript shows lines, whose ends may differ from those in the file.
    after = None if patch.after is None or not patch.written else digest_of(patch.after.encode())
    if after is not None and not patch.created and not any(hunk.removed for hunk in hunks or ()):
        after = None  # otherwise the change would claim that the file did not exist before
    return FileChange(
        call=call,
        run=run,
        at=at,
        path=readable(patch.path).replace("\0", "\\0"),  # PostgreSQL stores no zero character in a text
        after=after,
        hunks=hunks,
        renamed_from=None if patch.renamed_from is None else readable(patch.renamed_from).replace("\0", "\\0"),
    )


def _hunks(patch: FilePatch) -> tuple[Hunk, ...] | None:
    """Return the changed lines with their positions; None if a position is unknown."""
    if not patch.hunks and not patch.created:
        return None if patch.renamed_from is None else ()
    if any(None in {hunk.old_start, hunk.new_start} for hunk in patch.hunks):
        return None
    try:
        return tuple(map(_hunk, patch.hunks))
    except InvalidValueError:
        return None  # impossible positions


def _hunk(hunk: PatchHunk) -> Hunk:
    removed = tuple(readable(line[1:].removesuffix("\r")) for line in hunk.lines if line[:1] in {"-", " ", ""})
    added = tuple(readable(line[1:].removesuffix("\r")) for line in hunk.lines if line[:1] in {"+", " ", ""})
    return Hunk(
        old_start=hunk.old_start or 0,
        old_count=len(removed),
        new_start=hunk.new_start or 0,
        new_count=len(added),
        removed=removed,
        added=added,
    )
