"""What a call does to something, as a grant names it."""

from typing import Final

READ: Final = "read"
WRITE: Final = "write"
CALL: Final = "call"
