"""Detects use after a fork, for everything that holds connections or locks."""

import os

from batonpass.errors import ForkedError


class OwnProcess:
    """Remembers the process in which it was made."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def require(self) -> None:
        """Raise `ForkedError` in a forked process: connections and locks that two processes share corrupt a ledger."""
        if os.getpid() != self.pid:
            raise ForkedError
