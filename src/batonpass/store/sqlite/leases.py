"""Leases in SQLite: claiming, renewing and releasing them, and keeping them in step with their handoffs.

A row in `leases` is work that waits if nobody holds it, and a lease if somebody does. All processes that share a file
share a machine, so leases end by the clock that counts since the machine was started. The clock of the calendar may be
set: an hour ahead, it would end the leases of everybody who works, and an hour back, nobody would notice a dead worker.
"""

import secrets
import time
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Final

import apsw

from batonpass.errors import LeaseLostError
from batonpass.model.base.ids import AgentId, HandoffId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.lease import Lease
from batonpass.store import rows
from batonpass.store.sql import Queries
from batonpass.store.sqlite.connection import Statements
from batonpass.wire.canonical import encode_typed

QUERIES: Final = Queries("batonpass.store.sqlite", "leasing.sql")

_TOKEN_BITS: Final = 53  # the largest integers that every JSON reader keeps exact
_FOLLOWING: Final = {
    State.READY.value: QUERIES["follow_to_ready"],
    State.RUNNING.value: QUERIES["follow_to_running"],
}


def find_free(connection: apsw.Connection, agents: Collection[AgentId] | None) -> HandoffId | None:
    """Return the oldest handoff to one of these agents, or to any, that waits for a worker; None if there is none."""
    if agents is None:
        return _first(connection, "find_free", {"now": ticks()})
    return _first(connection, "find_free_for", {"now": ticks(), "agents": encode_typed(list(agents)).decode()})


def find_lapsed(connection: apsw.Connection) -> HandoffId | None:
    """Return the handoff whose lease ran out first; None if none has run out."""
    return _first(connection, "find_lapsed", {"now": ticks()})


def take(
    connection: apsw.Connection,
    find: Callable[[apsw.Connection], HandoffId | None],
    holder: str,
    lease_for: timedelta,
) -> Lease | None:
    """Take the lease of the handoff that `find` returns, under a new token; None if it returns none.

    Look and update happen in one write transaction, so nobody else can take the same lease in between.
    """
    values = {
        "handoff": find(connection),
        "holder": holder,
        "token": secrets.randbits(_TOKEN_BITS),
        "lease_for": _micros(lease_for),
        **_moment(),
    }
    row = connection.execute(QUERIES["take"], values).fetchone()
    return None if row is None else rows.lease(row)


def renew(connection: apsw.Connection, lease: Lease, lease_for: timedelta) -> Lease:
    """Extend a lease, counted from now. Raises `LeaseLostError`."""
    values = {"handoff": lease.handoff, "token": lease.token, "lease_for": _micros(lease_for), **_moment()}
    row = connection.execute(QUERIES["renew"], values).fetchone()
    if row is None:
        raise LeaseLostError(lease.handoff)
    return rows.lease(row)


def release(connection: apsw.Connection, lease: Lease) -> None:
    """Give a lease back, if it is still held: the handoff waits again if it is ready, and the row goes away if not."""
    values = {"handoff": lease.handoff, "token": lease.token}
    connection.execute(QUERIES["release"], values)
    connection.execute(QUERIES["forget"], values)


def postpone(connection: apsw.Connection, handoff: HandoffId, lasts: timedelta) -> None:
    """Let nobody claim a handoff for a while, counted from now."""
    now = ticks()
    connection.execute(QUERIES["forget_postponed"], {"now": now})
    connection.execute(QUERIES["postpone"], {"handoff": handoff, "now": now, "lasts": _micros(lasts)})


def require_lease(connection: Statements, handoff: HandoffId, token: int) -> None:
    """Raise `LeaseLostError` if this token does not belong to the lease of the handoff."""
    # Only the token is compared, not the end of the lease. A worker that is late, but was not replaced, may still
    # write; one that was replaced is refused whatever its clock says (ADR 20).
    if connection.execute(QUERIES["is_held"], (handoff, token)).fetchone() is None:
        raise LeaseLostError(handoff)


def follow(connection: Statements, handoff: HandoffId, state: str, agent: str) -> None:
    """Adapt the lease of a handoff that a worker carries to the new state of the handoff."""
    statement = _FOLLOWING.get(state, QUERIES["follow_to_end"])
    connection.execute(statement, {"handoff": handoff, "agent": agent})


def ticks() -> int:
    """Return the microseconds since the machine was started, the same in all its processes."""
    # With the time that the machine slept: a worker that sleeps does not work.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000


def _moment() -> dict[str, int]:
    return {"now": ticks(), "today": time.time_ns() // 1000}


def _first(connection: apsw.Connection, name: str, values: Mapping[str, str | int]) -> HandoffId | None:
    row = connection.execute(QUERIES[name], values).fetchone()
    return None if row is None else row[0]


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)
