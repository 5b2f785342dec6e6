"""The trace in which something is recorded: as a door was told it, or as OpenTelemetry has it in this program."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from batonpass.model.base.trace import TraceParent, read_traceparent

_CURRENT: Final[ContextVar[TraceParent | None]] = ContextVar("batonpass_traceparent", default=None)
_API: Final = "opentelemetry.trace"


@contextmanager
def traced(traceparent: str | None) -> Iterator[None]:
    """Record runs and handoffs within the block as a part of a caller's trace.

    `traceparent` is the caller's value, such as a header of HTTP or a field in the `_meta` of MCP. One that is missing
    or broken changes nothing. A task of asyncio and a function in `asyncio.to_thread` inherit it.
    """
    given = read_traceparent(traceparent)
    if given is None:
        yield
        return
    token = _CURRENT.set(given)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_trace() -> TraceParent | None:
    """Return the trace that somebody is in; None if there is none.

    A program that uses OpenTelemetry has said already in which span it is. It is looked for only where the program has
    imported it.
    """
    given = _CURRENT.get()
    if given is not None:
        return given
    api = sys.modules.get(_API)
    return None if api is None else _of_program(api)


def _of_program(api: Any) -> TraceParent | None:  # noqa: ANN401 - a module that we do not need
    try:
        told = api.get_current_span().get_span_context()
        if not told.is_valid:
            return None
        return read_traceparent(f"00-{told.trace_id:032x}-{told.span_id:016x}-{int(told.trace_flags):02x}")
    except Exception:  # noqa: BLE001 - another release of it, half imported: a trace stops nobody's work
        return None
