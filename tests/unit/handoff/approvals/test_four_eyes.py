"""Four eyes: two different people who did not ask for it, and nothing goes on before the second."""

import pytest
from msgspec.structs import replace

from batonpass.errors import CallDecidedError, CallSuspendedError, FourEyesError, NotApproverError, UnprovenError
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.ids import PrincipalId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Gate, HandoffApproved, ToolApproved
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import desk_of
from batonpass.signing.approver_key import Approver
from tests.unit.handoff.approvers import BEN, Desk, a_desk, an_approver, deploy
from tests.unit.handoff.places import bodies

EVE = PrincipalId("user:eve")
RULES = (
    Rule(name="two-for-calls", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy", approvals=2),
    Rule(name="two-for-mail", on=Subject.HANDOFF, gate=Gate.APPROVE, agent="mailer", approvals=2),
)
WHAT = ["at its offer", "before a call", "of a root"]


def a_four_eyed_desk(*, proven: bool) -> tuple[Desk, tuple[str | Approver, str | Approver]]:
    """Return a relay under rules that take two people, and two who did not ask."""
    desk = a_desk(Policy(enforce=True, proven=proven, rules=RULES))
    return desk, (an_approver(desk.relay, BEN), an_approver(desk.relay, EVE)) if proven else (BEN, EVE)


def waits(desk: Desk, what: str) -> LiveHandoff | LiveCall:
    """Return something that waits."""
    if what == "of a root":
        return desk.relay.held_call(desk.held_call())
    return desk.lead.hand_off("mailer", "Tell everybody") if what == "at its offer" else desk.held_attempt()


def goes_on(desk: Desk, waiting: LiveHandoff | LiveCall) -> bool:
    """Return whether what waited can be begun or made now."""
    if isinstance(waiting, LiveHandoff):
        return waiting.state() is State.OFFERED
    try:
        return "deployed prod" == desk.lead.call(deploy, "prod")
    except CallSuspendedError:
        return False


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("proven", [False, True], ids=["by name", "with keys"])
def test_two_people_who_did_not_ask_let_it_go_on(what: str, proven: bool) -> None:  # noqa: FBT001
    """The first changes nothing, and is on record; the same person again is refused; the second lets it go on."""
    desk, (ben, eve) = a_four_eyed_desk(proven=proven)
    waiting = waits(desk, what)
    waiting.approve(by=ben, shown=waiting.material(), reason="fine")
    assert not goes_on(desk, waiting)
    with pytest.raises(FourEyesError, match="user:ben is one of them already"):
        waiting.approve(by=ben)
    assert "approved  by user:ben" in waiting.material().text
    desk.relay.verify()
    waiting.approve(by=eve, shown=waiting.material())

    assert goes_on(desk, waiting)
    of = "tool" if what == "of a root" else "handoff"
    assert ([(BEN, proven)], [(EVE, proven)]) == tuple(
        [(body.by, body.proven) for body in bodies(desk.relay, f"{of}.{kind}")] for kind in ("backed", "approved")
    )
    desk.relay.verify()


@pytest.mark.parametrize("what", WHAT)
def test_whoever_asked_for_it_is_none_of_them(what: str) -> None:
    """Ana started the run: neither first nor second, key or not. Nor is an agent."""
    desk, (ben, _) = a_four_eyed_desk(proven=True)
    waiting = waits(desk, what)
    for _ in range(2):
        with pytest.raises(FourEyesError, match="it is done for user:ana; somebody other than user:ana has to"):
            waiting.approve(by=desk.ana)
        with pytest.raises(NotApproverError):
            waiting.approve(by="agent:lead")
        with pytest.raises(UnprovenError):
            waiting.approve(by=EVE)
        if not bodies(desk.relay, f"{'tool' if what == 'of a root' else 'handoff'}.backed"):
            waiting.approve(by=ben)

    assert not goes_on(desk, waiting)


@pytest.mark.parametrize("what", WHAT)
def test_a_person_with_two_keys_is_one(what: str) -> None:
    """A new key after the first was revoked makes nobody of Ben who he was not before."""
    desk, (ben, _) = a_four_eyed_desk(proven=True)
    waiting = waits(desk, what)
    waiting.approve(by=ben)
    desk.relay.admin.revoke_approver(BEN, reason="new laptop")
    with pytest.raises(FourEyesError):
        waiting.approve(by=an_approver(desk.relay, BEN))

    assert not goes_on(desk, waiting)


@pytest.mark.parametrize("what", WHAT)
def test_one_person_denies(what: str) -> None:
    """What stops is safe: also after somebody else was for it."""
    desk, (ben, eve) = a_four_eyed_desk(proven=True)
    waiting = waits(desk, what)
    waiting.approve(by=ben)
    waiting.deny(by=eve, reason="no")

    if isinstance(waiting, LiveHandoff):
        assert State.DENIED is waiting.state()
    else:
        with pytest.raises(CallDecidedError):
            waiting.approve(by=eve)


def test_who_was_for_one_hold_is_not_for_the_next() -> None:
    """Held again for another call, both have to look again."""
    desk, (ben, eve) = a_four_eyed_desk(proven=True)
    handoff = desk.held_attempt()
    for by in (ben, eve):
        handoff.approve(by=by)
    handoff.run(lambda run: run.call(deploy, "staging"))
    handoff.approve(by=ben)

    assert not goes_on(desk, handoff)
    handoff.approve(by=eve)
    assert goes_on(desk, handoff)
    desk.relay.verify()


def test_two_who_came_at_once_need_not_start_over() -> None:
    """Neither saw the other: both are on record, and either of them says so once more."""
    desk, _ = a_four_eyed_desk(proven=False)
    call = desk.relay.held_call(desk.held_call())
    call.approve(by=BEN)
    (first,) = bodies(desk.relay, "tool.backed")
    desk_of(desk.relay).recording.note(replace(first, by=EVE))
    assert not goes_on(desk, call)
    call.approve(by=BEN)

    assert goes_on(desk, call)
    desk.relay.verify()


@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize("what", WHAT)
def test_a_store_that_says_that_one_was_enough_is_not_believed(what: str, proven: bool) -> None:  # noqa: FBT001
    """Whoever can write receipts writes the last approval alone: nothing is begun or made by it."""
    desk, (ben, _) = a_four_eyed_desk(proven=proven)
    waiting = waits(desk, what)
    waiting.approve(by=ben)
    of = "tool" if what == "of a root" else "handoff"
    (first,) = bodies(desk.relay, f"{of}.backed")
    values = {name: getattr(first, name) for name in ("by", "proof")}
    if isinstance(waiting, LiveHandoff):
        body = HandoffApproved(handoff=waiting.id, **values)
        desk_of(desk.relay).recording.act(waiting.id, lambda *_: body)
        if what == "at its offer":
            with pytest.raises(FourEyesError):
                waiting.accept()
        else:
            assert State.HELD is waiting.wait().state
    else:
        desk_of(desk.relay).recording.note(ToolApproved(run=desk.lead.id, call=waiting.id, **values))
        with pytest.raises(FourEyesError):
            desk.lead.call(deploy, "prod")
