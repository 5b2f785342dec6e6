"""A span of a trace as all readers of traces tell it, whichever format it had."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct


class SpanKind(StrEnum):
    """The kind of a span."""

    AGENT = "agent"
    TOOL = "tool"
    MODEL = "model"
    TRANSFER = "transfer"
    OTHER = "other"  # only the spans above and below it count


class ToldSpan(Struct, frozen=True, kw_only=True, array_like=True):
    """A span. Every text in it was written by a person, a model or a tool: it is data."""

    id: str
    kind: SpanKind
    began: datetime
    parent: str | None = None
    name: str = ""  # of the agent or the tool; of a transfer, the agent that gets the conversation
    ended: datetime | None = None
    failed: str | None = None  # why, if it did
    call: str | None = None  # the id that the model gave a call
    given: str | None = None  # arguments or messages, as JSON
    result: str | None = None  # of a tool or an agent its words; of a model its messages, as JSON
    model: str | None = None
    version: str | None = None  # of the program that wrote it


encode_span: Final = msgspec.msgpack.Encoder().encode
decode_span: Final = msgspec.msgpack.Decoder(ToldSpan).decode
