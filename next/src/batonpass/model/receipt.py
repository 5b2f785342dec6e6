"""The envelope that every receipt has, and a receipt in its place: its stream, its bytes, its signatures.

The kind stands in the envelope and decides which body it has; each kind is a struct of its own here, made from the list
of kinds, so that one decode checks everything.
"""

from typing import Final

import msgspec
from msgspec import Struct, defstruct

from batonpass.model.bodies import KINDS, Body
from batonpass.model.ids import ReceiptId, RelayId, RunId
from batonpass.model.values import Count, Digest, Key, Mode


class Receipt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """What is signed about one event. The receipt before it is the subject of the statement that holds this."""

    id: ReceiptId
    seq: Count
    epoch: Count
    at: Count  # microseconds since 1970, UTC
    mode: Mode
    recorder: RelayId
    body: Body
    root: RunId | None = None  # the run that the tree began with; None for the relay's own acts
    request: Key | None = None  # keyed digest of caller and idempotency key
    fingerprint: Key | None = None  # of the act and everything that it was asked
    content: dict[str, Digest] = {}  # part -> digest of salt and bytes

    @property
    def kind(self) -> str:
        """The signed kind."""
        return KIND_OF[type(self.body)]


KIND_OF: Final[dict[type[Body], str]] = {body: kind for kind, body in KINDS.items()}
ENVELOPES: Final[dict[type[Body], type[Receipt]]] = {
    body: defstruct(  # type: ignore[misc]
        f"{body.__name__}Receipt",
        [("body", body)],
        bases=(Receipt,),
        tag=kind,
        namespace={"__doc__": body.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        omit_defaults=True,
    )
    for kind, body in KINDS.items()
}


class Signed(Struct, frozen=True, kw_only=True):
    """A receipt in its place: the stream, the receipt before it, the bytes, the signatures, the contents beside."""

    stream: str
    previous: str
    receipt: Receipt
    payload: bytes
    digest: str
    signature: bytes  # the recording relay's
    cosignature: bytes | None = None  # of the key that the body names: the run's, or the ledger's root key
    contents: bytes | None = None  # part -> (salt, bytes), packed

    @property
    def body(self) -> Body:
        """What happened."""
        return self.receipt.body


class Place(Struct, kw_only=True):
    """Where the next receipt of a stream goes."""

    stream: str
    seq: int
    head: str
    epoch: int = 0


replace = msgspec.structs.replace
