"""How far somebody has read a ledger: a file beside its keys, written after the work, by one process at a time.

A crash between the work and the file repeats the work, and ids tell that it is the same.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

Progress = TypeVar("Progress", bound=msgspec.Struct)


class ProgressFile(Generic[Progress]):
    """The progress of one reader. If it is lost, it begins anew: telling something twice is better than never."""

    def __init__(self, folder: Path, name: str, decoder: msgspec.json.Decoder[Progress]) -> None:
        self._file = folder / f"{name}.json"
        self._decoder = decoder

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Yield whether it is this process's turn, until the end of the block. If another is at it, it is not."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def read(self) -> Progress:
        """Return how far it has come; the beginning if nothing is kept, or nothing that can be read."""
        try:
            return self._decoder.decode(self._file.read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return self._decoder.type()

    def write(self, progress: Progress) -> None:
        """Keep it, durably and whole."""
        part = self._file.with_suffix(".part")
        with part.open("wb") as file:
            file.write(msgspec.json.encode(progress))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._file)

    def forget(self) -> None:
        """Remove it."""
        self._file.unlink(missing_ok=True)
