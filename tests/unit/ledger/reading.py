"""What a store holds about one stream, as the tests of recording read it."""

from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import ChildHead
from batonpass.model.ledger.receipt import Receipt
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing.builders import Scribe
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.model.examples import EDITOR


def receipts_in(store: LedgerStore, stream: str) -> list[Receipt]:
    with store.view() as view:
        found = view.find_receipts(ReceiptQuery(stream=StreamId(stream)))
        return [decode_receipt(stored.payload) for stored in found]


def last_in(store: LedgerStore, stream: str) -> Receipt:
    return receipts_in(store, stream)[-1]


def words_of(store: LedgerStore, receipt: Receipt) -> dict[str, bytes | None]:
    with store.view() as view:
        return {name: view.get_content(ref.id).body for name, ref in receipt.content.items()}


def head_of(store: LedgerStore, run: RunId) -> ChildHead:
    with store.view() as view:
        stream = view.get_stream(StreamId(run))
    return ChildHead(run=run, seq=stream.seq, head=stream.head)


def state_of(store: LedgerStore, handoff: HandoffId) -> State:
    with store.view() as view:
        return view.get_handoff(handoff).state


def offered_to_workers(scribe: Scribe) -> HandoffId:
    return scribe.recording.offer(scribe.start(), EDITOR, "edit", carrier=Carrier.WORKER)
