"""Interrupted calls: nobody knows how far they came, so they have no outcome and are in doubt."""

from functools import partial
from typing import Any

import pytest

from batonpass.errors import CallInDoubtError, FencedError, StreamClosedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.runtime.faults import code_of
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.kinds import Settlement
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, Places, bodies


class Mailbox:
    """Mails that were sent; whoever sends one may be interrupted before or after it is out."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.before: list[BaseException] = []
        self.after: list[BaseException] = []

    def mail(self, to: str) -> str:
        """Send a mail; nobody can take it back."""
        for interrupt in self.before:
            self.before.clear()
            raise interrupt
        self.sent.append(to)
        for interrupt in self.after:
            self.after.clear()
            raise interrupt
        return f"sent to {to}"


@pytest.fixture
def box() -> Mailbox:
    """Return a mailbox that is empty."""
    return Mailbox()


@pytest.fixture(params=[KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=code_of)
def interrupt(request: pytest.FixtureRequest) -> BaseException:
    """Return what ends a program, or a part of it, at any point."""
    raised: BaseException = request.param
    return raised


def interrupted(run: LiveRun, function: Any, interrupt: BaseException) -> None:  # noqa: ANN401 - any tool
    """Let a call be interrupted, and its attempt end as it does then."""
    with pytest.raises(type(interrupt)), run:
        run.call(function, "bob")


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_call_is_not_made_again_by_itself(
    lead: LiveRun, relay: Relay, box: Mailbox, interrupt: BaseException, when: str
) -> None:
    """Whether the mail is out or not: the call did not fail, the next attempt finds it listed, and refuses it."""
    getattr(box, when).append(interrupt)
    handoff = lead.hand_off("worker", "send the mails")
    interrupted(handoff.accept(), box.mail, interrupt)
    (requested,) = bodies(relay, "tool.requested")
    listed = [call.id for call in handoff.retry().kept.in_doubt]
    run = handoff.accept()
    with pytest.raises(CallInDoubtError, match=requested.call):
        run.call(box.mail, "bob")

    assert ([requested.call], ["bob"] * (when == "after")) == (listed, box.sent)
    assert [] == [*bodies(relay, "tool.failed"), *bodies(relay, "tool.completed")]


def test_an_interrupted_call_goes_on_once_somebody_decided(
    lead: LiveRun, box: Mailbox, interrupt: BaseException
) -> None:
    """It is settled as any other doubt."""
    box.before.append(interrupt)
    handoff = lead.hand_off("worker", "send the mails")
    interrupted(handoff.accept(), box.mail, interrupt)
    (doubt,) = handoff.retry().kept.in_doubt
    handoff.settle(doubt.id, Settlement.REPEAT, by=ANA, reason="it is not in the outbox")

    assert ("sent to bob", ["bob"]) == (handoff.accept().call(box.mail, "bob"), box.sent)


@pytest.mark.parametrize("how", ["idempotent", "reads"])
def test_an_interrupted_call_is_repeated_if_that_is_safe(
    lead: LiveRun, relay: Relay, box: Mailbox, interrupt: BaseException, how: str
) -> None:
    """A tool that is idempotent by key, or only reads, is called again with the same key."""
    act = tool("act", **{how: True})(partial(box.mail))  # type: ignore[call-overload]
    box.before.append(interrupt)
    handoff = lead.hand_off("worker", "send the mails")
    interrupted(handoff.accept(), act, interrupt)
    handoff.retry()

    assert ("sent to bob", ["bob"]) == (handoff.accept().call(act, "bob"), box.sent)
    assert 1 == len({body.key for body in bodies(relay, "tool.requested")})


def test_a_root_that_was_interrupted_lists_its_doubt(places: Places, box: Mailbox) -> None:
    """Whoever resumes it is not led to believe that nothing happened."""
    lead = places.relay().start("begin", by=ANA)
    box.after.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        lead.call(box.mail, "bob")
    again = places.relay().resume(lead.id)
    with pytest.raises(CallInDoubtError):
        again.call(box.mail, "bob")

    assert (["mail"], ["bob"]) == ([call.tool for call in again.earlier.in_doubt], box.sent)


def test_an_interrupt_in_a_run_that_is_over_stays_an_interrupt(lead: LiveRun, relay: Relay) -> None:
    """There is nothing to record, so nothing stands in its way; what comes after it is refused."""
    handoff = lead.hand_off("worker", "it")
    run = handoff.accept()

    def act() -> None:
        handoff.cancel(reason="enough")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.call(act)
    with pytest.raises((StreamClosedError, FencedError)):
        run.call(len, "a")

    assert [] == bodies(relay, "handoff.late")
