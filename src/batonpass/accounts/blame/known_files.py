"""Which files of a directory may be shown to others: those that git or the ledger knows, and nothing outside of it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.file_git import Repository
from batonpass.attribution.git.git_process import GitSilentError
from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten
from batonpass.store.port import LedgerView


class KnownFiles(Struct, frozen=True, kw_only=True):
    """The files of one directory, as far as others may see them."""

    root: Path  # resolved
    home: Path | None  # of the ledger, whose files are nobody's business
    environment: Mapping[str, str]  # for git

    def require_within(self, path: Path) -> Path:
        """Return where a path leads. Raises `InvalidValueError` for a path outside, and for files of the ledger itself.

        A link is followed before that is decided.
        """
        try:
            found = path.resolve()
        except (OSError, RuntimeError, ValueError):
            raise InvalidValueError("path", f"{shorten(str(path))} leads nowhere") from None
        if not found.is_relative_to(self.root) or self._is_own(found):
            raise InvalidValueError("path", f"{shorten(str(path))} is not a file of this project")
        return found

    def require_known(self, path: Path, *, is_recorded: Callable[[str], bool]) -> str:
        """Return a file's path from the root. Raises `InvalidValueError`, also if it is not known."""
        name = self.require_within(path).relative_to(self.root).as_posix()
        if self.is_tracked(name) or is_recorded(name):
            return name
        raise InvalidValueError("path", f"neither git nor the ledger knows {shorten(str(path))}")

    def require_name(self, name: str) -> str:
        """Return a path in a commit. Raises `InvalidValueError` unless it is one, below the root."""
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name or self._is_own(self.root / path):
            raise InvalidValueError("path", f"{shorten(name)} is not a file of this project")
        return path.as_posix()

    def count_changes(self, view: LedgerView, name: str, most: int = 1) -> int:
        """Return how many changes of a file are recorded, at most so many."""
        return sum(1 for _, _ in zip(range(most), self._touches(view, name), strict=False))

    def is_tracked(self, name: str) -> bool:
        """Return whether git tracks a file. Where git does not answer it tracks nothing."""
        if find_repository(self.root) is None:
            return False
        try:
            return Repository(self.root, self.environment).tracks(name)
        except GitSilentError:
            return False

    def _touches(self, view: LedgerView, name: str) -> Iterator[object]:
        for spelling in (name, str(self.root / name)):
            yield from view.find_touches(spelling)

    def _is_own(self, path: Path) -> bool:
        return self.home is not None and path.is_relative_to(self.home.resolve())
