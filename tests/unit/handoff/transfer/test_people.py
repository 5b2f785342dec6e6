"""What waits for people outlives whoever asked, goes on after the decision, and is judged again when it is used."""

import asyncio
import threading
from datetime import timedelta

import pytest

from batonpass.aio.relay import AsyncRelay
from batonpass.errors import (
    ApprovalExpiredError,
    CallSuspendedError,
    ConstraintViolatedError,
    GrantError,
    GrantRevokedError,
    HandoffHeldError,
)
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import Gate, Kind, Outcome, ToolHeld
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.grants.limits import Limits
from batonpass.model.ledger.run import RunState
from batonpass.model.policy.policy_rules import Policy, Rule, Subject, Tier
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, LONG, Places, bodies

STRICT = Policy(enforce=True, proven=False)
BEN = "user:ben"
A_SHORT_WHILE = timedelta(milliseconds=10)


class World:
    """Places where something was deployed."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.deploy = tool("deploy", reversible=False, target="place")(lambda place: self.done.extend([place]))
        self.note = tool("note", reversible=True)(lambda words: self.done.extend([words]))


@pytest.fixture
def world() -> World:
    """Return a world where nothing is deployed."""
    return World()


def held_by(run: LiveRun, world: World, place: str = "prod") -> str:
    """Return the id of a call that is held."""
    with pytest.raises(CallSuspendedError) as held:
        run.call(world.deploy, place)
    return held.value.call


def state_of(relay: Relay, run: LiveRun) -> RunState:
    """Return the state of a run."""
    with relay.store.view() as view:
        return view.get_run(run.id).state


@pytest.mark.parametrize("carrier", Carrier)
def test_a_held_handoff_outlives_a_completed_lead(places: Places, carrier: Carrier) -> None:
    """The lead lists it as open; after the approval it is ready for a worker, or offered to whoever has its key."""
    relay = places.relay()
    with relay.start("Tell everybody", by=ANA) as lead:
        held = lead.hand_off("mailer", "Tell them", carrier=carrier, hold=True)
        asked = lead.hand_off("mailer", "Tell the others")
        asked.ask("which?")
    later = places.relay().handoff(held.id)

    assert (State.HELD, State.ASKED) == (later.state(), asked.state())
    assert {held.id, asked.id} == set(bodies(relay, Kind.RUN_CLOSED)[0].waiting)
    later.approve(by=ANA)
    if carrier is Carrier.WORKER:
        lease = relay.claim(holder="w", lease_for=LONG)
        assert lease is not None
        later.accept(lease=lease).close()
    else:
        later.accept().close()
    assert State.COMPLETED is later.state()


@pytest.mark.parametrize("ending", ["fails", "is cancelled"])
def test_a_root_that_ends_otherwise_cancels_what_is_held(relay: Relay, ending: str) -> None:
    """Nobody needs it any more."""
    lead = relay.start("Tell everybody", by=ANA)
    held, asked = lead.hand_off("mailer", "Tell them", hold=True), lead.hand_off("mailer", "and them")
    asked.ask("which?")
    if ending == "fails":
        lead.fail(ValueError("no idea"))
    else:
        lead.close(Outcome.CANCELLED)

    assert [State.CANCELLED] * 2 == [held.state(), asked.state()]


def test_a_root_that_is_left_by_a_held_handoff_stays_open(places: Places) -> None:
    """Its process ends; after the approval another one resumes it, and finds the handoff offered under its key."""
    relay = places.relay()
    with (
        pytest.raises(HandoffHeldError),
        relay.start("Tell everybody", by=ANA) as lead,
        lead.hand_off("mailer", "Tell them", hold=True),
    ):
        pass
    (handoff,) = [body.handoff for body in bodies(relay, Kind.HANDOFF_INITIATED)]
    later = places.relay()
    assert (RunState.OPEN, State.HELD) == (state_of(later, lead), later.handoff(handoff).state())
    assert [handoff] == [body.awaits for body in bodies(relay, Kind.RUN_SUSPENDED)]
    later.handoff(handoff).approve(by=ANA)
    with later.resume(lead.id) as again, again.hand_off("mailer", "Tell them", hold=True) as mailer:
        mailer.report("told")

    assert (RunState.COMPLETED, State.COMPLETED) == (state_of(later, lead), later.handoff(handoff).state())


def test_a_roots_call_waits_for_its_resumption(places: Places, world: World) -> None:
    """Nobody has to be there while a person decides; the call is made once, by the process that resumes."""
    relay = places.relay(policy=STRICT)
    with pytest.raises(CallSuspendedError) as held, relay.start("Ship", by=ANA) as lead:
        lead.call(world.deploy, "prod")
    later = places.relay(policy=STRICT)
    later.held_call(held.value.call).approve(by=BEN)
    with later.resume(lead.id) as again:
        again.call(world.deploy, "prod")
        with pytest.raises(CallSuspendedError):
            again.call(world.deploy, "prod")

    assert (["prod"], RunState.COMPLETED) == (world.done, state_of(later, lead))
    assert 1 == len(bodies(later, Kind.RUN_CLOSED)[0].waiting_calls)


def test_suspension_goes_up_through_nested_handoffs(places: Places, world: World) -> None:
    """Each level stops and waits for the one below; the decision lets all of them go on, from the record."""
    relay = places.relay(policy=STRICT)

    def work(lead: LiveRun) -> None:
        with lead.hand_off("middle", "most", criteria=["done"]) as middle:
            middle.call(world.note, "middle")
            with middle.hand_off("bottom", "some", criteria=["done"]) as bottom:
                bottom.call(world.deploy, "prod")

    with pytest.raises(CallSuspendedError) as held, relay.start("Ship", by=ANA) as lead:
        work(lead)
    later = places.relay(policy=STRICT)
    with later.store.view() as view:
        middle, bottom = sorted(view.find_handoffs(), key=lambda one: one.id)
    assert [State.HELD] * 2 == [middle.state, bottom.state]
    assert (bottom.id, bottom.id) == (held.value.handoff, later.handoff(middle.id).result().blocked_by)
    later.handoff(bottom.id).approve(by=BEN)
    assert [State.OFFERED] * 2 == [later.handoff(one.id).state() for one in (middle, bottom)]
    with later.resume(lead.id) as again:
        work(again)

    assert ["middle", "prod"] == world.done
    assert [State.COMPLETED] * 2 == [later.handoff(one.id).state() for one in (middle, bottom)]


def test_a_worker_suspends_what_it_runs(places: Places, world: World) -> None:
    """The worker's parent stops as well, and both go on by workers once somebody has approved the call."""
    relay = places.relay(policy=STRICT)

    def parent(run: LiveRun) -> None:
        with run.hand_off("child", "half", criteria=["done"]) as child:
            child.call(world.deploy, "prod")

    relay.register("parent", parent)
    lead = relay.start("Ship", by=ANA)
    above = lead.hand_off("parent", "all", carrier=Carrier.WORKER, criteria=["done"])

    def work() -> None:
        lease = relay.claim(holder="w", lease_for=LONG)
        assert lease is not None
        relay.handoff(lease).run(lease=lease)

    work()
    blocked = above.result().blocked_by
    assert (State.HELD, True) == (above.state(), blocked is not None)
    relay.handoff(str(blocked)).approve(by=BEN)
    assert State.READY is above.state()
    work()

    assert (State.COMPLETED, ["prod"]) == (above.state(), world.done)


