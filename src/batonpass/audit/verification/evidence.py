"""The result of a verification: what exactly was checked."""

from msgspec import Struct

from batonpass.model.base.ids import KeyId, LedgerId


class Evidence(Struct, frozen=True, kw_only=True):
    """What was checked and found correct."""

    ledger: LedgerId
    root_key: KeyId  # the root of all trust: compare it with a copy from elsewhere
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
    unjudged: int  # calls under a grant that cannot be judged again, since too much was erased, redacted or left out
    unknown_kinds: int  # receipts of kinds unknown to this version; their bytes, chain and signatures are correct
    sealed: int = 0  # receipts covered by a seal: only their bytes, order and contents were compared
