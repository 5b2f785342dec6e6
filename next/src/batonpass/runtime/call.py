"""A call from top to bottom, in two halves: `begin_call` before the tool runs, `finish_call` after it.

The tool runs at the caller's side, in this process or elsewhere. The order decides which reason a caller is told: its
grant allows it, it was done before, its outcome is unknown; then the request is durable, which only an open run can
write, and only then the tool is made.
"""

import os
from typing import NamedTuple

from batonpass.authority.grants import Refusal, find_refusal
from batonpass.errors import (
    BatonpassError,
    CallDeniedError,
    CallError,
    CallInDoubtError,
    FencedError,
    GrantError,
    StoreError,
)
from batonpass.log.append import Draft, StaleReadingError, append_shared
from batonpass.model.bodies import ToolCompleted, ToolDenied, ToolEnded, ToolFailed, ToolLateResult, ToolRequested
from batonpass.model.values import Effect, Outcome
from batonpass.reading.history import DoubtfulCall, settlements
from batonpass.runtime.context import Context
from batonpass.runtime.effects import effect_of, from_work_tree, name_of_target, take_snapshot
from batonpass.runtime.run_state import ActiveRun, OpenCall
from batonpass.wire.canonical import keyed_digest
from batonpass.wire.contents import LARGEST_CONTENTS

_LARGEST_RESULT = LARGEST_CONTENTS // 2
_WRITES = frozenset({"write"})  # actions whose target is a file that is looked at before and after


class CallRequest(NamedTuple):
    """What is asked: `number` says that it is the n-th equal call of this run."""

    tool: str
    action: str
    target: str
    arguments: bytes  # canonical JSON
    number: int
    is_idempotent: bool


class Begun(NamedTuple):
    """Make the call now; or, with a result, do not: it was finished before. Without an id it is not recorded."""

    call: str
    key: str
    result: bytes | None = None


def begin_call(context: Context, run: ActiveRun, request: CallRequest) -> Begun:
    """Ask for a call and make the request durable.

    Raises `CallDeniedError` if the grant does not allow it, and `CallInDoubtError` if it was requested before and left
    no outcome, in any mode: a person decides whether it is repeated.
    """
    recorder, tool = context.recorder, request.tool
    run.refresh(recorder)
    reading = run.writer.reading
    is_write = request.action in _WRITES
    if is_write:  # as it is named from the work tree on, and for good: a tool may change the folder that it works in
        request = request._replace(target=from_work_tree(context.work_tree, request.target))
    # The owner, which next attempts share: what does equal keys once has to do equal calls of two agents twice.
    target = request.target.encode("utf-8", "replace")
    words = (run.owner.encode(), tool.encode(), target, request.number, request.arguments)
    key = keyed_digest(run.tree_secret, b"%s\0%s\0%s\0%d\0%s" % words)
    # Before earlier results: they are data as well, and a run whose grant has ended gets no more of it.
    if run.lineage:
        permission = f"{request.action}:{request.target}"
        refusal = find_refusal(run.lineage, permission, recorder.system.now())
        if refusal is not None:
            raise deny(context, run, key, request, refusal)
    if key in run.history.finished:
        return _recall(context, run, key, request)
    run.require_live()
    call = OpenCall(
        id=recorder.new_id("call"),
        key=key,
        tool=tool,
        target=request.target,
        began_at=recorder.system.now(),
        before=take_snapshot(path_of(context, request.target)) if is_write else None,
    )
    body = ToolRequested(
        run=run.id, call=call.id, key=key, tool=tool, charges=tuple(held.account for held in run.lineage)
    )
    contents = _words_of(request)
    # Of two equal calls on threads each would find no other, and one that was decided to be skipped would be made.
    with run.guard:
        if key in run.history.finished:
            return _recall(context, run, key, request)
        if not request.is_idempotent:
            refuse_doubtful(run, key)
        # Before the commit: an interrupt right after it must not hide that it is in doubt.
        run.open_calls[call.id] = call
    try:
        run.writer.append(Draft(body, contents), judged_in=reading)
    except BaseException as error:  # noqa: BLE001 - it is raised again there
        del run.open_calls[call.id]  # written or not: the next act looks
        if not isinstance(error, BatonpassError | StaleReadingError):
            run.writer.doubt()
        return _not_begun(context, run, key, request, error)
    return Begun(call.id, key)


