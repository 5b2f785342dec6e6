"""Checks many signatures on all cores.

Python threads would wait for each other, so batches go to helper processes. A helper gets only public keys, messages
and signatures, and answers with the first that does not match.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from batonpass.errors import SignatureError
from batonpass.signing.ed25519 import is_signed
from batonpass.wire.receipt_codec import signing_bytes

if TYPE_CHECKING:
    from concurrent.futures import Future

    from batonpass.audit.verification.signature_pool import SignaturePool

_BATCH: Final = 400
_WAITING_BATCHES: Final = 4

# The payload, and its signatures as pairs of public key and signature.
Job = tuple[bytes, tuple[tuple[bytes, bytes], ...]]
_Place = tuple[int, str, int]  # number of receipts before it, stream, seq
SignatureCheck = Callable[[bytes, bytes, bytes], bool]


def first_unsigned(jobs: Sequence[Job], check: SignatureCheck = is_signed) -> int:
    """Return the index of the first job with a signature that does not match; -1 if all match."""
    for index, (payload, signatures) in enumerate(jobs):
        message = signing_bytes(payload)
        for public_key, signature in signatures:
            if not check(public_key, message, signature):
                return index
    return -1


class SignatureQueue:
    """Takes signatures in order and raises `SignatureError` for the first that does not match.

    Batches are checked in the background, so the error may come a few calls later, or from `finish`.
    """

    def __init__(self, *, processes: int, check: SignatureCheck = is_signed) -> None:
        self.checked = 0
        self.bad: tuple[int, SignatureError] | None = None  # the number of receipts before it, and the finding
        self._given = 0
        self._check = check
        self._batch: list[Job] = []
        self._places: list[_Place] = []
        self._most_pending = _WAITING_BATCHES * processes
        self._pending: deque[tuple[Future[int], list[_Place]]] = deque()
        self._pool = _open_pool(processes) if processes else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.close()

    def add(self, stream: str, seq: int, *jobs: Job) -> None:
        """Take the signatures of one receipt: over its own bytes, and over the rulings that it contains."""
        place = (self._given, stream, seq)
        for job in jobs:
            self.checked += len(job[1])
            self._batch.append(job)
            self._places.append(place)
        self._given += 1
        if len(self._batch) >= _BATCH:
            self._send()

    def finish(self) -> None:
        """Wait until everything is checked. Raises `SignatureError`."""
        self._send()
        while self._pending:
            self._settle()

    def _send(self) -> None:
        jobs, places = self._batch, self._places
        self._batch, self._places = [], []
        if self._pool is None:
            self._require_signed(first_unsigned(jobs, self._check), places)
            return
        questions = [(signing_bytes(payload), signatures) for payload, signatures in jobs]
        asked = self._pool.ask(questions, instead=partial(first_unsigned, jobs, self._check))
        self._pending.append((asked, places))
        # Receipts are read faster than signatures are checked. Without a bound, all of a large ledger would wait in
        # memory.
        while len(self._pending) > self._most_pending:
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


def useful_processes(receipts: int) -> int:
    """Return how many helper processes are worth starting for so many receipts; 0 to check in this process."""
    cores = os.cpu_count() or 1
    return cores if cores > 1 and receipts > 10 * _BATCH and sys.executable else 0


def _open_pool(processes: int) -> "SignaturePool":
    from batonpass.audit.verification.signature_pool import SignaturePool  # noqa: PLC0415 - threads and processes, for large ledgers

    return SignaturePool(processes)
