"""Spans in OTLP's JSON, one batch a line, as the Collector's file exporter writes and its receiver reads them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from batonpass.model.base.ids import LedgerId
from batonpass.telemetry.conventions import OURS, SCHEMA_URL, SCOPE, SERVICE
from batonpass.telemetry.span_record import Fact, SpanEvent, SpanLink, SpanRecord, nanoseconds

_IN_A_LINE: Final = 200
_SAMPLED: Final = 1
_INTERNAL: Final = 1  # of all spans: the relay that recorded them is in the same place


def span_lines(ledger: LedgerId, spans: Iterable[SpanRecord]) -> Iterator[str]:
    """Yield spans as lines of JSON."""
    batch: list[dict[str, Any]] = []
    for span in spans:
        batch.append(span_json(span))
        if len(batch) == _IN_A_LINE:
            yield _line(ledger, batch)
            batch = []
    if batch:
        yield _line(ledger, batch)


def resource_facts(ledger: LedgerId) -> dict[str, Fact]:
    """Return the attributes that all spans and metrics of a ledger share."""
    return {SERVICE: "batonpass", f"{OURS}ledger": ledger}


def _line(ledger: LedgerId, spans: list[dict[str, Any]]) -> str:
    from importlib.metadata import version  # noqa: PLC0415 - it takes long to import, and few commands export

    scope = {"name": SCOPE, "version": version("batonpass")}
    batch = {
        "resource": {"attributes": _attributes(resource_facts(ledger))},
        "scopeSpans": [{"scope": scope, "spans": spans, "schemaUrl": SCHEMA_URL}],
    }
    return msgspec.json.encode({"resourceSpans": [batch]}).decode()


def span_json(span: SpanRecord) -> dict[str, Any]:
    """Return a span. Ids are hexadecimal and numbers of 64 bits are texts, as OTLP asks."""
    told: dict[str, Any] = {
        "traceId": span.place.trace,
        "spanId": span.place.span,
        "flags": _SAMPLED,
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(nanoseconds(span.began)),
        "endTimeUnixNano": str(nanoseconds(span.ended)),
        "attributes": _attributes(span.facts),
        "events": [_event(one) for one in span.events],
        "droppedEventsCount": span.dropped_events,
        "links": [_link(one) for one in span.links],
        "status": {} if span.error is None else {"code": int(span.status), "message": span.error},
    }
    if span.parent is not None:
        told["parentSpanId"] = span.parent
    return told


def _event(event: SpanEvent) -> dict[str, Any]:
    return {
        "timeUnixNano": str(nanoseconds(event.at)),
        "name": str(event.name),
        "attributes": _attributes(event.facts),
    }


def _link(link: SpanLink) -> dict[str, Any]:
    return {"traceId": link.place.trace, "spanId": link.place.span, "attributes": _attributes(link.facts)}


def _attributes(facts: Mapping[str, Fact]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(facts[key])} for key in sorted(facts)]


def _value(fact: Fact) -> dict[str, Any]:
    match fact:
        case bool():
            return {"boolValue": fact}
        case int():
            return {"intValue": str(fact)}
        case tuple():
            return {"arrayValue": {"values": [{"stringValue": one} for one in fact]}}
        case _:
            return {"stringValue": str(fact)}
