"""Decisions that are proven, and whoever forges one while holding every key but the approver's."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import fields, replace

from batonpass.audit.bundle import verify_bundle
from batonpass.errors import (
    CallSuspendedError,
    RevokedKeyError,
    SignatureError,
    UnknownKeyError,
    UnlinkedError,
    VerificationError,
)
from batonpass.ledger.enrolment import Enrolment
from batonpass.ledger.position import need
from batonpass.model.base.ids import CallId, Digest, HandoffId, PrincipalId
from batonpass.model.base.kinds import Gate
from batonpass.model.bodies.body import Body, HandoffApproved, HandoffBacked, HandoffHeld, ToolApproved, ToolRefused
from batonpass.model.ledger.ruling import Decided, hold_of_offer, ruling_of
from batonpass.model.policy.policy_rules import Policy, Rule, Subject, Tier
from batonpass.records.hold import get_held_call
from batonpass.relay import desk_of
from batonpass.signing.approver_key import Approver
from tests.unit.handoff.approvers import ANA, BEN, Desk, a_desk, an_approver, deploy
from tests.unit.handoff.places import bodies

UNPROVEN = Policy(enforce=True, proven=False)
TWO = Policy(enforce=True, rules=(Rule(name="two", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy", approvals=2),))


def say(desk: Desk, handoff: HandoffId, body: Body) -> None:
    """Record something about a handoff, as a relay would that does not ask what it says."""
    desk_of(desk.relay).recording.act(handoff, lambda *_: body)


def approval(desk: Desk, handoff: HandoffId) -> HandoffApproved:
    """Approve a handoff with Ana's key, and return what was recorded."""
    desk.relay.handoff(handoff).approve(by=desk.ana, shown=desk.relay.handoff(handoff).material(), looked_ms=5)
    found = bodies(desk.relay, "handoff.approved")[-1]
    assert isinstance(found, HandoffApproved)
    return found


def as_other(kind: type[Body], body: Decided) -> Body:
    """Return the same decision as another kind of it."""
    return kind(**{field.name: getattr(body, field.name) for field in fields(body)})


def signed_again(desk: Desk, handoff: HandoffId, **changed: object) -> HandoffApproved:
    """Return an approval of a held handoff that Ana signed, and of which something was changed afterwards."""
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        hold = hold_of_offer(
            next(b for b in bodies(desk.relay, "handoff.initiated") if b.handoff == handoff), known.initiated
        )
        body = HandoffApproved(handoff=handoff, by=ANA, shown=Digest("ab" * 32), looked_ms=9)
        proof = desk.ana.prove(ruling_of(view.info().id, hold, body, desk_of(desk.relay).clock.now()))
    return replace(body, proof=proof, **changed)


def flips_a_bit(desk: Desk) -> None:
    """Change one digit of the signature."""
    handoff = desk.held_handoff().id
    good = signed_again(desk, handoff)
    assert good.proof is not None
    flipped = f"{int(good.proof.signature[0], 16) ^ 1:x}{good.proof.signature[1:]}"
    say(desk, handoff, replace(good, proof=replace(good.proof, signature=flipped)))


def takes_it_to_another_handoff(desk: Desk) -> None:
    """Use a good approval once more, for another handoff."""
    one, two = desk.held_handoff("one").id, desk.held_handoff("two").id
    say(desk, two, replace(approval(desk, one), handoff=two, hold=None))


def takes_it_to_the_next_hold(desk: Desk) -> None:
    """Use a good approval once more, when the same handoff is held again for another call."""
    handoff = desk.held_attempt()
    good = approval(desk, handoff.id)
    handoff.run(lambda run: run.call(deploy, "staging"))
    say(desk, handoff.id, replace(good, hold=None))


def takes_it_to_another_call(desk: Desk) -> None:
    """Use a good approval of a root's call for another of its calls."""
    one, two = desk.held_call("prod"), desk.held_call("staging")
    desk.relay.held_call(one).approve(by=desk.ana)
    (good,) = bodies(desk.relay, "tool.approved")
    desk_of(desk.relay).recording.note(replace(good, call=two, hold=None))


def names_the_hold_of_another(desk: Desk) -> None:
    """Say that an approval answers what another handoff waited for."""
    one, two = desk.held_handoff("one").id, desk.held_handoff("two").id
    say(desk, two, replace(approval(desk, one), handoff=two))


def turns_a_denial_around(desk: Desk) -> None:
    """Record as an approval what was signed as a denial."""
    one, two = desk.held_handoff("one"), desk.held_handoff("two")
    one.deny(by=desk.ana, reason="never")
    (denied,) = bodies(desk.relay, "handoff.denied")
    say(desk, two.id, as_other(HandoffApproved, replace(denied, handoff=two.id, hold=None)))


