"""Rulings that a passkey proves: what it is asked to sign, what is recorded, and what is refused."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from batonpass.audit.bundle import verify_bundle
from batonpass.errors import (
    FourEyesError,
    HoldChangedError,
    KeyMissingError,
    KeyRefusedError,
    OutOfScopeError,
    SignatureError,
    UnknownApproverError,
    UnprovenError,
)
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Gate, PasskeyAnswer
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.approver_scope import ApproverScope
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import Relay, desk_of
from batonpass.store.memory import MemoryStore
from batonpass.testing.clock import FrozenClock
from tests.unit.handoff.approvers import ANA, BEN, PROVEN, Desk, deploy
from tests.unit.handoff.authenticator import PRESENT, Authenticator, asked
from tests.unit.handoff.places import bodies

WHAT = ["at its offer", "before a call", "of a root"]


class Place:
    """A relay in memory, and Ben with a passkey."""

    def __init__(self, policy: Policy = PROVEN) -> None:
        self.clock = FrozenClock()
        store = MemoryStore()
        self.relay = Relay(store, policy=policy, clock=self.clock)
        lead = self.relay.start("Ship the release", by=ANA)
        self.ben = Authenticator()
        self.relay.admin.enroll_approver(BEN, self.ben.passkey.text)
        self.desk = Desk(store, self.relay, lead, None)  # type: ignore[arg-type]

    def waits(self, what: str = "at its offer", name: str = "one") -> LiveHandoff | LiveCall:
        """Return something that waits."""
        if what == "of a root":
            return self.relay.held_call(self.desk.held_call(name))
        return self.desk.held_handoff(name) if what == "at its offer" else self.desk.held_attempt(name)


@pytest.mark.parametrize("what", WHAT)
def test_a_passkey_lets_go_on_what_takes_a_key(what: str) -> None:
    """The receipt has what browser and device said; relay, verifier and a bundle elsewhere take it as proven."""
    place = Place()
    waiting = place.waits(what)
    shown = waiting.material()
    ben = asked(place.relay, waiting.id, place.ben, BEN, shown=shown, looked_ms=900)
    waiting.approve(by=ben, reason="fine", shown=shown, looked_ms=900)
    (said,) = bodies(place.relay, "tool.approved" if what == "of a root" else "handoff.approved")
    evidence = place.relay.verify()

    assert (ben.answer, shown.digest, 900, ()) == (said.proof.passkey, said.shown, said.looked_ms, said.flags)
    assert evidence.receipts
    if isinstance(waiting, LiveHandoff):
        assert State.OFFERED is waiting.state()
    else:
        assert "deployed one" == place.desk.lead.call(deploy, "one")
    verify_bundle(list(place.relay.admin.export(place.desk.lead.id)))


def wrongs() -> dict[str, dict[str, object]]:
    """Return what a device or a browser may say that proves nothing."""
    return {
        "another origin": {"origin": "https://evil.example"},
        "another site": {"site": "evil.example"},
        "nobody verified": {"flags": PRESENT},
        "somebody else's device": {"key": Authenticator().key},
        "within another page": {"more": {"crossOrigin": True}},
    }


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("wrong", wrongs())
def test_an_answer_that_proves_nothing_is_not_recorded(what: str, wrong: str) -> None:
    """It is refused, nothing is written, and it still waits."""
    place = Place()
    waiting = place.waits(what)
    shown = waiting.material()
    ben = asked(place.relay, waiting.id, place.ben.but(**wrongs()[wrong]), BEN, shown=shown)
    with pytest.raises(KeyRefusedError):
        waiting.approve(by=ben, shown=shown)

    assert [] == [*bodies(place.relay, "handoff.approved"), *bodies(place.relay, "tool.approved")]
    place.relay.verify()


@pytest.mark.parametrize("what", WHAT)
def test_an_answer_fits_one_ruling(what: str) -> None:
    """Not another hold, not another sheet, not another time, not the opposite."""
    place = Place()
    one, two = place.waits(what, "one"), place.waits(what, "two")
    sheets = one.material(), two.material()
    ben = asked(place.relay, one.id, place.ben, BEN, shown=sheets[0], looked_ms=5)
    with pytest.raises(KeyRefusedError):
        two.approve(by=ben, shown=sheets[1], looked_ms=5)
    with pytest.raises(KeyRefusedError):
        one.approve(by=ben, shown=sheets[0], looked_ms=6)
    with pytest.raises(KeyRefusedError):
        one.approve(by=ben, looked_ms=5)
    with pytest.raises(KeyRefusedError):
        one.deny(by=ben, shown=sheets[0], looked_ms=5, reason="no")
    with pytest.raises(HoldChangedError):
        one.approve(by=ben, shown=sheets[1], looked_ms=5)
    one.approve(by=ben, shown=sheets[0], looked_ms=5)
    place.relay.verify()


def test_an_answer_is_used_at_once() -> None:
    """After ten minutes it is refused, and so is one from the future."""
    place = Place()
    waiting = place.waits()
    shown = waiting.material()
    ben = asked(place.relay, waiting.id, place.ben, BEN, shown=shown)
    place.clock.tick(timedelta(minutes=10, seconds=1))
    with pytest.raises(KeyRefusedError, match="counts for 10 minutes"):
        waiting.approve(by=ben, shown=shown)
    later = asked(place.relay, waiting.id, place.ben, BEN, shown=shown)
    place.clock.tick(-timedelta(minutes=2))
    with pytest.raises(KeyRefusedError, match="counts for 10 minutes"):
        waiting.approve(by=later, shown=shown)


def test_a_device_that_has_counted_further_before_was_copied() -> None:
    """A counter goes up; one that does not is refused. A device that does not count is taken as it is."""
    place = Place()
    found: list[str] = []
    for counter in (5, 6, 6, 3, 0, 7):
        waiting = place.waits("at its offer", f"task {len(found)}")
        shown = waiting.material()
        ben = asked(place.relay, waiting.id, place.ben.but(counter=counter), BEN, shown=shown)
        try:
            waiting.approve(by=ben, shown=shown)
            found.append("taken")
        except KeyRefusedError as refused:
            found.append("copied" if "copy of it" in str(refused) else "?")

    assert ["taken", "taken", "copied", "copied", "taken", "taken"] == found
    place.relay.verify()


def test_a_revoked_passkey_proves_nothing_more() -> None:
    """What it signed before stays proven; it is not asked again, and an answer that comes late is refused."""
    place = Place()
    one, two = place.waits(name="one"), place.waits(name="two")
    sheets = one.material(), two.material()
    one.approve(by=asked(place.relay, one.id, place.ben, BEN, shown=sheets[0]), shown=sheets[0])
    late = asked(place.relay, two.id, place.ben, BEN, shown=sheets[1])
    place.relay.admin.revoke_approver(BEN, reason="the phone is lost")
    with pytest.raises((KeyRefusedError, UnknownApproverError)):
        two.approve(by=late, shown=sheets[1])
    with pytest.raises(KeyMissingError):
        asked(place.relay, two.id, place.ben, BEN, shown=two.material())
    with pytest.raises(UnprovenError):
        two.approve(by=BEN)

    assert State.HELD is two.state()  # type: ignore[union-attr]
    place.relay.verify()


def test_nobody_is_asked_to_sign_what_would_be_refused() -> None:
    """Outside of their scope, for themselves where it takes two, and about a sheet of something else."""
    scoped = Policy(enforce=True, proven=True, approvers={BEN: ApproverScope(may=read_scope(["call:other"]))})
    place = Place(scoped)
    waiting = place.waits()
    with pytest.raises(OutOfScopeError):
        asked(place.relay, waiting.id, place.ben, BEN, shown=waiting.material())
    rule = Rule(name="two", on=Subject.HANDOFF, gate=Gate.APPROVE, agent="mailer", approvals=2)
    two = Place(Policy(enforce=True, proven=True, rules=(rule,)))
    own = Authenticator()
    two.relay.admin.enroll_approver(ANA, own.passkey.text)
    held = two.waits()
    with pytest.raises(FourEyesError):
        asked(two.relay, held.id, own, ANA, shown=held.material())
    with pytest.raises(HoldChangedError):
        asked(two.relay, held.id, two.ben, BEN, shown=two.waits(name="other").material())


def test_the_passkey_of_somebody_else_does_not_speak_for_me() -> None:
    """Ben's device signs in Ben's name; with Ana's name on it nothing is recorded."""
    place = Place()
    own = Authenticator()
    place.relay.admin.enroll_approver(ANA, own.passkey.text)
    waiting = place.waits()
    shown = waiting.material()
    with pytest.raises(KeyRefusedError):
        waiting.approve(by=asked(place.relay, waiting.id, place.ben, ANA, shown=shown), shown=shown)


