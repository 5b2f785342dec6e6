"""A store in which others are faster: what a race looks like, without waiting for one."""

import copy
from collections import deque
from collections.abc import Callable, Sequence

from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.seal import Seal
from batonpass.store.memory import MemoryStore
from batonpass.testing.builders import Scribe, a_scribe


class RacingStore(MemoryStore):
    """Remembers the commits that were tried; `first` holds what others do before the next ones, one before each."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[Sequence[Entry]] = []
        self.first: deque[Callable[[], object]] = deque()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries, after somebody who was faster."""
        self.tried.append(entries)
        self._let_another_go_first()
        super().append(entries)

    def add_seal(self, seal: Seal) -> None:
        """Keep a seal, after somebody who was faster."""
        self._let_another_go_first()
        super().add_seal(seal)

    def _let_another_go_first(self) -> None:
        if self.first:
            self.first.popleft()()

    def snapshot(self) -> object:
        """Return everything as it is now."""
        return copy.deepcopy(self._tables)

    def restore(self, snapshot: object) -> None:
        """Go back to what was, as if an older copy had been put in this one's place."""
        self._tables = copy.deepcopy(snapshot)  # type: ignore[assignment]


def two_processes(store: MemoryStore) -> tuple[Scribe, Scribe]:
    """Return two processes of one relay: the same key, each with its own memory of where the streams stand."""
    first = a_scribe(store)
    return first, a_scribe(store, identity=first.identity, root=first.root)