def turns_a_refusal_around(desk: Desk) -> None:
    """Record that a root's call may be made, with what was signed as its refusal."""
    call = desk.held_call()
    with desk.store.view() as view:
        hold, receipt = get_held_call(view, call)
        refused = ToolRefused(run=desk.lead.id, call=call, by=ANA)
        proof = desk.ana.prove(ruling_of(view.info().id, hold, refused, receipt.at))
    desk_of(desk.relay).recording.note(as_other(ToolApproved, replace(refused, proof=proof)))


def decides_twice(desk: Desk) -> None:
    """Let a call be made that was refused."""
    call = desk.held_call()
    desk.relay.held_call(call).deny(by=desk.ana, reason="never")
    desk.store._tables.decided_calls.clear()
    desk.relay.held_call(call).approve(by=desk.ana)


def shows_something_else(desk: Desk) -> None:
    """Change what is said to have been on the screen."""
    handoff = desk.held_handoff().id
    say(desk, handoff, signed_again(desk, handoff, shown=Digest("cd" * 32)))


def shows_nothing(desk: Desk) -> None:
    """Leave out what was on the screen."""
    handoff = desk.held_handoff().id
    say(desk, handoff, signed_again(desk, handoff, shown=None))


def looks_longer(desk: Desk) -> None:
    """Say that it was looked at for an hour."""
    handoff = desk.held_handoff().id
    say(desk, handoff, signed_again(desk, handoff, looked_ms=3_600_000))


def decides_earlier(desk: Desk) -> None:
    """Change the time at which it was decided."""
    handoff = desk.held_handoff().id
    good = signed_again(desk, handoff)
    assert good.proof is not None
    say(desk, handoff, replace(good, proof=replace(good.proof, at=good.proof.at - timedelta(days=1))))


def signs_as_somebody_else(desk: Desk) -> None:
    """Let Ben's key sign, and say that it was Ana."""
    ben = an_approver(desk.relay, BEN)
    handoff = desk.held_handoff().id
    good = signed_again(dataclasses.replace(desk, ana=Approver(ANA, ben.signer)), handoff)
    say(desk, handoff, good)


def names_somebody_else(desk: Desk) -> None:
    """Keep Ana's signature, and say that it was Ben."""
    an_approver(desk.relay, BEN)
    handoff = desk.held_handoff().id
    say(desk, handoff, signed_again(desk, handoff, by=BEN))


def signs_with_the_relay_s_key(desk: Desk) -> None:
    """Let the relay sign for Ana."""
    handoff = desk.held_handoff().id
    signer = desk.relay._membership._keyring.relay().signer
    say(desk, handoff, signed_again(dataclasses.replace(desk, ana=Approver(ANA, signer)), handoff))


def signs_with_a_run_s_key(desk: Desk) -> None:
    """Let the root's own key sign for Ana: it is at hand where the agent works."""
    handoff = desk.held_handoff().id
    signer, _ = desk.relay._run_keys.get(desk.lead.id)
    say(desk, handoff, signed_again(dataclasses.replace(desk, ana=Approver(ANA, signer)), handoff))


def decides_after_the_revocation(desk: Desk) -> None:
    """Let a good signature come after its key's end."""
    handoff = desk.held_handoff().id
    good = signed_again(desk, handoff)
    desk.relay.admin.revoke_approver(ANA, reason="stolen")
    say(desk, handoff, good)


def approves_without_the_proof_that_it_takes(desk: Desk) -> None:
    """Leave the proof out where the hold asks for one."""
    handoff = desk.held_handoff().id
    say(desk, handoff, HandoffApproved(handoff=handoff, by=ANA))


def lets_a_call_be_made_without_the_proof_that_it_takes(desk: Desk) -> None:
    """Leave it out for a root's call."""
    desk_of(desk.relay).recording.note(ToolApproved(run=desk.lead.id, call=desk.held_call(), by=ANA))


def lets_a_service_approve(desk: Desk) -> None:
    """Record that a service let a call be made that takes a person."""
    desk_of(desk.relay).gates = UNPROVEN
    call = desk.held_call()
    desk_of(desk.relay).recording.note(ToolApproved(run=desk.lead.id, call=call, by=PrincipalId("service:nightly")))


def lets_a_bot_approve(desk: Desk) -> None:
    """Record that a bot let an attempt go on that takes a person."""
    desk_of(desk.relay).gates = UNPROVEN
    handoff = desk.held_attempt().id
    say(desk, handoff, HandoffApproved(handoff=handoff, by=PrincipalId("bot:deploy")))


def lets_another_service_confirm(desk: Desk) -> None:
    """Record that a service confirmed what was not asked for in its name."""
    desk_of(desk.relay).gates = replace(UNPROVEN, tiers={Tier.IRREVERSIBLE: Gate.CONFIRM})
    call = desk.held_call()
    desk_of(desk.relay).recording.note(ToolApproved(run=desk.lead.id, call=call, by=PrincipalId("service:nightly")))


