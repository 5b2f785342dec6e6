"""Workers at one database: what each of them sees while another has not committed yet, or was never answered."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from batonpass.errors import LeaseLostError, OfferedAlreadyError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import sign_receipt
from batonpass.model.base.ids import AgentId, Digest, HandoffId, StreamId, new_handoff_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import ErrorType, HandoffAsked, HandoffCancelled, HandoffInitiated
from batonpass.model.ledger.entry import Entry
from batonpass.store.postgres.append import write
from batonpass.store.postgres.leases import claiming, seizing
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing.builders import ANA, Scribe, a_scribe
from batonpass.testing.conformance.leases import (
    A_WHILE,
    AT_ONCE,
    claimed,
    leases_of,
    nothing_to_claim,
    state_of,
    taken,
    waiting,
)
from batonpass.testing.conformance.offers import KEY, offered
from batonpass.testing.conformance.support import NOW, head_of
from tests.integration.postgres.proxy import Lost, Proxy
from tests.integration.postgres.support import (
    a_transaction,
    database_of,
    eventually,
    meanwhile,
    waiting_backends,
)
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    """Return a wire to the server that can be cut."""
    with Proxy(postgres.port) as proxy:
        yield proxy


def a_question(store: PostgresStore, scribe: Scribe, handoff: HandoffId, token: int | None) -> Entry:
    """Return what a worker that cannot go on says under its lease."""
    with store.view() as view:
        known = view.get_handoff(handoff)
    body = HandoffAsked(handoff=handoff, by=ANA, error=ErrorType.DATA_GAP, check="deadline", question=KEY)
    draft = Draft(stream=StreamId(handoff), body=body, root=known.root, anchor=known.initiated)
    return Entry(signed=sign_receipt(draft, None, scribe.identity, NOW), token=token)


def test_an_offer_waits_for_the_other_under_its_key(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Of two that offer under one key at once, the second waits for the first and is then told its name."""
    first, second = scribe.start(), scribe.start()
    body = HandoffInitiated(
        handoff=new_handoff_id(NOW),
        run=first.run.id,
        to=AgentId("editor"),
        carrier=Carrier.CALLER,
        state=State.OFFERED,
        scope=StreamId(first.run.id),
        key=KEY,
        fingerprint=Digest("cd" * 32),
    )
    draft = Draft(stream=StreamId(first.run.id), body=body, root=first.run.root)
    with a_transaction(postgres, postgres_url) as other:
        write(other, [Entry(signed=sign_receipt(draft, head_of(store, first), scribe.identity, NOW))])
        with meanwhile(lambda: offered(scribe, second, scope=first.run.id)) as offer:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            with pytest.raises(OfferedAlreadyError) as refused:
                offer.result()

    assert body.handoff == refused.value.handoff


