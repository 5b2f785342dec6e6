"""The PostgreSQL store.

One statement appends; after a broken connection it asks for the outcome and waits for the server.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from os import getpid
from typing import Final

import psycopg
from msgspec.structs import asdict

from batonpass.errors import OutcomeUnknownError, StaleHeadError, StoreError, StoreShutError
from batonpass.model.base.ids import AgentId, HandoffId
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.projection import root_key
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RollupMark
from batonpass.model.ledger.seal import Seal
from batonpass.store import rows
from batonpass.store.migrate import AppliedMigration
from batonpass.store.port import LedgerInfo, Wake
from batonpass.store.postgres import leases, schema
from batonpass.store.postgres.address import parse_address
from batonpass.store.postgres.append import Append, require_fitting, write
from batonpass.store.postgres.claim_brief import Briefs, briefing_of
from batonpass.store.postgres.connections import QUERIES, Connection, Connections
from batonpass.store.postgres.group_commit import Group
from batonpass.store.postgres.notifications import Notifications
from batonpass.store.postgres.view import PostgresView
from batonpass.store.process import OwnProcess

_SEQUENCED_AT_ONCE: Final = 10_000
_CONNECTIONS: Final = 8
_ROLLED: Final = ("handoff", "agent", "task_kind", "config", "closed_at", "contents", "body")
_WAIT_FOR: Final = timedelta(seconds=30)


class PostgresStore:
    """Keeps a ledger in a database that any number of machines share."""

    confirm_every: float | None = 1.0

    def __init__(
        self, url: str, *, create: bool = True, connections: int = _CONNECTIONS, wait_for: timedelta = _WAIT_FOR
    ) -> None:
        address = parse_address(url)
        self.url = address.shown
        self._process = OwnProcess()
        self._shut = False
        self._briefs = Briefs()
        self._connections = Connections(address, most=connections, wait_for=wait_for.total_seconds())
        # Opening waits as long as any call: a server that is still starting up is no reason to give up.
        try:
            self._missing = self._connections.repeat(
                lambda connection: schema.prepare(connection, self.url, create=create)
            )
        except BaseException:
            self._connections.close()
            raise
        self._group = Group(self._connections)
        self._waiting = Notifications(self._connections)

    def __repr__(self) -> str:
        return f"<PostgresStore at {self.url}>"

    def founded(self) -> bool:
        """Return whether somebody has founded this ledger."""
        self._require_current()
        return self._connections.repeat(_read_info) is not None

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Make this empty store the ledger `info` with its first receipt, and return its identity."""
        self._require_current()
        require_fitting([first])
        return self._connections.repeat(lambda connection: _found(connection, info, first))

    @contextmanager
    def view(self, about: HandoffId | None = None) -> Iterator[PostgresView]:
        """Open a view of the ledger as it is now. With `about`, it has the claim brief of that handoff."""
        self._require_current()
        briefing = briefing_of(about, self._briefs)
        # A view that has its brief from a claim usually asks nothing more, and then needs no connection.
        with self._connections.snapshot(at_once=briefing is None or not briefing.is_told) as snapshot:
            view = PostgresView(snapshot, self.url, briefing)
            try:
                yield view
            finally:
                view.close()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one commit, or none.

        Raises `OutcomeUnknownError` if nobody can tell whether it happened.
        """
        self._require_current()
        require_fitting(entries)
        if not entries:
            return
        append = Append(entries)
        try:
            self._group.append(append)
        except StoreError as error:
            if not append.in_doubt:
                raise
            raise OutcomeUnknownError(
                f"the connection broke during a commit, and it is unknown whether it was written: {error}; "
                "read the stream before anything is recorded again",
            ) from None
        for entry in entries:
            if entry.change.erased:
                self._forget()
                break

    def claim(self, *, holder: str, lease_for: timedelta, agents: Collection[AgentId] | None = None) -> Lease | None:
        """Claim the oldest ready handoff to one of these agents."""
        self._require_current()
        taking = leases.claiming(holder, lease_for, agents)
        lease = self._connections.repeat(taking.run)
        if lease is not None and taking.brief is not None:
            self._briefs.keep(lease.handoff, taking.brief)
        return lease

    def renew(self, lease: Lease, lease_for: timedelta) -> Lease:
        """Extend a lease, counted from now. Raises `LeaseLostError`."""
        self._require_current()
        return self._connections.repeat(lambda connection: leases.renew(connection, lease, lease_for))

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        self._require_current()
        self._connections.repeat(lambda connection: leases.release(connection, lease))

    def seize(self, *, holder: str, lease_for: timedelta) -> Lease | None:
        """Take over one lease whose time has run out."""
        self._require_current()
        return self._connections.repeat(leases.seizing(holder, lease_for).run)

    def postpone(self, handoff: HandoffId, lasts: timedelta) -> None:
        """Let nobody claim a handoff for a while."""
        self._require_current()
        self._connections.repeat(lambda connection: leases.postpone(connection, handoff, lasts))

    def await_work(self, agents: Collection[AgentId], *, at_most: timedelta, stop: threading.Event) -> Wake:
        """Wait until there may be a handoff to claim for one of these agents: the server notifies us."""
        self._require_current()
        return self._waiting.wait(agents, at_most.total_seconds(), stop)

    def sequence(self) -> int:
        """Give every committed receipt its position and return how many got one; 0 if another process is doing it."""
        self._require_current()
        total = 0
        while True:
            given = self._connections.repeat(_sequence)
            total += given
            if given < _SEQUENCED_AT_ONCE:
                return total

    def add_seal(self, seal: Seal) -> None:
        """Keep a seal."""
        self._require_current()
        if not self._connections.repeat(lambda connection: _keep(connection, seal)):
            raise StaleHeadError("seals", seal.size)

    def roll(
        self, after: RollupMark, upto: RollupMark, handoffs: Sequence[RolledHandoff], days: Sequence[RolledDay]
    ) -> bool:
        """Keep roll-ups and move their mark, unless another process moved it first."""
        self._require_current()
        return self._connections.repeat(lambda connection: _roll(connection, after, upto, handoffs, days))

    def migrations(self) -> tuple[AppliedMigration, ...]:
        """Return the migrations of this store's schema, and when each was applied."""
        self._require_usable()
        return self._connections.repeat(schema.list_migrations)

    def migrate(self) -> None:
        """Apply the migrations that are missing."""
        self._require_usable()
        self._connections.repeat(lambda connection: schema.migrate(connection, self.url))
        self._missing = ()

    def close(self) -> None:
        """Close all connections."""
        self._process.require()
        self._shut = True
        self._waiting.close()
        self._connections.close()

    def _forget(self) -> None:
        """Vacuum the old versions of erased rows now. If that fails, the server does it later."""
        with suppress(StoreError, psycopg.Error), self._connections.writer(self._connections.patience()) as connection:
            connection.execute(QUERIES["vacuum_contents"])
            connection.execute(QUERIES["vacuum_touches"])

    def _require_usable(self) -> None:
        self._process.require()
        if self._shut:
            raise StoreShutError("this ledger was closed; open it again")

    def _require_current(self) -> None:
        # Asked before every act, so the usual answer costs no call.
        if self._shut or getpid() != self._process.pid:
            self._require_usable()
        if self._missing:
            raise schema.too_old(self._missing, self.url)


