"""A handoff that one process offers and another one accepts: what the first remembers of its offer is no truth."""

import pytest

from batonpass import Handoff, Relay, State
from batonpass.errors import LifecycleError


@pytest.fixture
def offered() -> tuple[Handoff, Handoff]:
    """Return one handoff, as the process that offered it has it and as another process has it."""
    here, there = Relay.open("ledger.db"), Relay.open("ledger.db")
    handoff = here.start("Sum the invoices", by="user:ana").hand_off("editor", "Sum them exactly")
    return handoff, there.handoff(handoff.id)


def test_what_was_completed_elsewhere_is_given_again(offered: tuple[Handoff, Handoff]) -> None:
    """`with` on an offer that another process has accepted and completed gives its attempt again."""
    here, there = offered
    with there as editor:
        editor.report("done")

    with here as again:
        assert (editor.id, True) == (again.id, again.is_replayed)
    assert State.COMPLETED == here.state()


def test_what_was_accepted_elsewhere_is_not_accepted_again(offered: tuple[Handoff, Handoff]) -> None:
    """An offer that another process works on cannot be accepted, with or without replay."""
    here, there = offered
    there.accept()

    for replay in (False, True):
        with pytest.raises(LifecycleError, match="is running"):
            here.accept(replay=replay)


def test_what_failed_elsewhere_is_not_given_again(offered: tuple[Handoff, Handoff]) -> None:
    """A failed attempt is no result: the handoff has to be retried."""
    here, there = offered
    there.accept().close(ValueError("no such invoice"))

    with pytest.raises(LifecycleError, match="is failed"):
        here.accept(replay=True)
