"""A seal: a signed Merkle root over all receipts so far."""

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_digest, require_instance, require_integer
from batonpass.model.base.ids import Digest


class Seal(Struct, frozen=True, kw_only=True):
    """The signed Merkle root of the first `size` receipts. Kept elsewhere, it shows whether any were deleted."""

    size: int
    previous: int  # size of the seal before it; 0 for the first. It shows whether a seal in between is missing
    root: Digest
    note: str  # a C2SP checkpoint: the signed text and the signature
    frontier: bytes  # roots of the complete subtrees, so that the next seal need not read older receipts

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
