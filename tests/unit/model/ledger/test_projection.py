"""What each kind of receipt changes, and nothing else."""

from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.model.base.ids import AgentId, ContentId, KeyId, PrincipalId, PublicKey, RunId, StreamId
from batonpass.model.base.lifecycle import Carrier, HandoffEvent, State
from batonpass.model.bodies.body import (
    Carried,
    Changed,
    HandoffAccepted,
    HandoffFailed,
    HandoffInitiated,
    Kind,
    Outcome,
    Part,
    RelayEnrolled,
    RunClosed,
    RunRecorded,
    RunStarted,
    ToolCompleted,
    ToolHeld,
    UnknownBody,
)
from batonpass.model.grants.charge import REVOKED, Charge, Unit, part_of
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.projection import (
    NO_BYTES,
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
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.model.ledger.run import Handoff, Run, RunState, Stated
from tests.unit.model.examples import (
    ANA,
    AT,
    BARE,
    BODIES,
    CALL,
    CHARGED,
    CHILD,
    COMMIT,
    CONTENT,
    DECIDED,
    DIGEST,
    EDITOR,
    HANDOFF,
    HEAD,
    LATER,
    NEW_KEY,
    PARENT,
    RECEIPT,
    REF,
    RELAY,
    RELAY_KEY,
    REVIEWER,
    RUN_KEY,
    SESSION,
    TOKEN,
    WORDS,
    a_receipt,
    an_id,
)
from tests.unit.model.row_examples import (
    CACHED,
    DECIDED_CALL,
    HELD_CALL,
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
    series="quarterly",
    session=SESSION,
)
CHILD_RUN = replace(ROOT_RUN, id=CHILD, parent=PARENT, handoff=HANDOFF, agent=EDITOR, series=None)
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
    seq=1,
    scope=StreamId(PARENT),
    key=DIGEST,
    deadline=LATER,
)


def ended(state: RunState, run: RunId = CHILD) -> RunEnded:
    """Return that a run got its last state."""
    return RunEnded(run=run, state=state, at=AT)


def moved(event: HandoffEvent, **parts: Any) -> HandoffMoved:  # noqa: ANN401 - any part of it
    """Return that an event happened to the handoff."""
    return HandoffMoved(handoff=HANDOFF, event=event, **parts)


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


def remark(said: RemarkKind, name: str) -> Remark:
    """Return what the example receipt says about something."""
    return Remark(said=said, name=name, receipt=RECEIPT)


RULED = (remark(RemarkKind.RULED, "user:ana"),)
LEFT = (remark(RemarkKind.TAINTED, DIGEST), remark(RemarkKind.COMMITTED, COMMIT))

