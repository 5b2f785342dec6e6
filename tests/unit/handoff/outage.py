"""A store that fails when a test says so."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from batonpass.errors import StoreFullError, StoreUnavailableError
from batonpass.model.base.ids import HandoffId
from batonpass.model.ledger.entry import Entry
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerView


class Outage(MemoryStore):
    """A store that can be full, or away altogether."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.away = False

    def append(self, entries: Sequence[Entry]) -> None:
        """Write, if there is room."""
        if self.full or self.away:
            raise StoreFullError("no room")
        super().append(entries)

    @contextmanager
    def view(self, about: HandoffId | None = None) -> Iterator[LedgerView]:
        """Read, if it is there."""
        if self.away:
            raise StoreUnavailableError("nobody answers")
        with super().view(about) as view:
            yield view
