"""How far a delivery has come: a file beside the keys, written after each delivery, used by one process."""

import fcntl
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

Progress = TypeVar("Progress", bound=msgspec.Struct)

_FOLDER: Final = "outbox"
_FIRST_PAUSE: Final = timedelta(seconds=5)
_MOST_DOUBLINGS: Final = 20


def pause_after(tries: int, most: timedelta) -> timedelta:
    """Return how long to wait after so many failures: twice as long each time, and never all at the same moment."""
    pause: timedelta = min(_FIRST_PAUSE * 2 ** min(tries - 1, _MOST_DOUBLINGS), most)
    part: float = random.uniform(0.5, 1)  # noqa: S311 - no secret
    return pause * part


class ProgressFile(Generic[Progress]):
    """The progress of one delivery. If it is lost, it begins anew: telling something twice is better than never."""

    def __init__(self, home: Path, name: str, decoder: msgspec.json.Decoder[Progress]) -> None:
        self._file = home / _FOLDER / f"{name}.json"
        self._decoder = decoder

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Return whether it is this process's turn, until the end of the block."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def read(self) -> Progress:
        """Return how far it has come; the beginning if nobody knows."""
        try:
            return self._decoder.decode(self._file.read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return self._decoder.type()

    def write(self, progress: Progress) -> None:
        """Keep it, all or nothing."""
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(progress))
        part.replace(self._file)

    def forget(self) -> None:
        """Remove it."""
        self._file.unlink(missing_ok=True)
