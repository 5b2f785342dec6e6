"""Commits drafts in batches: every commit waits for the disk, and a year of sessions has many receipts."""

from typing import Final

from batonpass.ledger.act_receipts import Recording
from batonpass.ledger.draft import Draft
from batonpass.model.base.ids import Digest, RunId, StreamId
from batonpass.model.base.kinds import ChildHead
from batonpass.model.ledger.receipt import SignedReceipt

_MOST_DRAFTS: Final = 256
_MOST_BYTES: Final = 4 * 1024 * 1024


class Batch:
    """Collects drafts and appends them in order, when there are enough or one is needed signed."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._waiting: list[Draft] = []
        self._bytes = 0
        self._heads: dict[StreamId, tuple[int, Digest]] = {}
        self.appended = 0

    def add(self, draft: Draft) -> None:
        """Record a draft with the next batch."""
        self._waiting.append(draft)
        self._bytes += sum(content.ref.size for content in draft.contents)
        if len(self._waiting) >= _MOST_DRAFTS or self._bytes >= _MOST_BYTES:
            self.flush()

    def flush(self) -> SignedReceipt | None:
        """Record all waiting drafts in one commit; return the last receipt, signed."""
        if not self._waiting:
            return None
        signed = self._recording.append(*self._waiting)
        for receipt in signed:
            self._heads[receipt.receipt.stream] = (receipt.receipt.seq, receipt.digest)
        self.appended += len(signed)
        self._waiting, self._bytes = [], 0
        return signed[-1]

    def head(self, run: RunId) -> ChildHead:
        """Return the head of a run's stream, after recording all waiting drafts."""
        self.flush()
        seq, digest = self._heads[StreamId(run)]
        return ChildHead(run=run, seq=seq, head=digest)

    def sign(self, draft: Draft) -> Digest:
        """Record a draft now, after all waiting ones, and return its digest."""
        self.add(draft)
        self.flush()
        return self._heads[draft.stream][1]
