"""What goes wrong at a commit: it is not written, nobody hears that it was, or the process dies.

A real store works behind it. Nothing is pretended: before a commit nothing is there, after it everything is.
"""

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

from batonpass.errors import OutcomeUnknownError, StoreError
from batonpass.model.receipt import Signed
from batonpass.store.port import Store

When: TypeAlias = Literal["before", "after"]


class Faults:
    """The hand of a test on the appends of one relay: `a_relay(faults=Faults())`. Commits are counted from one on."""

    def __init__(self) -> None:
        self.commits = 0  # that were tried
        self.receipts = 0  # that were written
        self._plans: dict[tuple[int, When], Callable[[], object]] = {}

    def at(self, commit: int, when: When, act: Callable[[], object]) -> None:
        """Do something before or after a commit, by its number. What it raises, the caller of the append gets."""
        self._plans[commit, when] = act

    def fail(self, when: When = "before", *, times: int = 1) -> None:
        """Let the next commits fail: before, nothing is written; after, they are, and nobody hears it."""
        for number in range(self.commits + 1, self.commits + 1 + times):
            self.at(number, when, _not_written if when == "before" else _not_heard)

    def work(self) -> None:
        """Let every later commit succeed again."""
        self._plans.clear()

    def wrap(self, store: Store) -> Store:
        """Return a store whose appends these faults befall."""
        return cast("Store", _FaultyStore(store, self))

    def meet(self, when: When) -> None:
        """Do what is planned for the commit that is being made."""
        act = self._plans.pop((self.commits, when), None)
        if act is not None:
            act()


class _FaultyStore:
    def __init__(self, store: Store, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    def append(self, entry: Sequence[Signed], /) -> None:
        self._faults.commits += 1
        self._faults.meet("before")
        self._store.append(entry)
        self._faults.receipts += len(entry)
        self._faults.meet("after")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the store's own
        return getattr(self._store, name)


def kill_at(commit: int, when: When, *, by: signal.Signals = signal.SIGKILL) -> Faults:
    """Return faults that end this process at a commit, as `kill -9` does. SIGSTOP only freezes it there."""
    faults = Faults()
    faults.at(commit, when, lambda: os.kill(os.getpid(), by))
    return faults


def _not_written() -> None:
    raise StoreError("the ledger cannot be written: the disk is full")


def _not_heard() -> None:
    raise OutcomeUnknownError("the commit was cut short: nobody heard its answer")
