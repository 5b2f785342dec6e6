"""Traces of the OpenAI Agents SDK, as its trace processors export them: lines, or lists of traces and spans.

An export has the names of agents, the arguments and results of tools, and who handed to whom. The words of models are
in it only for providers of which the SDK tells them.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from batonpass.adapters.session_files.json_lines import read_time
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_values import Record, SkippedLine
from batonpass.adapters.session_files.told_values import as_mapping, as_text
from batonpass.adapters.trace_files.chat_messages import text_of
from batonpass.adapters.trace_files.item_spool import ItemSpool
from batonpass.adapters.trace_files.json_items import JsonItem
from batonpass.adapters.trace_files.span_tree import tell_spans
from batonpass.adapters.trace_files.told_span import SpanKind, ToldSpan, decode_span, encode_span
from batonpass.adapters.trace_files.trace_reader import SpooledSource

_KINDS: Final = {
    "agent": SpanKind.AGENT,
    "function": SpanKind.TOOL,
    "generation": SpanKind.MODEL,
    "response": SpanKind.MODEL,
    "handoff": SpanKind.TRANSFER,
}
_TRACE: Final = "trace"
_SPAN: Final = "trace.span"


class _Exported(Struct):
    object: str
    id: str
    trace_id: str | None = None
    parent_id: str | None = None
    group_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    span_data: dict[str, Any] = {}
    error: Any = None


class _Batch(Struct, forbid_unknown_fields=True):
    data: list[msgspec.Raw]


_DECODE: Final = msgspec.json.Decoder(_Exported).decode
_BATCH: Final = msgspec.json.Decoder(_Batch | list[msgspec.Raw]).decode


class OpenAITraces(SpooledSource):
    """Files of exported traces."""

    program: ClassVar[str] = "openai-agents"
    title: ClassVar[str] = "the OpenAI Agents SDK"
    source: ClassVar[str] = "files of exported traces and spans"
    units: ClassVar[frozenset[str]] = frozenset({"data"})

    def take(self, spool: ItemSpool, path: Path, item: JsonItem) -> None:
        """Take in a trace, a span, or a batch of them."""
        try:
            batch = _BATCH(item.data)
        except msgspec.ValidationError:
            batch = [msgspec.Raw(item.data)]
        for one in batch.data if isinstance(batch, _Batch) else batch:
            self._one(spool, path, item.line, _DECODE(one))

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a trace, or of all traces with one group id."""
        del project
        spans = ((trace, decode_span(body)) for trace, body in self.spool.items(files.session))
        outlines = ((trace, decode_span(body)) for trace, body in self.spool.items(files.session))
        return tell_spans(files.session, files.main, outlines, spans)

    def _one(self, spool: ItemSpool, path: Path, line: int, told: _Exported) -> None:
        if told.object == _TRACE:
            if told.group_id:
                spool.call(told.id, told.group_id)
            return
        began = read_time(told.started_at)
        if told.object != _SPAN or told.trace_id is None or began is None:
            self.skip(path, line, f"{told.object} {told.id} is no trace, or a span without a trace or a time")
            return
        span = _span(told, began)
        if not spool.add(told.trace_id, told.id, began, encode_span(span), tells=span.kind is not SpanKind.OTHER):
            self.skip(path, line, f"span {told.id} is told twice, and differently")


def _span(told: _Exported, began: datetime) -> ToldSpan:
    data = told.span_data
    kind = _KINDS.get(as_text(data.get("type")) or "", SpanKind.OTHER)
    is_model, is_tool = kind is SpanKind.MODEL, kind is SpanKind.TOOL
    name = as_text(data.get("to_agent" if kind is SpanKind.TRANSFER else "name")) or ""
    output = data.get("output")
    return ToldSpan(
        id=told.id,
        kind=kind,
        began=began,
        parent=told.parent_id,
        name=name,
        ended=read_time(told.ended_at),
        failed=None if told.error is None else _why(told.error, output),
        given=text_of(data.get("input")) if (is_tool or is_model) and data.get("input") is not None else None,
        result=text_of(output) if (is_tool or is_model) and output is not None else None,
        model=as_text(data.get("model")) if is_model else None,
    )


def _why(error: object, output: object) -> str:
    told = as_mapping(error)
    parts = (as_text(told.get("message")), text_of(told.get("data")) or None, as_text(output))
    return "\n".join(part for part in parts if part) or "failed"
