"""Results that are kept for a while are given again, with a receipt that says so; what is stale is called again."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from batonpass.errors import ConstraintViolatedError, InvalidValueError, StoreUnavailableError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import SessionId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, Places, bodies, fail, receipts

HOUR: Final = timedelta(hours=1)


class Service:
    """Something that takes long to answer."""

    def __init__(self, answer: Callable[[str], Any] = lambda what: {"of": what}) -> None:
        self.asked: list[str] = []

        @tool("pull", reads=True, cache_for=HOUR)
        def pull(what: str) -> Any:  # noqa: ANN401 - whatever it answers
            self.asked.append(what)
            return answer(what)

        self.pull = pull


@pytest.fixture
def clock() -> FrozenClock:
    """Return a clock that tests move."""
    return FrozenClock()


@pytest.fixture
def relay(places: Places, clock: FrozenClock) -> Relay:
    """Return a relay whose clock stands still."""
    return places.relay(clock=clock)


@pytest.fixture
def service() -> Service:
    """Return a service."""
    return Service()


def test_the_same_call_gets_the_recorded_result(lead: LiveRun, relay: Relay, service: Service) -> None:
    """It is made once, and a receipt says which call's result was given."""
    results = [lead.call(service.pull, "q1") for _ in range(3)]
    made, *others = bodies(relay, "tool.requested")
    cached = bodies(relay, "tool.cached")

    assert ([{"of": "q1"}] * 3, ["q1"], []) == (results, service.asked, others)
    assert [(made.call, "pull")] * 2 == [(body.made, body.tool) for body in cached]
    assert {receipts(relay, "tool.completed")[0].id} == {body.result for body in cached}


def test_another_argument_is_another_call(lead: LiveRun, service: Service) -> None:
    """Only the same tool with the same arguments is the same call."""
    found = [lead.call(service.pull, what) for what in ("q1", "q2", "q1")]

    assert ([{"of": "q1"}, {"of": "q2"}, {"of": "q1"}], ["q1", "q2"]) == (found, service.asked)


@pytest.mark.parametrize(
    ("passed", "made"),
    [
        pytest.param(HOUR - timedelta(microseconds=1), 1, id="the last moment at which it is fresh"),
        pytest.param(HOUR, 2, id="the first moment at which it is not"),
        pytest.param(timedelta(seconds=-1), 2, id="a clock that went back: nobody knows how old it is"),
    ],
)
def test_what_is_stale_is_called_again(
    lead: LiveRun, service: Service, clock: FrozenClock, passed: timedelta, made: int
) -> None:
    """Its time to live counts from when it was made."""
    lead.call(service.pull, "q1")
    clock.tick(passed)
    lead.call(service.pull, "q1")

    assert made == len(service.asked)


def test_the_latest_result_is_given(lead: LiveRun, clock: FrozenClock) -> None:
    """When it was made again, the newer one counts, and its time begins anew."""
    numbers = iter(range(9))
    counting = Service(lambda _: next(numbers))
    found = []
    for passed in (timedelta(0), HOUR, HOUR / 2, HOUR / 4):
        clock.tick(passed)
        found.append(lead.call(counting.pull, "q1"))

    assert [0, 1, 1, 1] == found


