"""Recovers texts that were not kept, by applying hunks backwards from texts that were."""

from collections.abc import Mapping, Sequence

from batonpass.attribution.changes.change import FileChange, revert_hunks
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import Digest


class Recovery:
    """Finds the lines for a digest, if recorded changes lead from it to a known text."""

    def __init__(self, changes: Sequence[FileChange], known: Mapping[Digest, Sequence[str]]) -> None:
        self._known = dict(known)
        self._next = {
            change.before: change
            for change in reversed(changes)
            if change.before is not None and change.after is not None
        }

    def lines_of(self, digest: Digest) -> Sequence[str] | None:
        """Return the lines of a text; None if no known text can be reached."""
        if digest in self._known:
            return self._known[digest]
        way: list[FileChange] = []
        seen = {digest}
        at = digest
        while at not in self._known:
            change = self._next.get(at)
            if change is None or change.hunks is None or change.after is None or change.after in seen:
                return None
            way.append(change)
            at = change.after
            seen.add(at)
        return self._back(digest, way, self._known[at])

    def _back(self, digest: Digest, way: Sequence[FileChange], lines: Sequence[str]) -> Sequence[str] | None:
        try:
            for change in reversed(way):
                lines = revert_hunks(change.hunks or (), lines)
        except InvalidValueError:
            return None
        self._known[digest] = lines
        return lines
