"""Checks inside a ledger: its schema, its receipts, its seal, whether this relay may record, and files of a crash."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.output.units import counted, size
from batonpass.config import Settings
from batonpass.errors import KeyFailedError, NotFoundError
from batonpass.model.base.ids import ContentId
from batonpass.model.ledger.key import KeyStatus
from batonpass.relay import Relay

# A file is written before the row that names it is committed, so a recent file may belong to a pending commit.
_SURELY_LOST: Final = 3600.0


@runtime_checkable
class KeepsFiles(Protocol):
    """A store that keeps large bodies as files."""

    home: Path

    def lost_files(self) -> set[ContentId]:
        """Return the contents whose files no row names."""


def look_at_ledger(relay: Relay, found: Settings, *, fix: bool) -> Iterator[DoctorCheck]:
    """Check an open ledger: its schema, receipts and seals, the enrolment of this relay, and files of a crash."""
    steps = relay.store.migrations()
    waiting = [step.name for step in steps if step.applied_at is None]
    level, advice = (Level.BAD, "batonpass ledger migrate") if waiting else (Level.OK, None)
    yield DoctorCheck(level, "schema", f"step {len(steps) - len(waiting)} of {len(steps)}", advice)
    if not relay.store.founded():
        yield DoctorCheck(Level.WARN, "receipts", "nothing has been recorded yet")
        return
    with relay.store.view() as view:
        counts = view.counts()
        sealed = max((seal.size for seal in view.find_seals()), default=0)
    recorded = f"{counts.receipts:,} in {counted(counts.streams, 'stream')}, {size(counts.bytes)}"
    yield DoctorCheck(Level.OK, "receipts", recorded)
    if sealed == counts.receipts:
        yield DoctorCheck(Level.OK, "seal", "covers everything")
    else:
        unsealed = f"{counted(counts.receipts - sealed, 'receipt')} not covered by a seal"
        yield DoctorCheck(Level.WARN, "seal", unsealed, "run batonpass ledger seal, and keep the seal elsewhere")
    yield _enrolment(relay, found)
    if isinstance(relay.store, KeepsFiles):
        yield _lost_files(relay.store, fix=fix)


def _enrolment(relay: Relay, found: Settings) -> DoctorCheck:
    if found.home is None or not (found.home / "relay.key").exists():
        return DoctorCheck(Level.OK, "enrolled", "this relay has recorded nothing here yet")
    try:
        own, public_key = relay.admin.identity()
    except KeyFailedError:
        return DoctorCheck(Level.WARN, "enrolled", "unknown, because relay.key cannot be used")
    keys = relay.admin.keys()
    known = next((key for key in keys if key.public_key == public_key), None)
    if known is None:
        advice = f"where the root key is, run: batonpass key enroll {own} {public_key}"
        return DoctorCheck(Level.BAD, "enrolled", f"{own} is not enrolled", advice)
    if known.status is not KeyStatus.ACTIVE:
        return DoctorCheck(Level.BAD, "enrolled", f"{own}, {known.status}", "enrol another key where the root key is")
    return DoctorCheck(Level.OK, "enrolled", f"{own}, {known.status}")


def _lost_files(store: KeepsFiles, *, fix: bool) -> DoctorCheck:
    now = time.time()
    blobs = store.home / "blobs"
    lost = []
    for content in store.lost_files():
        try:
            path = _find_file(blobs, content)
            old = now - path.stat().st_mtime > _SURELY_LOST
        except (NotFoundError, OSError):
            continue
        if old:
            lost.append(path)
    if not lost:
        return DoctorCheck(Level.OK, "files", "none left by a crash")
    if not fix:
        left = f"{counted(len(lost), 'file')} left by a crash"
        return DoctorCheck(Level.WARN, "files", left, "run batonpass doctor --fix")
    for path in lost:
        path.unlink(missing_ok=True)
    return DoctorCheck(Level.OK, "files", f"removed {counted(len(lost), 'file')} left by a crash")


def _find_file(blobs: Path, content: ContentId) -> Path:
    for path in blobs.glob(f"*/{content}"):
        return path
    raise NotFoundError("file of content", content)