def _recall(context: Context, run: ActiveRun, key: str, request: CallRequest) -> Begun:
    """Give a recorded result again. Nothing is written, so no commit decides whether the grant still holds."""
    for held in run.lineage:
        if context.recorder.store.is_revoked(held.account):
            reason = f"{run.agent} tried {request.action}:{request.target}, and the grant of {held.account} was revoked"
            raise deny(context, run, key, request, Refusal("grant.revoked", reason))
    return Begun("", key, run.history.finished[key])


def _not_begun(context: Context, run: ActiveRun, key: str, request: CallRequest, error: BaseException) -> Begun:
    """Let an observed run make a call that could not be recorded. Raises what stands against it otherwise."""
    if isinstance(error, StaleReadingError):  # the append of another thread was cut short meanwhile
        return begin_call(context, run, request)
    if isinstance(error, GrantError):  # by the commit itself: a look before it would leave a gap
        reason = f"{run.agent} tried {request.action}:{request.target}, and {error}"
        raise deny(context, run, key, request, Refusal("grant.revoked", reason)) from error
    if not isinstance(error, StoreError):
        raise error
    run.note_gap(f"call of {request.tool}", error)
    return Begun("", key)


def path_of(context: Context, target: str) -> str:
    """Return the file that a target names."""
    return os.path.join(context.work_tree, target)  # noqa: PTH118 - in a fourth of the time, twice for each call


def refuse_doubtful(run: ActiveRun, key: str) -> None:
    """Raise `CallInDoubtError` if an equal call has no outcome."""
    doubtful = run.history.in_doubt.get(key)
    if doubtful is None:
        opened = next((call for call in list(run.open_calls.values()) if call.key == key), None)
        if opened is None:
            return
        doubtful = DoubtfulCall(call=opened.id, key=key, tool=opened.tool, target=opened.target, run=run.id)
    detail = f"{doubtful.tool} {doubtful.target!r} was requested before and its outcome is unknown: repeat or skip it"
    raise CallInDoubtError(f"{detail} [{doubtful.call}]", facts={"call": doubtful.call})


def _words_of(request: CallRequest) -> dict[str, bytes]:
    target = request.target.encode("utf-8", "replace")
    return {"action": request.action.encode(), "target": target, "arguments": request.arguments}


def deny(context: Context, run: ActiveRun, key: str, request: CallRequest, refusal: Refusal) -> CallDeniedError:
    """Record that a call was not made, and return why."""
    call = context.recorder.new_id("call")
    body = ToolDenied(run=run.id, call=call, key=key, tool=request.tool, rule=refusal.rule)
    contents = {**_words_of(request), "reason": refusal.reason.encode("utf-8", "replace")}
    if not run.is_replayed:
        run.writer.append(Draft(body, contents))
    return CallDeniedError(refusal.reason, facts={"call": call, "rule": refusal.rule})