EXPECTED: dict[Kind, Projection] = {
    Kind.RUN_STARTED: Projection(run_opened=ROOT_RUN),
    Kind.RUN_REKEYED: Projection(bumps=True),
    Kind.RUN_RECORDED: NOTHING,
    Kind.RUN_RELAXED: NOTHING,
    Kind.RUN_SETTLED: NOTHING,
    Kind.RUN_TAINTED: NOTHING,
    Kind.RUN_ENDORSED: Projection(remarks=(remark(RemarkKind.ENDORSED, CALL),)),
    Kind.RUN_GAP: NOTHING,
    Kind.RUN_ACKNOWLEDGED: NOTHING,
    Kind.SESSION_PRUNED: Projection(remarks=(remark(RemarkKind.PRUNED, PARENT),)),
    Kind.FINDING_ACKNOWLEDGED: Projection(remarks=(remark(RemarkKind.ACKNOWLEDGED, PARENT),)),
    Kind.RUN_SUSPENDED: NOTHING,
    Kind.RUN_SPENT: Projection(charges=(CHARGED,)),
    Kind.RUN_CLOSED: Projection(closes=True, run_ended=ended(RunState.FAILED, PARENT)),
    Kind.CHECKPOINT_SAVED: NOTHING,
    Kind.HANDOFF_INITIATED: Projection(handoff_opened=OFFERED),
    Kind.HANDOFF_CONTEXT_SANITIZED: NOTHING,
    Kind.HANDOFF_ACCEPTED: Projection(
        run_opened=CHILD_RUN,
        handoff_moved=moved(HandoffEvent.ACCEPT, attempt=1, run=CHILD, anchor=DIGEST),
    ),
    Kind.HANDOFF_COMPLETED: Projection(
        closes=True,
        run_ended=ended(RunState.COMPLETED),
        handoff_moved=moved(HandoffEvent.COMPLETE, attempt=1, ends=CHILD),
    ),
    Kind.HANDOFF_FAILED: Projection(
        closes=True,
        run_ended=ended(RunState.FAILED),
        handoff_moved=moved(HandoffEvent.FAIL, attempt=1, ends=CHILD),
    ),
    Kind.HANDOFF_HELD: Projection(
        fences=HEAD,
        run_ended=ended(RunState.SUSPENDED),
        handoff_moved=moved(HandoffEvent.HOLD, attempt=1, ends=CHILD),
    ),
    Kind.HANDOFF_RESUMED: Projection(handoff_moved=moved(HandoffEvent.RESUME, attempt=1)),
    Kind.HANDOFF_PARKED: Projection(handoff_moved=moved(HandoffEvent.PARK, attempt=1)),
    Kind.HANDOFF_BACKED: Projection(proven_by=RELAY_KEY, remarks=RULED),
    Kind.HANDOFF_APPROVED: Projection(handoff_moved=moved(HandoffEvent.APPROVE), proven_by=RELAY_KEY, remarks=RULED),
    Kind.HANDOFF_DENIED: Projection(handoff_moved=moved(HandoffEvent.DENY), proven_by=RELAY_KEY, remarks=RULED),
    Kind.HANDOFF_ASKED: Projection(handoff_moved=moved(HandoffEvent.ASK)),
    Kind.HANDOFF_ANSWERED: Projection(handoff_moved=moved(HandoffEvent.ANSWER)),
    Kind.HANDOFF_DECLINED: Projection(handoff_moved=moved(HandoffEvent.DECLINE)),
    Kind.HANDOFF_LAPSED: Projection(
        fences=HEAD,
        run_ended=ended(RunState.LAPSED),
        handoff_moved=moved(HandoffEvent.LAPSE, attempt=1, ends=CHILD),
    ),
    Kind.HANDOFF_EXPIRED: Projection(
        fences=HEAD,
        run_ended=ended(RunState.EXPIRED),
        handoff_moved=moved(HandoffEvent.EXPIRE, ends=CHILD),
    ),
    Kind.HANDOFF_CANCELLED: Projection(
        fences=HEAD,
        run_ended=ended(RunState.CANCELLED),
        handoff_moved=moved(HandoffEvent.CANCEL, ends=CHILD),
    ),
    Kind.HANDOFF_RETRIED: Projection(handoff_moved=moved(HandoffEvent.RETRY)),
    Kind.HANDOFF_REVISED: NOTHING,
    Kind.HANDOFF_REPLACED: Projection(handoff_moved=moved(HandoffEvent.REPLACE, to=REVIEWER)),
    Kind.HANDOFF_SETTLED: NOTHING,
    Kind.HANDOFF_ENDORSED: Projection(remarks=(remark(RemarkKind.ENDORSED, CALL),)),
    Kind.HANDOFF_LATE: NOTHING,
    Kind.VERIFICATION_PASSED: Projection(handoff_moved=moved(HandoffEvent.VERIFY, attempt=1)),
    Kind.VERIFICATION_FAILED: Projection(
        handoff_moved=moved(HandoffEvent.REFUTE, attempt=1), remarks=(remark(RemarkKind.REFUTED, PARENT),)
    ),
    Kind.VERIFICATION_REPEATED: NOTHING,
    Kind.VERIFICATION_WAIVED: NOTHING,
    Kind.TOOL_REQUESTED: Projection(charges=(CHARGED,)),
    Kind.TOOL_COMPLETED: Projection(cached=CACHED, charges=(CHARGED,), remarks=LEFT),
    Kind.TOOL_FAILED: Projection(remarks=LEFT),
    Kind.TOOL_DENIED: NOTHING,
    Kind.TOOL_CACHED: NOTHING,
    Kind.SESSION_SAVED: NOTHING,
    Kind.SESSION_RESUMED: NOTHING,
    Kind.TOOL_HELD: Projection(call_held=replace(HELD_CALL, run=CHILD)),
    Kind.TOOL_BACKED: Projection(proven_by=RELAY_KEY, remarks=RULED),
    Kind.TOOL_APPROVED: Projection(call_decided=DECIDED_CALL, proven_by=RELAY_KEY, remarks=RULED),
    Kind.TOOL_REFUSED: Projection(
        call_decided=replace(DECIDED_CALL, approved=False), proven_by=RELAY_KEY, remarks=RULED
    ),
    Kind.RELAY_ENROLLED: Projection(key_added=an_enrolled(RUN_KEY)),
    Kind.RELAY_ROTATED: Projection(
        key_added=an_enrolled(NEW_KEY),
        key_changed=KeyChanged(key=digest_of(RUN_KEY), status=KeyStatus.RETIRED),
    ),
    Kind.RELAY_REVOKED: Projection(key_changed=KeyChanged(key=digest_of(RUN_KEY), status=KeyStatus.REVOKED)),
    Kind.APPROVER_ENROLLED: Projection(
        key_added=replace(an_enrolled(RUN_KEY), role=KeyRole.APPROVER, relay=None, principal=ANA)
    ),
    Kind.APPROVER_REVOKED: Projection(key_changed=KeyChanged(key=digest_of(RUN_KEY), status=KeyStatus.REVOKED)),
    Kind.CONTENT_ERASED: Projection(erased=(CONTENT,)),
    Kind.FILE_ENDORSED: Projection(remarks=(remark(RemarkKind.ENDORSED, DIGEST),)),
    **dict.fromkeys(
        (Kind.ALARM_RAISED, Kind.ALARM_ACKNOWLEDGED, Kind.ALARM_CLEARED),
        Projection(remarks=(remark(RemarkKind.ALARM, "editor"),)),
    ),
    Kind.WEBHOOK_CHANGED: NOTHING,
    Kind.TOKEN_ADDED: Projection(remarks=(remark(RemarkKind.TOKEN, TOKEN),)),
    Kind.TOKEN_REVOKED: Projection(remarks=(remark(RemarkKind.TOKEN, TOKEN),)),
    Kind.GRANT_REVOKED: Projection(
        charges=(Charge(account=part_of(StreamId(HANDOFF), REVOKED), unit=Unit.CALLS, amount=1),)
    ),
}


