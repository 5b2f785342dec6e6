"""The memory store passes the suite."""

import pytest

from batonpass.store.memory import MemoryStore
from batonpass.testing.conformance import LedgerStoreConformance


class TestMemoryStore(LedgerStoreConformance):
    """The suite, on memory."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        """Return an empty store."""
        return MemoryStore()
