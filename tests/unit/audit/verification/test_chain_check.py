"""Links between streams: what a receipt says of parents, children, calls and keys is what their own receipts say."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import UnlinkedError
from batonpass.ledger.position import Working
from batonpass.model.base.ids import HandoffId, RunId, StreamId, new_call_id, new_handoff_id, new_relay_id, new_run_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    ChildHead,
    HandoffAccepted,
    HandoffCancelled,
    HandoffInitiated,
    HandoffLapsed,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunClosed,
    RunStarted,
    ToolCompleted,
    ToolRequested,
)
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.testing.clock import NOON
from tests.unit.audit.forging import Forger
from tests.unit.model.examples import ANA, DIGEST, EDITOR

FRESH = Ed25519Signer(b"f" * 32)


def rewrite(forger: Forger, name: str, seq: int, **changed: Any) -> None:  # noqa: ANN401 - any field of a body
    """Change what the body of a receipt says, and sign it again."""
    forger.resign(name, seq, body=replace(forger.receipt(name, seq).body, **changed))


def head_of(forger: Forger, working: Working) -> ChildHead:
    stream = forger.tables.streams[StreamId(working.run.id)]
    return ChildHead(run=working.run.id, seq=stream.seq, head=stream.head)


def a_workers_attempt(forger: Forger) -> tuple[HandoffId, Working]:
    """Return a handoff that a worker has taken, and its run."""
    lead = forger.scribe.start()
    handoff = forger.scribe.recording.offer(lead, EDITOR, "edit", carrier=Carrier.WORKER)
    return handoff, forger.scribe.recording.accept(handoff)


def lists_another_head(forger: Forger) -> None:
    listed = replace(head_of(forger, forger.child), head=DIGEST)
    rewrite(forger, "lead", 3, children=(listed,))


def lists_a_later_head(forger: Forger) -> None:
    listed = replace(head_of(forger, forger.child), seq=5)
    rewrite(forger, "lead", 3, children=(listed,))


def lists_a_stranger(forger: Forger) -> None:
    rewrite(forger, "lead", 3, children=(ChildHead(run=new_run_id(NOON), seq=1, head=DIGEST),))


def lists_itself(forger: Forger) -> None:
    first = forger.receipt("lead", 2).previous
    rewrite(forger, "lead", 3, children=(ChildHead(run=forger.lead.run.id, seq=1, head=first),))


def cut_and_closed(forger: Forger) -> None:
    """Cut the tail of a child: its parent's close-out lists what is gone."""
    forger.remove("child", 4, renumber=True)


def takes_a_handoff_in_the_middle(forger: Forger, handoff: HandoffId) -> None:
    """Begin an attempt in a run that has begun already."""
    lead = forger.scribe.start()
    body = HandoffAccepted(
        handoff=handoff,
        parent=forger.lead.run.id,
        run=lead.run.id,
        attempt=1,
        agent=EDITOR,
        principal=ANA,
        run_key=FRESH.public_key,
    )
    forger.add(lead.run.id, body, cosigner=FRESH)


def takes_what_another_runs(forger: Forger) -> None:
    """Accept a handoff that somebody is working on."""
    handoff, first = a_workers_attempt(forger)
    run = new_run_id(NOON)
    key = forger.keys.new()
    forger.keys.keep(run, 1, key)
    body = HandoffAccepted(
        handoff=handoff,
        parent=first.run.parent or RunId(""),
        run=run,
        attempt=2,
        agent=EDITOR,
        principal=ANA,
        run_key=key.public_key,
    )
    initiated = forger.tables.handoffs[handoff].initiated
    forger.add(run, body, root=first.run.root, anchor=initiated)


def lapses_anothers_run(forger: Forger) -> None:
    """End an attempt by naming the run of another handoff."""
    handoff, first = a_workers_attempt(forger)
    _, other = a_workers_attempt(forger)
    body = HandoffLapsed(handoff=handoff, attempt=1, ended=head_of(forger, other))
    forger.add(handoff, body, root=first.run.root, anchor=forger.tables.handoffs[handoff].initiated)


