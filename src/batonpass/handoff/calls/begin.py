"""Tool calls: the request is durable before the call, the outcome after it; what is finished is not done again."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from batonpass.credentials import Credential
from batonpass.errors import (
    CallDeniedError,
    CallError,
    CallHeldError,
    CallInDoubtError,
    CallReplayError,
    ConstraintViolatedError,
    ContentErasedError,
    GrantError,
    InvalidValueError,
)
from batonpass.guard.constraints import find_broken_by_call
from batonpass.guard.gates import Decision, decide
from batonpass.handoff.calls.authority import Guarded
from batonpass.handoff.calls.cache import cache_key, find_again
from batonpass.handoff.calls.context import CallContext
from batonpass.handoff.calls.credential import CREDENTIAL, fetch_credential, key_of, told
from batonpass.handoff.calls.edited_files import NOTHING, Watched, watch
from batonpass.handoff.calls.held_call import heed
from batonpass.handoff.calls.limits import (
    Counted,
    Counting,
    find_overdue,
    find_overspent,
)
from batonpass.handoff.calls.past_calls import ARGUMENTS, PastCall, read_settlement
from batonpass.handoff.calls.policy_gates import judge, suspend, tiers_of
from batonpass.handoff.calls.receipts import TARGET, ask_guard, deny, fill_gap, judging, refuse_revoked, write_counted
from batonpass.handoff.calls.sayings import Sayings
from batonpass.handoff.calls.tainted_call import Vetted, vet
from batonpass.handoff.calls.tainted_files import taint_from_files
from batonpass.handoff.calls.tools import ToolCall
from batonpass.handoff.calls.values import describe, give_back
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.using import SCOPE
from batonpass.model.bodies import (
    Body,
    Gate,
    Settlement,
    ToolCached,
    ToolRequested,
)
from batonpass.model.charge import Charge
from batonpass.model.content import Content
from batonpass.model.ids import CallId, Digest, RunId, new_call_id
from batonpass.model.receipt import Mode
from batonpass.model.rules import TAINT

MESSAGE = "message"
PERMIT = "permit"  # which permit of each hop lets it, the last first


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
    counted: tuple[Counted, ...] = ()  # what it counts against
    looked: bool = False  # whether the whole work tree is looked at, right before it and after
    sayings: Sayings = field(default_factory=Sayings)
    began: int = field(default_factory=time.perf_counter_ns)

    @property
    def took_us(self) -> int:
        """Return how long it has taken until now."""
        return (time.perf_counter_ns() - self.began) // 1000

    def context(self, run: RunId) -> CallContext:
        """Return what the tool can know about the call."""
        return CallContext(
            run=run,
            call=self.call,
            key=self.key,
            attempt=self.attempt,
            credential=self.credential,
            sayings=self.sayings,
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """A call that need not be made: an earlier attempt finished it, or its result is kept and fresh."""

    value: Any


def begin_call(desk: Desk, holding: Holding, call: ToolCall[Any]) -> Begun | Replayed:
    """Record that a call is about to be made, or return what it returned in an earlier attempt.

    Raises `CallInDoubtError`, and where the run is held to a grant `CallHeldError` and `ConstraintViolatedError`.
    Where nothing can be written, a run that is only watched goes on; but what may be done already is never done again.
    """
    with judging(desk, holding, call):
        described = describe({"tool": call.declared.name, "arguments": call.arguments})
    number = holding.count(described)
    try:
        begun = _begin(desk, holding, call, described, number)
    except BaseException:
        holding.uncount(described, number)
        raise
    if isinstance(begun, Begun) and begun.looked:
        desk.files.begin(begun.call, desk.clock.now())
        return replace(begun, began=time.perf_counter_ns())
    return begun


def _begin(desk: Desk, holding: Holding, call: ToolCall[Any], described: bytes, number: int) -> Begun | Replayed:
    declared = call.declared
    guarded = ask_guard(desk, holding, call, described)
    key = desk.secrets.digest(holding.root, b"call", holding.scope.encode(), described, str(number).encode())
    past = holding.find_past(key)
    if past is not None and past.completed:
        refuse_revoked(desk, holding, call, described)
        _keep(holding, call)
        return Replayed(_result(desk, past, call))
    if past is not None and not declared.idempotent:
        settled = read_settlement(desk.store, holding.scope, past.id)
        if settled is Settlement.SKIP:
            _keep(holding, call)
            return Replayed(None)
        if settled is None:
            deny(desk, holding, call, described, "call.in-doubt")
            raise CallInDoubtError(declared.name, past.id)
    if holding.replaying:
        raise CallReplayError(declared.name, str(holding.working.run.handoff or holding.id))
    target = None if declared.reads else call.target
    target_key = None if target is None else desk.secrets.digest(holding.root, b"target", target.encode())
    unchanged = target_key if past is None else None
    with judging(desk, holding, call, described):
        flags = (*guarded.flags, *_check(desk, holding, call, described, unchanged, counting=guarded.counting))
    planned = _Planned(described, number, key, target, target_key, flags, guarded)
    taint_from_files(desk, holding, call)
    with holding.taint.lock:
        cleared = _clear(desk, holding, call, planned)
        if declared.credential is None:
            return _request(desk, holding, call, planned, cleared=cleared)
    # Not under the lock: whoever gives credentials may take their time. What comes in meanwhile counts.
    credential = fetch_credential(
        desk,
        holding,
        declared,
        lambda error: deny(desk, holding, call, described, CREDENTIAL, desk.refusal(str(error))),
    )
    with holding.taint.lock:
        cleared = _clear(desk, holding, call, planned)
        return _request(desk, holding, call, planned, cleared=cleared, credential=credential)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A call that nothing but a gate or a limit can stop any more."""

    described: bytes
    number: int
    key: Digest
    target: str | None
    target_key: Digest | None
    flags: tuple[str, ...]
    guarded: Guarded


