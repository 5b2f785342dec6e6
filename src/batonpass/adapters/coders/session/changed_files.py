"""Finds the changes of calls: of an editor by its file before and after, of other tools by the whole work tree.

An editor changes one file and reports how. Only the text of a command tells which files it writes; any other change
while it runs may be anybody's. If calls ran at the same time, each recorded change names the others that may have made
it.
"""

import threading
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.claude_code.transcripts.patches import read_patch
from batonpass.adapters.coders.events import HookEvent, task_of
from batonpass.adapters.coders.session.hook_session import MadeCall
from batonpass.adapters.coders.session.told_edit import ToldEdit, told_edit
from batonpass.adapters.importer.receipt_words import change_of
from batonpass.adapters.session_files.conversation import relative_to
from batonpass.adapters.tool_kinds import Coder, ToolKind, is_reading
from batonpass.attribution.changes.change import Certainty, FileChange
from batonpass.attribution.worktree.overlap import Ended, Underway
from batonpass.attribution.worktree.seen_file import SeenFile, is_same, see
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.attribution.worktree.tree_difference import Difference, Look, changes_of, described
from batonpass.attribution.worktree.write_intent import UNTOLD, Intent, NamedWrite
from batonpass.handoff.files.work_tree import UNSEEN, SeenChanges
from batonpass.handoff.shell.command_intent import shell_intent
from batonpass.model.base.ids import CallId
from batonpass.store.home import HOME_NAME


class ChangesFound(SeenChanges, frozen=True):
    """The known changes of a call; `notes` name the unknown ones."""

    notes: tuple[str, ...] = ()


class _Edit(Struct, frozen=True):
    """A call that edits one file, and the file before it."""

    path: Path
    before: SeenFile | None


