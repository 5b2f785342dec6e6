"""Decisions that are proven: who may decide, what their key signs, and what goes on because of it."""

from hashlib import sha256

import pytest
from msgspec.structs import replace

from batonpass import Brief, Constraint, Exclusion
from batonpass.errors import (
    CallDecidedError,
    CallDeniedError,
    CallSuspendedError,
    HandoffEndedError,
    HoldChangedError,
    IllegalTransitionError,
    InvalidValueError,
    KeyMissingError,
    KeyRefusedError,
    NotApproverError,
    NotFoundError,
    UnknownApproverError,
    UnprovenError,
)
from batonpass.handoff.history.holds import is_proven
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.live.held_call import LiveCall
from batonpass.handoff.runtime.shown_sheets import Showings
from batonpass.model.base.ids import CallId, PrincipalId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Gate
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.records.hold import find_hold, get_held_call
from batonpass.relay import Relay, desk_of
from batonpass.signing.approver_key import Approver
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.memory import MemoryStore
from tests.unit.handoff.approvers import ANA, BEN, Desk, a_desk, an_approver, deploy, ship
from tests.unit.handoff.places import bodies, kinds

UNASKED = Policy(enforce=True)


def held(desk: Desk, what: str) -> LiveHandoff:
    """Return a handoff that waits, at its offer or before a call."""
    return desk.held_handoff() if what == "at its offer" else desk.held_attempt()


def waits(desk: Desk, what: str, name: str = "one") -> LiveHandoff | LiveCall:
    """Return something that waits: a handoff, or a call of a root; another one for another name."""
    if what == "of a root":
        return desk.relay.held_call(desk.held_call(name))
    return desk.held_handoff(name) if what == "at its offer" else desk.held_attempt(name)


@pytest.mark.parametrize("what", ["at its offer", "before a call"])
def test_a_proven_approval_is_signed_and_verifies(what: str) -> None:
    """Key, signature, what was shown and for how long are in the receipt; the verifier and the relay agree."""
    desk = a_desk()
    handoff = held(desk, what)
    shown = handoff.material()
    with desk.store.view() as view:
        hold = find_hold(view, handoff.info())
    handoff.approve(by=desk.ana, reason="fine", shown=shown, looked_ms=1200)
    (approved,) = bodies(desk.relay, "handoff.approved")
    with desk.store.view() as view:
        assert hold is not None
        proven = is_proven(view, hold, approved)

    assert (desk.ana.signer.key, sha256(shown.text.encode()).hexdigest(), 1200, True) == (
        approved.proof.key,
        approved.shown,
        approved.looked_ms,
        proven,
    )
    assert State.OFFERED is handoff.state()
    desk.relay.verify()


@pytest.mark.parametrize("what", ["at its offer", "before a call"])
def test_a_handoff_goes_on_after_a_proven_approval(what: str) -> None:
    """The next attempt begins, and makes the call that was approved."""
    desk = a_desk()
    handoff = held(desk, what)
    handoff.approve(by=desk.ana)

    if what == "at its offer":
        with handoff as mailer:
            mailer.report("told")
    assert State.COMPLETED is handoff.wait().state


@pytest.mark.parametrize("what", ["at its offer", "before a call"])
def test_where_a_proof_is_asked_for_nothing_else_will_do(what: str) -> None:
    """A name alone is refused with what to do; nothing is recorded, and a denial needs no proof."""
    desk = a_desk()
    handoff = held(desk, what)

    with pytest.raises(UnprovenError, match="batonpass approver add user:ana"):
        handoff.approve(by=ANA, shown=handoff.material(), looked_ms=1)
    assert (State.HELD, []) == (handoff.state(), bodies(desk.relay, "handoff.approved"))
    handoff.deny(by=ANA, reason="no")
    assert State.DENIED is handoff.state()
    desk.relay.verify()


@pytest.mark.parametrize("what", ["at its offer", "before a call"])
def test_a_policy_can_do_without_proofs(what: str) -> None:
    """Although Ana has a key, her name is enough where the file says so; that nothing proves it is recorded."""
    desk = a_desk(Policy(enforce=True, proven=False))
    handoff = held(desk, what)
    handoff.approve(by=ANA)

    assert [(False, ("approval.unproven",))] == [
        (body.proven, body.flags) for body in bodies(desk.relay, "handoff.approved")
    ]
    desk.relay.verify()


