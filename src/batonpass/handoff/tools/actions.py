"""The actions of calls, as grants name them."""

from typing import Final

READ: Final = "read"
WRITE: Final = "write"
CALL: Final = "call"
