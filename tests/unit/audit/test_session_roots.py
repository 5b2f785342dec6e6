"""What people mean by a session."""

import pytest

from batonpass.audit.meant_ids import get_session
from batonpass.audit.session_roots import before, find_roots, find_sessions, find_stops
from batonpass.errors import NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import SessionId
from batonpass.model.baton.session import Stop, session_of
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore

ANA = "user:ana"
SESSION = SessionId("session_" + "0" * 22 + "abcd")


@pytest.fixture
def relay() -> Relay:
    """Return a relay on a ledger in memory."""
    return Relay(MemoryStore())


def own_session(run: LiveRun) -> SessionId:
    """Return the session of a root that nobody gave one."""
    return SessionId(f"session_{run.id.partition('_')[2]}")


@pytest.mark.parametrize("form", ["{}", "session_{}", " …{} "])
def test_a_root_is_a_session_of_its_own(relay: Relay, form: str) -> None:
    """It is found by the root's last characters, or as a session with the same ones."""
    lead = relay.start("begin", by=ANA)
    relay.start("another", by=ANA)
    with relay.store.view() as view:
        found = get_session(view, form.format(lead.id.partition("_")[2]))

    assert own_session(lead) == found


def test_a_child_is_no_session(relay: Relay) -> None:
    """Only roots are."""
    child = relay.start("begin", by=ANA).hand_off("worker", "do it").accept()

    with relay.store.view() as view, pytest.raises(NotFoundError):
        get_session(view, child.id)


def test_the_last_is_that_of_the_last_root(relay: Relay) -> None:
    """Whatever came below it since."""
    relay.start("begin", by=ANA)
    last = relay.start("another", by=ANA, session=SESSION)
    last.hand_off("worker", "do it").accept()
    with relay.store.view() as view:
        assert (SESSION, SESSION) == (get_session(view, "last"), get_session(view, "abcd"))


def test_sessions_are_listed_once_the_latest_first(relay: Relay) -> None:
    """With all their roots, the oldest first."""
    one = relay.start("one", by=ANA)
    other = relay.start("other", by=ANA, session=SESSION)
    again = relay.resume_session(one.id, by=ANA)
    with relay.store.view() as view:
        found = [(session, [root.id for root in roots]) for session, roots in find_sessions(view)]

    assert [(own_session(one), [one.id, again.id]), (SESSION, [other.id])] == found


def test_it_stops_at_what_nobody_continues_and_at_what_wrote_on(relay: Relay) -> None:
    """Of the latter, only what comes after is new; what is over and continued is past."""
    first = relay.start("begin", by=ANA)
    second = relay.resume_session(first.id, by=ANA)
    with relay.store.view() as view:
        at = view.get_stream(first.id).seq  # type: ignore[arg-type]
        quiet = find_stops(view, find_roots(view, own_session(first)))
    first.close()
    with relay.store.view() as view:
        wrote_on = find_stops(view, find_roots(view, own_session(first)))

    assert [Stop(second.id)] == quiet
    assert [Stop(first.id, at), Stop(second.id)] == wrote_on


def test_before_it_is_what_it_goes_on_from(relay: Relay) -> None:
    """A root that begins anew has nothing before it; the next of a series has the last one."""
    one = relay.start("one", by=ANA, series="s")
    two = relay.start("two", by=ANA, series="s")
    with relay.store.view() as view:
        assert ([], [Stop(one.id)]) == (before(view, one.id), before(view, two.id))
        assert session_of(view.get_run(two.id)) == get_session(view, "s")


def test_the_name_of_a_series_is_meant_before_the_end_of_an_id(relay: Relay) -> None:
    """Ids are random: one of them ends like a short name sooner or later."""
    chance = relay.start("another", by=ANA)
    name = next(chance.id[-length:] for length in range(1, 27) if chance.id[-length].isalpha())
    of_series = relay.start("one", by=ANA, series=name)
    with relay.store.view() as view:
        assert session_of(view.get_run(of_series.id)) == get_session(view, name)
