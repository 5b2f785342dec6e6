"""The example that the demonstration plays: it is a program to read, and lies with the examples."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, cast

from batonpass.handoff.run import LiveRun
from batonpass.model.ids import HandoffId
from batonpass.relay import Relay

NAME: Final = "quarterly_analysis.py"


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


def load_analysis() -> Analysis:
    """Return the example as a module: from beside this file in an installed package, else from the source tree."""
    beside = Path(__file__).with_name(NAME)
    path = beside if beside.exists() else Path(__file__).parents[3] / "examples" / NAME
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Analysis", module)
