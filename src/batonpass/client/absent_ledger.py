"""A stand-in for the ledger of a relay in this process: every use raises that it is elsewhere."""

import threading
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from batonpass.errors import NotOverHttpError
from batonpass.grants.resolved_paths import WorkTreePaths
from batonpass.store.port import Wake


class AbsentStore:
    """The store of a ledger that is elsewhere. It can be named, and nothing else."""

    def __init__(self, url: str) -> None:
        self.url = url

    def await_work(self, _: Collection[str], *, at_most: timedelta, stop: threading.Event) -> Wake:  # noqa: ARG002 - as a store has it
        """Return at once: nobody here is told of new work, so workers ask."""
        return Wake.UNTOLD

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NotOverHttpError(f"store.{name}")


class AbsentDesk:
    """The desk of a relay that is elsewhere: it knows the work tree of this machine, and nothing else."""

    def __init__(self, work_tree: Path) -> None:
        self.work_tree = work_tree
        self._paths = WorkTreePaths(work_tree)

    def resolve(self, path: str) -> str:
        """Return where a path leads on this machine."""
        return self._paths(path)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it never returns
        raise NotOverHttpError(f"this ({name})")
