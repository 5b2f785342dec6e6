"""The differences between two looks at a work tree, as changes of a call.

A look lists the files that differ from a commit; all others are as committed. So only files that the looks list
differently, or that differ between the two commits, can have changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.attribution.changes.change import Certainty, FileChange, lines_of
from batonpass.attribution.changes.line_diff import match_lines
from batonpass.attribution.changes.sides import hunks_of, printable
from batonpass.attribution.git.git_status import Blob, Porcelain
from batonpass.attribution.worktree.seen_file import (
    COARSE_TICK,
    LARGEST_KEPT,
    LARGEST_READ,
    SeenFile,
    is_same,
    seen_bytes,
)
from batonpass.model.base.ids import Digest

MOST_CHANGES: Final = 1000  # per call; a larger change is a checkout, and git has its history

_IGNORE: Final = ".gitignore"
_KEPT_BYTES: Final = 64 * 1024 * 1024
_READ_AT_ONCE: Final = 8 * 1024 * 1024
_MOST_TO_COMPARE: Final = 24
_POINTER: Final = b"version https://git-lfs.github.com/spec/v1\noid sha256:"
_DIGEST_LENGTH: Final = 64


class Look(Struct, frozen=True, kw_only=True):
    """A work tree at one moment."""

    commit: str | None = None  # files that are not listed are as in this commit; None: there are no others
    listed: Mapping[str, SeenFile | None] = field(default_factory=dict)  # by path; None: it does not exist
    modules: Mapping[str, "Look"] = field(default_factory=dict)  # submodules, by path
    at: int = 0  # when it began, in nanoseconds
    versioned: bool = True  # whether git was asked
    until: str | None = None  # without git: paths from this one on were not looked at
    blind: str | None = None  # the reason if nothing was seen
    notes: tuple[str, ...] = ()  # names the files that were not looked at


class Difference(Struct, frozen=True, kw_only=True):
    """A file that changed. A digest without bytes means that there are too many to keep."""

    path: str  # from the root, with slashes; bytes that are not UTF-8 are escaped as surrogates
    before: bytes | None = None
    after: bytes | None = None
    before_digest: Digest | None = None  # None: it did not exist, or only its name is known
    after_digest: Digest | None = None
    renamed_from: str | None = None
    too_large: bool = False  # the bytes of a side are unknown
    certainty: Certainty = Certainty.CERTAIN  # that the call between the looks made it
    overlapping: tuple[str, ...] = ()  # other calls that may have made it


class Changes(Struct, frozen=True):
    """The file changes during a call, and notes on unknown ones."""

    changes: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()


def differences_between(
    before: Look, after: Look, git: Porcelain
) -> Iterator[tuple[str, SeenFile | None, SeenFile | None]]:
    """Yield the files that differ. Raises `GitSilentError`."""
    paths = git.between(before.commit, after.commit) if before.versioned else set()
    nothing = SeenFile(size=-1)
    for path in before.listed.keys() | after.listed.keys():
        one, other = before.listed.get(path, nothing), after.listed.get(path, nothing)
        if one is nothing or other is nothing or not is_same(one, other):
            paths.add(path)
    limits = [_parts(look.until) for look in (before, after) if look.until is not None]
    ordered = sorted(path for path in paths if all(_parts(path) < limit for limit in limits))
    known = _Committed(git)
    olds = known.find(before, ordered)
    news = known.find(after, ordered)
    other_rules = any(_name(path) == _IGNORE for path in ordered)
    for path in ordered:
        old, new = olds[path], news[path]
        if not is_same(old, new) and not (other_rules and old is None and _is_older(new, before.at)):
            yield path, old, new


def _is_older(seen: SeenFile | None, at: int) -> bool:
    """Return whether a file is only seen for the first time because it is no longer ignored."""
    return seen is not None and seen.mark is not None and seen.mark.ctime < at - COARSE_TICK


class _Committed:
    """Committed files; each object is read once, and the bytes kept are limited."""

    def __init__(self, git: Porcelain) -> None:
        self._git = git
        self._kept = 0
        self._read: dict[tuple[str, str], SeenFile] = {}

    def find(self, look: Look, paths: Iterable[str]) -> dict[str, SeenFile | None]:
        found = {path: look.listed.get(path) for path in paths}
        blobs = self._git.blobs_at(look.commit, [path for path in found if path not in look.listed])
        wanted = {path: blob for path, blob in blobs.items() if (path, blob.name) not in self._read}
        for some in _portions(wanted):
            asked = [(path, blob.name) for path, blob in some]
            for (path, blob), data in zip(some, self._git.checked_out(asked), strict=True):
                self._read[path, blob.name] = self._keep(data, blob)
        for path in self._git.filtered(list(wanted)) if wanted else ():
            key = (path, wanted[path].name)
            self._read[key] = _unfiltered(self._read.get(key))
        for path, blob in blobs.items():
            found[path] = self._read.get((path, blob.name)) or SeenFile(size=blob.size)
        return found

    def _keep(self, data: bytes, blob: Blob) -> SeenFile:
        seen = seen_bytes(data, link=blob.link, keep=self._kept + len(data) <= _KEPT_BYTES)
        self._kept += 0 if seen.data is None else len(data)
        return seen


def _portions(blobs: Mapping[str, Blob]) -> Iterator[list[tuple[str, Blob]]]:
    """Yield files in portions that fit into memory, without those that are too large to read."""
    portion: list[tuple[str, Blob]] = []
    size = 0
    for path, blob in blobs.items():
        if blob.size > LARGEST_READ:
            continue
        if portion and size + blob.size > _READ_AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append((path, blob))
        size += blob.size
    if portion:
        yield portion


def _unfiltered(stored: SeenFile | None) -> SeenFile:
    """Return the checked out form of a filtered file without running the filter: git-lfs stores the digest."""
    data = b"" if stored is None or stored.data is None else stored.data
    if not data.startswith(_POINTER):
        return SeenFile(size=-1)
    return SeenFile(size=-1, digest=Digest(data[len(_POINTER) :][:_DIGEST_LENGTH].decode("ascii", "replace")))


def described(path: str, before: SeenFile | None, after: SeenFile | None) -> Difference:
    """Return the difference between two sights of a file."""
    return Difference(
        path=path,
        before=None if before is None else before.data,
        after=None if after is None else after.data,
        before_digest=None if before is None else before.digest,
        after_digest=None if after is None else after.digest,
        too_large=any(side is not None and side.data is None for side in (before, after)),
    )


def paired(differences: Sequence[Difference]) -> Iterator[Difference]:
    """Yield differences; a deletion and a creation of much the same file become one rename."""
    gone = {each.path: each for each in differences if each.after_digest is None and each.before_digest is not None}
    new = [each for each in differences if each.before_digest is None and each.after_digest is not None]
    sources = {created.path: source for created, source in _matches(gone, new)}
    told = {source.path for source in sources.values()}
    for each in differences:
        if each.path in sources:
            source = sources[each.path]
            large = each.too_large or source.too_large
            old = (source.before, source.before_digest)
            yield replace(each, before=old[0], before_digest=old[1], renamed_from=source.path, too_large=large)
        elif each.path not in told:
            yield each


def _matches(gone: dict[str, Difference], new: Sequence[Difference]) -> Iterator[tuple[Difference, Difference]]:
    left: list[Difference] = []
    by_digest: dict[Digest | None, list[Difference]] = {}
    for each in gone.values():
        by_digest.setdefault(each.before_digest, []).append(each)
    for created in new:
        same = by_digest.get(created.after_digest, []) if created.after != b"" else []
        if not same:
            left.append(created)
            continue
        source = min(same, key=lambda each: _name(each.path) != _name(created.path))
        same.remove(source)
        del gone[source.path]
        yield created, source
    if len(left) > _MOST_TO_COMPARE or len(gone) > _MOST_TO_COMPARE:
        return
    for created in left:
        alike = [
            (score, each) for each in gone.values() if (score := _likeness(each.before, created.after)) is not None
        ]
        if alike:
            _, source = max(alike, key=lambda pair: (pair[0], _name(pair[1].path) == _name(created.path)))
            del gone[source.path]
            yield created, source


def _likeness(old: bytes | None, new: bytes | None) -> float | None:
    """Return the share of equal lines of two texts; None if it is less than half, the limit that git uses."""
    if not old or not new or max(len(old), len(new)) > LARGEST_KEPT:
        return None
    try:
        olds, news = lines_of(old.decode()), lines_of(new.decode())
    except UnicodeDecodeError:
        return None
    same = sum(block.size for block in match_lines(olds, news)) / max(len(olds), len(news), 1)
    return same if same >= 0.5 else None  # noqa: PLR2004 - as the docstring says


def _parts(path: str) -> list[str]:
    return path.split("/")


def _name(path: str) -> str:
    return PurePosixPath(path).name


def changes_of(differences: Iterable[Difference], *, call: str, run: str, at: datetime) -> Changes:
    """Return differences as recorded changes of a call."""
    found = list(differences)
    notes: tuple[str, ...] = ()
    if len(found) > MOST_CHANGES:
        notes = (f"{len(found)} files changed; {MOST_CHANGES} of them are recorded",)
    return Changes(
        tuple(
            FileChange(
                call=call,
                run=run,
                at=at,
                path=printable(each.path),
                before=each.before_digest,
                after=each.after_digest,
                hunks=None if each.too_large else hunks_of(each.before, each.after),
                renamed_from=None if each.renamed_from is None else printable(each.renamed_from),
                overlapping=each.overlapping,
                certainty=each.certainty,
            )
            for each in found[:MOST_CHANGES]
        ),
        notes,
    )