def test_a_person_has_one_key_and_a_key_one_person() -> None:
    """Neither a passkey beside another key, nor one passkey for two people."""
    place = Place()
    with pytest.raises(KeyRefusedError, match="has an approver's key here already"):
        place.relay.admin.enroll_approver(BEN, Authenticator().passkey.text)
    with pytest.raises(KeyRefusedError, match="is known here"):
        place.relay.admin.enroll_approver(ANA, place.ben.passkey.text)


Changed = Callable[[PasskeyAnswer, str], tuple[PasskeyAnswer, str]]


def forged(place: Place, change: Changed) -> None:
    """Record an approval whose proof was changed after it was signed, as a relay would that checks nothing."""
    waiting = place.waits()
    shown = waiting.material()
    waiting.approve(by=asked(place.relay, waiting.id, place.ben, BEN, shown=shown), shown=shown)
    (good,) = bodies(place.relay, "handoff.approved")
    other = place.waits(name="two")
    sheet = other.material()
    signed = asked(place.relay, other.id, place.ben.but(counter=5), BEN, shown=sheet)
    assert signed.answer is not None
    answer, signature = change(signed.answer, signed.signer.sign(b"").hex())
    proof = replace(good.proof, at=signed.at, passkey=answer, signature=signature)
    body = replace(good, handoff=other.id, hold=sheet.hold, shown=sheet.digest, proof=proof)
    assert isinstance(other, LiveHandoff)
    desk_of(place.relay).recording.act(other.id, lambda *_: body)


