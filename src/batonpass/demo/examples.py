"""Loading the example programs that the demonstrations play."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import HandoffId
from batonpass.relay import Relay


def load_example(name: str) -> ModuleType:
    """Return an example as a module: from this package if it is installed, otherwise from the source tree."""
    beside = Path(__file__).with_name(name)
    path = beside if beside.exists() else Path(__file__).parents[3] / "examples" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WorkerProcess(Protocol):
    """A worker in its own process."""

    def wait(self) -> int:
        """Wait for its end, and return the exit code."""


class Analysis(Protocol):
    """The parts of the example that the story uses."""

    opened: Callable[[Path], Relay]
    lead: Callable[[Relay], tuple[LiveRun, HandoffId]]
    kill_in_second_call: Callable[[Path], int]
    worker_process: Callable[[Path], WorkerProcess]


def load_analysis() -> Analysis:
    """Return the example of the quarterly analysis as a module."""
    return cast("Analysis", load_example("quarterly_analysis.py"))
