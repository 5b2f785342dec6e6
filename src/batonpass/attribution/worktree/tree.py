"""Looks at a work tree before and after calls that do not name the files they change: `sed -i`, a formatter.

The first look asks git which files differ from the commit, which takes as long as `git status`. From the second look on
the directories are watched if the system supports it, and a look costs as much as has changed. The value of a look is
the same either way: the files that differ from the commit. Nothing here follows a link, runs a program that the
repository names, takes a lock that the user's git may need, or raises: whatever cannot be seen is noted.
"""

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from threading import Lock
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from batonpass.attribution.changes.sides import printable
from batonpass.attribution.git.file_git import GitSilentError
from batonpass.attribution.git.git_status import Porcelain
from batonpass.attribution.worktree.file_watcher import Noted, UnwatchableError, Watcher
from batonpass.attribution.worktree.overlap import OverlapClaim, unclaimed
from batonpass.attribution.worktree.seen_file import FileMark, SeenFile, find_mark, see
from batonpass.attribution.worktree.tree_difference import (
    Changes,
    Difference,
    Look,
    changes_of,
    described,
    differences_between,
    paired,
)
from batonpass.attribution.worktree.write_intent import UNTOLD, Contents, Intent, moved, told_apart

NOBODY: Final[Mapping[str, Intent | None]] = MappingProxyType({})
MOST_FILES: Final = 5_000  # without git: the rest is not looked at
MOST_CHANGED: Final = 20_000  # with git: if more files differ from the commit, the look fails
MOST_MODULES: Final = 16
MOST_KEPT_BYTES: Final = 64 * 1024 * 1024  # of further files only digests are kept

_MOST_CARRIED: Final = 2_000
_MOST_SUSPECTS: Final = 500  # beyond this, comparing everything is cheaper
_MOST_ROUNDS: Final = 8
_RULES: Final = frozenset({".gitignore", ".gitmodules"})


