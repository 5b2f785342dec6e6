"""Sessions of native agents: a caller's id over one or more root runs."""

import json
from dataclasses import dataclass
from itertools import islice
from typing import Final

from batonpass.handoff.history.past_calls import read_runs
from batonpass.model.base.ids import RunId, SessionId, StreamId
from batonpass.model.ledger.receipt_taint import is_made_of_outside
from batonpass.model.ledger.run import RunState
from batonpass.store.port import LedgerStore
from batonpass.wire.codec import decode_receipt

_LATEST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """The last messages of a run, and whether they may contain content from outside."""

    run: RunId
    messages: object
    tainted: bool


def read_session(store: LedgerStore, session: SessionId, agent: str) -> EndedRun | None:
    """Return the last messages of an agent's latest completed run in a session; None if there is none."""
    with store.view() as view:
        for run in islice(view.find_runs(series=session), _LATEST):
            if run.agent != agent or run.state is not RunState.COMPLETED:
                continue
            kept = read_runs(view, [run], StreamId(run.id)).messages
            body = None if kept is None else view.get_content(kept.id).body
            if body is not None:
                last = view.get_stream(StreamId(run.id)).seq
                closed = decode_receipt(view.get_receipt_at(StreamId(run.id), last).payload)
                return EndedRun(run=run.id, messages=json.loads(body), tainted=is_made_of_outside(closed))
    return None
