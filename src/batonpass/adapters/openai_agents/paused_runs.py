"""Runs that wait for approvals of the SDK: who goes on with a `RunState` goes on with its run. It needs the extra.

The calls that wait are in the state, wherever it was kept meanwhile. Within a process they name the run; another one
finds it in the ledger, by the last checkpoint of its root.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from agents import RunState, ToolApprovalItem

from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import resume_work
from batonpass.adapters.openai_agents.sdk_run import SdkRun
from batonpass.model.base.content_names import MESSAGES
from batonpass.model.base.ids import AgentId, StreamId, as_agent
from batonpass.model.bodies.body import CheckpointSaved
from batonpass.model.ledger import run as ledger_run
from batonpass.model.ledger.run import Run
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt

PAUSED: Final = "paused"  # in a checkpoint: the calls that wait
RUNS: Final = "runs"  # in a checkpoint: the runs that have the conversation, the root first
_MOST: Final = 1000  # of those that nobody goes on with


class PausedRuns:
    """The runs that wait, by the ids of the calls that they wait for."""

    def __init__(self, ledger: FrameworkLedger) -> None:
        self._ledger = ledger
        self._here: OrderedDict[tuple[str, ...], SdkRun] = OrderedDict()

    def keep(self, agent: str, run: SdkRun, waiting: Iterable[ToolApprovalItem]) -> None:
        """Leave a run open until somebody goes on with it, here or in another process."""
        calls = _names(waiting)
        run.pause({PAUSED: list(calls), RUNS: [work.run.id for work in run.works if work.run is not None]})
        self._here[agent, *calls] = run
        while len(self._here) > _MOST:
            self._here.popitem(last=False)

    def take(self, agent: str, given: object, *, nested: bool) -> SdkRun | None:
        """Return the run that goes on with a state; None if it is none, or nobody knows its run.

        An agent in a tool waits for the same calls as the one that asked it, so the first agent of a run counts too.
        """
        calls = _names(given.get_interruptions()) if isinstance(given, RunState) else ()
        if not calls:
            return None
        here = self._here.pop((agent, *calls), None)
        if here is not None or nested:
            return here
        try:
            return self._find(as_agent(agent), calls)
        except Exception as error:  # noqa: BLE001 - then it is a run of its own, which says whether it can be recorded
            self._ledger.complain(error)
            return None

    def _find(self, agent: AgentId, calls: tuple[str, ...]) -> SdkRun | None:
        relay = self._ledger.relay
        with relay.store.view() as view:
            left = view.find_runs(agent=agent, states={ledger_run.RunState.OPEN}, roots=True, limit=_MOST)
            kept = (_checkpoint(view, root) for root in left)
            found = next((one for one in kept if one.get(PAUSED) == list(calls)), None)
        if found is None:
            return None
        return SdkRun(*(resume_work(self._ledger, relay.resume(str(run))) for run in found[RUNS]))


def _names(waiting: Iterable[ToolApprovalItem]) -> tuple[str, ...]:
    return tuple(sorted(one.call_id for one in waiting if one.call_id is not None))


def _checkpoint(view: LedgerView, root: Run) -> dict[str, Any]:
    """Return the last checkpoint of a run, if it did nothing since; an empty one otherwise."""
    stream = view.get_stream(StreamId(root.id))
    last = decode_receipt(view.get_receipt_at(stream.id, stream.seq).payload)
    if not isinstance(last.body, CheckpointSaved) or MESSAGES not in last.content:
        return {}
    body = view.get_content(last.content[MESSAGES].id).body
    told = json.loads(body or b"{}")
    return told if isinstance(told, dict) else {}
