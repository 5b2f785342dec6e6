"""What each kind of receipt changes, and nothing else."""

from dataclasses import replace
from hashlib import sha256

import pytest

from batonpass.model.bodies import (
    HandoffAccepted,
    HandoffCancelled,
    HandoffInitiated,
    Kind,
    Outcome,
    RelayEnrolled,
    RunClosed,
    RunStarted,
    UnknownBody,
)
from batonpass.model.ids import AgentId, KeyId, PublicKey
from batonpass.model.key import Key, KeyRole, KeyStatus
from batonpass.model.lifecycle import Carrier, Event, State
from batonpass.model.projection import (
    NOTHING,
    HandoffMoved,
    KeyChanged,
    Projection,
    RunEnded,
    enrols_itself,
    key_id,
    project,
    root_key,
)
from batonpass.model.run import Handoff, Run, RunState
from tests.unit.model.examples import (
    ANA,
    AT,
    BODIES,
    CHILD,
    CONTENT,
    DIGEST,
    EDITOR,
    HANDOFF,
    HEAD,
    NEW_KEY,
    PARENT,
    RELAY,
    RUN_KEY,
    a_receipt,
)

ROOT_RUN = Run(
    id=PARENT,
    root=PARENT,
    parent=None,
    handoff=None,
    attempt=1,
    agent=AgentId("lead"),
    principal=ANA,
    state=RunState.OPEN,
    started_at=AT,
    ended_at=None,
)
CHILD_RUN = replace(ROOT_RUN, id=CHILD, parent=PARENT, handoff=HANDOFF, agent=EDITOR)
OFFERED = Handoff(
    id=HANDOFF,
    root=PARENT,
    parent=PARENT,
    to=EDITOR,
    carrier=Carrier.CALLER,
    state=State.OFFERED,
    attempt=0,
    run=None,
    initiated=DIGEST,
)


def digest_of(public_key: PublicKey) -> KeyId:
    """Return a key's id, computed independently."""
    return KeyId(sha256(bytes.fromhex(public_key)).hexdigest())


def an_enrolled(public_key: PublicKey) -> Key:
    """Return the relay's key as it is when it was just enrolled."""
    return Key(
        id=digest_of(public_key),
        role=KeyRole.RELAY,
        public_key=public_key,
        relay=RELAY,
        status=KeyStatus.ACTIVE,
    )


EXPECTED: dict[Kind, Projection] = {
    Kind.RUN_STARTED: Projection(run_opened=ROOT_RUN),
    Kind.RUN_REKEYED: Projection(bumps=True),
    Kind.RUN_CLOSED: Projection(closes=True, run_ended=RunEnded(run=PARENT, state=RunState.COMPLETED, at=AT)),
    Kind.HANDOFF_INITIATED: Projection(handoff_opened=OFFERED),
    Kind.HANDOFF_ACCEPTED: Projection(
        run_opened=CHILD_RUN,
        handoff_moved=HandoffMoved(handoff=HANDOFF, event=Event.ACCEPT, attempt=1, run=CHILD),
    ),
    Kind.HANDOFF_COMPLETED: Projection(
        closes=True,
        run_ended=RunEnded(run=CHILD, state=RunState.COMPLETED, at=AT),
        handoff_moved=HandoffMoved(handoff=HANDOFF, event=Event.COMPLETE, attempt=1, ends=CHILD),
    ),
    Kind.HANDOFF_FAILED: Projection(
        closes=True,
        run_ended=RunEnded(run=CHILD, state=RunState.FAILED, at=AT),
        handoff_moved=HandoffMoved(handoff=HANDOFF, event=Event.FAIL, attempt=1, ends=CHILD),
    ),
    Kind.HANDOFF_LAPSED: Projection(
        fences=HEAD,
        run_ended=RunEnded(run=CHILD, state=RunState.LAPSED, at=AT),
        handoff_moved=HandoffMoved(handoff=HANDOFF, event=Event.LAPSE, attempt=1, ends=CHILD),
    ),
    Kind.HANDOFF_CANCELLED: Projection(
        fences=HEAD,
        run_ended=RunEnded(run=CHILD, state=RunState.CANCELLED, at=AT),
        handoff_moved=HandoffMoved(handoff=HANDOFF, event=Event.CANCEL, ends=CHILD),
    ),
    Kind.TOOL_REQUESTED: NOTHING,
    Kind.TOOL_COMPLETED: NOTHING,
    Kind.TOOL_FAILED: NOTHING,
    Kind.RELAY_ENROLLED: Projection(key_added=an_enrolled(RUN_KEY)),
    Kind.RELAY_ROTATED: Projection(
        key_added=an_enrolled(NEW_KEY),
        key_changed=KeyChanged(key=digest_of(RUN_KEY), status=KeyStatus.RETIRED),
    ),
    Kind.RELAY_REVOKED: Projection(key_changed=KeyChanged(key=digest_of(RUN_KEY), status=KeyStatus.REVOKED)),
    Kind.CONTENT_ERASED: Projection(erased=(CONTENT,)),
}


