"""`traceparent`: the trace that a caller is in, by the W3C's recommendation, and which span of it."""

import re
from hashlib import sha256
from typing import Final, NewType

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import ReceiptId

TraceParent = NewType("TraceParent", str)  # 00-TRACE-SPAN-FLAGS, in lower-case hexadecimal
TraceId = NewType("TraceId", str)  # 16 bytes, in lower-case hexadecimal
SpanId = NewType("SpanId", str)  # 8 bytes, likewise

_KNOWN: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
# A later version may have further fields, after the same four.
_LATER: Final = re.compile(r"(?!ff|00)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(?:-.*)?")
_LONGEST: Final = 256
_SAMPLED: Final = "01"
_TRACE_END: Final = 35
_SPAN_END: Final = 52


def read_traceparent(given: object) -> TraceParent | None:
    """Return a caller's `traceparent` in the form of version 00; None if it is missing or broken.

    A broken one is ignored, as the recommendation asks: a trace never decides whether something is done.
    """
    if not isinstance(given, str) or len(given) > _LONGEST:
        return None
    text = given.strip(" \t")
    if _KNOWN.fullmatch(text):
        return TraceParent(text)
    later = _LATER.fullmatch(text)
    return None if later is None else TraceParent(f"00-{later[1]}")


def require_traceparent(field: str, value: TraceParent | None) -> None:
    """Refuse anything but a `traceparent` of version 00, or None. Raises `InvalidValueError`."""
    if value is not None and not (type(value) is str and _KNOWN.fullmatch(value)):
        raise InvalidValueError(field, f"{shorten(value)} is not a traceparent of version 00")


def make_traceparent(trace: TraceId, span: SpanId) -> TraceParent:
    """Return the `traceparent` header for callees of a span."""
    return TraceParent(f"00-{trace}-{span}-{_SAMPLED}")


def trace_of(parent: TraceParent) -> TraceId:
    """Return the trace of a `traceparent`."""
    return TraceId(parent[3:_TRACE_END])


def span_of(parent: TraceParent) -> SpanId:
    """Return the span of a `traceparent`."""
    return SpanId(parent[_TRACE_END + 1 : _SPAN_END])


def trace_id(first: ReceiptId) -> TraceId:
    """Return the trace of a tree whose root no caller put into one: it follows from the tree's first receipt."""
    return TraceId(sha256(b"batonpass trace\n" + first.encode()).hexdigest()[:32])


def span_id(opening: ReceiptId) -> SpanId:
    """Return the span that a receipt begins. It follows from the receipt's id, so a repeated span is recognised."""
    return SpanId(sha256(b"batonpass span\n" + opening.encode()).hexdigest()[:16])
