"""Knows whether we still are the process that opened something."""

import os

from batonpass.errors import ForkedError


class OwnProcess:
    """Remembers in which process it was made."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def require(self) -> None:
        """Refuse use after a fork: connections and locks shared by two processes corrupt what they guard."""
        if os.getpid() != self.pid:
            raise ForkedError