class TestWhere:
    """In the same tree, session or series; nowhere else."""

    def test_children_share_it(self, lead: LiveRun, service: Service) -> None:
        """What a sibling pulled a moment ago is not pulled again."""
        for name in ("one", "other"):
            with lead.hand_off(name, "pull it") as child:
                child.call(service.pull, "q1")

        assert ["q1"] == service.asked

    def test_the_next_session_shares_it(self, places: Places, service: Service, clock: FrozenClock) -> None:
        """Three sessions on, in other processes; after that it is stale."""
        run = places.relay(clock=clock).start("begin", by=ANA)
        run.call(service.pull, "q1")
        for _ in range(3):
            clock.tick(HOUR / 4)
            run = places.relay(clock=clock).resume_session("last", by=ANA)
            run.call(service.pull, "q1")
        made = len(service.asked)
        clock.tick(HOUR / 4)
        run.call(service.pull, "q1")

        assert (1, 2) == (made, len(service.asked))

    def test_a_series_shares_it(self, relay: Relay, service: Service) -> None:
        """Last time's result is this time's, while it is fresh."""
        for _ in range(3):
            with relay.start("again", by=ANA, series="quarterly") as run:
                run.call(service.pull, "q1")

        assert ["q1"] == service.asked

    def test_roots_of_one_session_share_it(self, relay: Relay, service: Service) -> None:
        """Also roots that do not continue each other."""
        session = SessionId("session_" + "0" * 26)
        for _ in range(2):
            relay.start("begin", by=ANA, session=session).call(service.pull, "q1")

        assert ["q1"] == service.asked

    def test_another_session_does_not(self, relay: Relay, service: Service) -> None:
        """What one caller pulled is none of another's business."""
        for _ in range(2):
            relay.start("begin", by=ANA).call(service.pull, "q1")

        assert ["q1", "q1"] == service.asked

    def test_nobody_can_confirm_a_guess_once_the_secret_is_erased(self, places: Places, service: Service) -> None:
        """The key is made with a secret that can be erased: then nothing is recognised, and the call is made."""
        relay = places.relay()
        lead = relay.start("begin", by=ANA)
        lead.call(service.pull, "q1")
        secret = receipts(relay, "run.started")[0].content["secret"].id
        relay.admin.erase([secret], by=ANA, reason="asked to")
        places.relay().resume(lead.id).call(service.pull, "q1")

        assert ["q1", "q1"] == service.asked


class TestWhatIsNotKept:
    """Not every result is kept."""

    @pytest.mark.parametrize(
        ("declared", "problem"),
        [
            pytest.param({"cache_for": HOUR}, "may change something", id="a tool that may change something"),
            pytest.param(
                {"reads": True, "external": True, "cache_for": HOUR}, "is fetched anew", id="what comes from outside"
            ),
            pytest.param({"reads": True, "cache_for": timedelta(0)}, "stale at once", id="for no time at all"),
            pytest.param({"reads": True, "cache_for": 60}, "cache_for", id="a number is no time"),
        ],
    )
    def test_what_cannot_be_kept_is_refused_where_it_is_declared(self, declared: dict[str, Any], problem: str) -> None:
        """Nobody finds out later."""
        with pytest.raises(InvalidValueError, match=problem):
            tool("pull", **declared)(lambda: None)

    def test_a_result_without_a_form_is_made_again(self, lead: LiveRun, relay: Relay) -> None:
        """What can only be shown cannot be given back."""
        shown = Service(lambda _: object())
        for _ in range(2):
            lead.call(shown.pull, "q1")

        assert (2, [None, None]) == (len(shown.asked), [body.cache for body in bodies(relay, "tool.completed")])

    def test_a_result_that_was_erased_is_made_again(self, lead: LiveRun, relay: Relay, service: Service) -> None:
        """The row that leads to it is only a hint where to look."""
        lead.call(service.pull, "q1")
        relay.admin.erase([receipts(relay, "tool.completed")[0].content["result"].id], by=ANA, reason="asked to")
        lead.call(service.pull, "q1")

        assert ["q1", "q1"] == service.asked

    def test_a_result_that_is_fresh_for_longer_than_time_lasts_is_not_kept(self, lead: LiveRun, relay: Relay) -> None:
        """The call is made and recorded all the same."""
        forever = tool("forever", reads=True, cache_for=timedelta.max)(lambda: 1)

        assert ([1, 1], [None, None]) == (
            [lead.call(forever) for _ in range(2)],
            [body.fresh_until for body in bodies(relay, "tool.completed")],
        )

    def test_a_failure_is_not_kept(self, lead: LiveRun) -> None:
        """The next one tries again."""
        answers = iter([OSError("away"), 7])

        def answer(_: str) -> object:
            if isinstance(found := next(answers), Exception):
                raise found
            return found

        flaky = Service(answer)
        with pytest.raises(OSError, match="away"):
            lead.call(flaky.pull, "q1")

        assert 7 == lead.call(flaky.pull, "q1")

    def test_a_tool_that_is_only_declared_external_is_called_every_time(self, lead: LiveRun) -> None:
        """What comes from outside is fetched anew."""
        fetched: list[str] = []

        @tool("fetch", reads=True, external=True)
        def fetch(url: str) -> None:
            fetched.append(url)

        for _ in range(2):
            lead.call(fetch, "https://example.org")

        assert 2 == len(fetched)


