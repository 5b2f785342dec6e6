"""Writing about calls: one receipt each, within the limits that the call is under; what is refused is written too."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from batonpass.errors import (
    BudgetExhaustedError,
    CallError,
    CallProtectedError,
    GrantError,
    GuardFailedError,
    StoreError,
)
from batonpass.handoff.desk import Desk
from batonpass.handoff.guarding import Guarded, guard
from batonpass.handoff.holding import Holding
from batonpass.handoff.limiting import Counting, before_call, explain_spent
from batonpass.handoff.resuming import ARGUMENTS
from batonpass.handoff.tools import ToolCall
from batonpass.handoff.values import describe
from batonpass.model.bodies import Body, RunGap, ToolDenied
from batonpass.model.charge import Charge, Within
from batonpass.model.content import Content
from batonpass.model.entry import Touch
from batonpass.model.ids import new_call_id
from batonpass.model.receipt import Mode, SignedReceipt

REASON: Final = "reason"
TARGET: Final = "target"
GRANT: Final = "grant"
_RULES: Final[Mapping[type, str]] = {CallProtectedError: "protected", GuardFailedError: "guard"}


def fill_gap(desk: Desk, holding: Holding) -> None:
    """Record how many calls went unrecorded, if any did; whatever a run writes comes after that."""
    with holding.lock:
        missed, holding.unrecorded = holding.unrecorded, 0
    if not missed or holding.replaying:
        return
    try:
        desk.recording.record(holding.working, RunGap(run=holding.id, calls=missed))
    except BaseException:
        with holding.lock:
            holding.unrecorded += missed
        raise


def write_about_call(
    desk: Desk,
    holding: Holding,
    body: Body,
    *contents: Content,
    touches: tuple[Touch, ...] = (),
    within: tuple[Within, ...] = (),
) -> SignedReceipt | None:
    """Write one receipt about a call; None if it could not be written, and the run is only watched: that goes on."""
    try:
        fill_gap(desk, holding)
        return desk.recording.record(holding.working, body, contents, touches=touches, within=within)
    except StoreError:
        if holding.working.mode is Mode.ENFORCED:
            raise
        with holding.lock:
            holding.unrecorded += 1
        return None


def ask_guard(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes) -> Guarded:
    """Ask the guard, and record what it refuses: by which rule, and in words."""
    if holding.replaying:
        return Guarded(Counting(()))
    try:
        return guard(desk, holding, call)
    except (GrantError, CallError) as refusal:
        rule = _RULES.get(type(refusal), GRANT)
        deny(desk, holding, call, described, rule, desk.text(REASON, str(refusal)))
        raise


def write_counted(
    desk: Desk,
    holding: Holding,
    call: ToolCall[Any],
    counting: Counting,
    make: Callable[[tuple[Charge, ...]], tuple[Body, list[Content]]],
    *,
    described: bytes,
) -> bool:
    """Write one receipt about a call, with what it uses up, if there is room for it; else that it was refused."""
    enforced = holding.working.mode is Mode.ENFORCED
    while True:
        body, contents = make(before_call(counting.counted()))
        try:
            return (
                write_about_call(desk, holding, body, *contents, within=counting.within() if enforced else ())
                is not None
            )
        except BudgetExhaustedError as refused:
            if counting.has_other(refused):
                continue
            rule, refusal = explain_spent(holding.bounds, refused)
        deny(desk, holding, call, described, rule, desk.text(REASON, str(refusal)))
        raise refusal


def deny_call(desk: Desk, holding: Holding, tool: str, arguments: object, *, rule: str) -> None:
    """Record that a call was refused before it was made, by this rule: there was nothing that could be called."""
    _write_denial(desk, holding, tool, describe({"tool": tool, "arguments": arguments}), rule)


def deny(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes, rule: str, *words: Content) -> None:
    """Record that a call was refused before it was made, by this rule, and in these words."""
    shown = () if call.declared.shown is None else (desk.text(TARGET, call.declared.shown),)
    _write_denial(desk, holding, call.declared.name, described, rule, *shown, *words)


def _write_denial(desk: Desk, holding: Holding, tool: str, described: bytes, rule: str, *words: Content) -> None:
    if not holding.replaying:
        body = ToolDenied(run=holding.id, call=new_call_id(desk.clock.now()), tool=tool, rule=rule)
        write_about_call(desk, holding, body, desk.json(ARGUMENTS, described), *words)
        holding.use.refuse(rule)
