"""What earlier attempts at a handoff did: finished calls are kept, calls in doubt are put before whoever goes on."""

from datetime import timedelta

import pytest

from batonpass.errors import FencedError
from batonpass.handoff.history.past_calls import NOTHING
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.kinds import Settlement
from batonpass.model.base.lifecycle import Carrier
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, AT_ONCE, LONG, Places, begin_only


def test_a_first_attempt_starts_from_nothing(lead: LiveRun) -> None:
    """There is nothing to keep."""
    assert NOTHING == lead.hand_off("worker", "one").accept().earlier


def test_everything_of_every_attempt_is_there(lead: LiveRun) -> None:
    """Finished, in doubt, children and messages, over more than one attempt; reads are never in doubt."""
    look = tool("look", reads=True)(lambda what: what)
    handoff = lead.hand_off("worker", "one")
    for number in range(3):
        run = handoff.accept()
        run.call(len, f"done {number}")
        begin_only(run, len, f"doubt {number}")
        begin_only(run, look, f"look {number}")
        run.hand_off("leaf", f"child {number}", carrier=Carrier.WORKER)
        run.checkpoint({"number": number})
        run.fail(ValueError("died"))
        handoff.retry()
    last = handoff.accept()
    parts = (last.earlier.finished, last.earlier.in_doubt, last.earlier.children)

    assert (3, 3, 3, 3) == (last.earlier.attempts, *map(len, parts))
    assert {"number": 2} == last.messages()


def test_what_was_kept_has_a_duration_and_a_cost(places: Places) -> None:
    """A clock that goes backwards in between takes nothing away."""
    clock = FrozenClock()
    lead = places.relay(clock=clock).start("begin", by=ANA)
    handoff = lead.hand_off("worker", "one")
    run = handoff.accept()

    @tool("work", cost=lambda _: 2)
    def work(by: int) -> None:
        clock.tick(timedelta(seconds=by))

    run.call(work, 90)
    run.call(work, -86_400)
    run.fail(ValueError("died"))
    kept = handoff.retry().kept

    assert (timedelta(seconds=90), 4_000_000) == (kept.kept_for, kept.cost)


def test_a_late_outcome_is_evidence_and_no_result(places: Places) -> None:
    """The call of a lapsed attempt came to an end after all: it is listed, and still in doubt."""
    there, here = places.relay(), places.relay()
    lead = here.start("begin", by=ANA)
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    lease = there.claim(holder="slow", lease_for=AT_ONCE)
    run = there.handoff(handoff.id).accept(lease=lease)

    def act() -> str:
        here.sweep()
        return "done, too late"

    with pytest.raises((FencedError, Exception), match=r"closed|epoch"):
        run.call(act)
    lease = here.claim(holder="fast", lease_for=LONG)
    earlier = here.handoff(handoff.id).accept(lease=lease).earlier

    assert [call.id for call in earlier.in_doubt] == [call.id for call in earlier.late]
    assert 1 == len(earlier.late)


def test_a_root_resumes_its_own_calls(places: Places) -> None:
    """The program is run again from its beginning: what it did is given back, what is in doubt is refused."""
    done: list[str] = []

    def mail(to: str) -> str:
        done.append(to)
        return f"sent to {to}"

    old = places.relay().start("begin", by=ANA)
    old.call(mail, "bob")
    doubt = begin_only(old, mail, "eve")
    new = places.relay().resume(old.id)
    first = new.call(mail, "bob")
    with pytest.raises(Exception, match="outcome is unknown"):
        new.call(mail, "eve")
    new.settle(doubt, Settlement.REPEAT, by=ANA)
    new.call(mail, "eve")
    new.close()

    assert ("sent to bob", ["bob", "eve"]) == (first, done)


def test_children_of_a_lapsed_attempt_are_adopted_by_key(relay: Relay, lead: LiveRun) -> None:
    """They went on meanwhile; the next attempt asks for the same and gets what is there."""
    handoff = lead.hand_off("worker", "mid", carrier=Carrier.WORKER)
    lease = relay.claim(holder="dies", lease_for=AT_ONCE, agents=["worker"])
    first = relay.handoff(handoff.id).accept(lease=lease)
    leaf = first.hand_off("leaf", "small", carrier=Carrier.WORKER)
    relay.sweep()
    relay.handoff(leaf.id).run(lambda _: "leaf done", lease=relay.claim(holder="w", lease_for=LONG, agents=["leaf"]))
    lease = relay.claim(holder="lives", lease_for=LONG, agents=["worker"])
    second = relay.handoff(handoff.id).accept(lease=lease)
    adopted = second.hand_off("leaf", "small", carrier=Carrier.WORKER)

    assert (leaf.id, "leaf done", [leaf.id]) == (
        adopted.id,
        adopted.wait(timedelta(seconds=5)).value,
        [child.id for child in second.earlier.children],
    )
    second.close()
