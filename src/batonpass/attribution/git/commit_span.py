"""The diff between two commits, or between a commit and the work tree, as changed lines by file."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.git.file_git import GitSilentError, Repository
from batonpass.errors import InvalidValueError, NotFoundError

_SPAN: Final = re.compile(r"(?P<base>[^.].*?|)(?P<dots>\.{2,3})(?P<head>[^.].*|)", re.DOTALL)
_HUNK: Final = re.compile(r"@@ -\d+(?:,(?P<removed>\d+))? \+(?P<first>\d+)(?:,(?P<added>\d+))? @@", re.ASCII)
_SECTION: Final = re.compile(r"^diff --git .*\n", re.MULTILINE)
_HAS_TWO_NAMES: Final = ("R", "C")
_TYPE_CHANGED: Final = "T"  # reported as one file deleted and another created
_HEAD: Final = "HEAD"
_NEW: Final = "new"
_DELETED: Final = "deleted"
_BINARY: Final = "no text"
_MADE: Final = frozenset({_NEW, _BINARY})
_HEADERS: Final = {
    "new file mode ": _NEW,
    "deleted file mode ": _DELETED,
    "old mode ": "another mode",
    "Binary files ": _BINARY,
}


class ChangedLines(Struct, frozen=True, kw_only=True):
    """Lines of one file that replaced others."""

    path: str
    first: int  # the first new line, from 1
    added: int
    removed: int
    is_whole: bool = False  # a file that git does not track yet, with all its lines
    instead: str | None = None  # if no lines differ: the name, the mode, or a binary content
    is_made: bool = False  # such a file exists, and somebody created it
    was: str | None = None  # its name before, if it is another

    @property
    def last(self) -> int:
        """Return the last new line."""
        return self.first + self.added - 1


class CommitSpan(Struct, frozen=True, kw_only=True):
    """The two ends of a diff; without a head, the work tree."""

    repository: Repository  # set to the head
    base: str
    head: str | None
    below: str = ""  # limits the diff to this directory

    def read(self) -> Iterator[ChangedLines]:
        """Yield the changed lines, file by file. Raises `InvalidValueError` if git cannot answer."""
        try:
            names, patch = self.repository.diff(self.base, self.head, self.below)
            sections = iter(_SECTION.split(patch)[1:])
            for path, before, count in _names(names):
                for _ in range(count):
                    yield from _changed(path, before, next(sections, ""))
            for path in self.repository.untracked(self.below) if self.head is None else ():
                yield ChangedLines(path=path, first=1, added=0, removed=0, is_whole=True)
        except GitSilentError as error:
            raise InvalidValueError("diff", f"cannot be read: {error}") from None

    def read_file(self, path: str) -> bytes | None:
        """Return a file at the head; None if it is missing or too large."""
        if self.head is None:
            raise ValueError("read the file from the work tree")
        blobs = self.repository.blobs([(self.head, path)])
        return next((data for _, data in self.repository.contents(blobs.values())), None)


def find_commits(repository: Repository, text: str) -> CommitSpan | None:
    """Return the diff of a commit, of `BASE..HEAD`, or of `BASE...HEAD` since they diverged; None if it is neither.

    Raises `NotFoundError` if it looks like a span and one end is not a commit.
    """
    parsed = _SPAN.fullmatch(text)
    if parsed is None:
        commit = repository.commit_of(text)
        return None if commit is None else _span(repository, repository.parent_of(commit), commit)
    base, head = (_commit(repository, parsed[name] or _HEAD) for name in ("base", "head"))
    if parsed["dots"] == "...":
        base = repository.common(base, head) or base
    return _span(repository, base, head)


def find_uncommitted(repository: Repository, below: str) -> CommitSpan | None:
    """Return the uncommitted changes; None if nothing was ever committed."""
    head = repository.commit_of(_HEAD)
    return None if head is None else CommitSpan(repository=repository, base=head, head=None, below=below)


def _span(repository: Repository, base: str, head: str) -> CommitSpan:
    return CommitSpan(repository=replace(repository, at=head), base=base, head=head)


def _commit(repository: Repository, name: str) -> str:
    found = repository.commit_of(name)
    if found is None:
        raise NotFoundError("commit", name, where="repository")
    return found


def _names(printed: str) -> Iterator[tuple[str, str, int]]:
    """Yield the files that differ: the name at the head, the name before, and the number of sections in git's patch."""
    tokens = iter(printed.split("\0"))
    for status in tokens:
        before = path = next(tokens, None)
        if status.startswith(_HAS_TWO_NAMES):
            path = next(tokens, None)
        if before is not None and path is not None:
            yield path, before, 2 if status.startswith(_TYPE_CHANGED) else 1


def _changed(path: str, before: str, section: str) -> Iterator[ChangedLines]:
    """Yield the changed lines of a file, or one entry for another difference, such as the mode."""
    hunks = list(_hunks(path, before, section))
    yield from hunks
    if hunks:
        return
    # Without hunks, a section consists of git's header only.
    header = section.split("\n")
    found = [words for start, words in _HEADERS.items() if any(line.startswith(start) for line in header)]
    is_made = _DELETED not in found and not _MADE.isdisjoint(found)
    told = [*([f"renamed from {before}"] if path != before else []), *found]
    told += [] if _BINARY in found else ["empty" if is_made or _DELETED in found else "no line changed"]
    was = None if before == path else before
    yield ChangedLines(path=path, first=0, added=0, removed=0, instead=", ".join(told), is_made=is_made, was=was)


def _hunks(path: str, before: str, section: str) -> Iterator[ChangedLines]:
    # Every line of a hunk begins with a sign, so content cannot imitate a header.
    for line in section.split("\n"):
        if (found := _HUNK.match(line)) is not None:
            added, removed = (int(found[name] or 1) for name in ("added", "removed"))
            first, was = int(found["first"]), None if before == path else before
            yield ChangedLines(path=path, first=first, added=added, removed=removed, was=was)
