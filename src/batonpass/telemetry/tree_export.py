"""One tree in a format of somebody else, as lines of text."""

from collections.abc import Iterator

import msgspec

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import RunId
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery
from batonpass.telemetry.cloud_event import cloud_event
from batonpass.telemetry.export_format import ExportFormat
from batonpass.telemetry.otlp_json import span_lines
from batonpass.telemetry.provenance import provenance_of
from batonpass.telemetry.span_record import SpanRecord
from batonpass.telemetry.span_source import SpanSource
from batonpass.telemetry.trace_place import traceparent_of
from batonpass.wire.receipt_codec import encode_envelope


def export_tree(store: LedgerStore, run: RunId, form: ExportFormat, *, words: bool = False) -> Iterator[str]:
    """Yield the lines of the tree that a run belongs to. Only spans can have words, and have none unless asked.

    Raises `InvalidValueError` if words are asked for in another format.
    """
    if words and form is not ExportFormat.OTLP:
        raise InvalidValueError("words", f"stand in no export as {form}: it names contents by their digests")
    return _lines(store, run, form, words=words)


def _lines(store: LedgerStore, run: RunId, form: ExportFormat, *, words: bool) -> Iterator[str]:
    with store.view() as view:
        root = view.get_run(run).root
        tree = view.find_receipts(ReceiptQuery(root=root, first=1))
        match form:
            case ExportFormat.DSSE:
                for stored in tree:
                    yield msgspec.json.encode(encode_envelope(stored, read_receipt(stored))).decode()
            case ExportFormat.CLOUDEVENTS:
                ledger, traceparent = view.info().id, traceparent_of(view, root)
                for stored in tree:
                    event = cloud_event(ledger, stored, read_receipt(stored), traceparent=traceparent)
                    yield msgspec.json.encode(event).decode()
            case ExportFormat.OTLP:
                yield from span_lines(view.info().id, _spans(view, tree, words=words))
            case _:
                yield msgspec.json.format(msgspec.json.encode(provenance_of(tree)), indent=2).decode()


def _spans(view: LedgerView, tree: Iterator[StoredReceipt], *, words: bool) -> Iterator[SpanRecord]:
    source = SpanSource(view, words=words)
    for stored in tree:
        yield from source.spans(stored)