def finish_call(context: Context, run: ActiveRun, call: str, *, result: bytes | None, error: str | None) -> Outcome:
    """Record what became of a call, before its caller goes on with it.

    Raises `FencedError` if the run was taken over meanwhile; then the outcome is kept as evidence.
    """
    outcome: Outcome = "completed" if error is None else "failed"
    if not call:  # begun while nothing could be recorded
        return outcome
    recorder = context.recorder
    opened = run.open_calls.get(call) or run.settled_calls.get(call) or find_open_call(context, run, call)
    effects, contents = look_at_effects(context, opened)
    if error is not None:
        contents["error"] = error.encode("utf-8", "replace")
    elif result is not None and len(result) <= _LARGEST_RESULT:
        contents["result"] = result
    else:
        result = None  # it was made, whatever it returned
    took = max(0, recorder.system.now() - opened.began_at)
    ended: type[ToolEnded] = ToolCompleted if error is None else ToolFailed
    # Durable before the caller has the result. It could ride with the next receipt and save a sync; but then a crash
    # while the model thinks would put a finished call in doubt, and a person would be asked about it.
    try:
        run.writer.append(Draft(ended(run=run.id, call=call, took_us=took, effects=effects), contents))
        _note_outcome(run, opened, result, outcome)
    except BaseException as failure:
        run.writer.doubt()  # begun again it would be made twice, without a look at the ledger
        run.open_calls.pop(call, None)
        if run.handoff is not None and _is_late(context, run, run.handoff, call, failure):
            late = ToolLateResult(
                handoff=run.handoff, run=run.id, call=call, outcome=outcome, took_us=took, effects=effects
            )
            draft = Draft(late, contents)
            append_shared(recorder, run.handoff, lambda: (draft,), root=run.root, mode=run.mode)
        if not isinstance(failure, StoreError):
            raise
        run.note_gap(f"outcome of {opened.tool} {call}", failure)
    return outcome


def _is_late(context: Context, run: ActiveRun, handoff: str, call: str, failure: BaseException) -> bool:
    """Return whether an outcome comes after a fence or a decision: it delivers nothing, and what it did is evidence.

    What has its outcome was repeated, by another process perhaps: it is not late.
    """
    if not isinstance(failure, FencedError) and getattr(failure, "code", "") != "ledger.precondition_failed":
        return False
    store = context.recorder.store
    if any(isinstance(signed.body, ToolEnded) and signed.body.call == call for signed in store.receipts(run.id)):
        return False
    return isinstance(failure, FencedError) or call in settlements(store.receipts(handoff))


def _note_outcome(run: ActiveRun, call: OpenCall, result: bytes | None, outcome: Outcome) -> None:
    # Until here an equal call finds it in doubt, and so does an interrupt.
    run.open_calls.pop(call.id, None)
    if outcome == "failed":
        run.history.in_doubt.pop(call.key, None)
    elif result is not None:
        run.history.in_doubt.pop(call.key, None)
        run.history.finished[call.key] = result
    else:
        # It was made, and nobody can be given its result again: for a later attempt it is in doubt.
        run.history.in_doubt[call.key] = DoubtfulCall(
            call=call.id, key=call.key, tool=call.tool, target=call.target, run=run.id
        )


def find_open_call(context: Context, run: ActiveRun, call: str) -> OpenCall:
    """Return a call that another process of this relay began. Raises `CallError` if it is not open."""
    run.writer.look_again()
    run.refresh(context.recorder)
    doubtful = next((each for each in run.history.in_doubt.values() if each.call == call), None)
    if doubtful is None or doubtful.run != run.id:
        detail = f"{run.id} has no open call {call}: begin it first, or look at its outcome"
        raise CallError(detail)
    now = context.recorder.system.now()
    return OpenCall(id=call, key=doubtful.key, tool=doubtful.tool, target=doubtful.target, began_at=now)


def look_at_effects(context: Context, call: OpenCall) -> tuple[tuple[Effect, ...], dict[str, bytes]]:
    """Return what a call changed, and the new lines as content; nothing where the file is as it was."""
    if call.before is None:
        return (), {}
    after = take_snapshot(path_of(context, call.target))
    if after.digest == call.before.digest:
        return (), {}
    name = name_of_target(context.work_tree, call.target)
    effect, hunks = effect_of(context.recorder.secret, name, call.before, after)
    return (effect,), {} if hunks is None else {"hunks": hunks}
