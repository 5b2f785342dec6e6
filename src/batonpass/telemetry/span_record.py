"""A span as it is sent: a stretch of time in a trace, with facts and without words unless somebody asked for them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.model.base.trace import SpanId, TraceId

Fact: TypeAlias = str | int | bool | tuple[str, ...]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class SpanStatus(IntEnum):
    """Whether the work of a span went well, in OTLP's numbers."""

    UNSET = 0
    ERROR = 2


class SpanPlace(Struct, frozen=True):
    """Where a span stands: its trace, and its id in it."""

    trace: TraceId
    span: SpanId


class SpanLink(Struct, frozen=True, kw_only=True):
    """Another span that a span has to do with, and that is not above it."""

    place: SpanPlace
    facts: Mapping[str, Fact]


class SpanEvent(Struct, frozen=True, kw_only=True):
    """Something that happened within a span: one receipt."""

    name: str
    at: datetime
    facts: Mapping[str, Fact]


class SpanRecord(Struct, frozen=True, kw_only=True):
    """One span. Everything in it follows from receipts, so the same span is the same however often it is made."""

    place: SpanPlace
    parent: SpanId | None
    name: str
    began: datetime
    ended: datetime
    facts: Mapping[str, Fact]
    events: tuple[SpanEvent, ...] = ()
    dropped_events: int = 0
    links: tuple[SpanLink, ...] = ()
    error: str | None = None  # a code

    @property
    def status(self) -> SpanStatus:
        """Return whether it went well."""
        return SpanStatus.UNSET if self.error is None else SpanStatus.ERROR


def nanoseconds(at: datetime) -> int:
    """Return a time as OTLP has it: nanoseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND * 1000