@pytest.mark.parametrize("approves", [True, False], ids=["approved", "denied"])
def test_waiting_until_it_is_decided(places: Places, approves: bool) -> None:  # noqa: FBT001
    """The wait goes on while a person thinks; then it runs here, or it has been denied."""
    relay = places.relay()
    lead = relay.start("Tell everybody", by=ANA)
    handoff = lead.hand_off("mailer", "Tell them", hold=True, run=lambda _: "told")
    assert State.HELD is handoff.wait().state
    person = places.relay().handoff(handoff.id)
    with pytest.raises(TimeoutError):
        handoff.wait(A_SHORT_WHILE, until="decided")
    decide = (lambda: person.approve(by=ANA)) if approves else (lambda: person.deny(by=ANA, reason="no"))
    thread = threading.Thread(target=decide)
    thread.start()
    result = handoff.wait(LONG, until="decided")
    thread.join()

    assert ((State.COMPLETED, "told") if approves else (State.DENIED, None)) == (result.state, result.value)


def test_waiting_until_it_is_decided_asynchronously(relay: Relay) -> None:
    """The event loop goes on meanwhile, and the coroutine of the agent runs after the approval."""

    async def mailer(_: object) -> str:
        return "told"

    async def main() -> State:
        async with AsyncRelay(relay).start("Tell everybody", by=ANA) as lead:
            handoff = await lead.hand_off("mailer", "Tell them", hold=True, run=mailer)

            async def person() -> None:
                await handoff.approve(by=ANA)

            result, _ = await asyncio.gather(handoff.wait(LONG, until="decided"), person())
            return result.state

    assert State.COMPLETED is asyncio.run(main())