class Changing:
    """Looks at files before and after calls. Many calls may run at once."""

    def __init__(self, project: Path, tree: WorkTree) -> None:
        self._project = project
        self._tree = tree
        self._underway = Underway()
        self._lock = threading.Lock()
        self._edits: dict[CallId, _Edit] = {}

    def prepare(self) -> None:
        """Take the first look, which is the slowest, before any call waits for it."""
        self._tree.look()

    def resume(self, coder: Coder, calls: Iterable[MadeCall], at: datetime) -> None:
        """Register calls that another process saw begin: they may change anything until they end."""
        for made in calls:
            if not is_reading(coder, made.tool):
                self._underway.begin(made.id, at=at, intent=None)

    def begin(self, event: HookEvent, made: MadeCall, at: datetime) -> None:
        """Look at the files that a call may change, right before it is made."""
        if event.reads:
            return
        place = None if event.path is None else self._place(event, event.path)
        # Register before looking, so that a call that begins or ends in between knows of this one.
        self._underway.begin(made.id, at=at, intent=self._intent(event, place))
        if event.path is None:
            self._underway.keep(made.id, self._tree.look())
        elif place is not None:
            with self._lock:
                self._edits[made.id] = _Edit(place, see(place, None, keep=True))

    def end(self, event: HookEvent, made: MadeCall, at: datetime) -> ChangesFound:
        """Return the changes of a call, right after it was made."""
        if event.reads:
            return ChangesFound()
        if event.path is not None:
            return self._end_edit(event, made, at)
        after = self._tree.look()
        ended = self._underway.end(made.id)
        goes_on = task_of(event.response) is not None or event.stays_behind
        if goes_on:
            # Until it ends, any other call may see its further changes.
            self._underway.begin(made.id, at=at, intent=ended.intent)
            self._underway.keep(made.id, after)
        # Without a look, the state before the call is unknown: the process that looked has ended.
        flags = (UNSEEN,) if ended.look is None else ()
        return replace(self._between(ended, after, made, at), flags=flags, goes_on=goes_on)

    def end_background(self, made: MadeCall, at: datetime) -> ChangesFound:
        """Return the changes of a background call since it returned; it is over now."""
        after = self._tree.look()
        return self._between(self._underway.end(made.id), after, made, at)

    def forget(self, calls: Iterable[CallId]) -> None:
        """Unregister calls that were never made, or whose end nobody will report."""
        for call in calls:
            self._underway.forget(call)
            with self._lock:
                self._edits.pop(call, None)

    def close(self) -> None:
        """Release the work tree."""
        self._tree.close()

    def _end_edit(self, event: HookEvent, made: MadeCall, at: datetime) -> ChangesFound:
        with self._lock:
            edit = self._edits.get(made.id)
        try:
            return (
                self._edited(edit, event, made, at)
                if edit is not None
                else ChangesFound(tuple(self._told(event, made, at)))
            )
        finally:
            self._underway.end(made.id)
            with self._lock:
                self._edits.pop(made.id, None)

    def _edited(self, edit: _Edit, event: HookEvent, made: MadeCall, at: datetime) -> ChangesFound:
        after = see(edit.path, None, keep=True)
        if is_same(edit.before, after):
            return ChangesFound()
        path = edit.path.relative_to(self._tree.root).as_posix()
        difference = described(path, edit.before, after)
        if event.error:
            # A failed edit most likely wrote nothing, so this change may be anybody's.
            return _found(replace(difference, certainty=Certainty.CANDIDATE), made, at)
        if (own := _told_edit(event, difference)) is not None:
            return self._own_part(own, difference, made, at)
        if not difference.too_large:
            self._underway.claim(made.id, path, before=difference.before, after=difference.after)
        return _found(difference, made, at)

    def _own_part(self, own: ToldEdit, seen: Difference, made: MadeCall, at: datetime) -> ChangesFound:
        """Return an editor's own change, where somebody else wrote to the same file at the same time."""
        self._underway.claim(made.id, seen.path, before=own.before, after=own.after)
        found = _found(own.difference(seen), made, at)
        note = f"{seen.path} differs from the result of {made.tool}: somebody else changed it at the same time"
        return replace(found, notes=(*found.notes, note))

    def _between(self, ended: Ended, after: Look, made: MadeCall, at: datetime) -> ChangesFound:
        if ended.look is None:
            return ChangesFound()
        found = self._tree.changes(
            ended.look,
            after,
            call=made.id,
            run=made.run,
            at=at,
            intent=ended.intent,
            others=ended.suspects,
            claims=ended.claims,
        )
        return ChangesFound(found.changes, notes=found.notes)

    def _intent(self, event: HookEvent, place: Path | None) -> Intent:
        """Return the writes that a call asks for; unknown for a tool that is neither a shell nor an editor."""
        command = event.command
        if event.kind is ToolKind.SHELL and command is not None:
            return shell_intent(command, event.directory or self._project, self._tree.root)
        if event.path is None and not event.paths:
            return UNTOLD
        places = [place] if event.path is not None else [self._place(event, path) for path in event.paths]
        own = (NamedWrite(path=one.relative_to(self._tree.root).as_posix()) for one in places if one is not None)
        return Intent(writes=tuple(own), only=True)

    def _place(self, event: HookEvent, name: str) -> Path | None:
        """Return a file that a call edits; None if it is not in this work tree."""
        if "\0" in name:
            return None
        try:
            path = ((event.directory or self._project) / name).resolve()
        except (OSError, ValueError, RuntimeError):
            return None  # an impossible name, or circular links
        return path if path.is_relative_to(self._tree.root) and HOME_NAME not in path.parts else None

    def _told(self, event: HookEvent, made: MadeCall, at: datetime) -> Iterator[FileChange]:
        """Yield the change that a call reports, if nobody saw the file before it."""
        patch = read_patch(event.tool, event.response) if event.coder is Coder.CLAUDE_CODE else None
        if patch is not None:
            yield change_of(
                relative_to(self._project, replace(patch, written=event.tool == "Write")), made.id, made.run, at
            )


def _told_edit(event: HookEvent, seen: Difference) -> ToldEdit | None:
    """Return an editor's own account, if the agent gives one and the file is now different."""
    if event.coder is not Coder.CLAUDE_CODE:
        return None
    return told_edit(event.tool, event.input, event.response, seen)


def _found(difference: Difference, made: MadeCall, at: datetime) -> ChangesFound:
    found = changes_of([difference], call=made.id, run=made.run, at=at)
    return ChangesFound(found.changes, notes=found.notes)