@pytest.mark.parametrize("what", ["at its offer", "before a call"])
def test_once_somebody_has_a_key_it_takes_a_key(what: str) -> None:
    """Nothing in the file says so: that an approver is enrolled does, and the hold itself records it."""
    desk = a_desk(UNASKED)
    handoff = held(desk, what)
    with pytest.raises(UnprovenError):
        handoff.approve(by=ANA)
    assert handoff.material().proven
    handoff.approve(by=desk.ana)

    assert [(True, ())] == [(body.proven, body.flags) for body in bodies(desk.relay, "handoff.approved")]


@pytest.mark.parametrize("what", ["at its offer", "before a call", "of a root"])
def test_before_anybody_has_a_key_a_name_is_enough_and_flagged(what: str) -> None:
    """A hold from before takes a key from the moment somebody has one, although its receipt does not say so."""
    desk = a_desk(UNASKED)
    desk.relay.admin.revoke_approver(ANA, reason="to begin with nobody")
    waiting = [waits(desk, what, each) for each in ("one", "two")]
    waiting[0].approve(by=ANA)
    ana = an_approver(desk.relay)
    with pytest.raises(UnprovenError):
        waiting[1].approve(by=ANA)
    assert waiting[1].material().proven
    waiting[1].approve(by=ana)

    kind = "tool.approved" if what == "of a root" else "handoff.approved"
    assert [("approval.unproven",), ()] == [body.flags for body in bodies(desk.relay, kind)]
    desk.relay.verify()


@pytest.mark.parametrize("by", ["service:nightly", "bot:deploy", "cron:user", "agent:lead"])
@pytest.mark.parametrize("what", ["at its offer", "before a call", "of a root"])
def test_nobody_but_a_person_approves(by: str, what: str) -> None:
    """A service, a bot, or whatever else can be named is no person, and not asked for a proof first."""
    rule = Rule(name="mail", on=Subject.HANDOFF, gate=Gate.APPROVE, agent="mailer")
    desk = a_desk(Policy(enforce=True, proven=False, rules=(rule,)))
    waiting = waits(desk, what)

    with pytest.raises(NotApproverError, match="needs a person"):
        waiting.approve(by=by)
    waiting.deny(by=by, reason="whoever it is may stop it")


@pytest.mark.parametrize(
    ("by", "asked_by", "may"),
    [
        ("service:nightly", "service:nightly", True),
        ("service:other", "service:nightly", False),
        ("bot:deploy", ANA, False),
        ("agent:lead", ANA, True),
        ("agent:shipper", ANA, False),
        (BEN, ANA, True),
    ],
)
def test_whoever_asked_for_it_confirms_or_a_person(by: str, asked_by: str, may: bool) -> None:  # noqa: FBT001
    """A service confirms what is done in its own name, and nothing else."""
    rule = Rule(name="ask", on=Subject.CALL, gate=Gate.CONFIRM, tool="deploy")
    relay = Relay(MemoryStore(), policy=Policy(enforce=True, rules=(rule,)))
    handoff = relay.start("Ship it", by=asked_by).hand_off("shipper", "Ship it", criteria=["it answers"], run=ship)
    handoff.wait()
    if not may:
        with pytest.raises(NotApproverError, match="whoever asked for it"):
            handoff.approve(by=by)
    else:
        handoff.approve(by=by)

    assert (State.COMPLETED if may else State.HELD) is handoff.wait().state
    assert may is (not any(body.flags for body in bodies(relay, "handoff.approved")) and may)
    relay.verify()


@pytest.mark.parametrize("principal", ["service:nightly", "bot:deploy", "agent:shipper"])
def test_only_a_person_has_a_key_to_approve_with(principal: str) -> None:
    """A key of a service would open what takes a person."""
    desk = a_desk()
    with pytest.raises(InvalidValueError, match="is no person"):
        desk.relay.admin.enroll_approver(principal, Ed25519Signer.generate().public_key)


class Ticks:
    """A clock that goes on only when it is told to, in nanoseconds."""

    def __init__(self) -> None:
        self.now = 5_000_000_000

    def __call__(self) -> int:
        """Return what it shows."""
        return self.now


