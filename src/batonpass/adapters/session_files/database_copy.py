"""Reads other programs' SQLite databases without locking or changing them, even while they are written.

SQLite's own way to read a database takes locks beside it and leaves files there. So a database at rest is opened as one
that nobody changes, and of a database in use a copy is read: the file and its write-ahead log, as both were at one
moment.
"""

import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from batonpass.adapters.session_files.session_values import SkippedLine

_BESIDE: Final = ("-wal", "-journal")  # with writes that are not in the file yet
_ATTEMPTS: Final = 5


class DatabaseCopy:
    """Answers questions about a database as it was when it was last asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state: tuple[object, ...] | None = None
        self._copy: Path | None = None

    def ask(self, question: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an answer. Raises `sqlite3.Error` or `OSError` if the database cannot be read."""
        with closing(sqlite3.connect(self._name(), uri=True)) as connection:
            connection.execute("PRAGMA query_only = 1")
            yield from connection.execute(question, values)

    def problem(self, error: Exception) -> SkippedLine:
        """Return why it could not be read, as a skipped line."""
        return SkippedLine(path=self.path, line=0, what=f"cannot be read: {error}")

    def _name(self) -> str:
        state = _state(self.path)
        if not any(state[1:]):  # at rest
            return f"file:{quote(str(self.path))}?mode=ro&immutable=1"
        if self._copy is None or state != self._state:
            self._take(state)
        return f"file:{quote(str(self._copy))}?mode=rw"

    def _take(self, state: tuple[object, ...]) -> None:
        """Copy the database with its side files, again if it changed in between."""
        folder = Path(tempfile.mkdtemp(prefix="batonpass-read-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        there = folder / self.path.name
        for _ in range(_ATTEMPTS):
            for beside in ("", *_BESIDE):
                source = Path(f"{self.path}{beside}")
                if source.exists():
                    shutil.copyfile(source, f"{there}{beside}")
                else:
                    Path(f"{there}{beside}").unlink(missing_ok=True)
            if (now := _state(self.path)) == state:
                break
            state = now
        self._copy, self._state = there, state


def _state(path: Path) -> tuple[object, ...]:
    """Return size and time of the file and of the files beside it; empty and missing files are left out."""
    found: list[object] = []
    for beside in ("", *_BESIDE):
        try:
            status = Path(f"{path}{beside}").stat()
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((status.st_size, status.st_mtime_ns) if status.st_size else None)
    return tuple(found)
