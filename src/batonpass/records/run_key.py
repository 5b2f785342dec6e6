"""The present key of a run: its holder holds the run."""

from batonpass.errors import NotFoundError
from batonpass.model.base.ids import PublicKey, RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.bodies.body import HandoffAccepted, RunRekeyed, RunStarted
from batonpass.records.text import read_receipt_again
from batonpass.store.port import LedgerView, ReceiptQuery


def get_run_key(view: LedgerView, run: RunId) -> PublicKey:
    """Return the public key that a run has now, or had at its end. Raises `NotFoundError`."""
    stream = StreamId(run)
    found = [view.get_receipt_at(stream, 1)]
    if view.get_stream(stream).epoch > 1:
        found += view.find_receipts(ReceiptQuery(stream=stream, kind=Kind.RUN_REKEYED))
    body = read_receipt_again(found[-1]).body
    if not isinstance(body, RunStarted | HandoffAccepted | RunRekeyed):
        raise NotFoundError("key of run", run)
    return body.run_key
