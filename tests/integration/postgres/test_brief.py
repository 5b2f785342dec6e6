"""What comes along with a claim: what is read before a handoff is taken, in as few round trips as there are acts."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from batonpass import Brief
from batonpass.dispatch.worker import Worker
from batonpass.errors import HandoffEndedError, NotFoundError, StaleHeadError
from batonpass.handoff.history.offers import read_offer
from batonpass.ledger.position import standing
from batonpass.model.base.ids import AgentId, HandoffId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Constraint, Decision
from batonpass.model.ledger.lease import Lease
from batonpass.relay import Relay
from batonpass.store.port import LedgerView
from batonpass.store.postgres import claim_brief
from batonpass.store.postgres.leases import claiming
from batonpass.store.postgres.prepared_statements import Channel
from batonpass.store.postgres.store import PostgresStore
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.postgres.support import database_of
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres

A_MINUTE: Final = timedelta(minutes=1)


@pytest.fixture
def relay(postgres_url: str, tmp_path: Path) -> Iterator[Relay]:
    """Return a relay with an editor."""
    with Relay.open(postgres_url, home=tmp_path) as relay:
        relay.register("editor", lambda _: "edited")
        yield relay


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often somebody waits for the server."""
    waits: list[int] = []

    def count(owner: type, name: str) -> None:
        wait = getattr(owner, name)

        def counted(self: Any, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - as its owner has it
            waits.append(1)
            return wait(self, *given, **more)

        monkeypatch.setattr(owner, name, counted)

    count(psycopg.Connection, "wait")
    count(Channel, "talk")
    return waits


def offer(relay: Relay, task: str = "Edit a.py") -> HandoffId:
    lead = relay.start("Fix it", by="user:ana", items=[Constraint("only src/")])
    lead.record(Decision("round half-even", why="tax office"))
    return lead.hand_off("editor", task, carrier="worker", brief=Brief(rationale="you know it")).id


def claim(relay: Relay) -> Lease:
    lease = relay.claim(holder="here", lease_for=A_MINUTE)
    assert lease is not None
    return lease


def read(view: LedgerView, handoff: HandoffId) -> tuple[object, ...]:
    """Return all that an acceptance reads."""
    known = view.get_handoff(handoff)
    beginning = view.get_receipt_at(StreamId(known.root), 1)
    words = sorted(ref.id for ref in decode_receipt(beginning.payload).content.values())
    return (
        known,
        standing(view, handoff)[1],
        read_offer(view, known),
        view.get_run(known.parent),
        beginning,
        list(view.find_contents(words)),
        [view.get_content(content) for content in words],
        list(view.find_statements(known.root)),
        list(view.find_keys()),
    )


def test_each_act_of_a_worker_is_one_round_trip(relay: Relay, trips: list[int]) -> None:
    """Claim, accept and close: what it needs comes along with the claim, and what it closed it does not read again."""
    worker = Worker(relay)
    for task in ("Edit a.py", "Edit b.py"):
        offer(relay, task)
        trips.clear()
        worker.work_one()

    assert 3 == len(trips)


def test_what_comes_along_is_what_is_there(relay: Relay, store: PostgresStore, trips: list[int]) -> None:
    """Whatever is asked about a handoff has the same answer, whether it came along or is asked for."""
    handoff = offer(relay)
    with store.view() as view:
        asked = read(view, handoff)
    with store.view(about=handoff) as view:
        trips.clear()
        told = read(view, handoff)
        count = len(trips)

    assert (asked, 1) == (told, count)


def test_what_was_acted_on_comes_along_too(relay: Relay, store: PostgresStore) -> None:
    """A handoff with a past has a stream of its own and an attempt before; both are read as they are."""
    handoff = offer(relay)
    relay.handoff(handoff).ask("Which file?", by="agent:editor")
    relay.handoff(handoff).answer("a.py", by="user:ana")
    with store.view() as view:
        asked = read(view, handoff)
    with store.view(about=handoff) as view:
        assert asked == read(view, handoff)


def test_a_handoff_that_is_not_there_is_not_found(store: PostgresStore, relay: Relay) -> None:
    """Nothing comes along of nothing."""
    offer(relay)
    missing = HandoffId("handoff_" + "0" * 26)
    with store.view(about=missing) as view, pytest.raises(NotFoundError):
        view.get_handoff(missing)


def test_looking_further_is_in_the_same_moment(relay: Relay, store: PostgresStore) -> None:
    """What did not come along is read only if what came along is still so. A position that was given is no matter."""
    handoff = offer(relay)
    with store.view(about=handoff) as view:
        view.get_handoff(handoff)
        store.sequence()
        assert view.counts().handoffs == 1
    with store.view(about=handoff) as view:
        view.get_handoff(handoff)
        relay.handoff(handoff).cancel(by="user:ana", reason="changed my mind")
        with pytest.raises(StaleHeadError):
            view.counts()


def test_an_offer_is_one_round_trip(relay: Relay, trips: list[int]) -> None:
    """What it takes for granted is asked for on the way; accept and close are one each."""
    lead = relay.start("Fix it", by="user:ana", items=[Constraint("only src/")])
    counts = []
    for task in ("Edit a.py", "Edit b.py", "Edit c.py"):
        trips.clear()
        with lead.hand_off("editor", task):
            pass
        counts.append(len(trips))

    assert [3, 3] == counts[1:]


def test_what_happens_between_a_claim_and_its_acceptance_counts(relay: Relay) -> None:
    """What came along with the claim says that it waits; the commit says that it does not."""
    offer(relay)
    lease = claim(relay)
    relay.handoff(lease.handoff).cancel(by="user:ana", reason="changed my mind")
    with pytest.raises(HandoffEndedError):
        relay.handoff(lease).accept(lease=lease)

    assert State.CANCELLED is relay.handoff(lease).state()


def test_an_erased_word_is_not_told(relay: Relay, store: PostgresStore) -> None:
    """What was erased before the claim is gone for whoever takes it."""
    handoff = offer(relay)
    with store.view() as view:
        task = read_offer(view, view.get_handoff(handoff)).baton.items[-1]
    relay.admin.erase([task.id], by="user:ana", reason="asked to")
    with store.view(about=handoff) as view:
        items = read_offer(view, view.get_handoff(handoff)).baton.items

    assert [None] == [item.value for item in items if item.id == task.id]


def test_what_came_along_is_told_once_and_only_while_it_is_fresh(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, trips: list[int]
) -> None:
    """Who looks a second time, or late, is told how things are then."""
    offer(relay)
    store = relay.store
    counts = []
    for seconds in (1.0, 0.0):
        monkeypatch.setattr(claim_brief, "_FRESH_SECONDS", seconds)
        lease = claim(relay)
        for _ in range(2):
            trips.clear()
            with store.view(about=lease.handoff) as view:
                view.get_handoff(lease.handoff)
            counts.append(len(trips))
        relay.release(lease)

    assert [0, 1, 1, 1] == counts


@pytest.mark.parametrize(
    "agents", [["editor"], ["editor", "writer"], None], ids=["one agent", "two agents", "any agent"]
)
def test_a_claim_that_finds_nothing_brings_nothing_along(
    postgres_url: str, relay: Relay, agents: list[AgentId]
) -> None:
    """Not even what an earlier one of the same connection found."""
    offer(relay)
    with closing(PostgresStore(postgres_url, connections=1)) as store:
        takings = [claiming("here", A_MINUTE, agents) for _ in range(2)]
        first, second = (store._connections.repeat(taking.run) for taking in takings)
        told = [taking.brief is not None and ("find_keys",) in taking.brief.answers for taking in takings]

    assert first is not None
    assert (None, [True, False]) == (second, told)


def test_only_a_claim_is_not_waited_for_on_the_disk(relay: Relay, store: PostgresStore) -> None:
    """Its haste ends with it: whatever the same connection commits next is durable."""
    offer(relay)
    store.claim(holder="here", lease_for=A_MINUTE)
    connections = store._connections
    with connections.writer(connections.patience()) as writer:
        assert ("on",) == writer.execute("SHOW synchronous_commit").fetchone()


def test_bytes_that_somebody_edited_do_not_keep_a_claim_from_being_made(
    postgres: Server, postgres_url: str, relay: Relay
) -> None:
    """An offer that is no text any more comes along as it is, and whoever reads it says so."""
    offer(relay)
    spoil = "UPDATE receipts SET payload = '\\xff00fe' WHERE kind = 'handoff.initiated'"
    postgres.execute(spoil, database=database_of(postgres_url))

    assert "here" == claim(relay).holder