def _clear(desk: Desk, holding: Holding, call: ToolCall[Any], planned: _Planned) -> tuple[Vetted, tuple[Decision, ...]]:
    """Return what is known of a call that passes all gates, and what would have held it."""
    vetted = vet(desk, holding, planned.described, planned.target_key)
    tried = planned.guarded.tried
    decisions = judge(desk, holding, call, planned.target, planned.key, aim=vetted.aim, tried=tried)
    return vetted, _pass_gates(desk, holding, call, planned.key, decisions, vetted=vetted)


def _request(
    desk: Desk,
    holding: Holding,
    call: ToolCall[Any],
    planned: _Planned,
    *,
    cleared: tuple[Vetted, tuple[Decision, ...]],
    credential: Credential | None = None,
) -> Begun | Replayed:
    declared, described, key, target = call.declared, planned.described, planned.key, planned.target
    vetted, decisions = cleared
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
            flags=planned.flags,
        )
        write_counted(desk, holding, call, planned.guarded.counting, lambda _: (cached, contents), described=described)
        return Replayed(again.value)
    contents += told(desk, credential)
    if (shown := declared.shown if target is None else target) is not None:
        contents.append(desk.text(TARGET, shown))
    if planned.guarded.tried is not None:
        contents.append(desk.text(SCOPE, str(planned.guarded.tried)))
    if planned.guarded.reason is not None:
        contents.append(desk.refusal(planned.guarded.reason))

    def requested(charges: tuple[Charge, ...]) -> tuple[Body, list[Content]]:
        body = ToolRequested(
            run=holding.id,
            call=identifier,
            tool=declared.name,
            key=key,
            target=planned.target_key,
            idempotent=declared.idempotent,
            reversible=declared.reversible is True,
            reads=declared.reads,
            flags=tuple(dict.fromkeys((*planned.flags, *(decision.flag for decision in decisions), *vetted.flags))),
            tiers=tuple(str(tier) for tier in tiers_of(declared)),
            credential=key_of(desk, holding, credential),
            label=vetted.label,
            untrusted=vetted.untrusted,
            charges=charges,
        )
        # Which permit counts is known only now: one that is full makes room for another.
        permits = _permits(desk, holding, planned.guarded.counting)
        return body, [*contents, *permits]

    recorded = write_counted(desk, holding, call, planned.guarded.counting, requested, described=described)
    if planned.guarded.tried is not None:
        holding.use.make(planned.guarded.tried)
    if recorded and not declared.reads:
        holding.effects.append(identifier)
    if target is not None:
        holding.changed.add(target)
    return Begun(
        call=identifier,
        key=key,
        attempt=holding.working.run.attempt,
        described=described,
        number=planned.number,
        cache=cache,
        recorded=recorded,
        credential=credential,
        watched=watch(call.named) if recorded and not declared.reads else NOTHING,
        counted=planned.guarded.counting.counted(),
        looked=recorded and not declared.reads and (declared.any_file or desk.files.is_watched),
    )


