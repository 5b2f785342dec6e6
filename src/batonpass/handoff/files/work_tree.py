"""The files of a work tree as all runs of one relay share them: looks before and after calls, and from start to end."""

import os
import threading
import weakref
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.changes.sides import find_root
from batonpass.handoff.files.edited_files import Edited, Watched
from batonpass.model.base.ids import CallId, RunId
from batonpass.store.home import HOME_NAME

if TYPE_CHECKING:
    from batonpass.attribution.worktree.overlap import Underway
    from batonpass.attribution.worktree.tree import WorkTree
    from batonpass.attribution.worktree.tree_difference import Difference, Look
    from batonpass.attribution.worktree.write_intent import Intent

CUT: Final = "changes.cut"
UNSEEN: Final = "changes.unseen"


class SeenChanges(Struct, frozen=True):
    """The visible changes of a call, and codes for changes that were not seen."""

    changes: tuple[FileChange, ...] = ()
    flags: tuple[str, ...] = ()
    goes_on: bool = False  # it returned, but part of it may still be running


class Files:
    """One work tree: the repository around a directory, else the directory. Safe for threads.

    Nothing is read, nor even imported, before somebody asks.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._opened: tuple[WorkTree, Underway] | None = None
        self._root: Path | None = None
        self._watching: set[RunId] = set()

    @property
    def root(self) -> Path:
        """Return the directory to which its paths are relative."""
        if self._root is None:
            self._root = find_root(self._place)
        return self._root

    @property
    def is_repository(self) -> bool:
        """Return whether it is a git repository: then a look is cheap."""
        return (self.root / ".git").exists()

    @property
    def is_watched(self) -> bool:
        """Return whether a run waits for unrecorded changes: then the files are looked at around every call."""
        return bool(self._watching)

    def watch(self, run: RunId) -> "Look":
        """Start to watch the files for a run, until `unwatch`. All changes by calls are found, whether named or not."""
        look = self.look()
        with self._lock:
            self._watching.add(run)
        return look

    def unwatch(self, run: RunId) -> None:
        """Stop watching for a run."""
        with self._lock:
            self._watching.discard(run)

    def look(self) -> "Look":
        """Return the files as they are now."""
        tree, _ = self._open()
        return tree.look()

    def differences(self, before: "Look", after: "Look") -> "tuple[Difference, ...]":
        """Return the differences between two looks. Raises `GitSilentError`."""
        tree, _ = self._open()
        return tree.differences(before, after)

    def is_quiet(self) -> bool:
        """Return whether no call is under way that would report changes later."""
        _, underway = self._open()
        return underway.is_quiet()

    def begin(self, call: CallId, at: datetime, intent: "Intent") -> None:
        """Look at the files right before a call, and note the writes that it is told to make."""
        tree, underway = self._open()
        # Noted first, then looked: a call that looks or begins in between must know of this one.
        underway.begin(call, at=at, intent=intent)
        underway.keep(call, tree.look())

    def forget(self, call: CallId) -> None:
        """Forget a call whose outcome nobody will report."""
        _, underway = self._open()
        underway.forget(call)

    def end(self, call: CallId, run: RunId, at: datetime, edited: Sequence[Edited], watched: Watched) -> SeenChanges:
        """Return the changes of a call, right after it. Named files are compared by bytes, all others by two looks.

        For a command, nothing is `edited`: its changes are attributed by its text alone.
        """
        tree, underway = self._open()
        own = [edit.change(call=call, run=run, at=at) for edit in edited]
        here = bool(edited) and watched.root == tree.root
        if here:
            for edit in edited:
                underway.claim(call, edit.path, before=edit.before, after=edit.after)
        after = tree.look()
        ended = underway.end(call)
        if ended.look is None or ended.look.blind is not None or after.blind is not None:
            return SeenChanges(tuple(own), (UNSEEN,))
        found = tree.changes(
            ended.look,
            after,
            call=call,
            run=run,
            at=at,
            intent=ended.intent,
            others=ended.suspects,
            claims=ended.claims,
        )
        named = {change.path for change in own} if here else set()
        rest = tuple([change for change in found.changes if change.path not in named])
        return SeenChanges((*own, *rest), (CUT,) if _is_cut(len(found.changes)) else ())

    def close(self) -> None:
        """Stop watching. The next look starts anew."""
        with self._lock:
            if self._opened is not None:
                tree, _ = self._opened
                tree.close()

    def _open(self) -> "tuple[WorkTree, Underway]":
        with self._lock:
            if self._opened is None:
                from batonpass.attribution.worktree.overlap import Underway  # noqa: PLC0415 - most programs never look
                from batonpass.attribution.worktree.tree import WorkTree  # noqa: PLC0415 - likewise

                tree = WorkTree(self.root, environment=dict(os.environ), without=(HOME_NAME,))
                weakref.finalize(self, tree.close)
                self._opened = tree, Underway()
            return self._opened


def _is_cut(count: int) -> bool:
    from batonpass.attribution.worktree.tree_difference import MOST_CHANGES  # noqa: PLC0415 - as above

    return count >= MOST_CHANGES


def unpaired(difference: "Difference") -> "tuple[Difference, ...]":
    """Return a difference for each path: a renamed file is gone at one and new at the other."""
    if difference.renamed_from is None:
        return (difference,)
    gone = replace(difference, path=difference.renamed_from, after=None, after_digest=None, renamed_from=None)
    return gone, replace(difference, before=None, before_digest=None, renamed_from=None)
