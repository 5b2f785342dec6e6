"""A ledger in memory, and somebody who writes into it what no honest relay would write.

The forger holds every key: signatures are good unless a test spoils them, so that what is found is what is wrong.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import sign_receipt
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.bodies.body import Body
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.receipt import SIGNED_BY_ROOT, SIGNED_BY_RUN, Receipt, SignedReceipt, StoredReceipt
from batonpass.model.ledger.stream import Stream
from batonpass.signing.keyring import RelayIdentity
from batonpass.signing.runkeys import RunKeysInMemory
from batonpass.store.memory import MemoryStore
from batonpass.testing import FrozenClock
from batonpass.testing.builders import Scribe, a_scribe
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import PlainRecording
from batonpass.wire.receipt_codec import decode_receipt, encode_receipt, signing_bytes

if TYPE_CHECKING:
    from batonpass.ledger.position import Working


class KeptKeys(RunKeysInMemory):
    """Forgets no key."""

    def drop(self, run: RunId) -> None:
        """Keep the key."""


class Forger:
    """A small ledger: a relay, a lead with one child that made one call, all closed."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        scribe = a_scribe(self.store, clock=FrozenClock())
        self.keys = KeptKeys()
        recording = PlainRecording(self.store, scribe.ledger, self.keys, FrozenClock())
        self.scribe: Scribe = dataclasses.replace(scribe, run_keys=self.keys, recording=recording)
        self.tables = self.store._tables
        self.lead: Working = self.scribe.start()
        self.handoff: HandoffId = self.scribe.offer(self.lead)
        self.child: Working = self.scribe.recording.accept(self.handoff)
        self.scribe.call(self.child)
        self.scribe.recording.close(self.child, report="done")
        self.scribe.recording.close(self.lead, report="all done")

    def stream(self, name: str) -> StreamId:
        """Return the id of a stream by what it is in this ledger; anything else is an id already."""
        named = {
            "relay": self.scribe.identity.id,
            "lead": self.lead.run.id,
            "child": self.child.run.id,
            "handoff": self.handoff,
        }
        return StreamId(named.get(name, name))

    def place(self, name: str, seq: int) -> int:
        """Return where a receipt stands in the store."""
        stream = self.stream(name)
        return next(index for index, row in enumerate(self.tables.receipts) if (row.stream, row.seq) == (stream, seq))

    def row(self, name: str, seq: int) -> StoredReceipt:
        """Return a receipt as it is stored."""
        return self.tables.receipts[self.place(name, seq)]

    def receipt(self, name: str, seq: int) -> Receipt:
        """Return what a stored receipt says."""
        return decode_receipt(self.row(name, seq).payload)

    def edit(self, name: str, seq: int, /, **columns: Any) -> None:  # noqa: ANN401 - any column
        """Change columns of a stored receipt, and nothing else."""
        self.tables.receipts[self.place(name, seq)] = replace(self.row(name, seq), **columns)

    def remove(self, name: str, seq: int, *, renumber: bool) -> None:
        """Take a receipt out; renumbered, the others close the gap in the positions."""
        del self.tables.receipts[self.place(name, seq)]
        if renumber:
            self.renumber()

    def renumber(self) -> None:
        """Give the receipts positions in the order in which they stand."""
        self.tables.receipts[:] = [
            replace(row, position=position) for position, row in enumerate(self.tables.receipts, 1)
        ]

    def resign(self, name: str, seq: int, /, *, by: Signer | None = None, **changed: Any) -> None:  # noqa: ANN401
        """Change what a receipt says, and sign it again as it should be, or by another cosigner."""
        receipt = replace(self.receipt(name, seq), **changed)
        cosigner = by or self._cosigner(receipt)
        receipt = replace(receipt, cosigner=None if cosigner is None else cosigner.key)
        payload = encode_receipt(receipt)
        message = signing_bytes(payload)
        self.edit(
            name,
            seq,
            id=receipt.id,
            stream=receipt.stream,
            seq=receipt.seq,
            kind=receipt.kind,
            payload=payload,
            relay_signature=self.scribe.identity.signer.sign(message),
            cosignature=None if cosigner is None else cosigner.sign(message),
        )

    def write(self, name: str, seq: int, payload: bytes) -> None:
        """Put other bytes in a receipt's place, with good signatures over them."""
        message = signing_bytes(payload)
        cosigner = self._cosigner(self.receipt(name, seq))
        self.edit(
            name,
            seq,
            payload=payload,
            relay_signature=self.scribe.identity.signer.sign(message),
            cosignature=None if cosigner is None else cosigner.sign(message),
        )

    def add(
        self,
        name: str,
        body: Body,
        *,
        recorder: RelayIdentity | None = None,
        cosigner: Signer | None = None,
        **changed: Any,  # noqa: ANN401 - any part of a draft
    ) -> SignedReceipt:
        """Put a receipt after the last of a stream, whatever the store thinks of it."""
        stream = self.stream(name)
        head = self.tables.streams.get(stream)
        draft = Draft(
            stream=stream,
            body=body,
            root=None if head is None else head.root,
            cosigner=cosigner or self._cosigner_for(body, stream),
        )
        signed = sign_receipt(replace(draft, **changed), head, recorder or self.scribe.identity, NOON)
        receipt = signed.receipt
        self.tables.receipts.append(
            StoredReceipt(
                position=len(self.tables.receipts) + 1,
                id=receipt.id,
                stream=receipt.stream,
                seq=receipt.seq,
                kind=receipt.kind,
                payload=signed.payload,
                relay_signature=signed.relay_signature,
                cosignature=signed.cosignature,
            ),
        )
        self.tables.streams[stream] = Stream(
            id=stream,
            root=receipt.root,
            seq=receipt.seq,
            head=signed.digest,
            epoch=receipt.epoch,
            open=True,
        )
        return signed

    def _cosigner(self, receipt: Receipt) -> Signer | None:
        return self._cosigner_for(receipt.body, receipt.stream)

    def _cosigner_for(self, body: Body, stream: StreamId) -> Signer | None:
        if body.kind in SIGNED_BY_ROOT:
            return self.scribe.root
        return self.keys.get(RunId(stream))[0] if body.kind in SIGNED_BY_RUN else None
