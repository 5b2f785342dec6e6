"""Other sessions in the way: who waits for whom, for how long, and what is true afterwards."""

from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from batonpass.errors import IllegalTransitionError, StaleHeadError, StoreBusyError, UnknownRelayError
from batonpass.ledger.draft import Draft
from batonpass.ledger.position import child_head
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.bodies.body import GrantRevoked, HandoffLapsed
from batonpass.model.ledger.key import KeyStatus
from batonpass.store.port import ReceiptQuery
from batonpass.store.postgres import connections
from batonpass.store.postgres.append import write
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe
from batonpass.testing.builders import ANA
from batonpass.testing.conformance.support import a_second_relay, all_receipts, an_entry, head_of
from tests.integration.postgres.support import (
    a_transaction,
    database_of,
    digests_in,
    eventually,
    meanwhile,
    next_head,
    waiting_backends,
)
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres


def last_position(store: PostgresStore) -> int:
    with store.view() as view:
        return view.last_position()


def revoke(scribe: Scribe, other: Scribe) -> None:
    """Take another relay's right away."""
    public_key = other.identity.signer.public_key
    scribe.enrolment.revoke(other.identity.id, public_key, reason="lost laptop", root=scribe.root)


def test_a_lock_that_is_never_released_is_not_waited_for_forever(
    postgres: Server,
    postgres_url: str,
    scribe: Scribe,
) -> None:
    """An append gives up after the statement's time, and says that somebody else is in the way."""
    lead = scribe.start()
    entry = an_entry(scribe, lead, head_of(scribe.store, lead))
    impatient = postgres.url(database_of(postgres_url), options="-c%20statement_timeout%3D100ms")
    with a_transaction(postgres, postgres_url) as other, closing(PostgresStore(impatient)) as store:
        other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [lead.run.id])
        with pytest.raises(StoreBusyError, match=r"another session keeps postgresql://.* waiting"):
            store.append([entry])