WHERE = ["of a root", "before a call", "at its offer"]


def waiting(lead: LiveRun, world: World, where: str) -> tuple[LiveHandoff | None, str]:
    """Return something that waits for an approval: its handoff if it has one, and its id."""
    if where == "of a root":
        return None, held_by(lead, world)
    handoff = lead.hand_off("shipper", "Ship it", hold=where == "at its offer", criteria=["done"])
    if where == "before a call":
        held_by(handoff.accept(), world)
    return handoff, handoff.id


def approve(relay: Relay, name: str) -> None:
    """Approve a call or a handoff."""
    (relay.held_call(name) if name.startswith("call_") else relay.handoff(name)).approve(by=BEN)


def use(lead: LiveRun, handoff: LiveHandoff | None, world: World, place: str = "prod") -> None:
    """Use an approval."""
    if handoff is None:
        lead.call(world.deploy, place)
    else:
        handoff.accept().call(world.deploy, place)


@pytest.mark.parametrize("where", WHERE)
def test_an_approval_expires(places: Places, world: World, where: str) -> None:
    """After a day it lets nothing pass: a call is held anew, and a handoff that was never begun has expired."""
    clock = FrozenClock()
    relay = places.relay(policy=STRICT, clock=clock)
    lead = relay.start("Ship", by=ANA)
    handoff, name = waiting(lead, world, where)
    approve(relay, name)
    clock.tick(timedelta(hours=24))
    with pytest.raises(ApprovalExpiredError if where == "at its offer" else CallSuspendedError) as held:
        use(lead, handoff, world)

    assert [] == world.done
    if handoff is not None and where == "at its offer":
        assert State.EXPIRED is handoff.state()
        return
    approve(relay, held.value.handoff or held.value.call)  # type: ignore[attr-defined]
    use(lead, handoff, world)
    assert ["prod"] == world.done


@pytest.mark.parametrize("where", WHERE)
def test_how_long_an_approval_lasts_is_the_policys(places: Places, world: World, where: str) -> None:
    """Just before its end it is good; the receipt says when that is, whatever the file says later."""
    clock = FrozenClock()
    policy = Policy(
        enforce=True, proven=False, approval_lasts=timedelta(hours=1), tiers={Tier.IRREVERSIBLE: Gate.APPROVE}
    )
    relay = places.relay(policy=policy, clock=clock)
    lead = relay.start("Ship", by=ANA)
    handoff, name = waiting(lead, world, where)
    approve(relay, name)
    clock.tick(timedelta(minutes=59))
    if where == "at its offer":
        assert handoff is not None
        handoff.accept().close()
    else:
        use(lead, handoff, world)

    kind = Kind.TOOL_APPROVED if handoff is None else Kind.HANDOFF_APPROVED
    (said,) = bodies(relay, kind)
    assert clock.now() + timedelta(minutes=1) == said.expires


@pytest.mark.parametrize("where", WHERE[:2])
def test_an_approval_is_used_once_and_for_the_shown_arguments(relay: Relay, world: World, where: str) -> None:
    """Other arguments are another question, and so is the same call again."""
    strict = Relay(relay.store, policy=STRICT)
    lead = strict.start("Ship", by=ANA)
    handoff, name = waiting(lead, world, where)
    approve(strict, name)
    run = lead if handoff is None else handoff.accept()
    if handoff is None:
        held_by(run, world, "elsewhere")
    run.call(world.deploy, "prod")
    held_by(run, world, "prod")

    assert ["prod"] == world.done


