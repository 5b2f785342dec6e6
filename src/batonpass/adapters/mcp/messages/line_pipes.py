"""Lines between processes: reading them until the end or a stop signal, and writing them whole."""

import os
import select
import threading
from collections.abc import Iterator
from typing import Final

# A server that never ends its line must not use up all memory. Real results are far smaller.
LONGEST: Final = 256 * 1024 * 1024
# The capacity of a pipe. A larger read returns no more, and costs pages that are allocated and freed each time.
_PIECE: Final = 64 * 1024


class EndlessLineError(Exception):
    """A line is longer than anything that is meant to be read."""

    def __init__(self) -> None:
        super().__init__(f"sent a line of more than {LONGEST:,} bytes")


class Bell:
    """Lets a thread or a signal handler end another thread's wait for input."""

    def __init__(self) -> None:
        self.descriptor, self._ring = os.pipe()
        os.set_blocking(self._ring, False)

    def ring(self) -> None:
        """End the wait. Also works before it has begun, and any number of times."""
        try:
            os.write(self._ring, b"!")
        except BlockingIOError:
            return  # it has been rung many times already

    def close(self) -> None:
        """Close it, when nobody waits or rings any more."""
        os.close(self.descriptor)
        os.close(self._ring)


def read_lines(descriptor: int, bell: Bell | None = None, *, longest: int = LONGEST) -> Iterator[bytes]:
    """Yield lines without their line ends, and without empty ones, until the end of input or until the bell rings.

    Raises `EndlessLineError`.
    """
    pieces: list[bytes] = []
    size = 0
    waiting = [descriptor] if bell is None else [descriptor, bell.descriptor]
    while True:
        if bell is not None and bell.descriptor in select.select(waiting, [], [])[0]:
            return
        piece = os.read(descriptor, _PIECE)
        *whole, rest = piece.split(b"\n")
        if whole:
            whole[0] = b"".join([*pieces, whole[0]])
            pieces, size = [], 0
            yield from (line for line in map(bytes.strip, whole) if line)
        pieces.append(rest)
        size += len(rest)
        if size > longest:
            raise EndlessLineError
        if not piece:
            if last := b"".join(pieces).strip():
                yield last
            return


class Outlet:
    """A descriptor to which threads write whole lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, line: bytes) -> None:
        """Write one line. Raises `OSError` if nobody reads any more."""
        with self._lock:
            left = memoryview(line + b"\n")
            while left:
                left = left[os.write(self._descriptor, left) :]