def lapses_where_it_never_stood(forger: Forger) -> None:
    """End an attempt at a head that it never had."""
    handoff, first = a_workers_attempt(forger)
    body = HandoffLapsed(handoff=handoff, attempt=1, ended=replace(head_of(forger, first), head=DIGEST))
    forger.add(handoff, body, root=first.run.root, anchor=forger.tables.handoffs[handoff].initiated)


def cancels_a_running_handoff_without_its_run(forger: Forger) -> None:
    """Cancel, and let the run go on."""
    handoff, first = a_workers_attempt(forger)
    body = HandoffCancelled(handoff=handoff, by=ANA)
    forger.add(handoff, body, root=first.run.root, anchor=forger.tables.handoffs[handoff].initiated)


def offers_twice(forger: Forger) -> None:
    """Offer a handoff under an id that is taken."""
    lead = forger.scribe.start()
    body = HandoffInitiated(
        handoff=forger.handoff,
        run=lead.run.id,
        to=EDITOR,
        carrier=Carrier.CALLER,
        state=State.OFFERED,
    )
    forger.add(lead.run.id, body)


def begins_twice(forger: Forger) -> None:
    """Begin a run that has begun."""
    lead = forger.scribe.start()
    forger.add(
        lead.run.id,
        RunStarted(run=lead.run.id, agent=EDITOR, principal=ANA, run_key=FRESH.public_key),
        cosigner=FRESH,
    )


def begins_without_a_beginning(forger: Forger) -> None:
    """Begin a run's stream with a call."""
    run = new_run_id(NOON)
    forger.keys.keep(run, 1, forger.keys.new())
    anchor = forger.receipt("lead", 1).previous
    forger.add(run, ToolRequested(run=run, call=new_call_id(NOON), tool="t"), root=run, anchor=anchor)


def acts_on_an_unknown_handoff(forger: Forger) -> None:
    """Begin the stream of a handoff that nobody offered."""
    handoff = new_handoff_id(NOON)
    forger.add(handoff, HandoffCancelled(handoff=handoff, by=ANA), root=forger.lead.run.id, anchor=DIGEST)


def answers_twice(forger: Forger) -> None:
    """Give a call a second outcome."""
    lead = forger.scribe.start()
    call = forger.scribe.recording.request(lead, "t", "{}")
    forger.scribe.recording.finish(lead, call, "first")
    forger.add(lead.run.id, ToolCompleted(run=lead.run.id, call=call))


def enrols_twice(forger: Forger) -> None:
    """Enrol a key that is enrolled."""
    public_key = forger.scribe.identity.signer.public_key
    forger.add("relay", RelayEnrolled(relay=new_relay_id(NOON), public_key=public_key))


def rotates_anothers_key(forger: Forger) -> None:
    """Retire a key in the name of a relay whose key it is not."""
    old = forger.scribe.identity.signer.public_key
    forger.add("relay", RelayRotated(relay=new_relay_id(NOON), old_key=old, public_key=FRESH.public_key))


def revokes_an_unknown_key(forger: Forger) -> None:
    """Revoke a key that was never enrolled."""
    forger.add("relay", RelayRevoked(relay=forger.scribe.identity.id, public_key=FRESH.public_key))


