"""What looking costs PostgreSQL: as many rows as it shows, however many there are."""

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from batonpass.model.base.ids import AgentId, HandoffId, RunId, SessionId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import RunState
from batonpass.store.port import LedgerView
from batonpass.store.postgres.connections import QUERIES
from batonpass.store.postgres.store import PostgresStore
from batonpass.store.postgres.view import PostgresView
from batonpass.testing import Scribe
from tests.integration.postgres.support import database_of
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres

_ROWS = 5_000
_FEW = 30
_ID = "lpad(n::text, 22, '0') || substr(md5(n::text), 1, 4)"
_FILL = f"""
    INSERT INTO runs (id, root, parent, handoff, attempt, agent, principal, state, started_at, session)
    SELECT 'run_' || {_ID}, root, id, 'handoff_' || {_ID}, 1, 'editor', principal, 'completed', started_at, session
    FROM runs, generate_series(1, {_ROWS}) AS n;
    INSERT INTO handoffs (id, root, parent, agent, carrier, state, attempt, initiated, seq)
    SELECT 'handoff_' || {_ID}, root, parent, 'editor', 'worker', 'completed', 1, initiated, seq
    FROM handoffs, generate_series(1, {_ROWS}) AS n;
    INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature)
    SELECT
        'receipt_' || {_ID}, stream, seq + n, kind,
        convert_to(regexp_replace(encode(payload, 'escape'), 'call_[0-9a-z]+', 'call_' || {_ID}), 'UTF8'),
        relay_signature
    FROM receipts, generate_series(1, {_ROWS}) AS n WHERE kind = 'tool.requested';
    ANALYZE
"""

ASKED: dict[str, Callable[[LedgerView], Iterator[object]]] = {
    "the latest runs": lambda view: view.find_runs(limit=5),
    "runs that failed": lambda view: view.find_runs(states=[RunState.FAILED], limit=5),
    "runs that are open or failed": lambda view: view.find_runs(states=[RunState.OPEN, RunState.FAILED], limit=5),
    "runs of nobody": lambda view: view.find_runs(agent=AgentId("nobody"), limit=5),
    "the latest root": lambda view: view.find_runs(roots=True, limit=1),
    "the roots of a session": lambda view: view.find_runs(session=SessionId("session_" + "0" * 26), roots=True),
    "an older page of runs": lambda view: view.find_runs(before=RunId("run_" + "0" * 18 + "9" * 8), limit=5),
    "the latest handoffs": lambda view: view.find_handoffs(limit=5),
    "handoffs that failed": lambda view: view.find_handoffs(states=[State.FAILED], limit=5),
    "handoffs that somebody holds": lambda view: view.find_handoffs(states=[State.CLAIMED, State.READY], limit=5),
    "handoffs to nobody": lambda view: view.find_handoffs(to=AgentId("nobody"), limit=5),
    "an older page of handoffs": lambda view: view.find_handoffs(before=HandoffId("handoff_" + "0" * 26), limit=5),
    "a run by the end of its id": lambda view: view.find_ids("run", "zzzzzz"),
    "a handoff by the end of its id": lambda view: view.find_ids("handoff", "zzzzzz"),
    "a receipt by the end of its id": lambda view: view.find_ids("receipt", "zzzzzz"),
    "a receipt by the end of its call's id": lambda view: view.find_call_receipts("zzzzzz"),
}


def looked_at(plan: dict[str, Any]) -> int:
    """Return how many rows of tables a plan has looked at."""
    own = 0
    if "Relation Name" in plan or plan["Node Type"] == "Bitmap Index Scan":
        removed = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        own = int((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    return own + sum(looked_at(part) for part in plan.get("Plans", []))


class Explained(PostgresView):
    """A view that explains what it asks, instead of reading it."""

    rows = 0

    def _all(self, name: str, values: Any, make: Any) -> Iterator[Any]:  # noqa: ANN401, ARG002 - as in the view
        explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {QUERIES[name]}"
        (plan,) = self._snapshot.run(
            lambda reader: reader.execute(explained, values, prepare=False).fetchone() or ("[]",)
        )
        self.rows += looked_at((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])
        return iter(())

    def _stream(self, name: str, values: Any, make: Any, **_: Any) -> Iterator[Any]:  # noqa: ANN401 - as in the view
        return self._all(name, values, make)


def test_what_is_asked_for_is_found_without_the_rest(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe
) -> None:
    """Among thousands of others, a list looks at the rows that it shows."""
    lead = scribe.start()
    scribe.offer(lead)
    scribe.recording.request(lead, "write_file", "{}")
    for statement in _FILL.split(";"):
        postgres.execute(statement, database=database_of(postgres_url))
    found = {}
    with psycopg.connect(postgres.admin_url(database_of(postgres_url))) as connection:
        lent = SimpleNamespace(run=lambda act: act(connection))
        for name, asks in ASKED.items():
            explained = Explained(lent, "here")  # type: ignore[arg-type]  # all that it asks of one
            list(asks(explained))
            found[name] = explained.rows
    with store.view() as view:
        assert _ROWS < view.counts().runs

    assert {} == {name: rows for name, rows in found.items() if rows > _FEW}
