"""Handoff infrastructure for agents: the whole state across every handoff, narrower grants, signed receipts.

Three words are enough for the first five minutes: `start` a run, `hand_off` a task, `blame` a line.
"""

from typing import TYPE_CHECKING, Any

from batonpass.api.default import blame, current_call, current_run, start
from batonpass.api.handles import Handoff, Relay, Run
from batonpass.api.handoffs import HandoffInfo, Result
from batonpass.api.runs import RunInfo
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
from batonpass.reports.blame import Blame
from batonpass.verify.verifier import Evidence

if TYPE_CHECKING:
    from batonpass.api.aio import AsyncHandoff, AsyncRelay, AsyncRun

_ASYNC = frozenset({"AsyncHandoff", "AsyncRelay", "AsyncRun"})

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
    "HandoffInfo",
    "HandoffOptions",
    "Intent",
    "OpenQuestion",
    "RejectedPath",
    "Relay",
    "Report",
    "Result",
    "Run",
    "RunInfo",
    "RunState",
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
    # asyncio takes as long to import as the rest of us: only who awaits pays for it.
    if name in _ASYNC:
        from batonpass.api import aio  # noqa: PLC0415

        return getattr(aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
