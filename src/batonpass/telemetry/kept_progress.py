"""How far somebody has read a ledger, in a file beside its keys: written after the work, by one process at a time.

A crash between the work and the file repeats the work, and ids tell that it is the same.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

_FOLDER: Final = "telemetry"

Kept = TypeVar("Kept")


class KeptProgress(Generic[Kept]):
    """A value in a file, and whose turn it is to change it."""

    def __init__(self, home: Path, name: str, decoder: msgspec.json.Decoder[Kept], new: Callable[[], Kept]) -> None:
        self._file = home / _FOLDER / f"{name}.json"
        self._decoder = decoder
        self._new = new

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Yield whether it is ours to change. If another process is at it, it is not."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def read(self) -> Kept:
        """Return what was kept; from the beginning if there is nothing, or nothing that can be read."""
        try:
            return self._decoder.decode(self._file.read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return self._new()

    def write(self, value: Kept) -> None:
        """Keep a value, durably and whole."""
        part = self._file.with_suffix(".part")
        with part.open("wb") as file:
            file.write(msgspec.json.encode(value))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._file)