def lets_one_of_two_be_enough(desk: Desk) -> None:
    """Record that something goes on that takes two people, with one who signed."""
    desk_of(desk.relay).gates = TWO
    call = desk.held_call()
    desk.relay.held_call(call).approve(by=an_approver(desk.relay, BEN))
    (first,) = bodies(desk.relay, "tool.backed")
    desk_of(desk.relay).recording.note(as_other(ToolApproved, first))


def lets_whoever_asked_be_one_of_two(desk: Desk) -> None:
    """Record that Ana, who asked for it, is one of the two."""
    desk_of(desk.relay).gates = replace(TWO, proven=False)
    handoff = desk.held_attempt().id
    say(desk, handoff, HandoffBacked(handoff=handoff, by=ANA))


def counts_who_was_for_an_earlier_hold(desk: Desk) -> None:
    """Count somebody who was for an earlier hold of the same handoff."""
    desk_of(desk.relay).gates = TWO
    ben, eve = an_approver(desk.relay, BEN), an_approver(desk.relay, PrincipalId("user:eve"))
    handoff = desk.held_attempt()
    for by in (ben, eve):
        handoff.approve(by=by)
    handoff.run(lambda run: run.call(deploy, "staging"))
    handoff.approve(by=ben)
    (_, second) = bodies(desk.relay, "handoff.backed")
    say(desk, handoff.id, as_other(HandoffApproved, second))


def waits_for_others_where_one_is_enough(desk: Desk) -> None:
    """Record somebody as one of several where it takes one."""
    desk_of(desk.relay).gates = UNPROVEN
    handoff = desk.held_attempt().id
    say(desk, handoff, HandoffBacked(handoff=handoff, by=ANA))


def decides_about_a_call_of_a_suspended_attempt(desk: Desk) -> None:
    """Decide about a call whose handoff waits for it."""
    desk.held_attempt()
    (held,) = bodies(desk.relay, "tool.held")
    desk_of(desk.relay).recording.note(ToolRefused(run=held.run, call=held.call, by=ANA))


def suspends_an_attempt_for_a_call_that_leaves_it_open(desk: Desk) -> None:
    """Let a handoff wait for a call which its run said it would not stop for."""
    handoff = desk.lead.hand_off("shipper", "Ship it")
    run = handoff.accept()
    run._holding.stays_open = True
    with pytest.raises(CallSuspendedError):
        run.call(deploy, "prod")
    (held,) = bodies(desk.relay, "tool.held")
    desk_of(desk.relay).recording.act(
        handoff.id,
        lambda known, ended: HandoffHeld(
            handoff=known.id, attempt=1, ended=need(ended, known), reason=held.rule, call=held.call
        ),
    )


def decides_about_a_call_that_was_never_held(desk: Desk) -> None:
    """Let a call be made that nobody asked for."""
    desk_of(desk.relay).recording.note(ToolRefused(run=desk.lead.id, call=CallId("call_" + "0" * 26), by=ANA))


def decides_about_a_call_of_another_run(desk: Desk) -> None:
    """Name the right call and the wrong root."""
    other = desk.relay.start("Other", by=BEN)
    desk_of(desk.relay).recording.note(ToolRefused(run=other.id, call=desk.held_call(), by=ANA))


def enrols_the_key_of_a_run(desk: Desk) -> None:
    """Let the root key say that a run's key is a person's."""
    signer, _ = desk.relay._run_keys.get(desk.lead.id)
    ledger, identity = desk.relay._membership.join()
    enrolment = Enrolment(desk.store, ledger, identity, desk_of(desk.relay).clock)
    enrolment.enroll_approver(BEN, signer.public_key, root=desk.relay._membership.root())


def revokes_the_key_of_another(desk: Desk) -> None:
    """Revoke Ana's key in Ben's name."""
    ledger, identity = desk.relay._membership.join()
    enrolment = Enrolment(desk.store, ledger, identity, desk_of(desk.relay).clock)
    root = desk.relay._membership.root()
    enrolment.revoke_approver(BEN, desk.ana.signer.public_key, reason="no", root=root)


def waits_for_a_call_that_was_not_held(desk: Desk) -> None:
    """Let an attempt stop before a call of which its run says nothing."""
    handoff = desk.lead.hand_off("shipper", "Ship it")
    handoff.accept()
    desk_of(desk.relay).recording.act(
        handoff.id,
        lambda known, ended: HandoffHeld(
            handoff=known.id, attempt=1, ended=need(ended, known), reason="made.up", call=CallId("call_" + "0" * 26)
        ),
    )


