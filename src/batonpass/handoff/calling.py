"""Tool calls: the request is durable before the call, the outcome after it; what is finished is not done again."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from batonpass.attribution.documents import encode_change
from batonpass.credentials import Credential
from batonpass.errors import (
    CallDeniedError,
    CallError,
    CallHeldError,
    CallInDoubtError,
    CallReplayError,
    ConstraintViolatedError,
    ContentErasedError,
    FencedError,
    InvalidValueError,
    StoreError,
    StreamClosedError,
)
from batonpass.guard.constraints import find_broken_by_call
from batonpass.guard.gates import Decision, decide
from batonpass.handoff.acting import CREDENTIAL, fetch_credential, key_of, told
from batonpass.handoff.caching import cache_key, find_again
from batonpass.handoff.context import CallContext
from batonpass.handoff.desk import Desk
from batonpass.handoff.effects import NOTHING, Watched, find_changes, watch
from batonpass.handoff.faults import code_of, words_of
from batonpass.handoff.gating import judge, suspend, tiers_of
from batonpass.handoff.heeding import heed
from batonpass.handoff.holding import Holding
from batonpass.handoff.resuming import ARGUMENTS, PastCall, read_settlement
from batonpass.handoff.tools import ToolCall
from batonpass.handoff.values import SHOWN, describe, give_back, keep_result
from batonpass.model.baton import Budget
from batonpass.model.bodies import (
    Body,
    Changed,
    Gate,
    HandoffLate,
    RunGap,
    Settlement,
    ToolCached,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.checks import LARGEST_INTEGER
from batonpass.model.content import Content
from batonpass.model.entry import Touch
from batonpass.model.ids import CallId, Digest, RunId, new_call_id
from batonpass.model.receipt import Mode

MESSAGE = "message"
TARGET = "target"
REASON = "reason"
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A call that may be made now: its request is durable, or its run is only watched."""

    call: CallId
    key: Digest  # the same for the same call in every attempt: what an idempotent tool recognises it by
    attempt: int
    described: bytes = b""
    number: int = 1  # the how-manyth such call it is
    cache: Digest | None = None  # under what its result is kept for a while, if it is
    recorded: bool = True  # False if its request could not be written; then its outcome is not, either
    credential: Credential | None = None
    watched: Watched = NOTHING  # the files that its arguments name, as they were before

    def context(self, run: RunId) -> CallContext:
        """Return what the tool can know about the call."""
        return CallContext(run=run, call=self.call, key=self.key, attempt=self.attempt, credential=self.credential)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A call that need not be made: an earlier attempt finished it, or its result is kept and fresh."""

    value: Any


def begin_call(desk: Desk, holding: Holding, call: ToolCall[Any]) -> Begun | Replayed:
    """Record that a call is about to be made, or return what it returned in an earlier attempt.

    Raises `CallInDoubtError`, and where the run is held to a grant `CallHeldError` and `ConstraintViolatedError`.
    Where nothing can be written, a run that is only watched goes on; but what may be done already is never done again.
    """
    described = describe({"tool": call.declared.name, "arguments": call.arguments})
    number = holding.count(described)
    try:
        return _begin(desk, holding, call, described, number)
    except BaseException:
        holding.uncount(described, number)
        raise


def _begin(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes, number: int) -> Begun | Replayed:
    declared = call.declared
    key = desk.secrets.digest(holding.root, b"call", holding.scope.encode(), described, str(number).encode())
    past = holding.find_past(key)
    if past is not None and past.completed:
        _keep(holding, call)
        return Replayed(_result(desk, past, call))
    if past is not None and not declared.idempotent:
        settled = read_settlement(desk.store, holding.scope, past.id)
        if settled is Settlement.SKIP:
            _keep(holding, call)
            return Replayed(None)
        if settled is None:
            _deny(desk, holding, call, described, "call.in-doubt")
            raise CallInDoubtError(declared.name, past.id)
    if holding.replaying:
        raise CallReplayError(declared.name, str(holding.working.run.handoff or holding.id))
    target = None if declared.reads else call.target
    target_key = None if target is None else desk.secrets.digest(holding.root, b"target", target.encode())
    flags = tuple(_check(desk, holding, call, described, target_key if past is None else None))
    decisions = _pass_gates(desk, holding, call, key, judge(desk, holding, call, target, key))
    identifier = new_call_id(desk.clock.now())
    contents = [desk.json(ARGUMENTS, described)]
    cache = cache_key(desk, holding.root, declared, described)
    if (again := find_again(desk, cache, declared)) is not None:
        cached = ToolCached(
            run=holding.id,
            call=identifier,
            tool=declared.name,
            made=again.call,
            result=again.receipt,
            key=key,
            flags=flags,
        )
        _write(desk, holding, cached, *contents)
        return Replayed(again.value)
    credential = fetch_credential(
        desk,
        holding,
        declared,
        lambda error: _deny(desk, holding, call, described, CREDENTIAL, desk.text(REASON, str(error))),
    )
    contents += told(desk, credential)
    if target is not None:
        contents.append(desk.text(TARGET, target))
    requested = ToolRequested(
        run=holding.id,
        call=identifier,
        tool=declared.name,
        key=key,
        target=target_key,
        idempotent=declared.idempotent,
        reversible=declared.reversible is True,
        reads=declared.reads,
        flags=tuple(dict.fromkeys((*flags, *(decision.flag for decision in decisions)))),
        tiers=tuple(str(tier) for tier in tiers_of(declared)),
        credential=key_of(desk, holding, credential),
    )
    recorded = _write(desk, holding, requested, *contents)
    holding.calls += 1
    if recorded and not declared.reads:
        holding.effects.append(identifier)
    if target is not None:
        holding.changed.add(target)
    return Begun(
        call=identifier,
        key=key,
        attempt=holding.working.run.attempt,
        described=described,
        number=number,
        cache=cache,
        recorded=recorded,
        credential=credential,
        watched=watch(call.named) if recorded and not declared.reads else NOTHING,
    )


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


def _write(desk: Desk, holding: Holding, body: Body, *contents: Content, touches: tuple[Touch, ...] = ()) -> bool:
    """Write one receipt about a call; return whether it is durable. A run that is only watched goes on without it."""
    try:
        fill_gap(desk, holding)
        desk.recording.record(holding.working, body, contents, touches=touches)
    except StoreError:
        if holding.working.mode is Mode.ENFORCED:
            raise
        with holding.lock:
            holding.unrecorded += 1
        return False
    return True


def finish_call(desk: Desk, holding: Holding, begun: Begun, call: ToolCall[Any], value: object) -> None:
    """Record what a call returned. If the run is over, the outcome is kept as evidence; raises what it met."""
    cost = _cost(call, value)
    holding.cost += cost or 0
    if not begun.recorded:
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
    )
    touches = tuple(Touch(path=change.path, content=kept.ref.id) for change, kept in changes)
    try:
        if _write(desk, holding, done, content, *(kept for _, kept in changes), touches=touches):
            holding.last_call = begun.call
    except (FencedError, StreamClosedError):
        _keep_late(desk, holding, begun, content, completed=True)
        raise


def _flags_of(cost: int | None, *, redacted: bool) -> tuple[str, ...]:
    return (*(("cost.unknown",) if cost is None else ()), *(("result.redacted",) if redacted else ()))


def _fresh_until(desk: Desk, begun: Begun, call: ToolCall[Any], media_type: str) -> datetime | None:
    """Return until when a result is given again; None if it is not kept, or has no form in which it could be."""
    if begun.cache is None or call.declared.cache_for is None or media_type == SHOWN:
        return None
    try:
        return desk.clock.now() + call.declared.cache_for
    except OverflowError:
        return None


def fail_call(desk: Desk, holding: Holding, begun: Begun, error: BaseException, *, made: bool = True) -> None:
    """Record how a call failed. If the run is over, that is kept as evidence; raises what it met.

    A call that was interrupted has not failed: nobody knows how far it came. It gets no outcome, and is in doubt.
    """
    if made and not isinstance(error, Exception):
        return
    # Whoever tries it once more means this very call: under another number, the next attempt would make it twice.
    holding.uncount(begun.described, begun.number)
    if not begun.recorded:
        return
    content = desk.text(MESSAGE, words_of(error))
    failed = ToolFailed(run=holding.id, call=begun.call, error=code_of(error))
    try:
        if _write(desk, holding, failed, content):
            holding.last_call = begun.call
    except (FencedError, StreamClosedError):
        _keep_late(desk, holding, begun, content, completed=False)
        raise


def _keep(holding: Holding, call: ToolCall[Any]) -> None:
    """Count a call whose effect an earlier attempt had."""
    holding.kept += 1
    if not call.declared.reads and (target := call.target) is not None:
        holding.changed.add(target)


def _keep_late(desk: Desk, holding: Holding, begun: Begun, content: Content, *, completed: bool) -> None:
    handoff = holding.working.run.handoff
    if handoff is None:
        return  # a root has no stream of its own that others may write to; whoever took it over sees the doubt
    late = HandoffLate(handoff=handoff, run=holding.id, call=begun.call, completed=completed)
    desk.recording.act(handoff, lambda _, __: late, (content,))


def _check(
    desk: Desk,
    holding: Holding,
    call: ToolCall[Any],
    described: bytes,
    target: Digest | None,
) -> Iterator[str]:
    """Yield what would stop the call; where the run is held to a grant, it does stop it."""
    refusals: list[tuple[str, CallError]] = []
    changed = None if target is None else holding.find_changed(target)
    if changed is not None:
        refusals.append(("would_hold.target-changed", CallHeldError(call.declared.name, changed.id)))
    # Working out the names of the arguments costs more than all the rest here, and most constraints bind to none.
    bound = tuple(constraint for constraint in holding.constraints if constraint.binds_to is not None)
    for broken in find_broken_by_call(bound, call.declared.name, call.named if bound else {}):
        error = ConstraintViolatedError(broken.constraint.sentence, broken.found)
        refusals.append(("would_deny.constraint", error))
    refusals += [("would_deny.budget", error) for error in _find_overspent(desk, holding)]
    if refusals and holding.working.mode is Mode.ENFORCED:
        flag, error_ = refusals[0]
        _deny(desk, holding, call, described, flag.partition(".")[2])
        raise error_
    yield from dict.fromkeys(flag for flag, _ in refusals)


def _pass_gates(
    desk: Desk, holding: Holding, call: ToolCall[Any], key: Digest, decisions: tuple[Decision, ...]
) -> tuple[Decision, ...]:
    """Let a call go on, and return what is still to be told of the gates.

    Raises `CallDeniedError` and `CallSuspendedError`.
    """
    enforced = desk.gates.enforce or holding.working.mode is Mode.ENFORCED
    decision = decide(decisions, enforced=enforced)
    if decision is None:
        return decisions
    described = describe({"tool": call.declared.name, "arguments": call.arguments})
    if decision.gate is Gate.DENY:
        reason = desk.text(REASON, decision.sentence)
        _deny(desk, holding, call, described, decision.rule, reason)
        raise CallDeniedError(call.declared.name, decision.rule, desk.gates.where(decision.rule), decision.sentence)
    if (held := holding.find_held(key)) is not None:
        if (refusal := heed(desk, held, decision)) is None:
            return ()
        _deny(desk, holding, call, described, held.rule, desk.text(REASON, str(refusal)))
        raise refusal
    fill_gap(desk, holding)
    raise suspend(desk, holding, call, key, decision, arguments=desk.json(ARGUMENTS, described))


def _find_overspent(desk: Desk, holding: Holding) -> Iterator[ConstraintViolatedError]:
    """Yield what of the budget is used up."""
    budget = Budget() if holding.baton is None or holding.baton.brief.budget is None else holding.baton.brief.budget
    elapsed = (desk.clock.now() - holding.working.run.started_at).total_seconds()
    if budget.calls is not None and holding.calls >= budget.calls:
        yield ConstraintViolatedError(f"at most {budget.calls} calls", f"this is call {holding.calls + 1}")
    if budget.seconds is not None and elapsed >= budget.seconds:
        yield ConstraintViolatedError(f"at most {budget.seconds} seconds", f"{elapsed:.0f} have passed")
    if budget.cost is not None and holding.cost >= budget.cost:
        spent = f"{Decimal(holding.cost) / _MILLION} are spent"
        yield ConstraintViolatedError(f"a cost of at most {Decimal(budget.cost) / _MILLION}", spent)


def deny_call(desk: Desk, holding: Holding, tool: str, arguments: object, *, rule: str) -> None:
    """Record that a call was refused before it was made, by this rule: there was nothing that could be called."""
    _write_denial(desk, holding, tool, describe({"tool": tool, "arguments": arguments}), rule)


def _deny(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes, rule: str, *words: Content) -> None:
    _write_denial(desk, holding, call.declared.name, described, rule, *words)


def _write_denial(desk: Desk, holding: Holding, tool: str, described: bytes, rule: str, *words: Content) -> None:
    if not holding.replaying:
        body = ToolDenied(run=holding.id, call=new_call_id(desk.clock.now()), tool=tool, rule=rule)
        _write(desk, holding, body, desk.json(ARGUMENTS, described), *words)


def _result(desk: Desk, past: PastCall, call: ToolCall[Any]) -> Any:  # noqa: ANN401 - a tool's own result
    if past.result is None:
        raise InvalidValueError("result", f"of {past.id} was not kept")
    with desk.store.view() as view:
        stored = view.get_content(past.result.id)
    if stored.body is None:
        raise ContentErasedError(past.result.id)
    return give_back(stored.body, past.result.media_type, call.declared.decode)


def _cost(call: ToolCall[Any], value: object) -> int | None:
    """Return what a call cost, in millionths; None if nobody can tell. The call was made, whatever this finds."""
    if call.declared.cost is None:
        return 0
    try:
        return min(max(0, math.ceil(Decimal(call.declared.cost(value)) * _MILLION)), LARGEST_INTEGER)
    except Exception:  # noqa: BLE001 - a function of whoever declared the tool
        return None
