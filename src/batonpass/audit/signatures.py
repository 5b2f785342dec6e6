"""Checking many signatures on every core.

Python threads would wait for each other, so the checks are spread over helper processes that are told nothing but
public keys, messages and signatures, and answer which of them is the first that does not match.
"""

import contextlib
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import BinaryIO, Final, Self

import msgspec

from batonpass.errors import SignatureError
from batonpass.signing.ed25519 import is_signed
from batonpass.wire.codec import signing_bytes

# The helper imports what we import, wherever we found it.
_HELPER: Final = "import sys; sys.path[:] = sys.argv[1:]; from batonpass.audit.signatures import main; main()"
_LENGTH_BYTES: Final = 4
_BATCH: Final = 400
_WAITING_BATCHES: Final = 4

# payload, and the signatures over it: public key, signature
Job = tuple[bytes, tuple[tuple[bytes, bytes], ...]]
_Place = tuple[int, str, int]  # how many came before, stream, seq
SignatureCheck = Callable[[bytes, bytes, bytes], bool]

_JOBS: Final = msgspec.msgpack.Decoder(list[Job])
_ENCODER: Final = msgspec.msgpack.Encoder()


def first_unsigned(jobs: Sequence[Job], check: SignatureCheck = is_signed) -> int:
    """Return the index of the first job with a signature that does not match; -1 if all match."""
    for index, (payload, signatures) in enumerate(jobs):
        message = signing_bytes(payload)
        for public_key, signature in signatures:
            if not check(public_key, message, signature):
                return index
    return -1


class SignatureQueue:
    """Takes signatures in order and raises `SignatureError` for the first that does not match."""

    def __init__(self, *, processes: int, check: SignatureCheck = is_signed) -> None:
        self.checked = 0
        self.bad: tuple[int, SignatureError] | None = None  # how many jobs came before it, and what was found
        self._given = 0
        self._check = check
        self._batch: list[Job] = []
        self._places: list[_Place] = []
        self._pending: deque[tuple[Future[int], list[_Place]]] = deque()
        self._helpers: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._all = [_start_helper() for _ in range(processes)]
        for helper in self._all:
            self._helpers.put(helper)
        self._pool = ThreadPoolExecutor(processes) if processes else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for helper in self._all:
            # A helper that died leaves a broken pipe; what it was asked has been answered here.
            with contextlib.suppress(OSError):
                _pipe(helper.stdin).close()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        for helper in self._all:
            helper.wait()
            _pipe(helper.stdout).close()

    def add(self, stream: str, seq: int, *jobs: Job) -> None:
        """Take the signatures of one receipt: over its own bytes, and over what else it says was signed."""
        for job in jobs:
            self.checked += len(job[1])
            self._batch.append(job)
            self._places.append((self._given, stream, seq))
        self._given += 1
        if len(self._batch) >= _BATCH:
            self._send()

    def finish(self) -> None:
        """Wait until everything is checked."""
        self._send()
        while self._pending:
            self._settle()

    def _send(self) -> None:
        jobs, places = self._batch, self._places
        self._batch, self._places = [], []
        if self._pool is None:
            self._require_signed(first_unsigned(jobs, self._check), places)
            return
        self._pending.append((self._pool.submit(self._ask, jobs), places))
        while len(self._pending) > _WAITING_BATCHES * len(self._all):
            self._settle()

    def _settle(self) -> None:
        future, places = self._pending.popleft()
        self._require_signed(future.result(), places)

    def _require_signed(self, index: int, places: list[_Place]) -> None:
        if index >= 0:
            order, stream, seq = places[index]
            found = SignatureError(
                "a signature does not match the signed bytes",
                stream=stream,
                seq=seq,
                field="signature",
            )
            self.bad = (order, found)
            raise found

    def _ask(self, jobs: list[Job]) -> int:
        helper = self._helpers.get()
        try:
            _write(_pipe(helper.stdin), _ENCODER.encode(jobs))
            return int(_read(_pipe(helper.stdout)))
        except (OSError, ValueError):
            # The helper died; what it was asked is still to be answered.
            return first_unsigned(jobs, self._check)
        finally:
            self._helpers.put(helper)


def useful_processes(receipts: int) -> int:
    """Return how many helper processes pay for a ledger of this size; 0 to check in this process."""
    cores = os.cpu_count() or 1
    return cores if cores > 1 and receipts > 10 * _BATCH and sys.executable else 0


def _start_helper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-c", _HELPER, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C reaches every process in the terminal's group, and a helper's answer would be a traceback. Ours end
        # when we close their pipe, or die.
        process_group=0,
    )


def _pipe(pipe: "BinaryIO | object | None") -> BinaryIO:
    return pipe  # type: ignore[return-value]


def _write(pipe: BinaryIO, data: bytes) -> None:
    pipe.write(len(data).to_bytes(_LENGTH_BYTES) + data)
    pipe.flush()


def _read(pipe: BinaryIO) -> bytes:
    length = pipe.read(_LENGTH_BYTES)
    return pipe.read(int.from_bytes(length))


def main() -> None:
    """Answer batches on standard input with the index of the first bad one, until there is no more."""
    while data := _read(sys.stdin.buffer):
        _write(sys.stdout.buffer, b"%d" % first_unsigned(_JOBS.decode(data)))