@pytest.mark.parametrize("what", ["at its offer", "before a call", "of a root"])
def test_the_relay_measures_how_long_somebody_looked(what: str) -> None:
    """From the moment it showed what is to be decided; what the client says is kept beside it, as a claim."""
    desk = a_desk()
    ticks = desk_of(desk.relay).showings.clock = Ticks()
    waiting = waits(desk, what)
    shown = waiting.material()
    ticks.now += 40_000_000_000
    shown = waiting.material()
    ticks.now += 1_250_999_999
    waiting.approve(by=desk.ana, shown=shown, looked_ms=3_600_000)

    kind = "tool.approved" if what == "of a root" else "handoff.approved"
    assert [(1250, 3_600_000)] == [(body.measured_ms, body.looked_ms) for body in bodies(desk.relay, kind)]
    desk.relay.verify()


def test_what_another_relay_showed_is_only_claimed() -> None:
    """A page in another process shows it: this one cannot know how long, and does not say so."""
    desk = a_desk()
    one, two, three = desk.held_handoff("one"), desk.held_handoff("two"), desk.held_handoff("three")
    elsewhere = one.material()
    desk_of(desk.relay).showings = Showings()  # this process has shown nothing yet
    one.approve(by=desk.ana, shown=elsewhere, looked_ms=7)
    two.approve(by=desk.ana)
    changed = replace(three.material(), text="Water the plants?")
    three.approve(by=desk.ana, shown=changed, looked_ms=9)

    assert [(None, 7), (None, None), (None, 9)] == [
        (body.measured_ms, body.looked_ms) for body in bodies(desk.relay, "handoff.approved")
    ]


def test_a_confirmation_takes_no_key() -> None:
    """Whoever asked for it may be an agent, and no agent has a key."""
    rule = Rule(name="ask-the-lead", on=Subject.CALL, gate=Gate.CONFIRM, tool="deploy")
    desk = a_desk(Policy(enforce=True, proven=True, rules=(rule,)))
    handoff = desk.held_attempt()
    handoff.approve(by="agent:lead")

    assert State.COMPLETED is handoff.wait().state


def test_an_old_hold_is_held_to_the_policy_of_today() -> None:
    """A policy that came to ask for a proof after the hold began is heeded all the same."""
    desk = a_desk(Policy(enforce=True, proven=False))
    handoff = desk.held_handoff()
    desk_of(desk.relay).gates = Policy(enforce=True, proven=True)

    with pytest.raises(UnprovenError):
        handoff.approve(by=ANA)


def test_no_agent_approves_even_with_a_key_of_its_own() -> None:
    """By kind it is refused, whatever signs; and no key is enrolled for one."""
    desk = a_desk()
    handoff = desk.held_handoff()
    agent = Approver(PrincipalId("agent:shipper"), Ed25519Signer.generate())

    with pytest.raises((NotApproverError, KeyRefusedError)):
        handoff.approve(by=agent)
    with pytest.raises(InvalidValueError, match="is no person, and only people approve"):
        desk.relay.admin.enroll_approver("agent:shipper", agent.signer.public_key)


def test_the_key_of_a_run_or_a_relay_is_no_approver_s() -> None:
    """What signs where agents work proves nothing about a person."""
    desk = a_desk()
    handoff = desk.held_handoff()
    _, relay_key = desk.relay.admin.identity()
    run_signer, _ = desk.relay._run_keys.get(desk.lead.id)

    with pytest.raises(KeyRefusedError, match="not enrolled"):
        handoff.approve(by=Approver(ANA, run_signer))
    with pytest.raises(KeyRefusedError, match="known here"):
        desk.relay.admin.enroll_approver("user:eve", relay_key)


def test_the_key_of_another_person_proves_nothing() -> None:
    """Whose a key is, the ledger says, and not whoever uses it."""
    desk = a_desk()
    ben = an_approver(desk.relay, BEN)
    handoff = desk.held_handoff()

    with pytest.raises(KeyRefusedError, match="not enrolled"):
        handoff.approve(by=Approver(ANA, ben.signer))
    handoff.approve(by=ben)
    assert [BEN] == [body.by for body in bodies(desk.relay, "handoff.approved")]


