"""Root runs with a key: the same start is the same run."""

import pytest

from batonpass.errors import FencedError, KeyReusedError
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, Places

WORDS = "Send the invoices"


def test_a_completed_run_is_replayed(places: Places) -> None:
    """The second start under a key makes no call and no handoff again, and writes nothing."""
    made: list[str] = []

    def send(to: str) -> str:
        made.append(to)
        return f"sent to {to}"

    def program(relay: Relay) -> tuple[str, str, bool]:
        with relay.start(WORDS, by=ANA, key="nightly") as run:
            said = run.call(send, "ana")
            with run.hand_off("clerk", "File it") as clerk:
                clerk.report("filed")
            run.report("done")
            return run.id, said, run.is_replayed

    first, again = program(places.relay()), program(places.relay())

    assert (first[:2], True, ["ana"]) == (again[:2], again[2], made)
    with places.relay().store.view() as view:
        assert 2 == len(list(view.find_runs()))


def test_an_open_run_is_resumed_and_its_old_process_is_fenced(places: Places) -> None:
    """Whoever starts it again goes on with it, and the process that had it can record nothing more."""
    gone = places.relay().start(WORDS, by=ANA, key="nightly")
    run = places.relay().start(WORDS, by=ANA, key="nightly")

    assert (gone.id, False) == (run.id, run.is_replayed)
    with pytest.raises(FencedError):
        gone.close()
    run.close()


def test_a_failed_run_frees_its_key(places: Places) -> None:
    """What failed is over: the next start is a new run that continues it."""
    relay = places.relay()
    with pytest.raises(ValueError, match="broken"), relay.start(WORDS, by=ANA, key="nightly") as failed:
        raise ValueError("broken")
    with relay.start(WORDS, by=ANA, key="nightly") as run:
        assert (failed.id,) == run.session.roots
    assert run.id == relay.start(WORDS, by=ANA, key="nightly").id


@pytest.mark.parametrize(
    ("words", "by", "named"),
    [
        pytest.param("Send reminders", ANA, "what is asked for", id="other words"),
        pytest.param(WORDS, "user:bob", r"by \(user:ana, not user:bob\)", id="another principal"),
    ],
)
def test_another_task_under_the_same_key_is_refused(relay: Relay, words: str, by: str, named: str) -> None:
    """The difference is named, and nothing is started."""
    relay.start(WORDS, by=ANA, key="nightly").close()

    with pytest.raises(KeyReusedError, match=named):
        relay.start(words, by=by, key="nightly")


def test_each_agent_has_keys_of_its_own(relay: Relay) -> None:
    """One message may be answered by one agent and filed by another."""
    runs = [relay.start(WORDS, by=ANA, agent=agent, key="mail-1") for agent in ("support", "archive")]

    assert 2 == len({run.id for run in runs})
    for run in runs:
        run.close()


def test_erased_words_are_not_compared(relay: Relay) -> None:
    """Once what was asked for is erased, the key alone decides."""
    run = relay.start(WORDS, by=ANA, key="nightly")
    run.close()
    with relay.store.view() as view:
        stated = [item.item for item in view.find_statements(run.root)]
    relay.admin.erase(stated, by=ANA, reason="asked to")

    assert run.id == relay.start("whatever it was", by=ANA, key="nightly").id
