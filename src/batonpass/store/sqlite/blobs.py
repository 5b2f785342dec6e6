"""Files for bodies that are too large for a row. A file is durable before the row that names it is committed."""

import contextlib
import os
from pathlib import Path

from batonpass.errors import DuplicateReceiptError, StoreFullError, StoreReadOnlyError
from batonpass.model.base.ids import ContentId
from batonpass.store.home import NO_SPACE


class Blobs:
    """Files by content id. They are spread over directories by the last characters of the id, which are random."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, content: ContentId, body: bytes) -> None:
        """Write a body; it is durable when this returns.

        Raises a `StoreError`, or `DuplicateReceiptError` if the id is taken.

        A crash can leave a file that no row names; `batonpass doctor` sweeps those.
        """
        path = self._path(content)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            _sync(path.parent)
            _sync(self._directory)
        except FileExistsError:
            # A repeated append, whose first answer was lost, brings the same bytes.
            if self.read(content) != body:
                raise DuplicateReceiptError(content) from None
        except OSError as error:
            self.remove(content)
            if error.errno in NO_SPACE:
                raise StoreFullError(
                    f"there is no room left for a content of {len(body):,} bytes; free some disk"
                ) from None
            raise StoreReadOnlyError(f"cannot write {path}: {error.strerror}") from None

    def read(self, content: ContentId) -> bytes | None:
        """Return a body; None if its file is lost."""
        try:
            return self._path(content).read_bytes()
        except OSError:
            return None

    def remove(self, content: ContentId) -> None:
        """Remove a body, if it exists."""
        with contextlib.suppress(OSError):
            self._path(content).unlink()

    def names(self) -> set[ContentId]:
        """Return the ids of the contents that have a file."""
        return {ContentId(path.name) for path in self._directory.glob("*/content_*")}

    def size(self) -> int:
        """Return the size of all files in bytes."""
        total = 0
        for path in self._directory.glob("*/content_*"):
            with contextlib.suppress(OSError):  # erased since the listing
                total += path.stat().st_size
        return total

    def _path(self, content: ContentId) -> Path:
        return self._directory / content[-2:] / content


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
