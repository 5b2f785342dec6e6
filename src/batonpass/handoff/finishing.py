"""How calls end: what they returned, or how they failed, is recorded, and is among what the run knows from then on."""

from datetime import datetime
from typing import Any

from batonpass.attribution.documents import encode_change
from batonpass.errors import FencedError, StreamClosedError
from batonpass.handoff.calling import MESSAGE, Begun
from batonpass.handoff.desk import Desk
from batonpass.handoff.effects import find_changes
from batonpass.handoff.faults import code_of, words_of
from batonpass.handoff.holding import Holding
from batonpass.handoff.limiting import after_call
from batonpass.handoff.spending import cost_of
from batonpass.handoff.tools import ToolCall
from batonpass.handoff.values import SHOWN, keep_result
from batonpass.handoff.vetting import add_text
from batonpass.handoff.writing import write_about_call
from batonpass.model.bodies import Changed, HandoffLate, ToolCompleted, ToolFailed
from batonpass.model.content import Content
from batonpass.model.entry import Touch
from batonpass.model.receipt import SignedReceipt


def finish_call(desk: Desk, holding: Holding, begun: Begun, call: ToolCall[Any], value: object) -> None:
    """Record what a call returned. If the run is over, the outcome is kept as evidence; raises what it met."""
    cost = cost_of(call, value)
    if not begun.recorded:
        _take(holding, begun, call, None)
        return
    body, media_type = keep_result(value, call.declared.encode)
    content = desk.result(body, media_type)
    flags = _flags_of(cost, redacted=content.ref.media_type != media_type)
    changes = [
        (change, desk.json(f"change.{number}", encode_change(change)))
        for number, change in enumerate(
            find_changes(begun.watched, call=begun.call, run=holding.id, at=desk.clock.now()), 1
        )
    ]
    until = _fresh_until(desk, begun, call, content.ref.media_type)
    done = ToolCompleted(
        run=holding.id,
        call=begun.call,
        cost=cost or 0,
        flags=flags,
        changes=tuple(
            Changed(change=kept.ref.id, before=change.before, after=change.after) for change, kept in changes
        ),
        cache=None if until is None else begun.cache,
        fresh_until=until,
        label=call.declared.label,
        charges=after_call(
            begun.counted, cost=cost or 0, rows=len(value) if isinstance(value, list) else 0, size=len(body)
        ),
    )
    touches = tuple(Touch(path=change.path, content=kept.ref.id) for change, kept in changes)
    try:
        with holding.taint.lock:
            written = write_about_call(desk, holding, done, content, *(kept for _, kept in changes), touches=touches)
            _take(holding, begun, call, written)
        if call.declared.external:
            add_text(holding, begun.call, body, media_type)
        if written is not None:
            holding.last_call = begun.call
    except (FencedError, StreamClosedError):
        _keep_late(desk, holding, begun, content, completed=True)
        raise


def _flags_of(cost: int | None, *, redacted: bool) -> tuple[str, ...]:
    return (*(("cost.unknown",) if cost is None else ()), *(("result.redacted",) if redacted else ()))


def _take(holding: Holding, begun: Begun, call: ToolCall[Any], written: SignedReceipt | None) -> None:
    """Let what a call returned, or said when it failed, be among what the run knows."""
    if call.declared.external:
        holding.taint.enter((begun.call,), None if written is None else written.receipt.id)
    holding.taint.learn(call.declared.label)


def _fresh_until(desk: Desk, begun: Begun, call: ToolCall[Any], media_type: str) -> datetime | None:
    """Return until when a result is given again; None if it is not kept, or has no form in which it could be."""
    if begun.cache is None or call.declared.cache_for is None or media_type == SHOWN:
        return None
    try:
        return desk.clock.now() + call.declared.cache_for
    except OverflowError:
        return None


def fail_call(
    desk: Desk,
    holding: Holding,
    begun: Begun,
    call: ToolCall[Any],
    error: BaseException,
    *,
    made: bool = True,
) -> None:
    """Record how a call failed. If the run is over, that is kept as evidence; raises what it met.

    A call that was interrupted has not failed: nobody knows how far it came. It gets no outcome, and is in doubt.
    """
    if made and not isinstance(error, Exception):
        return
    # Whoever tries it once more means this very call: under another number, the next attempt would make it twice.
    holding.uncount(begun.described, begun.number)
    if not begun.recorded:
        if made:
            _take(holding, begun, call, None)
        return
    content = desk.text(MESSAGE, words_of(error))
    label = call.declared.label if made else None  # what was not made brought nothing
    failed = ToolFailed(run=holding.id, call=begun.call, error=code_of(error), label=label)
    try:
        with holding.taint.lock:
            written = write_about_call(desk, holding, failed, content)
            if made:
                _take(holding, begun, call, written)
        if written is not None:
            holding.last_call = begun.call
    except (FencedError, StreamClosedError):
        _keep_late(desk, holding, begun, content, completed=False)
        raise


def _keep_late(desk: Desk, holding: Holding, begun: Begun, content: Content, *, completed: bool) -> None:
    handoff = holding.working.run.handoff
    if handoff is None:
        return  # a root has no stream of its own that others may write to; whoever took it over sees the doubt
    late = HandoffLate(handoff=handoff, run=holding.id, call=begun.call, completed=completed)
    desk.recording.act(handoff, lambda _, __: late, (content,))