def flip(text: str, place: int) -> str:
    """Return hexadecimal text with one bit changed."""
    return f"{text[:place]}{int(text[place], 16) ^ 1:x}{text[place + 1 :]}"


def of_device(place: int) -> Changed:
    """Flip a bit in what the device said."""
    return lambda answer, made: (replace(answer, authenticator_data=flip(answer.authenticator_data, place)), made)


def of_browser(old: str, new: str) -> Changed:
    """Change what the browser said."""
    return lambda answer, made: (replace(answer, client_data=answer.client_data.replace(old, new)), made)


def test_the_verifier_takes_what_was_signed() -> None:
    """The way of the next test records a good proof, if nothing is changed."""
    place = Place()
    forged(place, lambda answer, made: (answer, made))

    assert place.relay.verify().receipts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(of_device(0), "answered for another site", id="a bit of the site"),
        pytest.param(of_device(65), "nobody was at the authenticator", id="the bit of presence"),
        pytest.param(of_device(64), "did not sign", id="a bit of the other flags"),
        pytest.param(of_device(73), "did not sign", id="a bit of the counter"),
        pytest.param(of_browser("webauthn.get", "webauthn.create"), "did not ask", id="the type"),
        pytest.param(of_browser('"challenge": "', '"challenge": "A'), "another ruling", id="the challenge"),
        pytest.param(of_browser("batonpass.example", "evil.example"), "another site", id="the origin"),
        pytest.param(of_browser("false", "true"), "within a page of another", id="that it was in a frame"),
        pytest.param(of_browser('"crossOrigin": false', '"crossOrigin": false, "x": 1'), "did not sign", id="one more"),
        pytest.param(lambda answer, made: (answer, flip(made, 127)), "did not sign", id="a bit of the signature"),
        pytest.param(lambda answer, _: (answer, "00" * 64), "did not sign", id="a signature of zeros"),
        pytest.param(lambda _, made: (None, made), "is missing", id="no answer at all"),
    ],
)
def test_the_verifier_finds_what_was_changed(change: Changed, words: str) -> None:
    """Whoever holds the relay's key and edits any field of the proof is found, and nothing goes on because of it."""
    place = Place()
    forged(place, change)
    with pytest.raises(SignatureError, match=words) as found:
        place.relay.verify()

    assert "proof" == found.value.field
    with pytest.raises(UnprovenError):
        place.relay.handoff(bodies(place.relay, "handoff.approved")[-1].handoff).accept()


def test_a_ruling_after_the_key_was_revoked_is_not_written() -> None:
    """The store asks whether the key is active in the transaction that writes it."""
    place = Place()
    one = place.waits()
    shown = one.material()
    one.approve(by=asked(place.relay, one.id, place.ben, BEN, shown=shown), shown=shown)
    (good,) = bodies(place.relay, "handoff.approved")
    two = place.waits(name="two")
    place.relay.admin.revoke_approver(BEN, reason="lost")
    body = replace(good, handoff=two.id, hold=None)
    assert isinstance(two, LiveHandoff)
    with pytest.raises(UnknownApproverError):
        desk_of(place.relay).recording.act(two.id, lambda *_: body)
