"""Sessions of native agents: a caller's id over one or more root runs."""

import json
from itertools import islice
from typing import Final

from batonpass.handoff.resuming import read_runs
from batonpass.model.ids import SessionId, StreamId
from batonpass.model.run import RunState
from batonpass.store.port import LedgerStore

_LATEST: Final = 64


def read_session(store: LedgerStore, session: SessionId, agent: str) -> object | None:
    """Return the messages with which an agent's last finished run of a session ended; None if there is none."""
    with store.view() as view:
        for run in islice(view.find_runs(series=session), _LATEST):
            if run.agent != agent or run.state is not RunState.COMPLETED:
                continue
            kept = read_runs(view, [run], StreamId(run.id)).messages
            body = None if kept is None else view.get_content(kept.id).body
            if body is not None:
                return json.loads(body)  # type: ignore[no-any-return]
    return None
