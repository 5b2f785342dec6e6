"""A root run, from its start; what it records; and how another process takes it over."""

from collections.abc import Sequence

from batonpass.authority.grants import expiry_at, make_terms
from batonpass.errors import HandoffError, NotFoundError, StoreError
from batonpass.log.append import Draft, Recorder, StreamWriter
from batonpass.model.bodies import RunRecorded, RunRekeyed, RunStarted
from batonpass.model.grants import Grant, Held, Terms
from batonpass.model.items import AnyItem, Baton, Intent
from batonpass.model.receipt import Place
from batonpass.runtime.context import Context, open_run
from batonpass.runtime.run_state import ActiveRun
from batonpass.wire.canonical import encode

_SECRET_BYTES = 32


def start(
    context: Context, intent: str, *, by: str, agent: str, grant: Grant | None, items: Sequence[AnyItem]
) -> ActiveRun:
    """Begin a tree of runs for a principal. With a grant it is enforced, else observed."""
    recorder = context.recorder
    run, secret = recorder.new_id("run"), recorder.system.entropy(_SECRET_BYTES)
    contents = {"intent": intent.encode(), "secret": secret}
    terms = None if grant is None else root_terms(recorder, grant)
    if terms is not None:
        contents["terms"] = encode(terms)
    if items:
        contents["items"] = encode(items)
    key = recorder.key.run_key(run, 0)
    place = Place(stream=run, seq=0, head=recorder.genesis)
    writer = StreamWriter(recorder, place, root=run, mode="observed" if terms is None else "enforced")
    writer.append(Draft(RunStarted(run=run, agent=agent, principal=by, run_key=key.public), contents), cosigner=key)
    active = ActiveRun(
        writer=writer,
        agent=agent,
        principal=by,
        tree_secret=secret,
        baton=Baton(intent=(Intent(intent, by=by),), task=intent, items=tuple(items)),
        lineage=() if terms is None else (Held(run, agent, terms),),
    )
    context.runs[run] = active
    return active


def root_terms(recorder: Recorder, grant: Grant) -> Terms:
    """Return the terms of a grant that begins here. Raises `InvalidValueError`."""
    return make_terms(grant.may, grant.may_delegate, expiry_at(grant.expires, recorder.system.now()))


def record(context: Context, run: ActiveRun, items: Sequence[AnyItem], gaps: Sequence[str] = ()) -> None:
    """Record what a run knows, and what it could not record before. Its later children are handed its items.

    An observed run goes on if it cannot be written.
    """
    run.require_live()
    run.refresh(context.recorder)
    drafts: list[Draft] = []
    if gaps:
        gap = RunRecorded(run=run.id, subject="gap", count=len(gaps))
        drafts.append(Draft(gap, {"gaps": encode(gaps)}))
    if items:
        body = RunRecorded(run=run.id, subject="items", count=len(items))
        drafts.append(Draft(body, {"items": encode(items)}))
    try:
        run.writer.append(*drafts)
        run.history.items += tuple(items)
    except StoreError as error:
        (run.reporter or run).writer.gaps += gaps  # written next time
        if items:
            run.note_gap("record", error)
            run.unwritten_items += tuple(items)


def resume(context: Context, run: str) -> ActiveRun:
    """Take a root over from its holder: its next epoch begins, and what is done in the old one is fenced.

    Raises `NotFoundError` if there is no such run, `FencedError` if it has ended, and `HandoffError` if it is an
    attempt at a handoff.
    """
    recorder = context.recorder
    row = recorder.store.find_stream(run)
    if row is None or row.agent is None:
        raise NotFoundError(f"there is no run {run} in this ledger: `batonpass run list` shows what there is")
    if row.handoff is not None:
        detail = f"{run} is an attempt at {row.handoff}: retry the handoff, and its next attempt goes on"
        raise HandoffError(detail)
    active = open_run(recorder, run)
    epoch = row.epoch + 1
    key = recorder.key.run_key(run, epoch)
    place = Place(stream=run, seq=row.seq, head=row.head, epoch=epoch)
    active.writer = StreamWriter(recorder, place, root=run, mode=active.mode)
    active.writer.append(Draft(RunRekeyed(run=run, run_key=key.public)), cosigner=key)
    context.runs[run] = active
    return active
