"""The states of a handoff, and the one table of transitions. The SQL CHECK lists the same states; a test compares."""

from enum import StrEnum
from typing import Final

from batonpass.errors import LifecycleError


class State(StrEnum):
    """The state of a handoff. The text is stored, so it is forever."""

    OFFERED = "offered"
    RUNNING = "running"
    COMPLETED = "completed"  # provisional: a verdict says what it is worth
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunState(StrEnum):
    """The state of a run. Only an open run can write."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    FENCED = "fenced"  # its handoff was retried: its process has lost it


class Event(StrEnum):
    """An event that moves a handoff to another state."""

    ACCEPT = "accept"
    COMPLETE = "complete"
    FAIL = "fail"
    RETRY = "retry"
    CANCEL = "cancel"


TRANSITIONS: Final[dict[tuple[str, Event], State]] = {
    (State.OFFERED, Event.ACCEPT): State.RUNNING,
    (State.RUNNING, Event.COMPLETE): State.COMPLETED,
    (State.RUNNING, Event.FAIL): State.FAILED,
    (State.RUNNING, Event.RETRY): State.OFFERED,  # its process is gone; the receipt fences its stream at its head
    (State.FAILED, Event.RETRY): State.OFFERED,
    (State.OFFERED, Event.CANCEL): State.CANCELLED,
    (State.RUNNING, Event.CANCEL): State.CANCELLED,
}


def advance(handoff: str, state: str, event: Event) -> State:
    """Return the next state. Raises `LifecycleError` if the table has no such transition."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        steps = ", ".join(sorted(str(known) for (old, known) in TRANSITIONS if old == state)) or "nothing"
        detail = f"{handoff} is {state}: it cannot {event}; what is possible now: {steps}"
        raise LifecycleError(detail, facts={"state": str(state)}) from None
