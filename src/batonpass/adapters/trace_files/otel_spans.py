"""OpenTelemetry spans of generative AI in OTLP JSON, as the Collector's file exporter writes them.

Which agents, tools and models took part is in attributes that begin with `gen_ai.`; other spans only connect them.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from batonpass.adapters.session_files.json_lines import UNREADABLE
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_values import Record, SkippedLine
from batonpass.adapters.session_files.told_values import as_text
from batonpass.adapters.trace_files.chat_messages import read_messages, spoken, text_of
from batonpass.adapters.trace_files.item_spool import ItemSpool
from batonpass.adapters.trace_files.json_items import JsonItem
from batonpass.adapters.trace_files.span_tree import tell_spans
from batonpass.adapters.trace_files.told_span import SpanKind, ToldSpan, decode_span, encode_span
from batonpass.adapters.trace_files.trace_reader import SpooledSource

_OPERATIONS: Final = {
    "invoke_agent": SpanKind.AGENT,
    "execute_tool": SpanKind.TOOL,
    "chat": SpanKind.MODEL,
    "generate_content": SpanKind.MODEL,
    "text_completion": SpanKind.MODEL,
}
_FAILED: Final = 2  # the status code of an error
_CONVERSATION: Final = ("gen_ai.conversation.id", "session.id")
_OLDER: Final = {  # events that older conventions have for messages, and the role of each
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


class _Value(Struct, rename="camel", omit_defaults=True):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bool_value: bool | None = None
    bytes_value: str | None = None
    array_value: "_Values | None" = None
    kvlist_value: "_Members | None" = None


class _Values(Struct):
    values: list[_Value] = []


class _Attribute(Struct):
    key: str = ""
    value: _Value = msgspec.field(default_factory=_Value)


class _Members(Struct):
    values: list[_Attribute] = []


class _Event(Struct):
    name: str = ""
    attributes: list[_Attribute] = []


class _Status(Struct):
    code: int | str = 0
    message: str | None = None


class _Span(Struct, rename="camel"):
    trace_id: str
    span_id: str
    start_time_unix_nano: int | str
    end_time_unix_nano: int | str = 0
    parent_span_id: str | None = None
    name: str = ""
    attributes: list[_Attribute] = []
    events: list[_Event] = []
    status: _Status = msgspec.field(default_factory=_Status)


class _Scope(Struct):
    spans: list[_Span] = []


class _Resource(Struct, rename="camel"):
    scope_spans: list[_Scope] = []


class _Batch(Struct, rename="camel"):
    resource_spans: list[_Resource]


_BATCH: Final = msgspec.json.Decoder(_Batch).decode
_SPAN: Final = msgspec.json.Decoder(_Span).decode


class OpenTelemetrySpans(SpooledSource):
    """Files of spans."""

    program: ClassVar[str] = "opentelemetry"
    title: ClassVar[str] = "OpenTelemetry"
    source: ClassVar[str] = "files of OTLP JSON"
    ways: ClassVar[frozenset[str]] = frozenset({"resourceSpans", "scopeSpans"})
    units: ClassVar[frozenset[str]] = frozenset({"spans"})

    def take(self, spool: ItemSpool, path: Path, item: JsonItem) -> None:
        """Take in a span, or a batch of them."""
        if not item.line:
            self._one(spool, path, 0, _SPAN(item.data))
            return
        for resource in _BATCH(item.data).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self._one(spool, path, item.line, span)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a trace, or of all traces of one conversation."""
        del project
        spans = ((trace, decode_span(body)) for trace, body in self.spool.items(files.session))
        outlines = ((trace, decode_span(body)) for trace, body in self.spool.items(files.session))
        return tell_spans(files.session, files.main, outlines, spans)

    def _one(self, spool: ItemSpool, path: Path, line: int, told: _Span) -> None:
        began = _time(told.start_time_unix_nano)
        if began is None or not told.trace_id or not told.span_id:
            self.skip(path, line, f"span {told.span_id!r} has no trace, no id or no time")
            return
        facts = {one.key: _plain(one.value) for one in told.attributes if one.key}
        span = _told(told, began, facts)
        # Ids are bytes in hexadecimal, and some write capitals.
        trace, name = told.trace_id.lower(), told.span_id.lower()
        conversation = next((as_text(facts.get(one)) for one in _CONVERSATION if facts.get(one)), None)
        if not told.parent_span_id and conversation is not None:
            spool.call(trace, conversation)
        if not spool.add(trace, name, began, encode_span(span), tells=span.kind is not SpanKind.OTHER):
            self.skip(path, line, f"span {name} is told twice, and differently")


