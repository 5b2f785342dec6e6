"""What PostgreSQL adds to an append: limits, batches, faults, and other sessions in the way."""

import os

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    ContentTooLargeError,
    DuplicateReceiptError,
    NotFoundError,
    StaleHeadError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from batonpass.ledger.position import Working
from batonpass.model.base.ids import StreamId
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.entry import Entry
from batonpass.store.port import ReceiptQuery
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe
from batonpass.testing.builders import ANA
from batonpass.testing.conformance.support import NOW, an_entry, head_of
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.postgres.support import (
    database_of,
    digests_in,
    entries_after,
)
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres

MOST = 16 * 1024 * 1024


def holding(scribe: Scribe, working: Working, body: bytes) -> Entry:
    """Return the next entry of a run, with one content."""
    entry = an_entry(scribe, working, head_of(scribe.store, working))
    content = new_content("arguments", body, NOW, media_type="application/octet-stream")
    receipt = replace(entry.signed.receipt, content={"arguments": content.ref})
    return Entry(signed=replace(entry.signed, receipt=receipt), contents=(content,))


def fail_on(server: Server, url: str, condition: str, state: str) -> None:
    """Let the server fail in the middle of an append as it would if something were wrong with it."""
    server.execute(
        "CREATE SEQUENCE tries; GRANT ALL ON tries TO relay;"
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {condition} THEN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{state}'; END IF; RETURN new; END $$;"
        "CREATE TRIGGER fail AFTER INSERT ON receipts FOR EACH ROW EXECUTE FUNCTION fail()",
        database=database_of(url),
    )


def test_content_as_large_as_allowed_comes_back(store: PostgresStore, scribe: Scribe) -> None:
    """16 MiB are kept in the database."""
    lead = scribe.start()
    entry = holding(scribe, lead, os.urandom(MOST))
    store.append([entry])

    with store.view() as view:
        assert entry.contents[0].body == view.get_content(entry.contents[0].ref.id).body


def test_content_that_is_larger_is_refused(store: PostgresStore, scribe: Scribe) -> None:
    """One byte more is refused before anything is written, and the sentence names the limit."""
    lead = scribe.start()

    with pytest.raises(ContentTooLargeError, match="has 16,777,217 bytes and this store accepts at most 16,777,216"):
        store.append([holding(scribe, lead, bytes(MOST + 1))])
    assert 1 == head_of(store, lead).seq


def test_a_batch_is_one_commit(store: PostgresStore, scribe: Scribe) -> None:
    """Entries of several streams are all there afterwards."""
    leads = [scribe.start(), scribe.start()]
    entries = [entries_after(scribe, lead, head_of(store, lead), 2) for lead in leads]
    store.append([entries[0][0], entries[1][0], entries[0][1], entries[1][1]])

    assert [[entry.signed.digest for entry in of_one] for of_one in entries] == [
        digests_in(store, lead)[1:] for lead in leads
    ]


def test_a_batch_with_one_stale_entry_leaves_nothing(store: PostgresStore, scribe: Scribe) -> None:
    """One entry that is refused takes the whole batch with it, and the error is about that one."""
    first, second = scribe.start(), scribe.start()
    stale = an_entry(scribe, second, head_of(store, second))
    store.append([an_entry(scribe, second, head_of(store, second))])

    with pytest.raises(StaleHeadError, match=second.run.id):
        store.append([an_entry(scribe, first, head_of(store, first)), stale])
    assert 1 == head_of(store, first).seq


def test_a_taken_content_id_is_named(store: PostgresStore, scribe: Scribe) -> None:
    """The error names the id that is in the ledger already."""
    lead = scribe.start()
    entry = an_entry(scribe, lead, head_of(store, lead))
    store.append([entry])
    again = replace(an_entry(scribe, lead, head_of(store, lead)), contents=entry.contents)

    with pytest.raises(DuplicateReceiptError, match=entry.contents[0].ref.id):
        store.append([again])


def test_a_full_disk_is_said_to_be_full(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """When the server has no room, one sentence says so and nothing of the append is there."""
    lead = scribe.start()
    fail_on(postgres, postgres_url, "true", "53100")

    with pytest.raises(StoreFullError, match=r"the disk of postgresql://.* is full"):
        store.append([an_entry(scribe, lead, head_of(store, lead))])
    assert 1 == head_of(store, lead).seq


def test_a_conflict_that_passes_is_tried_again(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A deadlock that the server resolves by ending us is no reason to give up."""
    lead = scribe.start()
    fail_on(postgres, postgres_url, "nextval('tries') < 3", "40P01")
    store.append([an_entry(scribe, lead, head_of(store, lead))])

    assert 2 == head_of(store, lead).seq


def test_a_conflict_that_stays_is_reported(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A conflict that comes back every time is a fault, and trying ends."""
    lead = scribe.start()
    fail_on(postgres, postgres_url, "nextval('tries') > 0", "40001")

    with pytest.raises(StoreBusyError):
        store.append([an_entry(scribe, lead, head_of(store, lead))])
    assert [(8,)] == postgres.execute("SELECT last_value FROM tries", database=database_of(postgres_url))


def test_what_nobody_foresaw_is_still_one_sentence(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """An error of the server that we have no word for comes as its own first line."""
    lead = scribe.start()
    fail_on(postgres, postgres_url, "true", "XX001")

    with pytest.raises(StoreError, match="could not do it: on purpose; look into its log"):
        store.append([an_entry(scribe, lead, head_of(store, lead))])


def test_a_ledger_whose_tables_are_gone_is_no_ledger(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A part that somebody removed is named."""
    lead = scribe.start()
    head = head_of(store, lead)
    postgres.execute("DROP TABLE unsequenced", database=database_of(postgres_url))

    with pytest.raises(StoreError, match='a part of it is gone: relation "unsequenced" does not exist'):
        store.append([an_entry(scribe, lead, head)])


def test_what_a_receipt_changes_must_be_there(
    postgres: Server,
    postgres_url: str,
    scribe: Scribe,
) -> None:
    """A derived row that somebody removed is missed by name, and the receipt is not written."""
    lead = scribe.start()
    postgres.execute("DELETE FROM runs", database=database_of(postgres_url))

    with pytest.raises(NotFoundError, match=lead.run.id):
        scribe.recording.close(lead)
    assert 1 == head_of(scribe.store, lead).seq


def test_erased_bytes_do_not_wait_for_the_next_vacuum(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Erasing has the old version of the row removed at once."""
    lead = scribe.start("call me on 555-0100")
    with store.view() as view:
        (started,) = view.find_receipts(ReceiptQuery(stream=StreamId(lead.run.id)))
    scribe.erasure.erase([decode_receipt(started.payload).content["intent"].id], by=ANA, reason="asked to")

    assert [(1,)] == postgres.execute(
        "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'contents'",
        database=database_of(postgres_url),
    )
