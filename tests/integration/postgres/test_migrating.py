"""A ledger of the schema before sessions becomes one of the present, and says what its receipts always said."""

from contextlib import closing
from pathlib import Path

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import SchemaError
from batonpass.model.base.ids import SessionId
from batonpass.model.baton.items import Decision
from batonpass.model.ledger.remark import RemarkKind
from batonpass.relay import Relay
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.postgres.append import write_together
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing.builders import ANA, Scribe, a_small_tree
from batonpass.testing.conformance.decided_calls import decided, held
from batonpass.testing.conformance.remarks import endorsed, remarks
from batonpass.testing.conformance.support import an_entry, head_of
from tests.integration.postgres.support import database_of
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres

SESSION = SessionId("session_" + "0" * 26)
BEFORE_APPROVERS = (
    "DROP TABLE held_calls",
    "DROP TABLE decided_calls",
    "DROP FUNCTION batonpass_require_approver",
    "ALTER TABLE keys DROP COLUMN principal",
    "ALTER TABLE keys DROP CONSTRAINT keys_role_check",
    "ALTER TABLE keys ADD CONSTRAINT keys_role_check CHECK (role IN ('root', 'relay'))",
    "DELETE FROM schema_migrations WHERE version = 5",
)
BEFORE_LISTS = (
    *(f"DROP INDEX runs_{part}" for part in ("by_agent", "by_ending", "roots", "roots_of_session")),
    *(f"DROP INDEX handoffs_{part}" for part in ("by_agent", "by_ending")),
    *(f"DROP INDEX receipts_{part}" for part in ("by_ending", "by_call")),
    "DELETE FROM standing WHERE state <> 'held'",
    "ALTER TABLE standing DROP CONSTRAINT standing_pkey",
    "ALTER TABLE standing DROP COLUMN state",
    "ALTER TABLE standing RENAME COLUMN id TO handoff",
    "ALTER TABLE standing ADD CONSTRAINT held_pkey PRIMARY KEY (handoff)",
    "ALTER TABLE standing RENAME TO held",
    "DELETE FROM schema_migrations WHERE version = 8",
)
BACK = (
    *BEFORE_LISTS,
    "DROP TABLE cached",
    "ALTER TABLE runs DROP COLUMN session",
    "DELETE FROM schema_migrations WHERE version = 3",
)


def test_sessions_are_found_in_a_ledger_that_is_older_than_them(
    scribe: Scribe, postgres_url: str, postgres: Server
) -> None:
    """Migrating fills the column in from the signed bytes, and the verifier agrees."""
    a_small_tree(scribe)
    root = scribe.recording.start("again", agent="lead", by=ANA, session=SESSION).run
    for statement in BACK:
        postgres.execute(statement, database=database_of(postgres_url))
    opened = PostgresStore(postgres_url)
    opened.migrate()
    with opened.view() as view:
        found = list(view.find_runs(session=SESSION))
    opened.sequence()
    receipts = verify_ledger(opened).receipts
    opened.close()

    assert ([root], True) == (found, receipts > 0)


def test_held_calls_are_found_in_a_ledger_that_is_older_than_approvers(
    scribe: Scribe, postgres_url: str, postgres: Server
) -> None:
    """A root's call that waited then waits now, and somebody can decide about it, and prove who they are."""
    lead = scribe.start()
    waiting = held(scribe, lead)
    held(scribe, scribe.delegate(lead))
    for statement in BEFORE_APPROVERS:
        postgres.execute(statement, database=database_of(postgres_url))
    opened = PostgresStore(postgres_url)
    opened.migrate()
    decided(scribe, waiting)
    scribe.enrolment.enroll_approver(ANA, Ed25519Signer.generate().public_key, root=scribe.root)
    with opened.view() as view:
        found = list(view.find_held_calls())
    opened.sequence()
    verify_ledger(opened)
    opened.close()

    assert [waiting] == found


def test_endorsements_are_found_in_a_ledger_that_is_older_than_remarks(
    scribe: Scribe, postgres_url: str, postgres: Server
) -> None:
    """What people answered for before is found by its name, as what they answer for now."""
    endorsed(scribe)
    for statement in ("DROP TABLE remarks", "DELETE FROM schema_migrations WHERE version = 7"):
        postgres.execute(statement, database=database_of(postgres_url))
    store = PostgresStore(postgres_url)
    store.migrate()

    assert 1 == len(remarks(store, RemarkKind.ENDORSED))
    verify_ledger(store)
    store.close()