def test_a_revoked_key_decides_nothing_more() -> None:
    """Also one that is revoked between the look and the commit: the store asks again."""
    desk = a_desk()
    one, two = desk.held_handoff("one"), desk.held_handoff("two")
    one.approve(by=desk.ana)
    desk.relay.admin.revoke_approver(ANA, reason="lost")

    with pytest.raises(KeyRefusedError, match="revoked"):
        two.approve(by=desk.ana)
    (signed,) = bodies(desk.relay, "handoff.approved")
    with pytest.raises(UnknownApproverError):
        desk_of(desk.relay).recording.act(two.id, lambda known, _: replace(signed, handoff=known.id))
    desk.relay.verify()


def test_a_second_key_needs_the_first_to_be_revoked() -> None:
    """Nobody gets another key beside one that somebody watches over; revoking what is not there is said."""
    desk = a_desk()
    with pytest.raises(KeyRefusedError, match="has an approver's key here already"):
        an_approver(desk.relay)
    desk.relay.admin.revoke_approver(ANA, reason="new laptop")
    an_approver(desk.relay)
    with pytest.raises(KeyMissingError, match="has no active approver's key"):
        desk.relay.admin.revoke_approver(BEN, reason="none")


def test_what_was_shown_must_be_what_waits() -> None:
    """A hold that ended and began again is another one: whoever read the first has not decided about the second."""
    desk = a_desk()
    handoff = desk.held_attempt()
    read = handoff.material()
    handoff.approve(by=desk.ana)
    places = iter(["staging"])
    handoff.run(lambda run: run.call(deploy, next(places)))
    assert State.HELD is handoff.state()

    with pytest.raises(HoldChangedError):
        handoff.approve(by=desk.ana, shown=read)
    assert State.HELD is handoff.state()


def test_what_does_not_wait_is_not_decided_about() -> None:
    """The second of two gets a sentence, and the first decision stands."""
    desk = a_desk()
    handoff = desk.held_handoff()
    handoff.approve(by=desk.ana)

    with pytest.raises(IllegalTransitionError):
        handoff.approve(by=desk.ana)
    with pytest.raises(IllegalTransitionError):
        handoff.deny(by=desk.ana, reason="no")
    with pytest.raises(HandoffEndedError):
        handoff.material()
    assert 1 == len(bodies(desk.relay, "handoff.approved"))


def test_a_signer_that_answers_with_anything_is_found_out() -> None:
    """A key on a device may be broken: what it signed is checked before it is recorded."""

    class Broken(Ed25519Signer):
        def sign(self, message: bytes) -> bytes:
            return bytes(64)[: len(message)]

    desk = a_desk()
    signer = Broken.generate()
    desk.relay.admin.enroll_approver(BEN, signer.public_key)
    handoff = desk.held_handoff()

    with pytest.raises(KeyRefusedError, match="not about this ruling"):
        handoff.approve(by=Approver(BEN, Broken(signer.seed)))
    assert State.HELD is handoff.state()


def test_an_approver_shows_no_secret() -> None:
    """What is printed of it names the person and no key."""
    assert "seed" not in repr(Approver(ANA, Ed25519Signer.generate()))
    assert "Approver(principal='user:ana')" == repr(Approver(ANA, Ed25519Signer.generate()))


def test_a_root_s_call_is_let_be_made_by_anybody_who_may() -> None:
    """Once, for good, and only that call; the same one is not held twice meanwhile."""
    desk = a_desk()
    call = desk.held_call()
    assert call == desk.held_call()
    with pytest.raises(UnprovenError):
        desk.relay.held_call(call).approve(by=ANA)
    with pytest.raises(NotApproverError):
        desk.relay.held_call(call).approve(by="agent:lead")
    live = desk.relay.held_call(call)
    live.approve(by=desk.ana, shown=live.material(), looked_ms=7)

    assert "deployed prod" == desk.lead.call(deploy, "prod")
    assert call != desk.held_call("staging")
    with pytest.raises(CallDecidedError, match="user:ana has already approved"):
        desk.relay.held_call(call).deny(by=desk.ana, reason="late")
    assert 2 == kinds(desk.relay).count("tool.held")
    desk.relay.verify()


def test_a_refused_call_of_a_root_stays_refused() -> None:
    """Also for a process that resumes the root."""
    desk = a_desk()
    call = desk.held_call()
    desk.relay.held_call(call).deny(by=desk.ana, reason="never")
    resumed = desk.relay.resume(desk.lead.id)

    for _ in range(2):
        with pytest.raises(CallDeniedError, match="user:ana denied deploy"):
            resumed.call(deploy, "prod")
    assert ["tier.irreversible"] * 2 == [body.rule for body in bodies(desk.relay, "tool.denied")]