class WorkTree:
    """The files below a directory, which may be the root of a repository. Thread-safe."""

    def __init__(
        self, root: Path, *, environment: Mapping[str, str], without: Collection[str] = (), watch: bool = True
    ) -> None:
        self.root = root.resolve()
        self._git_entry = os.fspath(self.root / ".git")  # a text: it is looked for around every call
        self._environment = environment
        self._without = frozenset(without)
        self._watch = watch
        self._git = Porcelain(self.root, environment)
        self._lock = Lock()
        self._last: Look | None = None
        self._ignored: frozenset[str] = frozenset()
        self._modules: dict[str, WorkTree] = {}
        self._watcher: Watcher | None = None
        self._rule_files: tuple[str, ...] = ()
        self._rules: tuple[FileMark | None, ...] = ()
        self._forced: set[str] = set()
        self._members: set[str] = set()  # tracked or not ignored
        self._outsiders: set[str] = set()  # existing and ignored

    def look(self) -> Look:
        """Return the files as they are now; a failed look says why and sees nothing."""
        with self._lock:
            try:
                self._last = self._look() if os.path.exists(self._git_entry) else self._walk()  # noqa: PTH110 - as above
            except (GitSilentError, OSError, ValueError) as error:
                self._forget()
                return Look(blind=f"{self.root.name} could not be read: {error}")
            if not self._modules:
                return self._last
            return replace(self._last, modules={path: module.look() for path, module in self._modules.items()})

    def differences(self, before: Look, after: Look) -> tuple[Difference, ...]:
        """Return the differences between two looks, by path. Raises `GitSilentError`."""
        return tuple(paired(self._differences(before, after)))

    def changes(
        self,
        before: Look,
        after: Look,
        *,
        call: str,
        run: str,
        at: datetime,
        intent: Intent = UNTOLD,
        others: Mapping[str, Intent | None] = NOBODY,
        claims: Iterable[OverlapClaim] = (),
    ) -> Changes:
        """Return the changes between two looks around a call, with notes on unknown ones. Never raises.

        A change that fits the call's own order to write is its own. For other changes it is a candidate, as are the
        `others` that ran at the same time. Changes that are explained by `claims` of others are theirs alone.
        """
        notes = tuple(dict.fromkeys((*_notes(before), *_notes(after))))
        if (
            before.listed is after.listed
            and before.commit == after.commit
            and not (before.modules or after.modules or before.blind or after.blind)
            and before.versioned == after.versioned
        ):
            return Changes((), notes)  # the usual case: nothing was noted in between, so both looks share one list
        if before.versioned != after.versioned and not (before.blind or after.blind):
            notes = (*notes, "the changes are unknown: a repository was created or removed here meanwhile")
        try:
            apart = list(unclaimed(self._differences(before, after), claims))
            found = list(paired(moved(apart, intent)))
            brought = self._brought(found, after) if intent.brings else set()
        except GitSilentError as error:
            return Changes((), (*notes, f"the changes are unknown: {error}"))
        judged = told_apart(found, intent, others, contents=self._contents(apart), brought=brought)
        told = changes_of(judged, call=call, run=run, at=at)
        return Changes(told.changes, (*notes, *told.notes))

    def _brought(self, differences: Sequence[Difference], after: Look) -> set[str]:
        """Return the paths whose content git stores: as in the commit, or as any other object."""
        found = {each.path for each in differences if each.path not in after.listed}
        others = [each for each in differences if each.path in after.listed and each.after is not None]
        stored = self._git.stored([each.after or b"" for each in others], after.commit)
        return found | {each.path for each, is_stored in zip(others, stored, strict=True) if is_stored}

    def _contents(self, differences: Sequence[Difference]) -> Contents:
        """Return a function that gives the bytes a file may have had during a call; None where that is unknown."""
        changed = {each.path: each for each in differences}

        def contents(path: str) -> Sequence[bytes] | None:
            if (known := changed.get(path)) is not None:
                sides = [side for side in (known.before, known.after) if side is not None]
                return None if known.too_large else sides
            seen = see(self.root / path, None, keep=True)
            return None if seen is None or seen.data is None else [seen.data]

        return contents

    def close(self) -> None:
        """Stop watching; the next look starts from scratch."""
        with self._lock:
            self._forget()

    def _differences(self, before: Look, after: Look) -> list[Difference]:
        found: list[Difference] = []
        if before.blind or after.blind or before.versioned != after.versioned:
            return found
        for path, old, new in differences_between(before, after, self._git):
            if not self._is_excluded(path):
                found.append(described(path, old, new))
        for path in before.modules.keys() & after.modules.keys():
            inner = self._module(path)._differences(before.modules[path], after.modules[path])  # noqa: SLF001 - ours
            found += (replace(each, path=f"{path}/{each.path}") for each in inner)
        return sorted(found, key=lambda each: each.path)

    def _look(self) -> Look:
        """Return the last look updated by the noted events; otherwise compare everything."""
        began = time.time_ns()
        if self._watcher is not None:
            looked = self._update(self._watcher.drain())
            if looked is not None:
                return replace(looked, at=began)
            self._stop_watching()
        elif self._watch and self._last is not None and self._last.versioned:
            # From the second look on: a single look should not pay for watching. And before git is asked, so that a
            # write in between is seen by git, or noted, or both.
            self._start_watching()
        passed_over = self._ignored
        looked = self._compare()
        if not passed_over <= self._ignored:
            self._stop_watching()  # a directory that was ignored before may have to be watched now
        return replace(looked, at=began)

    def _compare(self) -> Look:
        status = self._git.status()
        changed = [path for path in status.changed if not self._is_excluded(path)]
        if len(changed) > MOST_CHANGED:
            raise ValueError(f"more than {MOST_CHANGED} files differ from the commit")
        known = {} if self._last is None or not self._last.versioned else self._last.listed
        if len(known) <= _MOST_CARRIED:
            # A file that a new rule ignores was neither changed nor deleted.
            changed = list(dict.fromkeys((*changed, *(path for path, sight in known.items() if sight is not None))))
        listed = self._see(changed, known)
        self._ignored = status.ignored
        notes = [
            f"{path} was not looked at: it is a repository of its own"
            for path in status.foreign
            if not self._is_excluded(path)
        ]
        notes += self._find_modules()
        return Look(commit=status.commit, listed=listed, notes=tuple(notes))

    def _find_modules(self) -> list[str]:
        """Find the submodules that are checked out; return notes about the others."""
        found = []
        for path in sorted(self._git.submodules()) if (self.root / ".gitmodules").exists() else ():
            place = self.root / path
            # .gitmodules may name any path: only one inside the tree, reached without a link, is looked at.
            if place.resolve() == place and place != self.root and place.is_relative_to(self.root):
                found += [path] if (place / ".git").exists() else []
        self._modules = {path: self._module(path) for path in found[:MOST_MODULES]}
        return [
            f"the submodule {path} was not looked at: there are more than {MOST_MODULES}"
            for path in found[MOST_MODULES:]
        ]

    def _module(self, path: str) -> "WorkTree":
        known = self._modules.get(path)
        return known or WorkTree(
            self.root / path, environment=self._environment, without=self._without, watch=self._watch
        )

    def _see(
        self, paths: Iterable[str], known: Mapping[str, SeenFile | None], *, kept: int = 0
    ) -> dict[str, SeenFile | None]:
        seen: dict[str, SeenFile | None] = {}
        for path in paths:
            sight = see(self.root / path, known.get(path), keep=kept <= MOST_KEPT_BYTES)
            kept += 0 if sight is None or sight.data is None else sight.size
            seen[path] = sight
        return seen

    def _start_watching(self) -> None:
        try:
            self._watcher = Watcher(self.root)
            self._watcher.watch("", without=self._without, ignored=self._ignored)
        except UnwatchableError:
            self._stop_watching()
            self._watch = False
            return
        self._rule_files = tuple(os.fspath(self.root / path) for path in self._git.rule_files())
        self._rules = tuple(map(find_mark, self._rule_files))
        self._forced = self._git.forced()

    def _stop_watching(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
        self._watcher = None
        self._members.clear()
        self._outsiders.clear()

    def _forget(self) -> None:
        self._stop_watching()
        self._last = None
        for module in self._modules.values():
            module.close()
        self._modules = {}

    def _update(self, noted: Noted) -> Look | None:
        """Return the last look updated by noted events; None if everything must be compared."""
        if self._last is None or not self._rules_hold():
            return None
        # Nothing was noted, in most looks: then there is nobody to suspect.
        suspects = self._suspects(noted) if noted.files or noted.directories or noted.lost else set()
        if suspects is None or any(PurePosixPath(path).name in _RULES for path in suspects):
            return None
        known = self._last.listed
        unknown = sorted(suspects - known.keys() - self._members - self._outsiders)
        if len(unknown) > _MOST_SUSPECTS or len(known) + len(suspects) > MOST_CHANGED:
            return None
        if unknown:
            self._classify(unknown, self._last.commit)
        # Any other path is ignored, or existed only in between.
        touched = sorted(path for path in suspects if path in known or path in self._members)
        if not touched:
            return self._last
        rest = {path: seen for path, seen in known.items() if path not in suspects}
        # Read them again whatever their mark: several writes may leave the same mark.
        kept = sum(len(sight.data) for sight in rest.values() if sight is not None and sight.data is not None)
        seen = self._see(touched, {}, kept=kept)
        if any(sight is not None and sight.mark is not None and sight.mark.names > 1 for sight in seen.values()):
            return None  # the file has hard links, and a write is noted under one name only
        return replace(self._last, listed={**rest, **seen})

    def _classify(self, paths: Sequence[str], commit: str | None) -> None:
        """Determine which paths are members of this tree, or were at the last full comparison."""
        self._members |= self._git.members(paths)
        others = [path for path in paths if path not in self._members]
        there = {path for path in others if find_mark(self.root / path) is not None}
        self._outsiders |= there
        # Removed from the work tree and the index: only the commit still has them.
        self._members |= self._git.blobs_at(commit, [path for path in others if path not in there]).keys()

    def _suspects(self, noted: Noted) -> set[str] | None:
        """Return the files that may have changed, after watching new directories; None if there are too many."""
        files, directories = set(noted.files), set(noted.directories)
        lost = noted.lost
        for _ in range(_MOST_ROUNDS):
            directories = {path for path in directories if not self._is_excluded(path)}
            if lost or not directories or len(directories) > _MOST_SUSPECTS:
                break
            ignored = self._git.status(sorted(directories)).ignored
            self._ignored |= ignored
            again = self._watch_also(directories - ignored)
            # Ask after they are watched, and for all members, not only for changed ones: another commit may be checked
            # out by now.
            files |= again.files | self._git.members(sorted(directories))
            lost, directories = again.lost, again.directories
        return None if lost or directories else {path for path in files if not self._is_excluded(path)}

    def _watch_also(self, directories: Iterable[str]) -> Noted:
        watcher = self._watcher
        if watcher is None:
            return Noted(lost=True)
        try:
            for path in directories:
                watcher.watch(path, without=self._without, ignored=self._ignored)
        except UnwatchableError:
            self._watch = False
            return Noted(lost=True)
        return watcher.drain()

    def _rules_hold(self) -> bool:
        """Return whether the same files are ignored as before; the set of tracked files may have changed."""
        marks = tuple(map(find_mark, self._rule_files))
        if marks == self._rules:
            return True
        self._members.clear()
        self._outsiders.clear()
        forced = self._git.forced()
        holds = marks[1:] == self._rules[1:] and forced == self._forced
        self._rules, self._forced = marks, forced
        return holds

    def _walk(self) -> Look:
        """Look at all files without git, up to a number."""
        self._stop_watching()
        known = {} if self._last is None or self._last.versioned else self._last.listed
        paths = list(islice(self._files(), MOST_FILES + 1))
        listed = self._see(paths[:MOST_FILES], known)
        if len(paths) <= MOST_FILES:
            return Look(listed=listed, versioned=False)
        note = f"only the first {MOST_FILES} files were looked at, those before {printable(paths[-1])}"
        return Look(listed=listed, versioned=False, until=paths[-1], notes=(note,))

    def _files(self) -> Iterator[str]:
        """Yield files in order of path components, so that a truncated walk has seen everything before some path."""
        waiting = [("", True)]
        while waiting:
            path, is_directory = waiting.pop()
            if not is_directory:
                yield path
                continue
            try:
                with os.scandir(self.root / path) as entries:
                    found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            except OSError:
                continue
            waiting += (
                (f"{path}/{name}" if path else name, inner)
                for name, inner in sorted(found, reverse=True)
                if not self._is_excluded(name)
            )

    def _is_excluded(self, path: str) -> bool:
        parts = path.split("/")
        return ".git" in parts or not self._without.isdisjoint(parts)


def _notes(look: Look) -> Iterator[str]:
    if look.blind is not None:
        yield look.blind
    yield from look.notes
    for module in look.modules.values():
        yield from _notes(module)
