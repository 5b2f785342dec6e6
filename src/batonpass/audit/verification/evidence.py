"""What a verification saw: the answer to "how do you know?"."""

from msgspec import Struct

from batonpass.model.base.ids import KeyId, LedgerId


class Evidence(Struct, frozen=True, kw_only=True):
    """What was checked and found to be whole."""

    ledger: LedgerId
    root_key: KeyId  # the key that all trust hangs from: compare it with one that you got elsewhere
    receipts: int
    signatures: int
    streams: int
    runs: int
    handoffs: int
    contents: int  # bodies whose digest was checked
    erased: int  # bodies that were erased on purpose, each under a receipt
    withheld: int  # bodies that a bundle of digests leaves out
    relays: int
    seals: int
    unjudged: int  # calls of runs with a grant of which too much was erased, redacted or left out to judge them again
    unknown_kinds: int  # receipts of kinds that this version cannot interpret; their bytes, chain and signatures hold
    sealed: int = 0  # receipts that only a seal stands for: their bytes, order and contents were compared, and no more