def test_a_root_that_was_resumed_goes_on_with_what_was_let_be_made() -> None:
    """The decision came before it was resumed, or after: both are seen."""
    desk = a_desk()
    before, after = desk.held_call("prod"), desk.held_call("staging")
    desk.relay.held_call(before).approve(by=desk.ana)
    resumed = desk.relay.resume(desk.lead.id)
    desk.relay.held_call(after).approve(by=desk.ana)

    assert ["deployed prod", "deployed staging"] == [resumed.call(deploy, place) for place in ("prod", "staging")]


def test_a_call_of_a_root_that_is_over_is_not_decided_about() -> None:
    """Nobody would heed it; and what was never held cannot be decided about."""
    desk = a_desk()
    call = desk.held_call()
    desk.lead.close()

    with pytest.raises(HandoffEndedError):
        desk.relay.held_call(call).approve(by=desk.ana)
    with pytest.raises(NotFoundError):
        desk.relay.held_call(CallId("call_" + "0" * 26))


def test_a_root_does_not_believe_a_decision_whose_proof_is_another_s() -> None:
    """Somebody who can write receipts, and has no approver's key, takes a proof from elsewhere: the root waits."""
    desk = a_desk()
    one, two = desk.held_call("prod"), desk.held_call("staging")
    desk.relay.held_call(one).approve(by=desk.ana)
    (good,) = bodies(desk.relay, "tool.approved")
    desk_of(desk.relay).recording.note(replace(good, call=two))

    with pytest.raises(UnprovenError):
        desk.lead.call(deploy, "staging")


def test_an_attempt_does_not_believe_an_approval_whose_proof_is_another_s() -> None:
    """At its offer it is not begun, and before a call it is held again."""
    desk = a_desk()
    one, two, third = desk.held_handoff("one"), desk.held_handoff("two"), desk.held_attempt()
    one.approve(by=desk.ana)
    (good,) = bodies(desk.relay, "handoff.approved")
    for known in (two, third):
        desk_of(desk.relay).recording.act(known.id, lambda found, _: replace(good, handoff=found.id))

    with pytest.raises(UnprovenError):
        two.accept()
    assert State.HELD is third.wait().state


def test_material_names_everything_once() -> None:
    """Of a handoff: the task, to whom, who asks for whom, and the gate; the same text every time."""
    desk = a_desk()
    handoff = desk.lead.hand_off(
        "mailer",
        "Tell everybody",
        hold=True,
        may=["mail:**"],
        brief=Brief(expects=["outbox"], rationale="they wait"),
        items=[Constraint("no attachments"), Exclusion("the press")],
    )
    text = handoff.material().text

    for part in (
        "task      Tell everybody",
        "to        mailer · lead-to-worker",
        f"asked by  lead {desk.lead.id[-4:]} ← user:ana",
        "who wants Ship the release",
        "gate      held by whoever handed it off · a person has to approve it with their key",
        "if yes    the handoff may begin, within 1 day",
        "if no     the handoff ends here",
        "bound by  no attachments · nothing checks it",
        "excluded  the press",
        "may       mail:**",
        "changes   outbox",
        "rationale they wait",
        handoff.id,
    ):
        assert part in text
    assert text == handoff.material().text


def test_material_is_uncut() -> None:
    """A task of a megabyte is shown as it is: the end is where somebody would hide something."""
    desk = a_desk()
    handoff = desk.held_handoff("\n".join([*["x" * 1000] * 1000, "and pay the bill"]))
    text = handoff.material().text

    assert (1000, True) == (text.count("x" * 1000), "and pay the bill" in text)


def test_a_held_call_is_read_back() -> None:
    """By its id, with what it waits for."""
    desk = a_desk()
    call = desk.held_call()
    with desk.store.view() as view:
        hold, receipt = get_held_call(view, call)

    assert (call, desk.lead.id, Gate.APPROVE, True, "tool.held") == (
        hold.call,
        hold.run,
        hold.gate,
        hold.proven,
        receipt.kind,
    )


def test_a_call_nobody_decided_about_stays_suspended() -> None:
    """However often the root asks."""
    desk = a_desk()
    desk.held_call()

    with pytest.raises(CallSuspendedError, match="batonpass handoff approve"):
        desk.lead.call(deploy, "prod")
