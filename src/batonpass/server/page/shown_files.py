"""The files that the page may show. The command that starts the server chooses them, and hands them in."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.hunk_blame import BlamedHunk
from batonpass.attribution.git.git_history import History
from batonpass.store.port import LedgerView


class FileEntry(Struct, frozen=True, kw_only=True):
    """A file or a directory in a listing."""

    name: str
    path: str  # from the root
    is_directory: bool
    changes: int = 0  # recorded, at most MOST_CHANGES; of a file


class ShownFile(Struct, frozen=True, kw_only=True):
    """A file, or some lines of it, with who wrote them."""

    path: str
    at: str | None  # the commit that it is read from; None for the work tree
    data: bytes | None
    blame: Blame
    names: History  # what git alone knows of it


class EarlierFile(Struct, frozen=True, kw_only=True):
    """A file as it was before a line was written."""

    path: str
    at: str
    line: int  # about where that was


class ShownFiles(Protocol):
    """The files of one repository or directory. It refuses to look outside of it."""

    name: str  # what people call it

    def is_directory(self, path: str) -> bool:
        """Return whether a path is a directory that may be looked at. Raises `InvalidValueError`."""

    def entries(self, view: LedgerView, path: str) -> Sequence[FileEntry]:
        """Return the entries of a directory that git or the ledger knows. Raises `InvalidValueError`."""

    def blame(self, view: LedgerView, path: str, first: int, most: int, at: str | None) -> ShownFile:
        """Return so many lines of a file, in the work tree or in a commit. Raises `InvalidValueError`."""

    def before(self, file: ShownFile, number: int) -> EarlierFile | None:
        """Return the file before one of its lines was written; None if there was none."""

    def hunks(self, view: LedgerView, patch: str) -> Sequence[BlamedHunk]:
        """Return the hunks of a pasted diff with their authors. Raises `InvalidValueError`."""
