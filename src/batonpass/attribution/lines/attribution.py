"""Says who wrote each line of a file, from recorded changes and from git.

A line belongs to a call only if the call is recorded to have written its text, and nothing since can have replaced it.
If several calls may have written it, they are candidates; if no recorded call did, it is unexplained.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.attribution.changes.change import FileChange, digest_of, lines_of
from batonpass.attribution.changes.mark import Author, LineMark
from batonpass.attribution.git.git_history import Commit, History
from batonpass.attribution.lines.line_follower import follow


class How(StrEnum):
    """How the author of a line was found."""

    RECORDED = "recorded"  # through an unbroken chain of recorded changes
    MATCHED = "matched"  # it was gone in between, and was recognised by its text and position


class Attribution(Struct, frozen=True, kw_only=True):
    """Who wrote one line. Without a run and without candidates, no recorded change wrote it."""

    line: int  # from 1
    text: str
    call: str | None = None  # None if several calls may have written it; `run` is set if they belong to one run
    run: str | None = None
    how: How | None = None
    candidates: tuple[Author, ...] = ()  # possible authors, if it is not certain
    or_nobody: bool = False  # an unrecorded author is possible besides the candidates
    unexplained_since: datetime | None = (
        None  # if unexplained: it did not exist at this time; None: older than the record
    )
    commit: Commit | None = None  # the commit that introduced it; None: not committed, or no git
    reformatted_by: str | None = None  # the call that last changed only its white space, or "unrecorded"

    @property
    def is_explained(self) -> bool:
        """Return whether it is certain which run wrote it."""
        return self.run is not None


def attribute(
    path: str,
    data: bytes,
    changes: Iterable[FileChange],
    history: History | None = None,
) -> tuple[Attribution, ...]:
    """Return who wrote each line of a file with these bytes, from the recorded changes of its repository."""
    history = history or History()
    lines = lines_of(data.decode("utf-8", "surrogateescape"))
    own = changes_of(path, changes, history.paths)
    text = follow(own, history, path, lines, digest_of(data))
    commits: Sequence[Commit | None] = history.blamed if len(history.blamed) == len(lines) else [None] * len(lines)
    return tuple(
        _attribution(number, line, mark, commit)
        for number, (line, mark, commit) in enumerate(zip(lines, text.marks, commits, strict=True), 1)
    )


def changes_of(path: str, changes: Iterable[FileChange], names: Iterable[str] = ()) -> list[FileChange]:
    """Return the changes of a file under all its names."""
    every = list(changes)
    known = {path, *names}
    renames = [(change.path, change.renamed_from) for change in every if change.renamed_from is not None]
    while earlier := {old for new, old in renames if new in known and old not in known}:
        known |= earlier
    return [change for change in every if change.path in known]


def _attribution(number: int, line: str, mark: LineMark, commit: Commit | None) -> Attribution:
    certain = mark.is_certain and bool(mark.authors)
    run = mark.run
    return Attribution(
        line=number,
        text=line,
        call=mark.authors[0].call if certain else None,
        run=run,
        how=None if run is None else How.MATCHED if mark.is_matched else How.RECORDED,
        candidates=() if certain else mark.authors,
        or_nobody=mark.is_open and bool(mark.authors),
        unexplained_since=mark.since if mark.is_open else None,
        commit=commit,
        reformatted_by=mark.reformatted_by,
    )
