"""Retry, settling and revoking: what a person decides about work that is over, or in doubt.

A retry names exactly the head of the attempt that it ends. If that attempt lives and writes first, it is decided anew;
if the retry is first, the attempt is fenced. So the calls that it lists are all there will ever be.
"""

from collections.abc import Mapping, Sequence

from batonpass.errors import CallError, NotFoundError
from batonpass.log.append import Draft, append_shared
from batonpass.model.bodies import GrantRevoked, HandoffRetried, ToolSettled
from batonpass.model.lifecycle import Event, advance
from batonpass.model.receipt import Signed
from batonpass.model.values import Mode, RunHead, Settlement
from batonpass.reading.batons import get_handoff, get_receipt
from batonpass.reading.history import NULL, DoubtfulCall, read_attempts, read_run
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

    row = get_handoff(store, handoff)
    mode: Mode = "enforced" if "terms" in get_receipt(store, row.parent, row.seq).receipt.content else "observed"
    append_shared(recorder, handoff, decide, root=row.root, mode=mode)
    context.offers.pop(handoff, None)
    return remaining


def settle_call(context: Context, run: ActiveRun, call: str, how: Settlement, *, by: str, reason: str = "") -> None:
    """Decide about a call in doubt of an open run: make it again when it is asked for, or never.

    Raises `CallError` if the call is not in doubt.
    """
    run.refresh(context.recorder)
    doubtful = next((each for each in run.history.in_doubt.values() if each.call == call), None)
    found = doubtful or run.open_calls.get(call)
    if found is None or call in run.settling:
        raise CallError(f"{call} of {run.id} is not in doubt, or is being decided about")
    run.settling.add(call)  # of two threads that decide at once one does
    try:
        settled = ToolSettled(run=doubtful.run if doubtful else run.id, call=call, settlement=how, by=by)
        _write_settlement(context, run, Draft(settled, {"reason": reason.encode()} if reason else {}))
        opened = run.open_calls.pop(call, None)
        if opened is not None:
            run.settled_calls[call] = opened
        run.history.in_doubt.pop(found.key, None)
        if how == "skip":
            run.history.finished[found.key] = NULL
    finally:
        run.settling.discard(call)


def _write_settlement(context: Context, run: ActiveRun, draft: Draft) -> None:
    recorder, handoff, body = context.recorder, run.handoff, draft.body

    def decide() -> Sequence[Draft]:
        # Anew each time: it may have been retried, and another may have decided meanwhile; and a request that is still
        # on its way must not come after the decision about it.
        run.require_open(recorder)
        row = None if handoff is None else get_handoff(recorder.store, handoff)
        known = read_run(recorder.store, run.id, row).in_doubt.values()
        if not isinstance(body, ToolSettled) or all(each.call != body.call for each in known):
            raise CallError(f"this call of {run.id} is not in doubt any more")
        return (draft,)

    def alone(_: Signed) -> Sequence[Signed]:
        decide()  # here, because no thread of the run appends meanwhile
        return ()

    if handoff is None:
        run.writer.append(draft, following=alone)
        return
    append_shared(recorder, handoff, decide, root=run.root, mode=run.mode)


def revoke_grant(context: Context, account: str, *, by: str, reason: str = "") -> None:
    """End a grant and all that hang from it: what was given to a root run, or with a handoff. Again does nothing."""
    recorder = context.recorder
    store = recorder.store
    handoff = store.find_handoff(account)
    given = store.receipt(account, 1) if handoff is None else store.receipt(handoff.parent, handoff.seq)
    if given is None or "terms" not in given.receipt.content:
        raise NotFoundError(f"there is no grant of {account} in this ledger: nothing was granted to it")
    contents = {"reason": reason.encode()} if reason else {}

    def decide() -> Sequence[Draft]:
        return () if store.is_revoked(account) else (Draft(GrantRevoked(account=account, by=by), contents),)

    append_shared(recorder, recorder.relay, decide, root=None)
