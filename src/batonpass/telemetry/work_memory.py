"""The memory of a reader: its notes on runs and handoffs, so that it need not read their receipts again.

A reader that goes through a ledger by position has seen nearly everything that a span tells. Receipts that it has not
seen, or has forgotten, it reads from the ledger: the spans are the same.
"""

from typing import Final, TypeVar

from msgspec import Struct, field

from batonpass.model.base.ids import HANDOFF, CallId, HandoffId, RunId, StreamId
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    RunSpent,
    RunStarted,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.telemetry.transfer_record import TransferRecord, add_to_transfers, transfer_at_acceptance

_REMEMBERED: Final = 10_000  # of each kind
MOST_EVENTS: Final = 128  # of a span: OpenTelemetry's own limit
_CALLS: Final = "tool."
K = TypeVar("K")
V = TypeVar("V")


class SpanWork(Struct, kw_only=True):
    """The work of a run up to one of its receipts, as its span tells it."""

    seq: int = 0  # of the last receipt that is in it
    calls: int = 0
    tokens: int = 0
    cost: int = 0
    said: list[Receipt] = field(default_factory=list)  # between its first receipt and its end, but for calls
    unsaid: int = 0  # more of these, which a span has no place for: a run may go on for months
    open: dict[CallId, Receipt] = field(default_factory=dict)  # calls that have no outcome yet

    def add(self, receipt: Receipt) -> None:
        """Add the next receipt of the run."""
        body, self.seq = receipt.body, receipt.seq
        if isinstance(body, ToolRequested):
            self.open[body.call] = receipt
            self.calls += 1
        elif isinstance(body, ToolCompleted | ToolFailed):
            self.open.pop(body.call, None)
        elif isinstance(body, RunSpent):
            self.tokens += body.tokens
            self.cost += body.cost
        if receipt.seq > 1 and not receipt.kind.startswith(_CALLS):
            if len(self.said) < MOST_EVENTS:
                self.said.append(receipt)
            else:
                self.unsaid += 1


class WorkMemory(Struct, kw_only=True):
    """The memory of one reader. Receipts come by position, each once and none left out."""

    begun: dict[RunId, Receipt] = field(default_factory=dict)  # the first receipts of runs
    work: dict[RunId, SpanWork] = field(default_factory=dict)
    requests: dict[CallId, Receipt] = field(default_factory=dict)
    transfers: dict[HandoffId, list[TransferRecord]] = field(default_factory=dict)
    entered: dict[RunId, TransferRecord] = field(default_factory=dict)  # the transfers in which attempts began

    def note_transfer(self, receipt: Receipt) -> None:
        """Remember a receipt of a handoff, before the spans that end with it are made."""
        body = receipt.body
        if isinstance(body, HandoffInitiated):
            _keep(self.transfers, body.handoff, [TransferRecord(began=receipt)])
            return
        of_attempt = isinstance(body, HandoffAccepted | HandoffCompleted) or (
            # A refused offer is no attempt: it stands in the stream of whoever made it.
            isinstance(body, HandoffFailed) and not body.is_refusal
        )
        handoff = getattr(body, "handoff", None)
        if handoff is None or not (of_attempt or receipt.stream.startswith(f"{HANDOFF}_")):
            return
        if (known := self.transfers.get(handoff)) is None:
            return
        add_to_transfers(known, receipt)
        if isinstance(body, HandoffAccepted):
            _keep(self.entered, body.run, transfer_at_acceptance(known, receipt))

    def note_work(self, receipt: Receipt) -> None:
        """Remember a receipt of a run, after the spans that end with it were made."""
        body, run = receipt.body, RunId(receipt.stream)
        if isinstance(body, RunStarted | HandoffAccepted):
            _keep(self.begun, run, receipt)
            _keep(self.work, run, SpanWork())
        elif isinstance(body, ToolRequested):
            _keep(self.requests, body.call, receipt)
        if (work := self.work.get(run)) is None:
            return
        if receipt.seq == work.seq + 1:
            work.add(receipt)
        else:
            del self.work[run]  # something is missing here, and in the ledger it is not

    def find_work(self, run: RunId, ended: Receipt, last: int) -> SpanWork | None:
        """Return the work of a run up to the seq at which it ended; None if not all of it was seen."""
        work = self.work.get(run)
        until = last - 1 if ended.stream == StreamId(run) else last
        return work if work is not None and work.seq == until else None

    def forget_work(self, run: RunId) -> None:
        """Forget the work of a run whose span was made: nobody asks for it again."""
        self.work.pop(run, None)


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    if len(kept) >= _REMEMBERED:
        kept.pop(next(iter(kept)))
    kept[key] = value
