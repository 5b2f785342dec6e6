"""A file and what becomes of it, told in a test line by line: who changed it, what was recorded, what was committed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from batonpass.attribution.changes.change import FileChange, Hunk, digest_of
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.attribution.git.git_history import History, Revision
from batonpass.attribution.lines.attribution import Attribution, attribute

BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def data_of(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


class Story:
    """One file, from nothing on."""

    def __init__(self, path: str = "invoice.py") -> None:
        self.path = path
        self.now = BEGAN
        self.lines: list[str] | None = None
        self.changes: list[FileChange] = []
        self.revisions: list[Revision] = []
        self.texts = {digest_of(b""): list[str]()}

    def records(self, run: str, *lines: str, to: str | None = None, overlapping: tuple[str, ...] = ()) -> None:
        """Let a call of a run make the file so, while somebody watches: with digests, and what a diff tells."""
        old, path = self.lines, self.path
        self._becomes(lines, to)
        self.changes.append(
            FileChange(
                call=f"call_{len(self.changes) + 1}",
                run=run,
                at=self.now,
                path=self.path,
                before=None if old is None else digest_of(data_of(old)),
                after=digest_of(data_of(lines)),
                hunks=hunks_between(old or [], lines),
                renamed_from=path if path != self.path else None,
                overlapping=overlapping,
            )
        )

    def tells(self, run: str, *lines: str, hunks: Sequence[Hunk] | None = ()) -> None:
        """Let a call of a run make the file so, and a transcript show it: no digests; these hunks, or a diff's."""
        old = self.lines or []
        self._becomes(lines, None)
        shown = hunks_between(old, lines) if hunks == () else hunks
        self.changes.append(
            FileChange(
                call=f"call_{len(self.changes) + 1}",
                run=run,
                at=self.now,
                path=self.path,
                hunks=None if shown is None else tuple(shown),
            )
        )

    def becomes(self, *lines: str, to: str | None = None) -> None:
        """Let somebody whom nobody records make the file so."""
        self._becomes(lines, to)

    def deletes(self, run: str) -> None:
        """Let a call delete the file."""
        assert self.lines is not None
        self.now += MINUTE
        self.changes.append(
            FileChange(
                call=f"call_{len(self.changes) + 1}",
                run=run,
                at=self.now,
                path=self.path,
                before=digest_of(data_of(self.lines)),
                hunks=hunks_between(self.lines, []),
            )
        )
        self.lines = None

    def commits(self, *parents: str, runs: tuple[str, ...] = ()) -> str:
        """Commit the file as it is, on the last commit or on these; return the commit."""
        self.now += MINUTE
        lines = list(self.lines or [])
        digest = digest_of(data_of(lines))
        self.texts[digest] = lines
        last = (self.revisions[-1].commit,) if self.revisions else ()
        name = f"{len(self.revisions) + 1:040x}"
        self.revisions.append(
            Revision(commit=name, at=self.now, path=self.path, digest=digest, parents=parents or last, runs=runs)
        )
        return name

    def returns_to(self, commit: str) -> None:
        """Check out what a commit has."""
        revision = next(one for one in self.revisions if one.commit == commit)
        self.now += MINUTE
        self.lines = list(self.texts[revision.digest])

    def forgets(self, *commits: str) -> None:
        """Leave commits behind, as a rebase does: no branch leads to them any more."""
        self.revisions = [one for one in self.revisions if one.commit not in commits]

    def found(self) -> tuple[Attribution, ...]:
        """Return who wrote each line of the file as it is."""
        history = History(
            revisions=self.revisions,
            lines=self.texts,
            paths=tuple(dict.fromkeys((self.path, *(one.path for one in self.revisions)))),
            head=self.revisions[-1].commit if self.revisions else None,
        )
        return attribute(self.path, data_of(self.lines or []), self.changes, history)

    def runs(self) -> list[str | None]:
        """Return the run that wrote each line, where that is certain."""
        return [one.run for one in self.found()]

    def _becomes(self, lines: Sequence[str], to: str | None) -> None:
        self.now += MINUTE
        self.lines = list(lines)
        self.path = to or self.path