FORGERIES: list[tuple[Callable[[Desk], None], type[VerificationError], str | None]] = [
    (flips_a_bit, SignatureError, "signature"),
    (takes_it_to_another_handoff, SignatureError, "signature"),
    (takes_it_to_the_next_hold, SignatureError, "signature"),
    (takes_it_to_another_call, SignatureError, "signature"),
    (names_the_hold_of_another, UnlinkedError, "hold"),
    (turns_a_denial_around, SignatureError, "signature"),
    (turns_a_refusal_around, SignatureError, "signature"),
    (decides_twice, UnlinkedError, None),
    (shows_something_else, SignatureError, "signature"),
    (shows_nothing, SignatureError, "signature"),
    (looks_longer, SignatureError, "signature"),
    (decides_earlier, SignatureError, "signature"),
    (signs_as_somebody_else, UnknownKeyError, "proof"),
    (names_somebody_else, UnknownKeyError, "proof"),
    (signs_with_the_relay_s_key, UnknownKeyError, "proof"),
    (signs_with_a_run_s_key, UnknownKeyError, "proof"),
    (decides_after_the_revocation, RevokedKeyError, "proof"),
    (approves_without_the_proof_that_it_takes, UnlinkedError, "proof"),
    (lets_a_call_be_made_without_the_proof_that_it_takes, UnlinkedError, "proof"),
    (lets_a_service_approve, UnlinkedError, "by"),
    (lets_a_bot_approve, UnlinkedError, "by"),
    (lets_another_service_confirm, UnlinkedError, "by"),
    (lets_one_of_two_be_enough, UnlinkedError, "by"),
    (lets_whoever_asked_be_one_of_two, UnlinkedError, "by"),
    (counts_who_was_for_an_earlier_hold, UnlinkedError, "by"),
    (waits_for_others_where_one_is_enough, UnlinkedError, "kind"),
    (decides_about_a_call_of_a_suspended_attempt, UnlinkedError, "call"),
    (suspends_an_attempt_for_a_call_that_leaves_it_open, UnlinkedError, "call"),
    (decides_about_a_call_that_was_never_held, UnlinkedError, "call"),
    (decides_about_a_call_of_another_run, UnlinkedError, "call"),
    (enrols_the_key_of_a_run, UnlinkedError, "public_key"),
    (revokes_the_key_of_another, UnlinkedError, "principal"),
    (waits_for_a_call_that_was_not_held, UnlinkedError, "call"),
]


@pytest.mark.parametrize(
    ("forge", "error", "field"), FORGERIES, ids=[forge.__name__.replace("_", " ") for forge, _, _ in FORGERIES]
)
def test_a_forged_decision_is_found(
    monkeypatch: pytest.MonkeyPatch, forge: Callable[[Desk], None], error: type[VerificationError], field: str | None
) -> None:
    """Whoever can write anything, and has not the approver's key, is found out by the verifier."""
    desk = a_desk()
    with monkeypatch.context() as blind:
        # Past the store, which would have refused some of it.
        blind.setattr("batonpass.store.derived_rows.require_approver", lambda *_: None)
        forge(desk)

    with pytest.raises(error) as found:
        desk.relay.verify()
    assert field == found.value.field


def test_proofs_are_counted_among_the_signatures() -> None:
    """Each proof is one more signature that was checked, and is told with the evidence."""
    desk = a_desk()
    handoff = desk.held_handoff()
    before = desk.relay.verify()
    handoff.approve(by=desk.ana)
    after = desk.relay.verify()

    assert (before.receipts + 1, before.signatures + 2) == (after.receipts, after.signatures)


def test_a_proof_is_of_one_ledger() -> None:
    """The same key in another ledger signs something else: its id is in what is signed."""
    desk, other = a_desk(), a_desk()
    good = signed_again(desk, desk.held_handoff().id)
    with other.store.view() as view:
        theirs = view.info().id
    with desk.store.view() as view:
        hold = hold_of_offer(bodies(desk.relay, "handoff.initiated")[0], view.get_handoff(good.handoff).initiated)
        ours = view.info().id
    assert good.proof is not None

    assert [good.proof.signature, False] == [
        desk.ana.prove(ruling_of(ours, hold, good, good.proof.at)).signature,
        good.proof.signature == desk.ana.prove(ruling_of(theirs, hold, good, good.proof.at)).signature,
    ]


def test_a_bundle_carries_its_proofs_and_bears_decisions_about_other_trees() -> None:
    """The streams of relays are in it, with who may approve, and with what was decided elsewhere."""
    desk = a_desk()
    desk.held_handoff().approve(by=desk.ana)
    call = desk.held_call()
    desk.relay.held_call(call).approve(by=desk.ana)
    other = desk.relay.start("Other", by=BEN)
    for root in (desk.lead.id, other.id):
        evidence = verify_bundle(list(desk.relay.admin.export(root)))

        assert 0 < evidence.signatures
