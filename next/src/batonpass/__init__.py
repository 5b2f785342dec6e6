"""Handoff infrastructure for agents: the whole state across every handoff, narrower grants, signed receipts.

Three words are enough for the first five minutes: `start` a run, `hand_off` a task, `blame` a line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from batonpass.api.default import blame, current_call, current_run, start
from batonpass.api.handles import Handoff, Relay, Run
from batonpass.api.handoffs import Result
from batonpass.api.tools import Tool, tool
from batonpass.model.grants import Grant
from batonpass.model.items import (
    Assumption,
    Baton,
    Brief,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    HandoffOptions,
    Intent,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)
from batonpass.model.lifecycle import RunState, State

if TYPE_CHECKING:
    from batonpass.api.aio import AsyncHandoff, AsyncRelay, AsyncRun
    from batonpass.reading.handoffs import HandoffView, RunLine, RunView
    from batonpass.reports.blame import Blame
    from batonpass.verify.verifier import Evidence

# asyncio takes as long to import as all of us, and most programs only record: what a name needs comes with its use.
_LATER = {
    "AsyncHandoff": "batonpass.api.aio",
    "AsyncRelay": "batonpass.api.aio",
    "AsyncRun": "batonpass.api.aio",
    "Blame": "batonpass.reports.blame",
    "Evidence": "batonpass.verify.verifier",
    "HandoffView": "batonpass.reading.handoffs",
    "RunLine": "batonpass.reading.handoffs",
    "RunView": "batonpass.reading.handoffs",
}

__all__ = [
    "Assumption",
    "AsyncHandoff",
    "AsyncRelay",
    "AsyncRun",
    "Baton",
    "Blame",
    "Brief",
    "Claim",
    "Constraint",
    "Decision",
    "Evidence",
    "Exclusion",
    "Grant",
    "Handoff",
    "HandoffOptions",
    "HandoffView",
    "Intent",
    "OpenQuestion",
    "RejectedPath",
    "Relay",
    "Report",
    "Result",
    "Run",
    "RunLine",
    "RunState",
    "RunView",
    "State",
    "Tool",
    "WorkItem",
    "blame",
    "current_call",
    "current_run",
    "start",
    "tool",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's names have their own types
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