def test_every_kind_has_its_row() -> None:
    """A new kind of receipt says what it changes."""
    assert set(Kind) == set(EXPECTED)


@pytest.mark.parametrize("kind", Kind, ids="what {} changes".format)
def test_a_receipt_changes_exactly_this(kind: Kind) -> None:
    """Each kind changes what the table says and leaves the rest alone."""
    assert EXPECTED[kind] == project(a_receipt(BODIES[kind]), DIGEST)


def test_a_refused_offer_changes_nothing() -> None:
    """A run whose offer a policy refused goes on, and there is no handoff that could have failed."""
    refused = HandoffFailed(
        handoff=HANDOFF, parent=PARENT, run=PARENT, attempt=0, to=REVIEWER, error="handoff.too_deep"
    )

    assert NOTHING == project(a_receipt(refused), DIGEST)


def test_a_kind_of_the_future_changes_nothing() -> None:
    """What cannot be interpreted moves its own stream and nothing else."""
    assert NOTHING == project(a_receipt(UnknownBody("memory.taken")), DIGEST)


@pytest.mark.parametrize("outcome", Outcome, ids="a root run ends {}".format)
def test_a_root_run_ends_as_it_says(outcome: Outcome) -> None:
    """The outcome of a root run is its last state."""
    ended = project(a_receipt(RunClosed(run=PARENT, outcome=outcome)), DIGEST).run_ended

    assert RunEnded(run=PARENT, state=RunState(outcome.value), at=AT) == ended


