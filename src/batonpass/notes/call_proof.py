"""The proof of a call: its receipts, and its opened changes, so that a claim about a line can be checked.

Each line is a receipt (`{"dsse":…}`), an opened content (`{"body":…}`), or a ruling as it was signed (`{"key":…}`). The
lines are kept once under the id of the call, once under that of its run, and those about a relay's key under the key. A
receipt proves only the contents that are opened: the path, the digest of the file afterwards, and the lines of its
hunks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, structs

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.changes.change_document import decode_change
from batonpass.attribution.changes.mark import squeezed
from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import CHANGE
from batonpass.model.base.ids import CallId, ContentId, Digest, KeyId, LedgerId, PrincipalId, PublicKey, RunId, StreamId
from batonpass.model.bodies.body import (
    Changed,
    HandoffAccepted,
    HandoffInitiated,
    PasskeyAnswer,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunStarted,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
)
from batonpass.model.ledger.content import StoredContent, content_digest
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import Receipt, SignedReceipt, StoredReceipt
from batonpass.model.ledger.ruling import ruling_of
from batonpass.model.ledger.stream import StreamKind
from batonpass.notes.trusted_keys import TrustedKey, read_receipt_line
from batonpass.records.call import CallRecord
from batonpass.records.hold import CallLeave
from batonpass.records.text import read_receipt
from batonpass.signing.ed25519 import is_signed
from batonpass.signing.ruling_proof import find_objection
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import encode_typed, read_base64, write_base64
from batonpass.wire.receipt_codec import encode_envelope, signing_bytes
from batonpass.wire.ruling import encode_ruling

_VERDICTS: Final = (VerificationPassed, VerificationFailed, VerificationRepeated)
_OF_KEYS: Final = (RelayEnrolled, RelayRotated, RelayRevoked)
_RULED: Final = "approved"


class _OpenedLine(Struct):
    content: str
    salt: str
    body: str


class _RulingLine(Struct):
    key: str
    ruling: str
    sig: str
    passkey: PasskeyAnswer | None = None


class _RulingPredicate(Struct):
    decision: str
    by: str
    at: datetime
    key: str | None = None
    call: str | None = None


class _RulingStatement(Struct):
    predicate: _RulingPredicate


_OPENED: Final = msgspec.json.Decoder(_OpenedLine)
_RULINGS: Final = msgspec.json.Decoder(_RulingLine)
_STATEMENTS: Final = msgspec.json.Decoder(_RulingStatement)


class ProvenCall(Struct, frozen=True, kw_only=True):
    """The facts that the receipts of a call prove, with signatures by keys that count."""

    receipts: int = 0  # about this call and its run, with good signatures
    completed: Receipt | None = None
    changes: tuple[FileChange, ...] = ()  # those that are opened, and that the receipt committed to
    withheld: int = 0  # changes that the receipt names and nobody opened
    approved_by: tuple[PrincipalId, ...] = ()  # with a pinned approver's signature on exactly this call
    standing: str = "unverified"
    problem: str | None = None

    def opens(self, path: str, text: str) -> bool | None:
        """Return whether the call is proven to have written such a line there; None if its changes are not opened."""
        if self.completed is None or (self.withheld and not self.changes):
            return None
        bare = squeezed(text)
        own = [change for change in self.changes if path in (change.path, change.renamed_from)]
        written = any(squeezed(line) == bare for change in own for hunk in change.hunks or () for line in hunk.added)
        if written:
            return True
        return None if self.withheld or any(change.hunks is None for change in own) else False


def write_call_proof(
    view: LedgerView, call: CallRecord, leave: CallLeave | None, may_open: Callable[[FileChange], bool]
) -> list[str]:
    """Return the proof of a call: its receipts, the changes that may be opened, and the rulings on exactly it."""
    own = [call.receipt, *(() if call.ending is None else (call.ending,))]
    lines = [_receipt_line(view.get_receipt(one.id)) for one in own]
    ended = call.ending
    if ended is not None:
        refs = {ref.id: name for name, ref in ended.content.items() if name.startswith(CHANGE)}
        for content in view.find_contents(list(refs)):
            change = _change_in(content, call.id, call.run, ended)
            if change is not None and may_open(change):
                lines.append(_opened_line(content))
    if leave is not None and leave.hold is not None:
        ledger = view.info().id
        for approval in leave.approvals:
            proof = approval.body.proof
            if proof is not None:
                ruling = encode_ruling(ruling_of(LedgerId(ledger), leave.hold.hold, approval.body, proof.at))
                line: dict[str, object] = {"key": proof.key, "ruling": write_base64(ruling), "sig": proof.signature}
                if proof.passkey is not None:
                    line["passkey"] = structs.asdict(proof.passkey)
                lines.append(encode_typed(line).decode())
    return lines


def write_run_proof(view: LedgerView, run: RunId, offers: Iterable[StoredReceipt]) -> list[str]:
    """Return the proof of a run: how it began, and its handoff with the verdicts on it."""
    return [_receipt_line(stored) for stored in (view.get_receipt_at(StreamId(run), 1), *offers)]


def write_key_proof(view: LedgerView) -> list[str]:
    """Return the root key's statements about the keys of relays: enrolled, rotated, revoked."""
    streams = [stream.id for stream in view.find_streams() if stream.kind is StreamKind.RELAY]
    found = (stored for stream in streams for stored in view.find_receipts(ReceiptQuery(stream=stream, kind="relay")))
    return [_receipt_line(stored) for stored in found if isinstance(read_receipt(stored).body, _OF_KEYS)]


