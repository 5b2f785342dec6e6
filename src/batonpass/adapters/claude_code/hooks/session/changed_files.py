"""What calls changed: the files that they edit, by their bytes before and after; of others, the whole work tree.

An editor changes one file, and says how. Of a command only its text tells what it writes; what else changes while it
runs, anybody may have changed. Where calls ran at the same time, each record of a change names the others that may have
made it.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.claude_code.hooks.events import HookEvent
from batonpass.adapters.claude_code.hooks.rules.agent_rules import SHELLS
from batonpass.adapters.claude_code.hooks.session.state import MadeCall
from batonpass.adapters.claude_code.hooks.session.told_edit import ToldEdit, told_edit
from batonpass.adapters.claude_code.importer.receipt_words import change_of, is_reading
from batonpass.adapters.claude_code.transcripts.conversation import change_from
from batonpass.adapters.claude_code.transcripts.patches import read_patch
from batonpass.attribution.changes.change import Certainty, FileChange
from batonpass.attribution.worktree.overlap import Ended, OverlapClaim, Underway
from batonpass.attribution.worktree.seen_file import SeenFile, is_same, see
from batonpass.attribution.worktree.tree_difference import Changes, Difference, Look, changes_of, described
from batonpass.attribution.worktree.write_intent import UNTOLD, Intent, NamedWrite
from batonpass.handoff.shell.command_intent import shell_intent
from batonpass.model.base.ids import CallId
from batonpass.store.home import HOME_NAME

# Nobody knows what was there before the call: whoever looked was ended in between.
UNSEEN: Final = "changes.unseen"


class WatchedTree(Protocol):
    """A work tree that can be looked at."""

    root: Path

    def look(self) -> Look:
        """Return the files as they are now."""

    def changes(
        self,
        before: Look,
        after: Look,
        *,
        call: str,
        run: str,
        at: datetime,
        intent: Intent,
        others: Mapping[str, Intent | None],
        claims: Iterable[OverlapClaim] = (),
    ) -> Changes:
        """Return what changed between two looks around a call."""

    def close(self) -> None:
        """Let go of it."""


class ChangesFound(Struct, frozen=True):
    """What a call changed, as far as anybody saw; `notes` say what was not seen."""

    changes: tuple[FileChange, ...] = ()
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    goes_on: bool = False  # it returned, and is at work in the background


class _Edit(Struct, frozen=True):
    """A call that edits one file, and the file before it."""

    path: Path
    before: SeenFile | None


class Changing:
    """Looks before and after calls. Many may be under way at once."""

    def __init__(self, project: Path, tree: WatchedTree) -> None:
        self._project = project
        self._tree = tree
        self._underway = Underway()
        self._lock = threading.Lock()
        self._edits: dict[CallId, _Edit] = {}

    def prepare(self) -> None:
        """Take the first look, which takes the longest, while nobody waits for it to make a call."""
        self._tree.look()

    def resume(self, calls: Iterable[MadeCall], at: datetime) -> None:
        """Know of calls that somebody else saw begin: they may change anything until they end."""
        for made in calls:
            if not is_reading(made.tool):
                self._underway.begin(made.id, at=at, intent=None)

    def begin(self, event: HookEvent, made: MadeCall, at: datetime) -> None:
        """Look at what a call may change, right before it is made."""
        if is_reading(event.tool):
            return
        place = None if event.path is None else self._place(event)
        # First noted, then looked: whoever looks or begins in between knows of it.
        self._underway.begin(made.id, at=at, intent=self._intent(event, place))
        if event.path is None:
            self._underway.keep(made.id, self._tree.look())
        elif place is not None:
            with self._lock:
                self._edits[made.id] = _Edit(place, see(place, None, keep=True))

    def end(self, event: HookEvent, made: MadeCall, at: datetime) -> ChangesFound:
        """Return what a call changed, right after it was made."""
        if is_reading(event.tool):
            return ChangesFound()
        if event.path is not None:
            return self._end_edit(event, made, at)
        after = self._tree.look()
        ended = self._underway.end(made.id)
        goes_on = _is_in_background(event)
        if goes_on:
            # What it changes from now on may be found by any call until it ends.
            self._underway.begin(made.id, at=at, intent=ended.intent)
            self._underway.keep(made.id, after)
        if ended.look is None:
            return ChangesFound(flags=(UNSEEN,), goes_on=goes_on)
        found = self._between(ended, after, made, at)
        return ChangesFound(found.changes, notes=found.notes, goes_on=goes_on)

    def end_background(self, made: MadeCall, at: datetime) -> ChangesFound:
        """Return what was changed since a call returned that went on in the background, and is over now."""
        after = self._tree.look()
        found = self._between(self._underway.end(made.id), after, made, at)
        return ChangesFound(found.changes, notes=found.notes)

    def forget(self, calls: Iterable[CallId]) -> None:
        """Know that calls were never made, or that nobody will say how they ended."""
        for call in calls:
            self._underway.forget(call)
            with self._lock:
                self._edits.pop(call, None)

    def close(self) -> None:
        """Let go of the work tree."""
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
            # An edit that failed wrote nothing, most likely; what is there all the same may be anybody's.
            found = changes_of([replace(difference, certainty=Certainty.CANDIDATE)], call=made.id, run=made.run, at=at)
            return ChangesFound(found.changes, notes=found.notes)
        if (own := told_edit(event.tool, event.input, event.response, difference)) is not None:
            return self._own_part(own, difference, made, at)
        if not difference.too_large:
            self._underway.claim(made.id, path, before=difference.before, after=difference.after)
        found = changes_of([difference], call=made.id, run=made.run, at=at)
        return ChangesFound(found.changes, notes=found.notes)

    def _own_part(self, own: ToldEdit, seen: Difference, made: MadeCall, at: datetime) -> ChangesFound:
        """Return what an editor says that it wrote, where somebody else wrote into the same file meanwhile."""
        self._underway.claim(made.id, seen.path, before=own.before, after=own.after)
        found = changes_of([own.difference(seen)], call=made.id, run=made.run, at=at)
        note = f"{seen.path} is not as {made.tool} left it: somebody else wrote into it meanwhile"
        return ChangesFound(found.changes, notes=(*found.notes, note))

    def _between(self, ended: Ended, after: Look, made: MadeCall, at: datetime) -> Changes:
        if ended.look is None:
            return Changes()
        return self._tree.changes(
            ended.look,
            after,
            call=made.id,
            run=made.run,
            at=at,
            intent=ended.intent,
            others=ended.suspects,
            claims=ended.claims,
        )

    def _intent(self, event: HookEvent, place: Path | None) -> Intent:
        """Return what a call is told to write; of a tool that is neither a shell nor an editor, nobody knows."""
        command = event.input.get("command")
        if event.tool in SHELLS and isinstance(command, str):
            return shell_intent(command, event.directory or self._project, self._tree.root)
        if event.path is None:
            return UNTOLD
        own = () if place is None else (NamedWrite(path=place.relative_to(self._tree.root).as_posix()),)
        return Intent(writes=own, only=True)

    def _place(self, event: HookEvent) -> Path | None:
        """Return the file that a call edits; None if it names none, or none of this work tree."""
        name = event.path
        if name is None or "\0" in name:
            return None
        try:
            path = ((event.directory or self._project) / name).resolve()
        except (OSError, ValueError, RuntimeError):
            return None  # a name that no file can have, or links that go round
        return path if path.is_relative_to(self._tree.root) and HOME_NAME not in path.parts else None

    def _told(self, event: HookEvent, made: MadeCall, at: datetime) -> Iterator[FileChange]:
        """Yield what the call says that it changed, where nobody saw the file before it."""
        patch = read_patch(event.tool, event.response)
        if patch is not None:
            told = change_from(patch, self._project, told=True, written=event.tool == "Write")
            yield change_of(told, made.id, made.run, at)


def _is_in_background(event: HookEvent) -> bool:
    return isinstance(event.response, dict) and isinstance(event.response.get("backgroundTaskId"), str)
