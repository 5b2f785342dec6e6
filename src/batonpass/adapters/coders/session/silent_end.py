"""Sessions of agents that do not tell when they end: over when nothing of them was under way for a while."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from batonpass.adapters.coders.session.recovery import session_of
from batonpass.adapters.tool_kinds import Coder
from batonpass.model.base.ids import AgentId, RunId, StreamId
from batonpass.model.ledger.run import RunState
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt

REASON: Final = "not told"  # why a session ended, in the source of its last receipt
_QUIET: Final = timedelta(minutes=10)
_MOST: Final = 50


def find_silent(view: LedgerView, coder: Coder, now: datetime, *, besides: str) -> Iterator[tuple[RunId, str]]:
    """Yield open root runs of an agent, and their sessions, of which nothing was recorded lately.

    One whose user only thinks for long is among them; if it goes on, it does so in a run of its own.
    """
    for run in view.find_runs(agent=AgentId(coder), roots=True, states=(RunState.OPEN,), limit=_MOST):
        last = view.get_stream(StreamId(run.id))
        at = decode_receipt(view.get_receipt_at(last.id, last.seq).payload).at
        session = session_of(view, run)
        if session is not None and session != besides and now - at >= _QUIET:
            yield run.id, session
