"""What the receipts before one have established, beyond the rows; and how a step says what is wrong."""

from msgspec import Struct, field

from batonpass.store.admission import Tables


class FaultError(Exception):
    """One thing is wrong with a receipt, in one field."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field


class RunFacts(Struct, frozen=True):
    """What holds for a run from its first receipt on."""

    mode: str
    accounts: tuple[str, ...]  # whose grants each of its calls needs: the hops that hold terms, the root first


class OfferFacts(Struct, frozen=True):
    """What an acceptance has to repeat."""

    baton: str
    terms: str | None
    expires_at: int | None


class Facts(Struct):
    """What is known before a receipt is judged. `tables` is the same fold as the store's, in memory."""

    tables: Tables = field(default_factory=Tables)
    root_key: str = ""  # of the ledger, as its first receipt names it
    relays: dict[str, str] = field(default_factory=dict)  # the key of each enrolled relay
    runs: dict[str, RunFacts] = field(default_factory=dict)
    offers: dict[str, OfferFacts] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)  # the run that requested each call
    heads: dict[str, list[bytes]] = field(default_factory=dict)  # digests of each run's receipts, by number
    receipts: int = 0
    signatures: int = 0
    contents: int = 0

    def is_own_child(self, run: str, handoff: str) -> bool:
        """Return whether a run, or another attempt at the handoff that it works on, offered a handoff."""
        streams, child = self.tables.streams, self.tables.handoffs.get(handoff)
        if child is None or child.parent == run:
            return child is not None
        own = streams[run].handoff if run in streams else None
        return own is not None and own == streams[child.parent].handoff
