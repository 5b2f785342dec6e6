"""Blame for a file: who wrote its lines, according to records and git. Nothing is guessed."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown, Maker
from batonpass.accounts.blame.file_changes import FilePlace, RecordedChange, RecordedChanges, read_changes
from batonpass.accounts.blame.line_candidates import (
    OpenCall,
    as_matched,
    find_open_calls,
    find_placed,
    find_unplaced,
    replay,
    with_candidates,
    with_open_calls,
)
from batonpass.accounts.blame.maker_chain import Makers
from batonpass.attribution.changes.change import Certainty, digest_of, lines_of
from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.file_git import Repository
from batonpass.attribution.git.file_history import find_committed, find_new_name, read_history, read_names
from batonpass.attribution.git.git_history import History
from batonpass.attribution.lines.attribution import Attribution, How, attribute
from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import CallId, ReceiptId, RunId
from batonpass.store.port import LedgerView

LARGEST: Final = 16 * 1024 * 1024  # bytes of the largest file that is split into lines


class Lines(Struct, frozen=True, kw_only=True):
    """The requested lines, first to last, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        """Return the range as people write it."""
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"

    def within(self, total: int, path: str) -> range:
        """Return the line numbers. Raises `InvalidValueError` if the file does not have them."""
        if not 1 <= self.first <= self.last:
            raise InvalidValueError("line", f"{self} is not a line or a range; lines count from 1")
        if self.last > total:
            has = "1 line" if total == 1 else f"{total:,} lines"
            raise InvalidValueError("line", f"{shorten(path)} has {has}; there is no line {self.last:,}")
        return range(self.first, self.last + 1)


class AskedFile(Struct, frozen=True, kw_only=True):
    """A file in the work tree or in a commit, and how to ask git about it."""

    place: FilePlace
    data: bytes | None  # None if it no longer exists
    environment: Mapping[str, str]  # for git
    at: str | None = None  # the commit that it is read from; None for the work tree

    @property
    def repository(self) -> Repository | None:
        """Return its repository; None if it is in none."""
        if find_repository(self.place.root) is None:
            return None
        repository = Repository(self.place.root, self.environment)
        return repository if self.at is None else replace(repository, at=self.at)


