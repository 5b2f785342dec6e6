"""The examples that demonstrations play: programs to read, which lie with the examples."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, cast

from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import HandoffId
from batonpass.relay import Relay


def load_example(name: str) -> ModuleType:
    """Return an example as a module: from beside this file in an installed package, else from the source tree."""
    beside = Path(__file__).with_name(name)
    path = beside if beside.exists() else Path(__file__).parents[3] / "examples" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAME: Final = "quarterly_analysis.py"
SESSIONS: Final = "sessions.py"


class WorkerProcess(Protocol):
    """A worker that runs as a process of its own."""

    def wait(self) -> int:
        """Return how it ended, when it has."""


class Analysis(Protocol):
    """What the story needs of the example."""

    opened: Callable[[Path], Relay]
    lead: Callable[[Relay], tuple[LiveRun, HandoffId]]
    kill_in_second_call: Callable[[Path], int]
    worker_process: Callable[[Path], WorkerProcess]


class TwoSessions(Protocol):
    """What the story of two sessions needs of the example."""

    main: Callable[[Path, Callable[[str], None]], Relay]


def load_analysis() -> Analysis:
    """Return the example of the quarterly analysis as a module."""
    return cast("Analysis", load_example(NAME))


def load_sessions() -> TwoSessions:
    """Return the example of two sessions as a module."""
    return cast("TwoSessions", load_example(SESSIONS))
