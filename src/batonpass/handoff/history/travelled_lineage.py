"""The lineage of work that crosses from one ledger to another: signed by the relay that sends it, bound to one message.

It says how many agents worked on it before, the most that they grant, and whether content from outside has reached
them. A receiver believes it only if its key was pinned by a person. A lineage under any other key still counts towards
the depth, because that can only stop work sooner.
"""

from base64 import b64decode, b64encode
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from batonpass.model.base.ids import PublicKey
from batonpass.model.ledger.key import Signer
from batonpass.signing.ed25519 import is_signed
from batonpass.wire.canonical import encode

URI: Final = "urn:batonpass:a2a:lineage:v1"
# A statement is made for one message that is sent at once. The rest is for clocks that differ.
GOOD_FOR: Final = timedelta(minutes=10)
_TYPE: Final = "application/vnd.batonpass.lineage+json"
_MOST_BYTES: Final = 64 * 1024
_KEY_BYTES: Final = 32


class TravelledLineage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The statement of one ledger about the work that it sends to another."""

    message: str  # the id of the message that it is for
    audience: str  # the agent that it is for: the address of its card
    at: str  # when, in UTC
    depth: int  # agents in the signed lineage so far, the sender included
    root: str
    handoff: str
    principal: str  # whom the work is for
    tainted: bool  # something from outside has reached the sender
    may: tuple[str, ...] | None = None  # the most that the receiver may do; None: nobody said
    until: str | None = None  # when that ends, in UTC


_READ: Final = msgspec.json.Decoder(TravelledLineage)


class SentLineage(Struct, frozen=True, kw_only=True):
    """A lineage as it arrived: its statement, and whether a pinned key signed it for this message."""

    said: TravelledLineage
    key: PublicKey | None  # the pinned key; None: it is not believed

    @property
    def depth(self) -> int:
        """Return how many agents count as having worked on it before: never fewer than none."""
        return max(self.said.depth, 0)


def sign_lineage(said: TravelledLineage, signer: Signer) -> dict[str, str]:
    """Return the lineage as it travels: the bytes, who signed them, and the signature."""
    payload = encode(msgspec.to_builtins(said))
    return {
        "payload": b64encode(payload).decode("ascii"),
        "key": signer.public_key,
        "signature": b64encode(signer.sign(_signed_bytes(payload))).decode("ascii"),
    }


def read_lineage_sent(
    given: object, *, pinned: Collection[PublicKey], message: str, audience: Collection[str], now: datetime
) -> SentLineage | None:
    """Return the lineage that came with a message; None if there is none that can be read.

    It is believed if a pinned key signed it, for this message and this agent, just now.
    """
    try:
        payload = b64decode(_text(given, "payload"), validate=True)
        if len(payload) > _MOST_BYTES:
            return None
        said = _READ.decode(payload)
    except (ValueError, TypeError, msgspec.DecodeError):
        return None
    key = _signer_of(given, payload, pinned)
    meant = said.message == message and said.audience in audience and _is_recent(said.at, now)
    return SentLineage(said=said, key=key if meant else None)


def _signer_of(given: object, payload: bytes, pinned: Collection[PublicKey]) -> PublicKey | None:
    try:
        key = PublicKey(_text(given, "key"))
        raw, signature = bytes.fromhex(key), b64decode(_text(given, "signature"), validate=True)
    except (ValueError, TypeError):
        return None
    if key not in pinned or len(raw) != _KEY_BYTES or not is_signed(raw, _signed_bytes(payload), signature):
        return None
    return key


def _text(given: object, name: str) -> str:
    found = given.get(name) if isinstance(given, dict) else None
    if not isinstance(found, str):
        raise TypeError(name)
    return found


def _signed_bytes(payload: bytes) -> bytes:
    return b"DSSEv1 %d %s %d %s" % (len(_TYPE), _TYPE.encode(), len(payload), payload)


def _is_recent(at: str, now: datetime) -> bool:
    try:
        said = datetime.fromisoformat(at)
        return abs(now - said) <= GOOD_FOR
    except (ValueError, TypeError):
        return False