class TestDistrust:
    """An index is not a record: whatever it says, only what was signed is given back."""

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"receipt": "receipt_" + "7" * 26}, id="a receipt that is not there"),
            pytest.param({"until": FrozenClock().now()}, id="stale according to the row"),
        ],
    )
    def test_a_row_that_leads_nowhere_makes_the_call(
        self, places: Places, clock: FrozenClock, service: Service, change: dict[str, Any]
    ) -> None:
        """It is made again, which is always safe for a tool that changes nothing."""
        if places._memory is None:
            pytest.skip("rows are changed in memory")
        relay = places.relay(clock=clock)
        lead = relay.start("begin", by=ANA)
        lead.call(service.pull, "q1")
        cached = places._memory._tables.cached  # type: ignore[attr-defined]
        (call,) = cached
        honest = cached[call]
        cached[call] = replace(honest, **change)
        lead.call(service.pull, "q1")
        cached[call] = honest

        assert ["q1", "q1"] == service.asked

    def test_a_row_that_leads_to_another_result_makes_the_call(self, places: Places, clock: FrozenClock) -> None:
        """A result under another key is not taken, wherever the row points."""
        if places._memory is None:
            pytest.skip("rows are changed in memory")
        service, lead = Service(), places.relay(clock=clock).start("begin", by=ANA)
        for what in ("q1", "q2"):
            lead.call(service.pull, what)
        cached = places._memory._tables.cached  # type: ignore[attr-defined]
        one, other = cached
        honest = cached[one]
        cached[one] = replace(honest, receipt=cached[other].receipt)
        found = lead.call(service.pull, "q1")
        cached[one] = honest

        assert ({"of": "q1"}, ["q1", "q2", "q1"]) == (found, service.asked)


class TestAttempts:
    """Retries and limits."""

    def test_the_next_attempt_gets_the_same_again(self, lead: LiveRun, service: Service, clock: FrozenClock) -> None:
        """What an attempt took from what was kept is its own; it does not go stale under the next one."""
        lead.call(service.pull, "q1")
        handoff = lead.hand_off("worker", "pull it")
        first = handoff.accept()
        first.call(service.pull, "q1")
        fail(first)
        handoff.retry(by=ANA)
        clock.tick(HOUR * 2)
        second = handoff.accept()

        assert ({"of": "q1"}, ["q1"]) == (second.call(service.pull, "q1"), service.asked)
        assert ["pull"] == [call.tool for call in second.earlier.finished]

    def test_a_constraint_is_checked_before_anything_is_given(self, relay: Relay, service: Service) -> None:
        """An enforced run gets nothing that it may not call for; an observed one gets it with a flag."""
        bound = Constraint(key="what", operator="=", value="q2", binds_to="call:pull.what")
        lead = relay.start("begin", by=ANA)
        lead.call(service.pull, "q1")
        lead.record(bound)
        lead.call(service.pull, "q1")
        (body,) = bodies(relay, "tool.cached")
        enforced = relay.start("begin", by=ANA, mode=Mode.ENFORCED, items=[bound])

        assert ("would_deny.constraint",) == body.flags
        with pytest.raises(ConstraintViolatedError):
            enforced.call(service.pull, "q1")

    def test_a_store_that_cannot_be_read_makes_the_call(
        self, lead: LiveRun, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A run that is only watched goes on as if nothing had been kept."""
        lead.call(service.pull, "q1")

        def away() -> None:
            raise StoreUnavailableError("away")

        monkeypatch.setattr(lead._desk.store, "view", away)
        again = lead.call(service.pull, "q1")
        monkeypatch.setattr(lead._desk.secrets, "session_digest", lambda *_: away())
        third = lead.call(service.pull, "q1")
        monkeypatch.undo()

        assert ([{"of": "q1"}] * 2, 3) == ([again, third], len(service.asked))
