"""A tree with a bit of everything, for the tests of what is told of it elsewhere."""

from collections.abc import Iterator
from datetime import timedelta

from batonpass import Decision
from batonpass.handoff.tools.declaration import tool
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.telemetry.span_record import SpanRecord
from batonpass.telemetry.span_source import SpanSource
from batonpass.testing import FrozenClock

ANA = "user:ana"
SECRET_WORDS = ("zebrafish", "marmalade", "hummingbird", "tangerine", "walnut")  # stand in no receipt


class ToldTree:
    """A lead with a decision, an editor that fails and is tried again, and a checker whose result is verified."""

    def __init__(self, store: LedgerStore | None = None) -> None:
        self.clock = FrozenClock()
        self.relay = Relay(store or MemoryStore(), clock=self.clock)
        write = tool("write_file", target="path", reversible=True)(lambda path, text: f"wrote {len(text)} to {path}")
        broken = tool("broken", target="path")(self._break)
        self.lead = self.relay.start("Fix the zebrafish", by=ANA)
        self.lead.record(Decision("marmalade", why="hummingbird"))
        self.first = self.lead.hand_off("editor", "Round the tangerine", criteria=["rounded"])
        failing = self.first.accept()
        self.clock.tick(timedelta(seconds=1))
        try:
            failing.call(broken, "src/a.py")
        except OSError as error:
            self.clock.tick(timedelta(seconds=1))
            failing.fail(error)
        self.failed = failing
        self.clock.tick(timedelta(seconds=5))
        self.first.retry(by=ANA, reason="walnut")
        self.again = self.first.accept()
        self.clock.tick(timedelta(seconds=1))
        self.again.call(write, "src/a.py", "walnut")
        self.again.spend(tokens=1200)
        self.clock.tick(timedelta(seconds=2))
        self.again.report("done, says the walnut")
        self.again.close()
        self.clock.tick(timedelta(seconds=1))
        self.first.verify(by=ANA, verdict="hummingbird")
        self.clock.tick(timedelta(seconds=1))
        self.lead.close()

    @staticmethod
    def _break(path: str) -> str:
        raise OSError(f"no {path} for the marmalade")

    def receipts(self) -> Iterator[tuple[StoredReceipt, Receipt]]:
        """Yield everything that was recorded, by position."""
        self.relay.store.sequence()
        with self.relay.store.view() as view:
            for stored in view.find_receipts(ReceiptQuery(first=1)):
                yield stored, read_receipt(stored)


def made(tree: ToldTree) -> list[SpanRecord]:
    """Return the spans of a tree."""
    with tree.relay.store.view() as view:
        source = SpanSource(view)
        return [span for stored, _ in tree.receipts() for span in source.spans(stored)]