def _found(connection: Connection, info: LedgerInfo, first: Entry) -> LedgerInfo:
    with connection.transaction():
        if connection.execute(QUERIES["add_ledger"], asdict(info)).fetchone() is None:
            return _read_info(connection) or info
        connection.execute(QUERIES["add_key"], asdict(root_key(info.root_key)))
        write(connection, [first])
    return info


def _read_info(connection: Connection) -> LedgerInfo | None:
    row = connection.execute(QUERIES["read_ledger"]).fetchone()
    return None if row is None else rows.info(row)


def _keep(connection: Connection, seal: Seal) -> bool:
    connection.execute(QUERIES["add_seal"], asdict(seal))
    return connection.execute(QUERIES["has_seal"], {"size": seal.size}).fetchone() is not None


def _sequence(connection: Connection) -> int:
    row = connection.execute(QUERIES["sequence"], {"most": _SEQUENCED_AT_ONCE}).fetchone()
    return 0 if row is None else int(row[0])


def _roll(
    connection: Connection,
    after: RollupMark,
    upto: RollupMark,
    handoffs: Sequence[RolledHandoff],
    days: Sequence[RolledDay],
) -> bool:
    marks = {
        "version": upto.version,
        "position": upto.position,
        "old_version": after.version,
        "old_position": after.position,
    }
    with connection.transaction(), connection.cursor() as cursor:
        if cursor.execute(QUERIES["move_rolled"], marks).fetchone() is None:
            return False
        if upto.version != after.version:
            cursor.execute(QUERIES["drop_rolled_handoffs"])
            cursor.execute(QUERIES["drop_rolled_days"])
        cursor.executemany(
            QUERIES["put_rolled_handoff"],
            [dict(zip(_ROLLED, rows.rolled_row(rolled), strict=True)) for rolled in handoffs],
        )
        cursor.executemany(QUERIES["put_rolled_day"], [asdict(day) for day in days if day.body])
        cursor.executemany(QUERIES["drop_rolled_day"], [asdict(day) for day in days if not day.body])
    return True
