"""Leases in PostgreSQL. One statement claims a lease, and skips those that others are claiming at the same moment."""

import secrets
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final

from batonpass.errors import LeaseLostError
from batonpass.model.base.ids import AgentId, HandoffId, require_agent
from batonpass.model.ledger.lease import Lease
from batonpass.store import rows
from batonpass.store.postgres.claim_brief import AboutHandoff, ClaimBrief
from batonpass.store.postgres.prepared_statements import Connection, Statements, ask, ask_all
from batonpass.store.sql import Queries

STATEMENTS: Final = Statements(Queries("batonpass.store.postgres", "leasing.sql"))

_TOKEN_BITS: Final = 53  # the largest integers that every JSON reader keeps exact


class Taking:
    """One attempt to take a lease, repeated until the answer is known.

    When the connection breaks, a lease may have been taken without our knowing. Its token is drawn before the first
    try, so the next try can ask for it. Otherwise that handoff would lie idle until the lease runs out.
    """

    def __init__(self, statement: str, holder: str, lease_for: timedelta, **values: object) -> None:
        self._statement = STATEMENTS[statement]
        self._values: Mapping[str, object] = {
            "holder": require_agent("holder", holder),
            "token": secrets.randbits(_TOKEN_BITS),
            "lease_for": _micros(lease_for),
            **values,
        }
        self._tried = False
        self._briefly = statement != "seize"  # a lease is seized to end an attempt, so no brief is needed to begin one
        self.brief: ClaimBrief | None = None  # the brief that came with the claim

    def run(self, connection: Connection) -> Lease | None:
        """Take a lease, or learn that it was taken before. Raises the driver's error: then run it again."""
        found = ask(connection, STATEMENTS["find_taken"], self._values) if self._tried else []
        self._tried = True
        if not found:
            about = AboutHandoff()
            also = about.asked if self._briefly else ()
            found, *brief = ask_all(connection, ((self._statement, self._values), *also))
            self.brief = ClaimBrief(about, brief) if brief else None
        return rows.lease(found[0][:4]) if found else None


def claiming(holder: str, lease_for: timedelta, agents: Collection[AgentId] | None) -> Taking:
    """Return a `Taking` that claims the oldest free handoff to one of these agents, or to any."""
    if agents is None:
        return Taking("claim", holder, lease_for)
    if len(agents) == 1:
        (agent,) = agents
        return Taking("claim_for_one", holder, lease_for, agent=agent)
    return Taking("claim_for", holder, lease_for, agents=list(agents))


def seizing(holder: str, lease_for: timedelta) -> Taking:
    """Return a `Taking` that takes over the lease that ran out first."""
    return Taking("seize", holder, lease_for)


def renew(connection: Connection, lease: Lease, lease_for: timedelta) -> Lease:
    """Extend a lease, counted from now. Raises `LeaseLostError`."""
    values = {"handoff": lease.handoff, "token": lease.token, "lease_for": _micros(lease_for)}
    found = ask(connection, STATEMENTS["renew"], values)
    if not found:
        raise LeaseLostError(lease.handoff)
    return rows.lease(found[0])


def release(connection: Connection, lease: Lease) -> None:
    """Give a lease back, if it is still held."""
    ask(connection, STATEMENTS["release"], {"handoff": lease.handoff, "token": lease.token})


def postpone(connection: Connection, handoff: HandoffId, lasts: timedelta) -> None:
    """Let nobody claim a handoff for a while, counted from now."""
    ask(connection, STATEMENTS["postpone"], {"handoff": handoff, "lasts": _micros(lasts)})


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)
