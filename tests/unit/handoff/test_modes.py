"""Mode and session: what a tree was started with, every receipt in it says, whoever recorded it."""

from datetime import UTC, datetime

import pytest

from batonpass.model.base.ids import SessionId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, AT_ONCE, Places, begin_only, receipts, worker
from tests.unit.model.examples import SESSION

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def go_through_everything(relay: Relay, mode: Mode, session: SessionId | None) -> None:
    """Let all that can happen to a handoff happen, by parent, worker, sweep and person."""
    lead = relay.start("begin", by=ANA, mode=mode, session=session)
    held = lead.hand_off("worker", "held", hold=True)
    relay.handoff(held.id).approve(by=ANA, reason="go on")
    held.ask("which?")
    relay.handoff(held.id).answer("this", by=ANA)
    held.decline("not now")
    relay.handoff(held.id).retry(by=ANA)
    run = held.accept()
    doubt = begin_only(run, len, "a")
    run.fail(ValueError("died"))
    relay.handoff(held.id).replace("expert", by=ANA, skip=[doubt])
    held.run(lambda _: "done")
    held.verify(verdict="fine")
    held.verify(verdict="still fine")
    lead.hand_off("worker", "denied", hold=True).deny(by=ANA, reason="no")
    for end in ("refuted", "waived"):
        done = lead.hand_off("worker", end)
        done.run(lambda _: "done")
        if end == "refuted":
            done.refute("it does not hold")
        else:
            done.accept_unverified("nobody can")
    overdue = lead.hand_off("worker", "overdue", deadline=LONG_AGO)
    lead.hand_off("worker", "lapses", carrier=Carrier.WORKER)
    slow = worker(relay, AT_ONCE)

    def sweep() -> None:
        relay.sweep()

    with pytest.raises(Exception, match="closed"):
        slow.call(sweep)
    lead.hand_off("worker", "withdrawn")
    lead.close()
    assert "expired" == overdue.state()


@pytest.mark.parametrize("session", [None, SessionId(SESSION)], ids=["in no session", "in a session"])
@pytest.mark.parametrize("mode", Mode)
def test_every_receipt_of_a_tree_says_its_mode_and_its_session(
    relay: Relay, mode: Mode, session: SessionId | None
) -> None:
    """Those in the streams of its handoffs included, which relays, workers and persons write."""
    go_through_everything(relay, mode, session)
    written = [receipt for receipt in receipts(relay) if receipt.root is not None]
    of_handoffs = {receipt.kind for receipt in written if receipt.stream.startswith("handoff_")}

    assert {(mode, session)} == {(receipt.mode, receipt.session) for receipt in written}
    assert {
        Kind.HANDOFF_ANSWERED,
        Kind.HANDOFF_APPROVED,
        Kind.HANDOFF_ASKED,
        Kind.HANDOFF_CANCELLED,
        Kind.HANDOFF_DECLINED,
        Kind.HANDOFF_DENIED,
        Kind.HANDOFF_EXPIRED,
        Kind.HANDOFF_LAPSED,
        Kind.HANDOFF_LATE,
        Kind.HANDOFF_REPLACED,
        Kind.HANDOFF_RETRIED,
        Kind.HANDOFF_SETTLED,
        Kind.VERIFICATION_FAILED,
        Kind.VERIFICATION_PASSED,
        Kind.VERIFICATION_REPEATED,
        Kind.VERIFICATION_WAIVED,
    } == of_handoffs


@pytest.mark.parametrize("mode", Mode)
def test_taking_over_what_a_dead_caller_ran_keeps_its_mode_and_session(places: Places, mode: Mode) -> None:
    """The new key, the end of the dead attempt and the retry say what the attempt's own first receipt said."""
    dead = places.relay().start("begin", by=ANA, mode=mode, session=SessionId(SESSION))
    dead.hand_off("worker", "one").accept()
    relay = places.relay()
    lead = relay.resume(dead.id)
    lead.hand_off("worker", "one").accept()
    taken_over = [
        *receipts(relay, Kind.RUN_REKEYED),
        *receipts(relay, Kind.HANDOFF_FAILED),
        *receipts(relay, Kind.HANDOFF_RETRIED),
    ]

    assert [(mode, SESSION)] * 4 == [(receipt.mode, receipt.session) for receipt in taken_over]
    lead.close()