def _permits(desk: Desk, holding: Holding, counting: Counting) -> tuple[Content, ...]:
    """Return in words by which permits a call may be made, from its own run up to where the grant begins."""
    permits = counting.chosen()
    if not permits:
        return ()
    *above, own = permits
    lines = [f"{terms.agent} may delegate {one}" for terms, one in zip(holding.bounds.terms, above, strict=False)]
    return (desk.text(PERMIT, "\n".join((f"{holding.agent} may {own}", *reversed(lines)))),)


def _keep(holding: Holding, call: ToolCall[Any]) -> None:
    """Count a call whose effect an earlier attempt had."""
    holding.kept += 1
    if not call.declared.reads and (target := call.target) is not None:
        holding.changed.add(target)


def _check(
    desk: Desk,
    holding: Holding,
    call: ToolCall[Any],
    described: bytes,
    target: Digest | None,
    *,
    counting: Counting,
) -> Iterator[str]:
    """Yield what would stop the call; where the run is held to a grant, it does stop it."""
    refusals: list[tuple[str, CallError | GrantError]] = []
    changed = None if target is None else holding.find_changed(target)
    if changed is not None:
        refusals.append(("would_hold.target-changed", CallHeldError(call.declared.name, changed.id)))
    # Working out the names of the arguments costs more than all the rest here, and most constraints bind to none.
    bound = tuple(constraint for constraint in holding.constraints if constraint.binds_to is not None)
    for broken in find_broken_by_call(bound, call.declared.name, call.named if bound else {}):
        error = ConstraintViolatedError(broken.constraint.sentence, broken.found)
        refusals.append(("would_deny.constraint", error))
    enforced = holding.working.mode is Mode.ENFORCED
    overdue = find_overdue(holding.bounds.accounts, holding.present(desk.clock))
    overspent = () if enforced else find_overspent(desk, holding.bounds, counting)
    refusals += [(f"would_deny.{rule}", error) for rule, error in (*overdue, *overspent)]
    if refusals and enforced:
        flag, error_ = refusals[0]
        deny(desk, holding, call, described, flag.partition(".")[2])
        raise error_
    yield from dict.fromkeys(flag for flag, _ in refusals)


def _pass_gates(
    desk: Desk, holding: Holding, call: ToolCall[Any], key: Digest, decisions: tuple[Decision, ...], *, vetted: Vetted
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
        reason = desk.refusal(decision.sentence)
        deny(desk, holding, call, described, decision.rule, reason)
        raise CallDeniedError(call.declared.name, decision.rule, desk.gates.where(decision.rule), decision.sentence)
    if (held := holding.find_held(key)) is not None:
        if (refusal := heed(desk, held, decision)) is None:
            if held.rule == TAINT:
                holding.taint.cleared.add((held.tool, vetted.aim))
            return ()
        deny(desk, holding, call, described, held.rule, desk.refusal(str(refusal)))
        raise refusal
    fill_gap(desk, holding)
    raise suspend(desk, holding, call, key, decision, arguments=desk.json(ARGUMENTS, described), vetted=vetted)


def _result(desk: Desk, past: PastCall, call: ToolCall[Any]) -> Any:  # noqa: ANN401 - a tool's own result
    if past.result is None:
        raise InvalidValueError("result", f"of {past.id} was not kept")
    with desk.store.view() as view:
        stored = view.get_content(past.result.id)
    if stored.body is None:
        raise ContentErasedError(past.result.id)
    return give_back(stored.body, past.result.media_type, call.declared.decode)
