"""A tree in the formats of others, each read by a library of its standard."""

import json
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from cloudevents.core.formats.json import JSONFormat
from google.protobuf.json_format import Parse
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData
from prov.model import ProvDocument
from securesystemslib.dsse import Envelope

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.trace_files.otel_spans import OpenTelemetrySpans
from batonpass.errors import InvalidValueError
from batonpass.model.bodies.body import ToolRequested
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.telemetry.export_format import ExportFormat
from batonpass.telemetry.span_source import SpanSource
from tests.unit.telemetry.told_trees import SECRET_WORDS, ToldTree

IDS = {"traceId", "spanId", "parentSpanId"}
OTHERS = [form for form in ExportFormat if form is not ExportFormat.BUNDLE]


@pytest.fixture
def tree() -> ToldTree:
    """Return a tree with a bit of everything."""
    return ToldTree()


def exported(tree: ToldTree, form: ExportFormat, *, words: bool = False) -> list[str]:
    return list(tree.relay.admin.export(tree.lead.id, form=form, with_content=words))


def in_base64(value: object) -> object:
    """Return OTLP's JSON as the protocol's own JSON has it: ids in base64, where OTLP has them in hexadecimal."""
    match value:
        case dict():
            return {
                name: b64encode(bytes.fromhex(said)).decode()
                if name.endswith(("traceId", "panId"))
                else in_base64(said)
                for name, said in value.items()
            }
        case list():
            return [in_base64(one) for one in value]
        case _:
            return value


def test_the_protocol_reads_every_line_of_spans(tree: ToldTree) -> None:
    """OpenTelemetry's own messages take each line without a field that they do not know, and have the same spans."""
    read: list[Span] = []
    for line in exported(tree, ExportFormat.OTLP):
        data = Parse(json.dumps(in_base64(json.loads(line))), TracesData())
        read += [span for one in data.resource_spans for scope in one.scope_spans for span in scope.spans]
    with tree.relay.store.view() as view:
        source = SpanSource(view)
        made = [span for stored, _ in tree.receipts() for span in source.spans(stored)]

    assert [(one.place.trace, one.place.span, one.name) for one in made] == [
        (one.trace_id.hex(), one.span_id.hex(), one.name) for one in read
    ]
    assert [one.parent or "" for one in made] == [one.parent_span_id.hex() for one in read]
    assert [[link.place.span for link in one.links] for one in made] == [
        [link.span_id.hex() for link in one.links] for one in read
    ]
    assert all(one.start_time_unix_nano <= one.end_time_unix_nano for one in read)
    assert {"oserror"} == {one.status.message for one in read if one.status.code}


def test_what_we_export_we_can_import(tree: ToldTree, tmp_path: Path) -> None:
    """Our own reader of OTLP files finds the agents and the calls in it."""
    file = tmp_path / "spans.jsonl"
    file.write_text("\n".join(exported(tree, ExportFormat.OTLP)) + "\n", encoding="utf-8")
    copy = Relay(MemoryStore())

    import_sessions(copy, tmp_path, OpenTelemetrySpans([str(file)]), by="user:ana")

    with copy.store.view() as view:
        bodies = [read_receipt(stored).body for stored in view.find_receipts(ReceiptQuery())]
    assert {"broken", "write_file"} <= {body.tool for body in bodies if isinstance(body, ToolRequested)}
    assert {"lead", "editor"} <= {str(getattr(body, "agent", "")) for body in bodies}


def test_the_standard_reads_provenance(tree: ToldTree) -> None:
    """The library of PROV takes the document and writes it again with as many statements of each sort."""
    (document,) = exported(tree, ExportFormat.PROV)

    read = ProvDocument.deserialize(content=document, format="json")
    again = json.loads(read.serialize(format="json") or "")

    told = json.loads(document)
    sorts = [sort for sort in told if sort != "prefix"]
    assert {sort: len(told[sort]) for sort in sorts} == {sort: len(again[sort]) for sort in sorts}
    assert {"activity", "agent", "entity", "used", "wasGeneratedBy", "actedOnBehalfOf", "wasInformedBy"} <= set(sorts)
    assert "batonpass:principal/user:ana" in told["agent"]


def test_everything_that_provenance_relates_is_in_it(tree: ToldTree) -> None:
    """No relation names an activity, an agent or an entity that the document does not have."""
    told = json.loads(exported(tree, ExportFormat.PROV)[0])
    known = {name for sort in ("activity", "agent", "entity") for name in told[sort]}
    named = {
        value
        for sort, table in told.items()
        if sort not in {"prefix", "activity", "agent", "entity"}
        for said in table.values()
        for part, value in said.items()
        if part != "prov:time"
    }

    assert set() == named - known


def test_the_standard_reads_every_event(tree: ToldTree) -> None:
    """There is an event for each receipt of the tree, and all of them have the trace of its root."""
    events = [JSONFormat().read(None, line) for line in exported(tree, ExportFormat.CLOUDEVENTS)]

    assert [receipt.id for _, receipt in tree.receipts() if receipt.root is not None] == [
        one.get_id() for one in events
    ]
    assert {tree.lead.traceparent()} == {one.get_extension("traceparent") for one in events}


def test_the_standard_reads_every_envelope(tree: ToldTree) -> None:
    """Each line is a DSSE envelope around an in-toto statement."""
    for line in exported(tree, ExportFormat.DSSE):
        envelope = Envelope.from_dict(json.loads(line))
        Statement.copy_from_pb(Parse(envelope.payload, StatementMessage())).validate()
        assert "application/vnd.in-toto+json" == envelope.payload_type


@pytest.mark.parametrize("form", OTHERS)
def test_an_export_for_others_has_no_words(tree: ToldTree, form: ExportFormat) -> None:
    """Nothing that anybody wrote is in it."""
    lines = exported(tree, form)
    told = "".join(lines) if form is not ExportFormat.DSSE else "".join(_payload(line) for line in lines)

    assert ([], True) == ([word for word in SECRET_WORDS if word in told], tree.lead.id in told)


def _payload(line: str) -> str:
    return b64decode(json.loads(line)["payload"]).decode()


def test_words_stand_in_spans_alone_and_only_if_asked(tree: ToldTree) -> None:
    """Spans have words if somebody asks. In any other format they are refused."""
    assert "tangerine" in "".join(exported(tree, ExportFormat.OTLP, words=True))
    with pytest.raises(InvalidValueError):
        exported(tree, ExportFormat.PROV, words=True)
