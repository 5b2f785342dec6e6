"""The examples that demonstrations play: they are programs to read, and lie with the examples."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, cast

from batonpass.demo.examples import load_example
from batonpass.handoff.run import LiveRun
from batonpass.model.ids import HandoffId
from batonpass.relay import Relay

NAME: Final = "quarterly_analysis.py"
SESSIONS: Final = "sessions.py"


class Process(Protocol):
    """A worker that runs as a process of its own."""

    def wait(self) -> int:
        """Return how it ended, when it has."""


class Analysis(Protocol):
    """What the story needs of the example."""

    opened: Callable[[Path], Relay]
    lead: Callable[[Relay], tuple[LiveRun, HandoffId]]
    kill_in_second_call: Callable[[Path], int]
    worker_process: Callable[[Path], Process]


class TwoSessions(Protocol):
    """What the story of two sessions needs of the example."""

    main: Callable[[Path, Callable[[str], None]], Relay]


def load_analysis() -> Analysis:
    """Return the example of the quarterly analysis as a module."""
    return cast("Analysis", load_example(NAME))


def load_sessions() -> TwoSessions:
    """Return the example of two sessions as a module."""
    return cast("TwoSessions", load_example(SESSIONS))
