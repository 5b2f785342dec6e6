"""Verifying a ledger against bare signature checks, both on every core."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Final

from nacl.bindings import crypto_sign_open
from nacl.signing import SigningKey

from batonpass.audit.verification.verify import verify_ledger
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.wire.receipt_codec import signing_bytes
from bench.effort import Effort
from bench.ledgers import fill, sqlite_ledger
from bench.measure import Samples
from bench.table import Row, at_least, rate

_KEYS: Final = 100
_CHECKS: Final = 20_000  # of one process, in one turn


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure signatures in a second, of the verifier and of nothing but libsodium."""
    cores = os.cpu_count() or 1
    with sqlite_ledger(scratch / "ledger") as scribe:
        fill(scribe, effort.verified)
        size = _message_bytes(scribe.store)
        ours: list[float] = []
        theirs: list[float] = []
        with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
            _check_bare(pool, cores, size)
            for _ in range(effort.verifications):
                ours.append(_verify(scribe.store))
                theirs.append(_check_bare(pool, cores, size))
    return [
        Row(
            what=f"verify {effort.verified:,} receipts, signatures",
            ours=rate(Samples(tuple(ours))),
            against=f"bare signature checks, {cores} processes",
            theirs=rate(Samples(tuple(theirs))),
            goal=at_least(0.9, must=0.7),
        ),
    ]


def _message_bytes(store: LedgerStore) -> int:
    with store.view() as view:
        receipts = view.find_receipts(ReceiptQuery(first=1, last=1_000))
        return round(mean(len(signing_bytes(stored.payload)) for stored in receipts))


def _verify(store: LedgerStore) -> float:
    began = time.perf_counter()
    evidence = verify_ledger(store)
    return evidence.signatures / (time.perf_counter() - began)


def _check_bare(pool: ProcessPoolExecutor, processes: int, size: int) -> float:
    """Return how many checks all processes together did in a second."""
    began = time.perf_counter()
    done = sum(pool.map(_check_in_process, [size] * processes))
    return done / (time.perf_counter() - began)


def _check_in_process(size: int) -> int:
    # Making the messages takes a hundredth of the time of checking each of them a hundred times and more.
    keys = [SigningKey.generate() for _ in range(_KEYS)]
    signed = [(bytes(key.sign(os.urandom(size))), key.verify_key.encode()) for key in keys]
    for _ in range(_CHECKS // _KEYS):
        for message, public_key in signed:
            crypto_sign_open(message, public_key)
    return _CHECKS
