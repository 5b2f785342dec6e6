"""Evidence: the result of a verification, with counts of everything that was checked."""

from msgspec import Struct

from batonpass.model.base.ids import KeyId, LedgerId


class Evidence(Struct, frozen=True, kw_only=True):
    """Counts of the receipts, signatures and contents that were checked and found correct."""

    ledger: LedgerId
    root_key: KeyId  # everything else rests on it: compare it with a copy from elsewhere
    receipts: int
    signatures: int
    streams: int
    runs: int
    handoffs: int
    contents: int  # bodies whose digest was checked
    erased: int  # bodies erased on purpose, each under a receipt
    withheld: int  # bodies that a bundle without contents leaves out
    relays: int
    seals: int
    unjudged: int  # calls under a grant that cannot be judged again: too much was erased, redacted or left out
    unknown_kinds: int  # receipts of kinds unknown to this version; their bytes, chain and signatures are correct
    sealed: int = 0  # receipts covered by a seal: only their bytes, order and contents were compared