def prove_call(
    call: CallId,
    run: RunId,
    lines: Sequence[str],
    of_run: Sequence[str],
    *,
    keys: Mapping[KeyId, PublicKey],
    approvers: Iterable[TrustedKey],
) -> ProvenCall:
    """Return the facts that these lines prove about a call.

    Receipts of other calls, and receipts signed by a key that does not count, are ignored.
    """
    asked: ToolRequested | None = None
    completed: SignedReceipt | None = None
    for signed in _signed(lines, keys):
        body = signed.receipt.body
        if isinstance(body, ToolRequested) and (body.call, body.run) == (call, run):
            asked = body
        elif isinstance(body, ToolCompleted | ToolFailed) and (body.call, body.run) == (call, run):
            completed = signed
    verdicts, standing = _standing(list(_signed(of_run, keys)), run)
    receipts = (asked is not None) + (completed is not None) + verdicts
    if completed is None:
        return ProvenCall(receipts=receipts, standing=standing)
    named = getattr(completed.receipt.body, "changes", ())
    changes = tuple(_opened_changes(lines, completed.receipt, named, call, run))
    return ProvenCall(
        receipts=receipts,
        completed=completed.receipt,
        changes=changes,
        withheld=len(named) - len(changes),
        approved_by=tuple(_approved(lines, None if asked is None else asked.key, approvers)),
        standing=standing,
    )


def _standing(receipts: Sequence[SignedReceipt], run: RunId) -> tuple[int, str]:
    """Return how many of these receipts are about a run, and the state of its result."""
    begun = [signed.receipt.body for signed in receipts]
    own = next((body for body in begun if isinstance(body, RunStarted | HandoffAccepted) and body.run == run), None)
    if not isinstance(own, HandoffAccepted):
        return int(own is not None), "unverified"
    count, standing = 1, "unverified"
    for body in begun:
        if isinstance(body, _VERDICTS) and (body.handoff, body.attempt) == (own.handoff, own.attempt):
            good = body.passed if isinstance(body, VerificationRepeated) else isinstance(body, VerificationPassed)
            # Of two that disagree, the bad one is shown: notes have no order.
            standing = "refuted" if standing == "refuted" or not good else "verified"
            count += 1
        elif isinstance(body, HandoffInitiated) and body.handoff == own.handoff:
            count += 1
    return count, standing


def _opened_changes(
    lines: Sequence[str], receipt: Receipt, named: Iterable[Changed], call: CallId, run: RunId
) -> Iterator[FileChange]:
    opened = dict(_opened(lines, receipt))
    for one in named:
        change = _decoded(opened.get(one.change), call, run, receipt)
        # The digests in the receipt decide: opened contents must have them.
        if change is not None and (change.before, change.after) == (one.before, one.after):
            yield change


def _signed(lines: Iterable[str], keys: Mapping[KeyId, PublicKey]) -> Iterator[SignedReceipt]:
    for line in lines:
        signed = read_receipt_line(line)
        if signed is None or signed.receipt.relay_key not in keys:
            continue
        public = bytes.fromhex(keys[signed.receipt.relay_key])
        if is_signed(public, signing_bytes(signed.payload), signed.relay_signature):
            yield signed


def _opened(lines: Iterable[str], receipt: Receipt) -> Iterator[tuple[ContentId, bytes]]:
    refs = {ref.id: ref for ref in receipt.content.values()}
    for line in lines:
        if not line.startswith('{"body"'):
            continue
        try:
            read = _OPENED.decode(line.encode("utf-8", "surrogateescape"))
            salt, body = read_base64("salt", read.salt), read_base64("body", read.body)
        except (msgspec.DecodeError, InvalidValueError, RecursionError):
            continue
        ref = refs.get(ContentId(read.content))
        if ref is not None and (len(body), content_digest(salt, body)) == (ref.size, ref.digest):
            yield ref.id, body


def _approved(lines: Iterable[str], key: Digest | None, approvers: Iterable[TrustedKey]) -> Iterator[PrincipalId]:
    known = {key_id(one.key): one for one in approvers}
    for line in lines:
        if not line.startswith('{"key"') or key is None:
            continue
        try:
            read = _RULINGS.decode(line.encode("utf-8", "surrogateescape"))
            ruling, signature = read_base64("ruling", read.ruling), bytes.fromhex(read.sig)
            said = _STATEMENTS.decode(ruling).predicate
        except (msgspec.DecodeError, InvalidValueError, ValueError, RecursionError):
            continue
        pinned = known.get(KeyId(read.key))
        if pinned is None or pinned.owner != said.by or pinned.objection(said.at) is not None:
            continue
        is_ours = said.decision == _RULED and said.key == key
        if is_ours and find_objection(pinned.key, ruling, signature, read.passkey) is None:
            yield pinned.owner


def _change_in(content: StoredContent, call: CallId, run: RunId, ended: Receipt) -> FileChange | None:
    return _decoded(content.body, call, run, ended)


def _decoded(body: bytes | None, call: CallId, run: RunId, ended: Receipt) -> FileChange | None:
    try:
        return None if body is None else decode_change(body, call=call, run=run, at=ended.at)
    except InvalidValueError:
        return None


def _receipt_line(stored: StoredReceipt) -> str:
    return encode_typed({"dsse": encode_envelope(stored, read_receipt(stored))}).decode()


def _opened_line(content: StoredContent) -> str:
    salt, body = content.salt or b"", content.body or b""
    return encode_typed({"body": write_base64(body), "content": content.id, "salt": write_base64(salt)}).decode()
