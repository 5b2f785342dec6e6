"""One receipt, checked step by step by itself. Whether the whole ledger holds is the verifier's answer."""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from batonpass.errors import BatonpassError, NotFoundError
from batonpass.model.base.passkey import public_bytes
from batonpass.model.ledger.content import Place, content_digest
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.text import read_receipt
from batonpass.signing.libsodium import is_signed
from batonpass.store.port import LedgerView
from batonpass.wire.canonical import digest
from batonpass.wire.receipt_codec import signing_bytes


class StepOutcome(StrEnum):
    """How a step ended."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "cannot be told here"


class ReceiptStep(Struct, frozen=True, kw_only=True):
    """One check of one receipt."""

    name: str
    outcome: StepOutcome
    words: str


def find_steps(view: LedgerView, stored: StoredReceipt) -> Iterator[ReceiptStep]:
    """Yield the checks of a receipt in order. Checks that need earlier receipts are marked as the verifier's."""
    try:
        receipt = read_receipt(stored)
    except BatonpassError as error:
        yield ReceiptStep(name="bytes", outcome=StepOutcome.FAILS, words=str(error))
        return
    same = (receipt.id, receipt.stream, receipt.seq, receipt.kind) == (
        stored.id,
        stored.stream,
        stored.seq,
        stored.kind,
    )
    yield _step("bytes", "they are read, and the columns beside them say the same", holds=same)
    yield _signature(view, stored, receipt)
    yield _link(view, receipt)
    yield _contents(view, receipt)
    yield _sealed(view, stored)


def _step(name: str, words: str, *, holds: bool) -> ReceiptStep:
    return ReceiptStep(name=name, outcome=StepOutcome.HOLDS if holds else StepOutcome.FAILS, words=words)


def _signature(view: LedgerView, stored: StoredReceipt, receipt: Receipt) -> ReceiptStep:
    key = next((one.public_key for one in view.find_keys() if one.id == receipt.relay_key), None)
    if key is None:
        return _step("signature", f"no key {receipt.relay_key[:16]} was enrolled", holds=False)
    right = is_signed(public_bytes(key), signing_bytes(stored.payload), stored.relay_signature)
    second = ", and the run’s beside it" if stored.cosignature is not None else ""
    return _step("signature", f"by relay key {receipt.relay_key[:16]}{second}", holds=right)


def _link(view: LedgerView, receipt: Receipt) -> ReceiptStep:
    if receipt.seq == 1:
        return ReceiptStep(
            name="link", outcome=StepOutcome.OPEN, words="the first of its stream; the verifier checks where it hangs"
        )
    try:
        before = view.get_receipt_at(receipt.stream, receipt.seq - 1)
    except NotFoundError:
        return _step("link", f"receipt {receipt.seq - 1} of the stream is missing", holds=False)
    right = digest(before.payload) == receipt.previous
    return _step("link", f"to receipt {receipt.seq - 1} of its stream, {receipt.previous[:16]}", holds=right)


def _contents(view: LedgerView, receipt: Receipt) -> ReceiptStep:
    refs = {ref.id: ref for ref in receipt.content.values()}
    known = {one.id: one for one in view.find_contents(list(refs))}
    erased = sum(one.place is Place.ERASED for one in known.values())
    wrong = [
        ref.id
        for ref in refs.values()
        if (found := known.get(ref.id)) is None
        or (
            found.place is not Place.ERASED
            and (found.body is None or found.salt is None or content_digest(found.salt, found.body) != ref.digest)
        )
    ]
    words = f"{len(refs)} with the digests that were signed" if refs else "it has none"
    if erased:
        words += f"; {erased} erased, and the digest stays"
    return _step("content", f"{wrong[0]} is not what was signed" if wrong else words, holds=not wrong)


def _sealed(view: LedgerView, stored: StoredReceipt) -> ReceiptStep:
    covering = [seal for seal in view.find_seals() if stored.position is not None and seal.size >= stored.position]
    if not covering:
        return ReceiptStep(name="seal", outcome=StepOutcome.OPEN, words="no seal covers it yet")
    smallest = min(covering, key=lambda seal: seal.size)
    return ReceiptStep(
        name="seal",
        outcome=StepOutcome.OPEN,
        words=f"covered by the seal over {smallest.size:,} receipts; `batonpass receipt proof` proves it offline",
    )