def test_refuted_results_are_found_in_a_ledger_that_is_older_than_fates(
    postgres_url: str, postgres: Server, tmp_path: Path
) -> None:
    """What was refuted before travels as refuted from now on."""
    with Relay.open(postgres_url, home=tmp_path) as relay:
        lead = relay.start("Convert", by=ANA)
        found = lead.hand_off("finder", "Find the rate")
        with found as finder:
            finder.report("3 %")
        found.refute("no", by=ANA)
    for statement in (
        "DELETE FROM remarks WHERE said = 'refuted'",
        "DROP FUNCTION batonpass_require_premises(text[], bigint[], bigint[], text[])",
        "CREATE FUNCTION batonpass_require_premises(a text[], b bigint[], c text[]) RETURNS void LANGUAGE sql AS ''",
        "DELETE FROM schema_migrations WHERE version = 12",
    ):
        postgres.execute(statement, database=database_of(postgres_url))
    with closing(PostgresStore(postgres_url)) as store:
        store.migrate()
    with Relay.open(postgres_url, home=tmp_path) as relay:
        relay.verify()
        writer = relay.resume(lead.id).hand_off("writer", "Write it up")
        assert ["refuted"] == [str(known.fate) for known in writer.baton().fates.values()]


def test_what_was_taken_out_is_found_in_a_ledger_that_is_older_than_its_remarks(
    postgres_url: str, postgres: Server, tmp_path: Path
) -> None:
    """What a person took out before does not come along from now on."""
    with Relay.open(postgres_url, home=tmp_path) as relay:
        with relay.start("One", by=ANA, series="nightly") as lead:
            lead.record(Decision("include returns"))
        relay.prune_session("nightly", ["include"], by=ANA, reason="done")
    for statement in (
        "DELETE FROM remarks WHERE said = 'pruned'",
        "DELETE FROM schema_migrations WHERE version = 14",
    ):
        postgres.execute(statement, database=database_of(postgres_url))
    with closing(PostgresStore(postgres_url)) as store:
        store.migrate()
    with Relay.open(postgres_url, home=tmp_path) as relay:
        relay.verify()
        assert () == relay.start("Two", by=ANA, series="nightly").session.kept


def test_rulings_are_found_in_a_ledger_that_is_older_than_their_remarks(
    postgres_url: str, postgres: Server, tmp_path: Path
) -> None:
    """Who ruled on what before is known from now on."""
    with Relay.open(postgres_url, home=tmp_path) as relay:
        relay.start("One", by=ANA).hand_off("mailer", "Tell them", hold=True).deny(by=ANA, reason="not today")
    for statement in (
        "DELETE FROM remarks WHERE said = 'ruled'",
        "DELETE FROM schema_migrations WHERE version = 18",
    ):
        postgres.execute(statement, database=database_of(postgres_url))
    with closing(PostgresStore(postgres_url)) as store:
        store.migrate()
        assert [ANA] == [one.name for one in remarks(store, RemarkKind.RULED)]


def test_a_verdict_of_another_process_is_seen_by_the_next_offer(postgres_url: str, tmp_path: Path) -> None:
    """An offer that took for granted that all results stand is refused by the server, and gathered once more."""
    with (
        Relay.open(postgres_url, home=tmp_path / "a") as one,
        Relay.open(postgres_url, home=tmp_path / "a") as other,
    ):
        lead = one.start("Convert", by=ANA)
        found = lead.hand_off("finder", "Find the rate")
        with found as finder:
            finder.report("3 %")
        lead.hand_off("early", "Look")
        other.handoff(found.id).refute("no", by=ANA)
        late = lead.hand_off("late", "Look again")

        assert ["refuted"] == [str(known.fate) for known in late.baton().fates.values()]


def test_a_ledger_that_is_older_than_groups_takes_them(scribe: Scribe, postgres_url: str, postgres: Server) -> None:
    """What was written before stays as it is, and what is written together follows it."""
    leads = [scribe.start() for _ in range(3)]
    a_small_tree(scribe)
    for statement in (
        "DROP FUNCTION batonpass_append_together",
        "DELETE FROM schema_migrations WHERE version IN (10, 21)",
    ):
        postgres.execute(statement, database=database_of(postgres_url))
    with closing(PostgresStore(postgres_url)) as store:
        with pytest.raises(SchemaError):
            store.append([])
        store.migrate()
        entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in leads]
        connections = store._connections
        with connections.writer(connections.patience()) as connection:
            assert write_together(connection, entries)
        store.sequence()
        verify_ledger(store)
