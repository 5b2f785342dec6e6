"""Receipts as CloudEvents, read by the library of the standard."""

import msgspec
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat

from batonpass.telemetry.cloud_event import MEDIA_TYPE, CloudEvent, cloud_event, source_of
from tests.unit.telemetry.told_trees import SECRET_WORDS, ToldTree


def events_of(tree: ToldTree) -> list[CloudEvent]:
    with tree.relay.store.view() as view:
        ledger = view.info().id
    return [cloud_event(ledger, stored, receipt) for stored, receipt in tree.receipts()]


def test_the_standard_reads_every_receipt_as_an_event() -> None:
    """The library takes each event as an HTTP message, with the receipt's id, kind, stream, time and position."""
    tree = ToldTree()
    with tree.relay.store.view() as view:
        source = source_of(view.info().id)
    expected, actual = [], []
    for (stored, receipt), event in zip(tree.receipts(), events_of(tree), strict=True):
        message = HTTPMessage(headers={"content-type": MEDIA_TYPE}, body=msgspec.json.encode(event))
        read = from_http_event(message, JSONFormat())
        expected.append((receipt.id, f"batonpass.receipt.{receipt.kind}", source, receipt.stream, receipt.at))
        actual.append((read.get_id(), read.get_type(), read.get_source(), read.get_subject(), read.get_time()))

        data = read.get_data()
        assert str(stored.position) == read.get_extension("sequence")
        assert isinstance(data, dict)
        assert (receipt.id, receipt.previous) == (data["id"], data["previous"])

    assert expected == actual
    assert len(actual) > 15


def test_an_event_has_no_word_of_anybody() -> None:
    """What people, models and tools said is named by its digest alone."""
    sent = b"".join(map(msgspec.json.encode, events_of(ToldTree()))).decode()

    assert [] == [word for word in SECRET_WORDS if word in sent]
    assert '"intent":{' in sent


def test_an_event_sent_again_is_the_same_event() -> None:
    """Nothing in an event depends on when or by whom it is sent."""
    tree = ToldTree()

    assert events_of(tree) == events_of(tree)


def test_attributes_are_those_of_a_binary_message() -> None:
    """A binary message has all attributes in its headers and the data in its body."""
    tree = ToldTree()
    event = events_of(tree)[0]
    headers = {f"ce-{name}": said for name, said in event.attributes().items() if name != "datacontenttype"}
    message = HTTPMessage(headers={**headers, "content-type": "application/json"}, body=msgspec.json.encode(event.data))

    read = from_http_event(message, JSONFormat())

    assert (event.id, event.data) == (read.get_id(), read.get_data())