CASES: dict[str, tuple[Callable[[Forger], object], str, int, str | None]] = {
    "a relay's stream begins elsewhere": (lambda f: f.resign("relay", 1, previous=DIGEST), "relay", 1, "previous"),
    "a root run begins elsewhere": (lambda f: f.resign("lead", 1, previous=DIGEST), "lead", 1, "previous"),
    "a root run has another root": (lambda f: f.resign("lead", 1, root=f.child.run.id), "lead", 1, "root"),
    "a child begins elsewhere": (lambda f: f.resign("child", 1, previous=DIGEST), "child", 1, "previous"),
    "a child names another root": (lambda f: f.resign("child", 1, root=f.child.run.id), "child", 1, "root"),
    "a later receipt names another root": (lambda f: f.resign("child", 2, root=f.child.run.id), "child", 2, "root"),
    "a child of an unknown handoff": (
        lambda f: rewrite(f, "child", 1, handoff=new_handoff_id(NOON)),
        "child",
        1,
        "handoff",
    ),
    "a child of another parent": (lambda f: rewrite(f, "child", 1, parent=f.child.run.id), "child", 1, "parent"),
    "a child of another agent": (lambda f: rewrite(f, "child", 1, agent="reviewer"), "child", 1, "agent"),
    "a child for another principal": (
        lambda f: rewrite(f, "child", 1, principal="user:eve"),
        "child",
        1,
        "principal",
    ),
    "a child of a later attempt": (lambda f: rewrite(f, "child", 1, attempt=2), "child", 1, None),
    "an outcome of a call that nobody made": (
        lambda f: rewrite(f, "child", 3, call=new_call_id(NOON)),
        "child",
        3,
        "call",
    ),
    "a second outcome of a call": (answers_twice, "last", 4, "call"),
    "a close-out of another attempt": (lambda f: rewrite(f, "child", 4, attempt=2), "child", 4, "handoff"),
    "a close-out of another handoff": (
        lambda f: rewrite(f, "child", 4, handoff=new_handoff_id(NOON)),
        "child",
        4,
        "handoff",
    ),
    "a close-out with another head": (lists_another_head, "lead", 3, "children"),
    "a close-out with a later head": (lists_a_later_head, "lead", 3, "children"),
    "a close-out with a stranger": (lists_a_stranger, "lead", 3, "children"),
    "a close-out with itself": (lists_itself, "lead", 3, "children"),
    "a child whose tail was cut": (cut_and_closed, "lead", 3, "children"),
    "an unknown handoff, taken in the middle of a run": (
        lambda f: takes_a_handoff_in_the_middle(f, new_handoff_id(NOON)),
        "last",
        2,
        "handoff",
    ),
    "a known handoff, taken in the middle of a run": (
        lambda f: takes_a_handoff_in_the_middle(f, f.handoff),
        "last",
        2,
        None,
    ),
    "a handoff taken twice": (takes_what_another_runs, "last", 1, None),
    "a lapse of another handoff's run": (lapses_anothers_run, "last", 1, None),
    "a lapse where the run never stood": (lapses_where_it_never_stood, "last", 1, None),
    "a cancellation that spares the run": (cancels_a_running_handoff_without_its_run, "last", 1, None),
    "a handoff offered twice": (offers_twice, "last", 2, None),
    "a run begun twice": (begins_twice, "last", 2, None),
    "a run begun with a call": (begins_without_a_beginning, "last", 1, "handoff"),
    "the stream of an unknown handoff": (acts_on_an_unknown_handoff, "last", 1, "handoff"),
    "a key enrolled twice": (enrols_twice, "relay", 2, None),
    "a rotation of another relay's key": (rotates_anothers_key, "relay", 2, "relay"),
    "a revocation of an unknown key": (revokes_an_unknown_key, "relay", 2, "relay"),
}


@pytest.mark.parametrize(("act", "stream", "seq", "field"), CASES.values(), ids=CASES.keys())
def test_what_does_not_fit_together_is_found(
    act: Callable[[Forger], object],
    stream: str,
    seq: int,
    field: str | None,
) -> None:
    """With good signatures and whole chains, a receipt that contradicts another is named."""
    forger = Forger()
    act(forger)

    with pytest.raises(UnlinkedError) as found:
        verify_ledger(forger.store)

    place = forger.tables.receipts[-1].stream if stream == "last" else forger.stream(stream)
    assert (place, seq, field) == (found.value.stream, found.value.seq, found.value.field)


def test_a_close_out_may_list_children_that_went_on() -> None:
    """A child that outlives its parent is proven up to where it stood."""
    forger = Forger()
    lead = forger.scribe.start()
    child = forger.scribe.delegate(lead)
    forger.scribe.recording.close(lead)
    forger.scribe.call(child)

    assert 4 == verify_ledger(forger.store).runs


def test_the_root_proves_the_tree() -> None:
    """Whoever replaces anything below a close-out changes what the close-out lists."""
    forger = Forger()
    closed = forger.receipt("lead", 3).body

    assert isinstance(closed, RunClosed)
    assert (head_of(forger, forger.child),) == closed.children