def test_a_session_that_is_idle_in_a_transaction_is_ended(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A process that froze inside a transaction loses it, and its stream is free for others."""
    lead = scribe.start()
    frozen, entry = (an_entry(scribe, lead, head_of(store, lead)) for _ in range(2))
    url = postgres.url(database_of(postgres_url), options="-c%20idle_in_transaction_session_timeout%3D100ms")
    with closing(PostgresStore(url)) as other:
        lender = other._connections
        with lender.writer(lender.patience()) as connection:
            connection.execute("BEGIN")
            write(connection, [frozen])
            store.append([entry])
            with pytest.raises(psycopg.Error):
                connection.execute("COMMIT")

    assert [entry.signed.digest] == digests_in(store, lead)[1:]


def test_a_revocation_waits_for_appends_under_way(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """What a key recorded before its revocation was committed before it, and stands before it in the order of all."""
    lead, second = scribe.start(), a_second_relay(scribe)
    entry = an_entry(replace(scribe, identity=second.identity), lead, head_of(store, lead))
    with a_transaction(postgres, postgres_url) as other:
        write(other, [entry])
        with meanwhile(lambda: revoke(scribe, second)) as revocation:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            revocation.result()
    store.sequence()

    assert [entry.signed.receipt.kind, "relay.revoked"] == [
        found.kind for found in all_receipts(store, ReceiptQuery(first=1))[-2:]
    ]


def test_an_append_waits_for_a_revocation_under_way(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """An append that began before a revocation committed is judged by it."""
    lead, second = scribe.start(), a_second_relay(scribe)
    entry = an_entry(replace(scribe, identity=second.identity), lead, head_of(store, lead))
    with a_transaction(postgres, postgres_url) as other:
        other.execute("LOCK TABLE receipts IN SHARE ROW EXCLUSIVE MODE")
        other.execute("UPDATE keys SET status = %s WHERE id = %s", [KeyStatus.REVOKED, second.identity.signer.key])
        with meanwhile(lambda: store.append([entry])) as append:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            with pytest.raises(UnknownRelayError, match="is no longer active"):
                append.result()

    assert 1 == head_of(store, lead).seq


def test_streams_do_not_wait_for_each_other(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A transaction that is open on one stream holds up nobody who writes another."""
    first, second = scribe.start(), scribe.start()
    held, free = (an_entry(scribe, lead, head_of(store, lead)) for lead in (first, second))
    with a_transaction(postgres, postgres_url) as other:
        write(other, [held])
        store.append([free])
        assert 2 == head_of(store, second).seq
        assert 1 == head_of(store, first).seq


def test_a_refusal_is_decided_by_how_the_stream_stands_now(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A writer that had to wait for another is judged by what that one committed."""
    lead = scribe.start()
    head = head_of(store, lead)
    theirs, mine = an_entry(scribe, lead, head), an_entry(scribe, lead, head)
    with a_transaction(postgres, postgres_url) as other:
        write(other, [theirs])
        with meanwhile(lambda: store.append([mine])) as append:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            with pytest.raises(StaleHeadError):
                append.result()

    assert next_head(head, theirs) == head_of(store, lead)


def test_a_handoff_that_moved_meanwhile_is_judged_by_where_it_is(
    postgres: Server,
    postgres_url: str,
    scribe: Scribe,
) -> None:
    """Of two that accept at once, the second waits and then learns that the handoff runs already."""
    handoff = scribe.offer(scribe.start())
    with a_transaction(postgres, postgres_url) as other:
        other.execute("UPDATE handoffs SET state = 'running', attempt = 1 WHERE id = %s", [handoff])
        with meanwhile(lambda: scribe.recording.accept(handoff)) as acceptance:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            with pytest.raises(IllegalTransitionError, match="that is running in attempt 1"):
                acceptance.result()


def test_a_run_that_moved_meanwhile_is_not_fenced(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Who ends an attempt that just recorded something has to look again where it stands."""
    handoff = scribe.recording.offer(scribe.start(), AgentId("editor"), "edit", carrier=Carrier.WORKER)
    editor = scribe.recording.accept(handoff)
    head = head_of(store, editor)
    with store.view() as view:
        known = view.get_handoff(handoff)
    body = HandoffLapsed(handoff=handoff, attempt=1, ended=child_head(head))
    lapsed = Draft(stream=StreamId(handoff), body=body, root=known.root, anchor=known.initiated)
    with a_transaction(postgres, postgres_url) as other:
        write(other, [an_entry(scribe, editor, head)])
        with meanwhile(lambda: scribe.ledger.append(lapsed)) as lapse:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            with pytest.raises(StaleHeadError, match=editor.run.id):
                lapse.result()

    assert head_of(store, editor).open


def test_a_view_waits_for_its_turn(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When all connections are lent, the next view is opened as soon as one comes back."""
    monkeypatch.setattr(connections, "_TURN_SECONDS", 0.02)
    with closing(PostgresStore(postgres_url, connections=1)) as store, ExitStack() as first:
        first.enter_context(store.view())
        readers = store._connections._readers
        with meanwhile(lambda: last_position(store)) as second:
            eventually(lambda: readers.waiting)
            first.close()
            assert 0 == second.result()


def test_all_connections_in_use_is_said_to_be_so(postgres_url: str) -> None:
    """Who holds more views than there are connections is told, and an append still gets through."""
    with closing(PostgresStore(postgres_url, connections=1, wait_for=timedelta(seconds=0.2))) as store, store.view():
        with pytest.raises(StoreBusyError, match="all 1 connections"), store.view():
            pass
        assert not store.founded()


def test_the_end_of_a_grant_waits_for_calls_under_way(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A call that passed before a grant was revoked is numbered before it, so that none stands behind it unseen."""
    lead = scribe.start()
    entry = an_entry(scribe, lead, head_of(store, lead))
    revoked = GrantRevoked(account=StreamId(lead.run.id), by=ANA)
    draft = Draft(stream=StreamId(scribe.identity.id), body=revoked)
    with a_transaction(postgres, postgres_url) as other:
        write(other, [entry])
        with meanwhile(lambda: scribe.ledger.append(draft)) as revocation:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            other.commit()
            revocation.result()
    store.sequence()

    assert [entry.signed.receipt.kind, "grant.revoked"] == [
        found.kind for found in all_receipts(store, ReceiptQuery(first=1))[-2:]
    ]