def read_file(path: Path) -> bytes | None:
    """Return the bytes of a file; None if it does not exist. Raises `InvalidValueError` if it cannot be read."""
    if "\0" in str(path):
        raise InvalidValueError("path", "contains a zero byte")
    try:
        if path.is_dir():
            raise InvalidValueError("path", f"{shorten(str(path))} is a directory; name a file")
        if not path.exists():
            return None
        if not path.is_file():
            raise InvalidValueError("path", f"{shorten(str(path))} is not a regular file")
        if path.stat().st_size > LARGEST:
            raise InvalidValueError("path", f"{shorten(str(path))} is larger than {LARGEST >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise InvalidValueError("path", f"{shorten(str(path))} cannot be read: {error.strerror}") from None


def find_names(asked: AskedFile, lines: Lines | None = None) -> History:
    """Return the earlier names of a file and the commits of its lines, from git alone."""
    repository = asked.repository
    if repository is None:
        return History(paths=(asked.place.path,))
    wanted = None if lines is None else range(max(lines.first, 1), lines.last + 1)
    return read_names(repository, asked.place.path, asked.data or b"", wanted)


def blame_file(
    view: LedgerView, asked: AskedFile, lines: Lines | None = None, *, names: History | None = None
) -> Blame:
    """Return who wrote all lines of a file, or those requested.

    Raises `InvalidValueError` if the file neither exists nor is recorded, or does not have such a line.
    """
    place = asked.place
    known = names or find_names(asked, lines)
    changes = read_changes(view, place, dict.fromkeys((place.path, *known.paths)))
    if not asked.data and asked.data is not None and lines is not None:
        raise InvalidValueError("line", f"{shorten(place.path)} is empty; there is no line {lines}")
    if not asked.data or b"\0" in asked.data:
        return _blame_whole(view, asked, changes, lines)
    total = len(lines_of(asked.data.decode("utf-8", "surrogateescape")))
    wanted = range(1, total + 1) if lines is None else lines.within(total, place.path)
    history = known
    if changes.found and asked.repository is not None:
        history = read_history(
            asked.repository, place.path, asked.data, changes.changes, names=changes.names, known=known
        )
    # Certain evidence first, and doubt only where it leaves a gap: recorded hunks explain a line for certain; edits
    # without a place do if replaying them gives this very file; otherwise whoever was given its words to write, and
    # last any call without an outcome, is a candidate. A candidate never replaces an explanation.
    told_so = changes.found
    if asked.repository is not None and any(one.change.hunks is None for one in changes.found):
        changes.found = replay(view, told_so, find_committed(asked.repository, place.path), asked.data)
    found = attribute(place.path, asked.data, changes.changes, history)
    unplaced = find_unplaced(view, changes.found)
    told = [with_candidates(_line(found[number - 1]), unplaced) for number in wanted]
    placed = find_placed(told_so, changes.found)
    told = [as_matched(line, placed) for line in told]
    is_certain = all(line.known is not HowKnown.UNEXPLAINED and not line.or_nobody for line in told)
    doubts = () if is_certain else find_open_calls(view, place, (place.path, *known.paths))
    inside = asked.repository is not None
    told = [with_open_calls(line, doubts, in_repository=inside) for line in told]
    calls = dict.fromkeys(call for line in told for call in (*line.calls, *_reformatter(line)))
    makers = read_makers(view, changes.by_call(), doubts, calls)
    return Blame(
        asked=place.path if lines is None else f"{place.path}:{lines}",
        path=place.path,
        total=total,
        recorded=len(changes.found),
        lines=tuple(told),
        makers=makers,
        notes=(*changes.notes, *(note for note in history.notes if note not in changes.notes)),
    )


def _blame_whole(view: LedgerView, asked: AskedFile, changes: RecordedChanges, lines: Lines | None) -> Blame:
    """Return who made a file without lines: it is gone, empty, or binary."""
    place = asked.place
    if asked.data is None:
        made, note = _gone(asked, changes)
    else:
        digest = digest_of(asked.data)
        made = [one for one in changes.found if one.change.after == digest and not _is_brought(one)][-1:]
        note = f"{place.path} is not text; it is shown as a whole" if asked.data else f"{place.path} is empty"
        if not made:
            note += "; no recorded change produced its current content"
    calls = tuple(CallId(recorded.change.call) for recorded in made)
    return Blame(
        asked=place.path if lines is None else f"{place.path}:{lines}",
        path=place.path,
        recorded=len(changes.found),
        calls=calls,
        makers=read_makers(view, changes.by_call(), (), calls),
        gone=asked.data is None,
        notes=(note, *changes.notes),
    )


def _gone(asked: AskedFile, changes: RecordedChanges) -> tuple[list[RecordedChange], str]:
    """Return who deleted a file, and a note about it. Raises `InvalidValueError` if nothing is known."""
    path = asked.place.path
    renamed = None if asked.repository is None else find_new_name(asked.repository, path)
    if not changes.found:
        known = "and no change of it is recorded" if renamed is None else f"it was renamed to {shorten(renamed)}"
        raise InvalidValueError("path", f"there is no {shorten(path)}{',' if renamed is None else ';'} {known}")
    if changes.found[-1].change.is_deletion and not _is_brought(changes.found[-1]):
        return [changes.found[-1]], f"{path} no longer exists"
    if renamed is not None:
        return [], f"{path} no longer exists; it was renamed to {renamed}: ask about that"
    return [], f"{path} no longer exists; who deleted it is not recorded"


def _is_brought(recorded: RecordedChange) -> bool:
    """Return whether git made the change; then the commits tell who wrote it."""
    return recorded.change.certainty is Certainty.BROUGHT


def read_makers(
    view: LedgerView,
    recorded: Mapping[CallId, Sequence[RecordedChange]],
    doubts: Sequence[OpenCall],
    calls: Iterable[CallId],
) -> dict[CallId | ReceiptId, Maker]:
    """Return the makers of these calls, as far as they are recorded."""
    makers = Makers(view)
    in_doubt = {one.call: one for one in doubts}
    found: dict[CallId | ReceiptId, Maker] = {}
    for call in calls:
        if call in recorded:
            last = recorded[call][-1]
            changes = [one.change for one in recorded[call]]
            found[call] = makers.of_call(last.stored, last.receipt, call, changes)
        elif call in in_doubt:
            found[call] = makers.of_call(in_doubt[call].stored, in_doubt[call].receipt, call)
    return found


def _line(found: Attribution) -> BlamedLine:
    calls = (found.call,) if found.call is not None else tuple(author.call for author in found.candidates)
    if found.run is not None:
        known = HowKnown.MATCHED if found.how is How.MATCHED else HowKnown.RECORDED
    else:
        known = HowKnown.CANDIDATES if calls else HowKnown.UNEXPLAINED
    return BlamedLine(
        number=found.line,
        text=found.text,
        known=known,
        run=None if found.run is None else RunId(found.run),
        calls=tuple(map(CallId, calls)),
        since=found.unexplained_since,
        or_nobody=found.or_nobody,
        commit=found.commit,
        reformatted_by=found.reformatted_by,
    )


def _reformatter(line: BlamedLine) -> tuple[CallId, ...]:
    by = line.reformatted_by
    return (CallId(by),) if by is not None and by.startswith("call_") else ()
