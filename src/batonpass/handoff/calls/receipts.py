"""Writing about calls: one receipt each, within the limits that the call is under; what is refused is written too."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from batonpass.errors import (
    BatonpassError,
    BudgetExhaustedError,
    CallError,
    CallProtectedError,
    GrantError,
    GrantRevokedError,
    GuardFailedError,
    StoreError,
)
from batonpass.handoff.calls.authority import Guarded, guard
from batonpass.handoff.calls.limits import Counting, before_call, explain_spent, require_unrevoked
from batonpass.handoff.calls.past_calls import ARGUMENTS
from batonpass.handoff.calls.tools import ToolCall
from batonpass.handoff.calls.values import describe
from batonpass.handoff.desk import REASON, Desk
from batonpass.handoff.holding import Holding
from batonpass.model.bodies import Body, RunGap, ToolDenied
from batonpass.model.charge import Charge, Within
from batonpass.model.content import Content
from batonpass.model.entry import Touch
from batonpass.model.ids import new_call_id
from batonpass.model.receipt import Mode, SignedReceipt

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
        deny(desk, holding, call, described, rule, desk.refusal(str(refusal)))
        raise


def refuse_revoked(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes) -> None:
    """Refuse a call that is not made anew, and so counts nowhere, of a run whose grant was revoked.

    Raises `GrantRevokedError`.
    """
    if holding.replaying or holding.working.mode is not Mode.ENFORCED or not holding.bounds.chain:
        return
    try:
        with desk.store.view() as view:
            require_unrevoked(view, holding.bounds)
    except GrantRevokedError as refusal:
        deny(desk, holding, call, described, GRANT, desk.refusal(str(refusal)))
        raise


@contextmanager
def judging(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes | None = None) -> Iterator[None]:
    """Refuse an enforced call that cannot be judged: arguments are somebody's objects, and may raise anything.

    Raises `GuardFailedError`.
    """
    try:
        yield
    except BatonpassError:
        raise
    except Exception as error:
        if holding.working.mode is not Mode.ENFORCED:
            raise
        refusal = GuardFailedError(call.declared.name, f"{type(error).__name__}: {error}")
        shown = describe({"tool": call.declared.name}) if described is None else described
        deny(desk, holding, call, shown, _RULES[GuardFailedError], desk.refusal(str(refusal)))
        raise refusal from error


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
        deny(desk, holding, call, described, rule, desk.refusal(str(refusal)))
        raise refusal


def deny_call(
    desk: Desk, holding: Holding, tool: str, arguments: object, *, rule: str, reason: str | None = None
) -> None:
    """Record that a call was refused before it was made, by this rule: there was nothing that could be called."""
    words = () if reason is None else (desk.text(REASON, reason),)
    _write_denial(desk, holding, tool, describe({"tool": tool, "arguments": arguments}), rule, *words)


def deny(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes, rule: str, *words: Content) -> None:
    """Record that a call was refused before it was made, by this rule, and in these words."""
    shown = () if call.declared.shown is None else (desk.text(TARGET, call.declared.shown),)
    _write_denial(desk, holding, call.declared.name, described, rule, *shown, *words)


def _write_denial(desk: Desk, holding: Holding, tool: str, described: bytes, rule: str, *words: Content) -> None:
    if not holding.replaying:
        body = ToolDenied(run=holding.id, call=new_call_id(desk.clock.now()), tool=tool, rule=rule)
        write_about_call(desk, holding, body, desk.json(ARGUMENTS, described), *words)
        holding.use.refuse(rule)
