"""An acceptance: the first receipt of an attempt's own stream, which hangs from the last one about the handoff.

It is the certificate as well: the relay signs that this key holds those terms, the run that it accepts this baton.
"""

from typing import TYPE_CHECKING

from batonpass.errors import ConflictError, FencedError, NotFoundError
from batonpass.log.append import Draft, StreamWriter, sign
from batonpass.model.bodies import HandoffAccepted
from batonpass.model.items import Baton
from batonpass.model.lifecycle import Event, State, advance
from batonpass.model.receipt import Place, Signed
from batonpass.reading.batons import (
    get_handoff,
    get_receipt,
    principal_of,
    read_baton,
    read_hops,
    read_lineage,
    tree_secret,
)
from batonpass.reading.history import read_attempts
from batonpass.runtime.context import Context, Offer, open_run
from batonpass.runtime.run_state import ActiveRun
from batonpass.signing.keys import KeyPair

if TYPE_CHECKING:
    from batonpass.model.values import Mode

_MOST_LOOKS = 64


def accept(context: Context, handoff: str) -> ActiveRun:
    """Begin an attempt at a handoff. Raises `LifecycleError` if it is not offered."""
    for _ in range(_MOST_LOOKS):
        offer = context.offers.pop(handoff, None) or read_offer(context, handoff)
        run, draft, key = prepare(context, offer)
        try:
            run.writer.append(draft, cosigner=key)
        except FencedError:
            raise
        except ConflictError as error:
            if error.code != "ledger.stale_head":
                raise
            continue  # something was written about it since it was read: read it again
        context.runs[run.id] = run
        return run
    raise ConflictError(f"{handoff} has moved on {_MOST_LOOKS} times while it was accepted: try again")


def accept_following(context: Context, offer: Offer) -> tuple[ActiveRun, Signed]:
    """Return an attempt whose acceptance is written in the commit of its offer, and that receipt."""
    run, draft, key = prepare(context, offer)
    place = Place(stream=run.id, seq=0, head=offer.anchor)
    signed = sign(context.recorder, place, draft, root=run.root, mode=run.mode, cosigner=key)
    run.writer.moved_to(signed)
    return run, signed


def prepare(context: Context, offer: Offer) -> tuple[ActiveRun, Draft, KeyPair]:
    """Return an attempt that has not begun, what its first receipt says, and the key that signs it as well."""
    recorder = context.recorder
    run = recorder.new_id("run")
    key = recorder.key.run_key(run, 0)
    terms = offer.lineage[-1].terms if offer.lineage else None
    body = HandoffAccepted(
        handoff=offer.id,
        parent=offer.parent,
        run=run,
        attempt=offer.attempt + 1,
        agent=offer.to,
        run_key=key.public,
        baton=offer.baton_digest,
        terms=offer.terms,
        expires_at=None if terms is None else terms.expires_at,
    )
    place = Place(stream=run, seq=0, head=offer.anchor)
    mode: Mode = "observed" if terms is None else "enforced"
    active = ActiveRun(
        writer=StreamWriter(recorder, place, root=offer.root, mode=mode),
        agent=offer.to,
        principal=offer.principal,
        tree_secret=offer.tree_secret,
        baton=offer.baton,
        parent=offer.parent,
        handoff=offer.id,
        attempt=body.attempt,
        lineage=offer.lineage,
        history=offer.history,
    )
    return active, Draft(body), key


def unrecorded(context: Context, parent: ActiveRun, to: str, baton: Baton) -> ActiveRun:
    """Return a run of an observed program whose beginning could not be written: it works, and its parent says so."""
    recorder = context.recorder
    place = Place(stream=recorder.new_id("run"), seq=0, head=recorder.genesis)
    writer = StreamWriter(recorder, place, root=parent.root, mode="observed")
    writer.is_lost = True
    run = ActiveRun(
        writer=writer,
        agent=to,
        principal=parent.principal,
        tree_secret=parent.tree_secret,
        baton=baton,
        parent=parent.id,
        reporter=parent.reporter or parent,
    )
    context.runs[run.id] = run
    return run


def replay(context: Context, handoff: str) -> ActiveRun:
    """Return the attempt that completed a handoff, to be given again. Nothing is written."""
    row = get_handoff(context.recorder.store, handoff)
    if row.state != State.COMPLETED or row.run is None:
        raise NotFoundError(f"{handoff} is {row.state}: only a completed handoff can be replayed")
    run = open_run(context.recorder, row.run, is_replayed=True)
    context.runs[run.id] = run
    return run


def read_offer(context: Context, handoff: str) -> Offer:
    """Return an open offer from the ledger: the process that offered it, or ended its last attempt, may be gone."""
    store = context.recorder.store
    row = get_handoff(store, handoff)
    advance(handoff, row.state, Event.ACCEPT)
    offer = get_receipt(store, row.parent, row.seq)
    hops = read_hops(store, row.parent)
    history = read_attempts(store, row)
    history.earlier, history.items = frozenset(history.finished), ()
    return Offer(
        id=handoff,
        to=row.to,
        parent=row.parent,
        root=row.root,
        anchor=row.last,
        attempt=row.attempt,
        principal=principal_of(hops),
        tree_secret=tree_secret(hops[0].first),
        baton=read_baton(store, hops, offer),
        baton_digest=offer.receipt.content["baton"],
        lineage=read_lineage(hops, offer),
        terms=offer.receipt.content.get("terms"),
        history=history,
    )