@pytest.mark.parametrize("where", WHERE)
def test_a_grant_that_is_revoked_after_the_approval_stops_it(places: Places, world: World, where: str) -> None:
    """The approval opens a gate; it gives no rights."""
    relay = places.relay(policy=STRICT)
    lead = relay.start("Ship", by=ANA, grant=GrantRequest(may=["write:prod"], may_delegate=["write:prod"]))
    if where == "of a root":
        handoff, name = None, held_by(lead, world)
    else:
        handoff = lead.hand_off(
            "shipper", "Ship it", hold=where == "at its offer", criteria=["done"], may=["write:prod"]
        )
        name = handoff.id
        if where == "before a call":
            held_by(handoff.accept(), world)
    approve(relay, name)
    relay.revoke_grant(lead.id if handoff is None else handoff.id, by=ANA, reason="enough")
    with pytest.raises(GrantError) as refused:
        use(lead, handoff, world)

    assert (GrantRevokedError, []) == (type(refused.value), world.done)


@pytest.mark.parametrize("where", WHERE[:2])
def test_a_limit_that_was_used_up_after_the_approval_stops_it(places: Places, world: World, where: str) -> None:
    """A sibling took what was left while the person thought: the approval adds nothing to it."""
    relay = places.relay(policy=STRICT)
    limits = Limits(calls=1)
    may = ["write:prod", "read:**"]
    lead = relay.start("Ship", by=ANA, grant=GrantRequest(may=may, may_delegate=may, limits=limits))
    if where == "of a root":
        handoff, name = None, held_by(lead, world)
    else:
        handoff = lead.hand_off("shipper", "Ship it", criteria=["done"], may=["write:prod"])
        name = handoff.id
        held_by(handoff.accept(), world)
    approve(relay, name)
    lead.call(tool("look", reads=True, target="file")(lambda file: file), "a.txt")
    with pytest.raises(ConstraintViolatedError, match="calls"):
        use(lead, handoff, world)

    assert [] == world.done


def test_taint_that_came_after_the_approval_is_judged(relay: Relay, world: World) -> None:
    """The approver did not know that words from outside had reached the run: they are asked about that."""
    strict = Relay(relay.store, policy=STRICT)
    lead = strict.start("Ship", by=ANA)
    approve(strict, held_by(lead, world))
    lead.call(tool("fetch", reads=True, external=True)(lambda url: f"{url}: new prices"), "https://x.test")
    name = held_by(lead, world)
    first, second = bodies(strict, Kind.TOOL_HELD)
    assert isinstance(second, ToolHeld)
    assert (CallId(name), True) == (second.call, first.label != second.label)
    approve(strict, name)
    lead.call(world.deploy, "prod")

    assert ["prod"] == world.done


@pytest.mark.parametrize("proven", [False, True], ids=["by name", "with keys"])
def test_two_people_at_the_same_moment_are_two(places: Places, world: World, proven: bool, monkeypatch) -> None:  # type: ignore[no-untyped-def]  # noqa: FBT001, ANN001
    """Each relay reads before the other has written: both back it, and it goes on without a third word."""
    from batonpass.handoff.approvals import decision  # noqa: PLC0415 - where the race is
    from tests.unit.handoff.approvers import an_approver  # noqa: PLC0415

    rules = (Rule(name="two", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy", approvals=2),)
    policy = Policy(enforce=True, proven=proven, rules=rules)
    relay, one, other = (places.relay(policy=policy) for _ in range(3))
    lead = relay.start("Ship", by=ANA)
    people = ("user:ben", "user:eve")
    approvers = [an_approver(relay, who) for who in people] if proven else [*people]  # type: ignore[arg-type]
    name = held_by(lead, world)
    together = threading.Barrier(2, timeout=30)
    decided = decision._decided

    def slowly(*args: object, **kwargs: object) -> object:
        said = decided(*args, **kwargs)  # type: ignore[arg-type,type-var]
        together.wait()  # both have read, and neither has written
        return said

    monkeypatch.setattr(decision, "_decided", slowly)
    threads = [
        threading.Thread(target=place.held_call(name).approve, kwargs={"by": who})
        for place, who in zip((one, other), approvers, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lead.call(world.deploy, "prod")

    assert (["prod"], 2, 1) == (
        world.done,
        len(bodies(relay, Kind.TOOL_BACKED)),
        len(bodies(relay, Kind.TOOL_APPROVED)),
    )