@pytest.mark.parametrize(
    ("kind", "event"),
    [(Kind.HANDOFF_CANCELLED, HandoffEvent.CANCEL), (Kind.HANDOFF_EXPIRED, HandoffEvent.EXPIRE)],
    ids=["cancelled", "expired"],
)
def test_an_offer_that_nobody_took_ends_no_run(kind: Kind, event: HandoffEvent) -> None:
    """A handoff that nobody works on ends without fencing anything."""
    assert Projection(handoff_moved=moved(event)) == project(a_receipt(BARE[kind]), DIGEST)


def test_the_intent_of_a_root_run_is_stated() -> None:
    """What the human wanted at the start is the first of what they said."""
    change = project(a_receipt(BODIES[Kind.RUN_STARTED], content={"intent": REF, "task": WORDS.ref}), DIGEST)

    assert (Stated(item=REF.id, root=PARENT, digest=REF.digest, by=ANA, at=AT),) == change.stated


def test_what_the_human_says_later_is_stated_too() -> None:
    """Of what a run writes down, only the human's own statements are kept beside the intent, in their order."""
    first, second = (
        Carried(item=ContentId(an_id("content", number)), digest=DIGEST, part=Part.INTENT) for number in (5, 4)
    )
    body = RunRecorded(run=CHILD, by=PrincipalId("user:ben"), items=(first, DECIDED, second))
    change = project(a_receipt(body, stream=StreamId(CHILD)), DIGEST)
    expected = Stated(item=first.item, root=PARENT, digest=DIGEST, by=PrincipalId("user:ben"), at=AT)

    assert Projection(stated=(expected, replace(expected, item=second.item))) == change


def test_only_a_root_names_a_series() -> None:
    """A bare root belongs to no series, and a child never does."""
    assert [None, None] == [
        change.run_opened and change.run_opened.series
        for change in (project(a_receipt(BARE[kind]), DIGEST) for kind in (Kind.RUN_STARTED, Kind.HANDOFF_ACCEPTED))
    ]


def test_a_held_offer_begins_held() -> None:
    """A handoff opens in the state that its receipt says."""
    body = HandoffInitiated(handoff=HANDOFF, run=PARENT, to=EDITOR, carrier=Carrier.WORKER, state=State.HELD)
    held = replace(OFFERED, carrier=Carrier.WORKER, state=State.HELD, seq=7, scope=None, key=None, deadline=None)

    assert held == project(a_receipt(body, seq=7), DIGEST).handoff_opened


def test_a_held_call_of_a_root_waits() -> None:
    """A root has no handoff that could wait, so its call does; any other run's handoff waits instead."""
    body = BODIES[Kind.TOOL_HELD]
    assert isinstance(body, ToolHeld)
    own = a_receipt(replace(body, run=PARENT, stays=False), stream=StreamId(PARENT))
    other = a_receipt(replace(body, stays=False))

    assert (Projection(call_held=HELD_CALL), NOTHING) == (project(own, DIGEST), project(other, DIGEST))


def test_a_second_attempt_opens_a_run_of_that_attempt() -> None:
    """The run of attempt two says that it is the second."""
    body = BODIES[Kind.HANDOFF_ACCEPTED]
    assert isinstance(body, HandoffAccepted)
    change = project(a_receipt(replace(body, attempt=2)), DIGEST)

    assert replace(CHILD_RUN, attempt=2) == change.run_opened
    assert moved(HandoffEvent.ACCEPT, attempt=2, run=CHILD, anchor=DIGEST) == change.handoff_moved


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


def test_an_empty_file_holds_nobodys_words() -> None:
    """All empty files have one digest: that of a tainted run's must not taint them all. Nor does one that is gone."""
    changes = (Changed(change=CONTENT, after=NO_BYTES), Changed(change=ContentId(an_id("content", 2)), before=DIGEST))
    written = ToolCompleted(run=CHILD, call=CALL, changes=changes, taint=(CALL,))

    assert NOTHING == project(a_receipt(written), DIGEST)
