"""An entry: what a store is asked to append."""

from dataclasses import dataclass, field

from batonpass.model.content import Content
from batonpass.model.projection import Projection, project
from batonpass.model.receipt import SignedReceipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A receipt, the content it commits to, and what it changes: written together or not at all."""

    signed: SignedReceipt
    contents: tuple[Content, ...] = ()
    token: int | None = None  # of the lease under which a worker takes a handoff; None where no lease is asked for
    change: Projection = field(init=False)

    def __post_init__(self) -> None:
        # Worked out once: the ledger and the store both ask, for every receipt.
        object.__setattr__(self, "change", project(self.signed.receipt, self.signed.digest))