def test_every_kind_has_its_row() -> None:
    """A new kind of receipt says what it changes."""
    assert set(Kind) == set(EXPECTED)


@pytest.mark.parametrize("kind", Kind, ids="what {} changes".format)
def test_a_receipt_changes_exactly_this(kind: Kind) -> None:
    """Each kind changes what the table says and leaves the rest alone."""
    assert EXPECTED[kind] == project(a_receipt(BODIES[kind]), DIGEST)


def test_a_kind_of_the_future_changes_nothing() -> None:
    """What cannot be interpreted moves its own stream and nothing else."""
    assert NOTHING == project(a_receipt(UnknownBody("memory.taken")), DIGEST)


@pytest.mark.parametrize("outcome", Outcome, ids="a root run ends {}".format)
def test_a_root_run_ends_as_it_says(outcome: Outcome) -> None:
    """The outcome of a root run is its last state."""
    ended = project(a_receipt(RunClosed(run=PARENT, outcome=outcome)), DIGEST).run_ended

    assert RunEnded(run=PARENT, state=RunState(outcome.value), at=AT) == ended


def test_a_cancelled_offer_ends_no_run() -> None:
    """A handoff that nobody took yet is cancelled without fencing anything."""
    change = project(a_receipt(HandoffCancelled(handoff=HANDOFF, by=ANA)), DIGEST)

    assert Projection(handoff_moved=HandoffMoved(handoff=HANDOFF, event=Event.CANCEL)) == change


def test_a_held_offer_begins_held() -> None:
    """A handoff opens in the state that its receipt says."""
    body = HandoffInitiated(handoff=HANDOFF, run=PARENT, to=EDITOR, carrier=Carrier.WORKER, state=State.HELD)

    assert replace(OFFERED, carrier=Carrier.WORKER, state=State.HELD) == (
        project(a_receipt(body), DIGEST).handoff_opened
    )


def test_a_second_attempt_opens_a_run_of_that_attempt() -> None:
    """The run of attempt two says that it is the second."""
    body = BODIES[Kind.HANDOFF_ACCEPTED]
    assert isinstance(body, HandoffAccepted)
    change = project(a_receipt(replace(body, attempt=2)), DIGEST)

    assert replace(CHILD_RUN, attempt=2) == change.run_opened
    assert HandoffMoved(handoff=HANDOFF, event=Event.ACCEPT, attempt=2, run=CHILD) == change.handoff_moved


def test_the_root_key_is_an_active_key_of_no_relay() -> None:
    """A ledger's root key is known from the start."""
    expected = Key(
        id=digest_of(RUN_KEY),
        role=KeyRole.ROOT,
        public_key=RUN_KEY,
        relay=None,
        status=KeyStatus.ACTIVE,
    )

    assert expected == root_key(RUN_KEY)


@pytest.mark.parametrize(
    ("body", "relay_key", "itself"),
    [
        pytest.param(RelayEnrolled(relay=RELAY, public_key=RUN_KEY), RUN_KEY, True, id="its own key"),
        pytest.param(RelayEnrolled(relay=RELAY, public_key=NEW_KEY), RUN_KEY, False, id="another relay's key"),
        pytest.param(BODIES[Kind.RELAY_ROTATED], NEW_KEY, False, id="a rotation to the recording key"),
        pytest.param(
            RunStarted(run=PARENT, agent=EDITOR, principal=ANA, run_key=RUN_KEY),
            RUN_KEY,
            False,
            id="a run with the relay's key",
        ),
    ],
)
def test_only_an_enrolment_of_the_recording_key_enrols_itself(
    body: RelayEnrolled | RunStarted,
    relay_key: PublicKey,
    itself: bool,  # noqa: FBT001
) -> None:
    """The one receipt that may be recorded by a key that is not enrolled yet is the one that enrols it."""
    assert itself == enrols_itself(a_receipt(body, relay_key=key_id(relay_key)))
