"""Retry, settling and revoking: what a person decides about work that is over, or in doubt.

A retry names exactly the head of the attempt that it ends. If that attempt lives and writes first, it is decided anew;
if the retry is first, the attempt is fenced. So the calls that it lists are all there will ever be.
"""

from collections.abc import Mapping, Sequence

from batonpass.errors import CallError, NotFoundError
from batonpass.log.append import Draft, append_shared
from batonpass.model.bodies import GrantRevoked, HandoffRetried, ToolSettled
from batonpass.model.lifecycle import Event, advance
from batonpass.model.values import RunHead, Settlement
from batonpass.reading.batons import get_handoff
from batonpass.reading.history import NULL, DoubtfulCall, read_attempts
from batonpass.runtime.context import Context
from batonpass.runtime.run_state import ActiveRun


def retry(
    context: Context, handoff: str, *, by: str, settle: Mapping[str, Settlement], reason: str = ""
) -> tuple[DoubtfulCall, ...]:
    """End the last attempt and offer the same baton again; return the calls that are still in doubt.

    Settlements and the retry are one commit. Finished calls are not made a second time.
    """
    recorder = context.recorder
    store = recorder.store
    remaining: tuple[DoubtfulCall, ...] = ()

    def decide() -> Sequence[Draft]:
        nonlocal remaining
        row = get_handoff(store, handoff)
        advance(handoff, row.state, Event.RETRY)
        attempt = store.find_stream(row.run or "")
        if attempt is None:
            raise NotFoundError(f"no attempt at {handoff} has begun")
        doubtful = {call.call: call for call in read_attempts(store, row).in_doubt.values()}
        if unknown := settle.keys() - doubtful.keys():
            raise CallError(f"not in doubt: {', '.join(sorted(unknown))}")
        remaining = tuple(call for call in doubtful.values() if call.call not in settle)
        settled = [
            Draft(ToolSettled(run=doubtful[call].run, call=call, settlement=how, by=by))
            for call, how in sorted(settle.items())
        ]
        ended = RunHead(attempt.id, attempt.seq, attempt.head)
        retried = HandoffRetried(handoff=handoff, attempt=row.attempt, by=by, ended_run=ended)
        return (*settled, Draft(retried, {"reason": reason.encode()} if reason else {}))

    root = get_handoff(store, handoff).root
    append_shared(recorder, handoff, decide, root=root)
    context.offers.pop(handoff, None)
    return remaining


def settle_call(context: Context, run: ActiveRun, call: str, how: Settlement, *, by: str, reason: str = "") -> None:
    """Decide about a call in doubt of an open run: make it again when it is asked for, or never.

    Raises `CallError` if the call is not in doubt.
    """
    recorder = context.recorder
    run.refresh(recorder)
    doubtful = next((each for each in run.history.in_doubt.values() if each.call == call), None)
    opened = run.open_calls.get(call)
    if doubtful is None and opened is None:
        raise CallError(f"{call} of {run.id} is not in doubt")
    key = opened.key if doubtful is None and opened is not None else doubtful.key if doubtful is not None else ""
    settled = ToolSettled(run=run.id if doubtful is None else doubtful.run, call=call, settlement=how, by=by)
    draft = Draft(settled, {"reason": reason.encode()} if reason else {})
    if run.handoff is None:
        run.writer.append(draft)
    else:
        handoff = run.handoff

        def decide() -> Sequence[Draft]:
            # Anew each time: it may have been retried, and another may have decided meanwhile.
            run.require_open(recorder)
            known = read_attempts(recorder.store, get_handoff(recorder.store, handoff)).in_doubt.values()
            if all(each.call != call for each in known):
                raise CallError(f"{call} of {run.id} is not in doubt any more")
            return (draft,)

        append_shared(recorder, handoff, decide, root=run.root, mode=run.mode)
    run.open_calls.pop(call, None)
    run.history.in_doubt.pop(key, None)
    if how == "skip":
        run.history.finished[key] = NULL


def revoke_grant(context: Context, account: str, *, by: str, reason: str = "") -> None:
    """End a grant and all that hang from it: what was given to a root run, or with a handoff. Again does nothing."""
    recorder = context.recorder
    store = recorder.store
    if store.find_handoff(account) is None and store.find_stream(account) is None:
        raise NotFoundError(f"there is no grant of {account} in this ledger")
    contents = {"reason": reason.encode()} if reason else {}

    def decide() -> Sequence[Draft]:
        return () if store.is_revoked(account) else (Draft(GrantRevoked(account=account, by=by), contents),)

    append_shared(recorder, recorder.relay, decide, root=None)
