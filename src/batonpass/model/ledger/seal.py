"""A seal: a signed Merkle root over everything recorded so far."""

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_digest, require_instance, require_integer
from batonpass.model.base.ids import Digest


class Seal(Struct, frozen=True, kw_only=True):
    """The signed Merkle root of the first `size` receipts; kept elsewhere, it makes deletion visible."""

    size: int
    previous: int  # the size of the seal before it, so that none can vanish between two; 0 for the first
    root: Digest
    note: str  # a C2SP checkpoint: what is signed, and the signature
    frontier: bytes  # the roots of the complete subtrees, so that the next seal need not read the past again

    def __post_init__(self) -> None:
        require_integer("size", self.size, least=1)
        require_integer("previous", self.previous)
        if self.previous >= self.size:
            raise InvalidValueError("previous", f"{self.previous} is not smaller than {self.size}")
        require_digest("root", self.root)
        require_instance("frontier", self.frontier, bytes)
        if not require_instance("note", self.note, str):
            raise InvalidValueError("note", "is empty")
        if len(self.frontier) != 32 * self.size.bit_count():
            raise InvalidValueError("frontier", f"does not fit a tree of {self.size}")
