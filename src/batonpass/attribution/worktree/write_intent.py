"""The writes that a call was told to make, and whether a changed file fits them.

No system records who wrote a file. But a command may name the file it writes, and the file may then be exactly as that
command leaves it. Any other change during a call may be its work or anybody's.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import Certainty, digest_of
from batonpass.attribution.worktree.tree_difference import Difference

# Returns the contents that a file may have had during a call; None if unknown.
Contents: TypeAlias = Callable[[str], Sequence[bytes] | None]

_MOST_STATES: Final = 32
_SMALL: Final = 64 * 1024  # bytes
_MOST_DEEP: Final = 2  # `**` in one pattern: matching more of them may take long
_MOST_COMPARED: Final = 2 * 1024 * 1024  # bytes of a file whose words are compared
_WORD: Final = re.compile(rb"\w+")


class FileAct(Enum):
    """The act on a file that is written by name."""

    EDITS = auto()  # with any result
    BECOMES = auto()  # gets exactly this text
    APPENDS = auto()
    COPIES = auto()  # the content of another file
    MOVES = auto()  # likewise, and the other file is removed
    REMOVES = auto()
    TOUCHES = auto()  # it exists afterwards and is otherwise unchanged
    FORMATS = auto()  # it keeps the same words
    FIXES = auto()  # no new words below a directory; any result for a file that is named itself


class WriteFit(Enum):
    """How well a changed file fits the writes that a call was told to make."""

    UNNAMED = auto()
    OTHERWISE = auto()  # the call was to write it, but not like this
    ACCEPTED = auto()  # the call was to write it, and the result cannot be predicted
    EXACT = auto()


class _Unknown:
    """Bytes that cannot be predicted."""


_UNKNOWN: Final = _Unknown()  # a write with any result
_UNSEEN: Final = _Unknown()  # the content before, which was too large to keep
_State: TypeAlias = bytes | _Unknown | None  # None: no file


class NamedWrite(Struct, frozen=True, kw_only=True):
    """A write to a file by name, to files by a pattern, or to everything below a directory."""

    path: str  # from the root of the work tree; `""` is the root
    act: FileAct = FileAct.EDITS
    below: bool = False  # includes everything below it
    text: bytes | None = None  # the text that is written or appended; None: unpredictable
    source: str | None = None  # the origin of copied bytes: from the root, or absolute if outside
    endings: frozenset[str] = frozenset()  # limits it to names with these endings

    def covers(self, path: str) -> bool:
        """Return whether it includes a file."""
        if self.endings and not path.endswith(tuple(self.endings)):
            return False
        return self._rest(path) is not None

    def is_named(self, path: str) -> bool:
        """Return whether it names the file itself, not a directory that contains it."""
        return self._rest(path) == ""

    def origin(self, path: str) -> tuple[str, bool] | None:
        """Return where the bytes of a file come from, and whether the file itself is named."""
        rest = self._rest(path)
        if self.source is None or rest is None:
            return None
        return f"{self.source}/{rest}".strip("/") if rest and self.source else rest or self.source, not rest

    def _rest(self, path: str) -> str | None:
        """Return the path of a file below this path, `""` for this path itself; None if it is not included."""
        wanted, parts = self.path.split("/") if self.path else [], path.split("/")
        if "**" in wanted:
            return "" if wanted.count("**") <= _MOST_DEEP and _is_like(parts, wanted, below=self.below) else None
        if len(parts) < len(wanted) or (len(parts) > len(wanted) and not self.below):
            return None
        if not all(map(_is_part, parts, wanted)):
            return None
        return "/".join(parts[len(wanted) :])


def _is_like(parts: Sequence[str], wanted: Sequence[str], *, below: bool) -> bool:
    if not wanted:
        return below or not parts
    if wanted[0] == "**":
        return any(_is_like(parts[skipped:], wanted[1:], below=below) for skipped in range(len(parts) + 1))
    return bool(parts) and _is_part(parts[0], wanted[0]) and _is_like(parts[1:], wanted[1:], below=below)


def _is_part(part: str, wanted: str) -> bool:
    # A name may contain brackets, and a star matches no hidden file.
    return part == wanted or (fnmatchcase(part, wanted) and part.startswith(".") <= wanted.startswith("."))


class Intent(Struct, frozen=True, kw_only=True):
    """The writes that a call was told to make."""

    writes: tuple[NamedWrite, ...] = ()
    brings: bool = False  # it makes git restore files from commits or stashes
    only: bool = False  # it writes only the files it names

    def names(self, path: str) -> bool:
        """Return whether it includes a write to a file."""
        return any(write.covers(path) for write in self.writes)

    def fit(self, difference: Difference, contents: Contents) -> WriteFit:
        """Return how well a changed file fits this intent."""
        writes = [write for write in self.writes if write.covers(difference.path)]
        if not writes:
            return WriteFit.UNNAMED
        # Any command of a sequence may have been skipped: it failed, or its condition did not hold. The result of all
        # of them comes first. For a large file only that one is computed, since the number of states is unbounded.
        is_unseen = difference.before is None and difference.before_digest is not None
        states: list[_State] = [_UNSEEN if is_unseen else difference.before]
        most = _MOST_STATES if len(difference.before or b"") <= _SMALL else 1
        for write in writes:
            grown = [new for old in states for new in _after(write, old, difference, contents)]
            states = list(dict.fromkeys((*grown, *states)))[:most]
        if any(_is_now(state, difference) for state in states):
            return WriteFit.EXACT
        return WriteFit.ACCEPTED if _UNKNOWN in states else WriteFit.OTHERWISE


UNTOLD: Final = Intent()


def _after(write: NamedWrite, old: _State, difference: Difference, contents: Contents) -> Iterator[_State]:
    """Yield the possible contents of a file after a write; none if the write cannot lead to the present content."""
    match write.act:
        case FileAct.BECOMES:
            yield _UNKNOWN if write.text is None else write.text
        case FileAct.APPENDS:
            known = write.text is not None and not isinstance(old, _Unknown)
            yield (old or b"") + (write.text or b"") if known else _UNKNOWN  # type: ignore[operator]  # known: it is bytes
        case FileAct.COPIES | FileAct.MOVES:
            yield from _copied(write, difference, contents)
        case FileAct.REMOVES:
            yield None
        case FileAct.TOUCHES:
            yield b"" if old is None else old
        case FileAct.FORMATS | FileAct.FIXES:
            yield from _reworked(write, old, difference)
        case FileAct.EDITS:
            yield _UNKNOWN


def _copied(write: NamedWrite, difference: Difference, contents: Contents) -> Iterator[_State]:
    origin = write.origin(difference.path)
    if origin is None:
        yield _UNKNOWN
        return
    source, is_named = origin
    known = contents(source)
    if known:
        yield from known
    elif known is None and is_named:
        yield _UNKNOWN


def _reworked(write: NamedWrite, old: _State, difference: Difference) -> Iterator[_State]:
    new = difference.after
    if isinstance(old, _Unknown) or (write.act is FileAct.FIXES and write.is_named(difference.path)):
        yield _UNKNOWN
        return
    if old is None or new is None or max(len(old), len(new)) > _MOST_COMPARED:
        return
    had, has = _words(old), _words(new)
    if had == has or (write.act is FileAct.FIXES and not has - had):
        yield new


def _words(data: bytes) -> Counter[bytes]:
    return Counter(word.lower() for word in _WORD.findall(data))


def _is_now(state: _State, difference: Difference) -> bool:
    if isinstance(state, _Unknown):
        return False
    if state is None or difference.after_digest is None:
        return state is None and difference.after_digest is None and difference.after is None
    return digest_of(state) == difference.after_digest


def moved(differences: Sequence[Difference], intent: Intent) -> list[Difference]:
    """Return differences in which a move onto an existing file is one rename: the lines came with the file."""
    gone = {each.path: each for each in differences if each.after_digest is None and each.before is not None}
    found: dict[str, Difference] = {}
    told: set[str] = set()
    for each in differences:
        for write in intent.writes if each.before_digest is not None and each.after is not None else ():
            origin = write.origin(each.path) if write.act is FileAct.MOVES else None
            source = None if origin is None else gone.get(origin[0])
            if source is not None and source.before == each.after and source.path not in told:
                found[each.path] = replace(
                    each, before=source.before, before_digest=source.before_digest, renamed_from=source.path
                )
                told.add(source.path)
    return [found.get(each.path, each) for each in differences if each.path not in told]


def told_apart(
    differences: Iterable[Difference],
    intent: Intent,
    others: Mapping[str, Intent | None],
    *,
    contents: Contents,
    brought: Collection[str] = (),
) -> Iterator[Difference]:
    """Yield differences with the certainty that the call made them, and the other calls that may have.

    An intent of None among `others` is unknown. `brought` are paths whose present content git stores.
    """
    for each in differences:
        fit = intent.fit(each, contents)
        # Two calls share this window. The call is certain if it was told to write this file and the result fits; the
        # others are named only if they were told to write the same file. If git restores files in the same command,
        # an unpredictable edit cannot be distinguished from a restored file, so only exact bytes are certain.
        if fit is WriteFit.EXACT or (fit is WriteFit.ACCEPTED and not intent.brings):
            others_too = (call for call, other in others.items() if other is None or other.names(each.path))
            yield replace(each, overlapping=tuple(sorted(others_too)))
        elif intent.brings and each.path in brought:
            yield replace(each, certainty=Certainty.BROUGHT)
        else:
            may_have = (
                call for call, other in others.items() if other is None or not other.only or other.names(each.path)
            )
            yield replace(each, certainty=Certainty.CANDIDATE, overlapping=tuple(sorted(may_have)))
