"""What agents of any framework are recorded with.

own_loop   `@recorded_agent` and `@recorded_tool`, for a program that has no framework
port       `Recording`, `Work`, `Call`: what an adapter of a framework tells, and is told
flows      the port around code: guard, delegate, generators
states     how an agent begins and ends, one table

An adapter only translates. It needs no act and no receipt of its own, and whatever way its framework stops an agent in
is decided in `states`.
"""

from batonpass.api.async_port import aside
from batonpass.api.tools import Declared
from batonpass.frameworks.flows import adelegate, aguard, aopen, asteps, astream, delegate, guard, steps, stream
from batonpass.frameworks.own_loop import recorded_agent, recorded_tool
from batonpass.frameworks.port import (
    VERDICTS,
    Call,
    Known,
    Made,
    Recording,
    Refused,
    Usage,
    Work,
    current_work,
    text_of,
    within,
)
from batonpass.frameworks.states import End, WorkState

__all__ = [
    "VERDICTS",
    "Call",
    "Declared",
    "End",
    "Known",
    "Made",
    "Recording",
    "Refused",
    "Usage",
    "Work",
    "WorkState",
    "adelegate",
    "aguard",
    "aopen",
    "aside",
    "asteps",
    "astream",
    "current_work",
    "delegate",
    "guard",
    "recorded_agent",
    "recorded_tool",
    "steps",
    "stream",
    "text_of",
    "within",
]