def test_an_offer_that_was_taken_back_leaves_its_key(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """If the first of two under one key does not commit, the second succeeds."""
    first, second = scribe.start(), scribe.start()
    with a_transaction(postgres, postgres_url) as other:
        columns = "id, root, parent, agent, carrier, state, attempt, initiated, seq, scope, key"
        other.execute(
            f"INSERT INTO handoffs ({columns}) VALUES ('x', 'x', 'x', 'x', 'caller', 'offered', 0, 'x', 1, %s, %s)",
            [first.run.id, KEY],
        )
        with meanwhile(lambda: offered(scribe, second, scope=first.run.id)) as offer:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.rollback()
            handoff = offer.result()

    with store.view() as view:
        assert handoff == view.get_offer(StreamId(first.run.id), KEY).id


def test_a_claim_passes_over_what_another_is_taking(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Nobody waits for another's claim: the next one is taken, and if there is none, none."""
    lead = scribe.start()
    first, second = sorted(waiting(scribe, parent=lead) for _ in range(2))
    with a_transaction(postgres, postgres_url) as other:
        theirs = claiming("theirs", A_WHILE, None).run(other)
        mine = claimed(store, A_WHILE, "editor")
        assert nothing_to_claim(store)
        other.rollback()

    assert (first, second) == (theirs and theirs.handoff, mine.handoff)
    assert first == claimed(store).handoff


def test_a_lease_is_not_taken_over_while_it_is_used(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Whoever records under a lease that has run out, and was first, is not overtaken before the commit."""
    handoff = waiting(scribe)
    lease = claimed(store, AT_ONCE)
    question = a_question(store, scribe, handoff, lease.token)
    with a_transaction(postgres, postgres_url) as other:
        write(other, [question])
        assert store.seize(holder="sweeper", lease_for=A_WHILE) is None
        other.commit()

    assert (State.ASKED, []) == (state_of(store, handoff), leases_of(store))


def test_a_lease_is_not_used_while_it_is_taken_over(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Whoever records under a lease that another is taking over waits, and has lost it."""
    handoff = waiting(scribe)
    lease = claimed(store, AT_ONCE)
    question = a_question(store, scribe, handoff, lease.token)
    with a_transaction(postgres, postgres_url) as other:
        seizing("sweeper", A_WHILE).run(other)
        with meanwhile(lambda: store.append([question])) as append:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            with pytest.raises(LeaseLostError):
                append.result()

    assert State.CLAIMED == state_of(store, handoff)


def test_a_release_waits_for_the_move_and_frees_nothing(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A lease that is given back while its handoff is being withdrawn does not bring it back to the workers."""
    handoff = waiting(scribe)
    lease = claimed(store)
    with store.view() as view:
        known = view.get_handoff(handoff)
    body = HandoffCancelled(handoff=handoff, by=ANA)
    draft = Draft(stream=StreamId(handoff), body=body, root=known.root, anchor=known.initiated)
    with a_transaction(postgres, postgres_url) as other:
        write(other, [Entry(signed=sign_receipt(draft, None, scribe.identity, NOW))])
        with meanwhile(lambda: store.release(lease)) as release:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            release.result()

    assert (State.CANCELLED, []) == (state_of(store, handoff), leases_of(store))
    assert nothing_to_claim(store)


def test_a_release_waits_for_the_beginning_and_frees_nothing(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A lease that is given back while the work begins under it is over, and nobody else gets the work."""
    handoff = waiting(scribe)
    lease = claimed(store)
    with a_transaction(postgres, postgres_url) as other:
        other.execute("UPDATE handoffs SET state = 'running', attempt = 1 WHERE id = %s", [handoff])
        with meanwhile(lambda: store.release(lease)) as release:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            release.result()

    assert (State.RUNNING, []) == (state_of(store, handoff), leases_of(store))
    assert nothing_to_claim(store)


@pytest.mark.parametrize("lost", list(Lost), ids=["the request is lost", "the reply is lost"])
def test_a_claim_whose_answer_was_lost_is_asked_for(
    postgres: Server,
    postgres_url: str,
    proxy: Proxy,
    lost: Lost,
) -> None:
    """A worker whose connection breaks gets one lease, and no handoff lies idle under a lease that nobody knows of."""
    url = postgres.url(database_of(postgres_url), port=proxy.port)
    with closing(PostgresStore(url, connections=1)) as distant:
        scribe = a_scribe(distant)
        lead = scribe.start()
        handoffs = sorted(waiting(scribe, parent=lead) for _ in range(2))
        proxy.lose(lost)
        lease = claimed(distant)

        assert handoffs[0] == lease.handoff
        assert [lease] == leases_of(distant)
        assert State.READY == state_of(distant, handoffs[1])
        taken(scribe, lease)


@pytest.mark.usefixtures("scribe")
def test_a_move_changes_no_indexed_column(postgres: Server, postgres_url: str) -> None:
    """What happens to a handoff touches none of its indexes, so that its row can stay on its page.

    Only one that goes to another agent is found in another place: the index by agent has it anew.
    """
    with psycopg.connect(postgres.admin_url(database_of(postgres_url))) as connection:
        definitions = [
            definition
            for (definition,) in connection.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'handoffs'")
        ]

    columns = {
        "id)",
        '"right"(id, 4))',
        "parent)",
        "agent, id)",
        "scope, key) WHERE (key IS NOT NULL)",
        "deadline) WHERE (deadline IS NOT NULL)",
    }
    assert columns == {definition.partition(" USING btree (")[2] for definition in definitions}
