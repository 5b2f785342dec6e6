"""The role that the guide gives to relays: it lets them do their work, and take nothing away."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from batonpass import Grant
from batonpass.errors import CallSuspendedError, ConstraintViolatedError, StoreError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId
from batonpass.relay import Relay
from batonpass.store.port import Wake
from batonpass.store.postgres.store import PostgresStore
from tests.house.tree import DOCS
from tests.integration.postgres.support import database_of
from tests.postgres_server import PASSWORD, USER, Server

pytestmark = pytest.mark.postgres

ANA = "user:ana"
GRANTS = re.compile(r"^GRANT .*?;", re.DOTALL | re.MULTILINE)


@tool(target="path")
def write(path: str) -> None:
    """Write a file."""


@tool(reversible=False)
def pay(amount: int) -> None:
    """Pay what nobody gives back."""


@tool(reads=True, cache_for=timedelta(days=1))
def look_up(name: str) -> str:
    """Return what is dear to find out."""
    return name


@pytest.fixture
def limited(postgres: Server, postgres_url: str, tmp_path: Path) -> Iterator[str]:
    """Return the address of a ledger that was founded by its owner, for a role with what the guide says."""
    with Relay.open(postgres_url, home=tmp_path) as owner:
        owner.start("Found it", by=ANA).close()
    database = database_of(postgres_url)
    role = f"relay_of_{database}"
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'", database=database)
    for statement in GRANTS.findall((DOCS / "guide" / "postgresql.md").read_text(encoding="utf-8")):
        postgres.execute(re.sub(r"\brelay;", f"{role};", statement), database=database)
    yield postgres_url.replace(f"//{USER}:", f"//{role}:")
    postgres.execute(f"DROP OWNED BY {role}", database=database)
    postgres.execute(f"DROP ROLE {role}", database=database)


def test_a_relay_does_all_of_its_work(limited: str, tmp_path: Path) -> None:
    """It records, counts, holds, decides, keeps results, works on what waits, sequences, seals and verifies."""
    with Relay.open(limited, home=tmp_path) as relay:
        lead = relay.start("Fix it", by=ANA, grant=Grant(may=["*:**"], may_delegate=["*:**"], limits="at most 2 calls"))
        for _ in range(2):
            lead.call(look_up, "rates")
        lead.call(write, "a")
        with pytest.raises(ConstraintViolatedError):
            lead.call(write, "b")
        held = lead.hand_off("editor", "Edit", may=["write:**"], hold=True, carrier="worker")
        held.approve(by=ANA, reason="fine")
        lease = relay.claim(holder="here", lease_for=timedelta(minutes=1))
        assert lease is not None
        relay.handoff(lease.handoff).accept(lease=lease).close()
        assert Wake.NOTHING is relay.store.await_work(["editor"], at_most=timedelta(0), stop=threading.Event())  # type: ignore[list-item]  # an id
        payer = relay.start("Pay", by=ANA, mode="enforced")
        with pytest.raises(CallSuspendedError) as suspended:
            payer.call(pay, 7)
        relay.held_call(CallId(suspended.value.call)).approve(by=ANA, reason="fine")
        payer.call(pay, 7)
        relay.revoke_grant(lead.id, by=ANA, reason="done")
        lead.close()
        relay.admin.seal()

        assert relay.verify() is not None


def test_a_role_of_before_goes_on_after_a_migration(
    postgres: Server, postgres_url: str, limited: str, tmp_path: Path
) -> None:
    """What the guide granted before workers were told is enough: the migration gives what else the same work takes."""
    database, role = database_of(postgres_url), f"relay_of_{database_of(postgres_url)}"
    for statement in (
        f"REVOKE UPDATE ON standing FROM {role}",
        f"GRANT DELETE ON standing TO {role}",
        "DROP TABLE waiting_workers",
        "DELETE FROM schema_migrations WHERE version IN (9, 21)",
    ):
        postgres.execute(statement, database=database)
    with closing(PostgresStore(postgres_url)) as owner:
        owner.migrate()

    test_a_relay_does_all_of_its_work(limited, tmp_path)


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM receipts", "UPDATE receipts SET kind = kind", "UPDATE contents SET body = NULL", "DELETE FROM keys"],
)
def test_a_relay_takes_nothing_away(limited: str, statement: str) -> None:
    """Whoever has its password cannot change or remove a receipt, a word or a key."""
    with psycopg.connect(limited) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


def test_a_relay_erases_nothing_and_enrols_nobody(limited: str, tmp_path: Path) -> None:
    """Those need more, and belong to the role that is used where the root key is."""
    with Relay.open(limited, home=tmp_path) as relay:
        lead = relay.start("Fix it", by=ANA)
        with relay.store.view() as view:
            content = next(view.find_ids("content", ""))
        with pytest.raises(StoreError):
            relay.admin.erase([content], by=ANA, reason="asked to")  # type: ignore[list-item]  # it is an id of a content
        with pytest.raises(StoreError):
            relay.admin.rotate()
        lead.close()
