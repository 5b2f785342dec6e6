"""The states of an agent at work, and the one table of how frameworks begin and stop. No I/O."""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class WorkState(StrEnum):
    """Where the work of an agent is."""

    OFFERED = "offered"  # nobody has begun
    OPEN = "open"
    PAUSED = "paused"  # waits for a person; its run stays open
    HANDED_ON = "handed_on"  # it transferred: its end is that of its heir
    ENDED = "ended"
    DROPPED = "dropped"  # offered, and the framework never let it begin


class End(StrEnum):
    """The ways in which frameworks stop."""

    RETURNED = "returned"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"  # the reader of its stream went away
    INTERRUPTED = "interrupted"
    TRANSFERRED = "transferred"


BEGIN: Final = "begin"
DROP: Final = "drop"
GONE: Final = (End.CANCELLED, End.ABANDONED)  # nobody waits for it any more
_FINAL: Final = (End.RETURNED, End.FAILED, *GONE)

# What is not here does nothing: frameworks say most ends twice, and some begin each turn anew.
MOVES: Final[Mapping[tuple[WorkState, str], WorkState]] = {
    (WorkState.OFFERED, BEGIN): WorkState.OPEN,
    (WorkState.PAUSED, BEGIN): WorkState.OPEN,
    **dict.fromkeys(((WorkState.OFFERED, how) for how in (DROP, *GONE)), WorkState.DROPPED),
    (WorkState.OPEN, End.INTERRUPTED): WorkState.PAUSED,
    (WorkState.OPEN, End.TRANSFERRED): WorkState.HANDED_ON,
    **{
        (state, end): WorkState.ENDED
        for state in (WorkState.OPEN, WorkState.PAUSED, WorkState.HANDED_ON)
        for end in _FINAL
    },
}


def decide_end(error: BaseException | None, *, waits: bool, has_heir: bool) -> End:
    """Return how an agent ended. The only place that decides it."""
    if waits:  # before the error: some frameworks drop the generator, or raise, when they ask a person
        return End.INTERRUPTED
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return End.CANCELLED
    if isinstance(error, GeneratorExit):
        return End.ABANDONED
    if error is not None:
        return End.FAILED
    return End.TRANSFERRED if has_heir else End.RETURNED