def _told(told: _Span, began: datetime, facts: Mapping[str, Any]) -> ToldSpan:
    kind = _OPERATIONS.get(as_text(facts.get("gen_ai.operation.name")) or "", SpanKind.OTHER)
    base = ToldSpan(
        id=told.span_id.lower(),
        kind=kind,
        began=began,
        parent=told.parent_span_id.lower() if told.parent_span_id else None,
        ended=_time(told.end_time_unix_nano),
        failed=_why(told) if str(told.status.code) in {str(_FAILED), "STATUS_CODE_ERROR"} else None,
    )
    replace = msgspec.structs.replace
    if kind is SpanKind.TOOL:
        given, result = facts.get("gen_ai.tool.call.arguments"), facts.get("gen_ai.tool.call.result")
        return replace(
            base,
            name=as_text(facts.get("gen_ai.tool.name")) or told.name.removeprefix("execute_tool "),
            call=as_text(facts.get("gen_ai.tool.call.id")),
            given=None if given is None else text_of(given),
            result=None if result is None else text_of(result),
        )
    if kind is SpanKind.OTHER:
        return base
    given, answer = _messages(told, facts)
    if kind is SpanKind.MODEL:
        model = as_text(facts.get("gen_ai.response.model")) or as_text(facts.get("gen_ai.request.model"))
        return replace(base, given=given, result=answer, model=model)
    result = as_text(facts.get("final_result")) or spoken(read_messages(answer)) or None
    name = as_text(facts.get("gen_ai.agent.name")) or told.name.removeprefix("invoke_agent ")
    return replace(base, name=name, given=given, result=result)


def _messages(told: _Span, facts: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the input and the answer of a model, from attributes or from events, as JSON."""
    given, answer = facts.get("gen_ai.input.messages"), facts.get("gen_ai.output.messages")
    older: list[dict[str, Any]] = []
    for event in told.events:
        said = {one.key: _plain(one.value) for one in event.attributes}
        given, answer = given or said.get("gen_ai.input.messages"), answer or said.get("gen_ai.output.messages")
        if (role := _OLDER.get(event.name)) is not None:
            older.append({"role": role, "content": _decoded(said.get("content")), "tool_call_id": said.get("id")})
        elif event.name == "gen_ai.choice":
            answer = answer or [{"role": "assistant", "content": _decoded(said.get("message") or said.get("content"))}]
    given = given or older or None
    return (None if given is None else text_of(given)), (None if answer is None else text_of(answer))


def _decoded(content: object) -> object:
    """Return a content that is written as a text of JSON."""
    if isinstance(content, str) and content[:1] in {"[", "{"}:
        try:
            return msgspec.json.decode(content)
        except UNREADABLE:
            return content
    return content


def _plain(value: _Value) -> Any:  # noqa: ANN401 - an attribute may be anything
    if value.array_value is not None:
        return [_plain(one) for one in value.array_value.values]
    if value.kvlist_value is not None:
        return {one.key: _plain(one.value) for one in value.kvlist_value.values}
    told = (value.string_value, value.int_value, value.double_value, value.bool_value, value.bytes_value)
    return next((one for one in told if one is not None), None)


def _why(told: _Span) -> str:
    said = {
        one.key: _plain(one.value) for event in told.events if event.name == "exception" for one in event.attributes
    }
    parts = (told.status.message, text_of(said.get("exception.type")), text_of(said.get("exception.message")))
    return ": ".join(dict.fromkeys(part for part in parts if part)) or "failed"


def _time(nanoseconds: int | str) -> datetime | None:
    try:
        number = int(nanoseconds)
        return datetime.fromtimestamp(number / 1e9, UTC) if number > 0 else None
    except (ValueError, OverflowError, OSError):
        return None
