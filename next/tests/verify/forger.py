"""Writes receipts into a ledger file as an attacker with some keys would, by the specification alone.

No code of the product is used: canonical bytes by rfc8785, signatures by PyNaCl, contents by msgpack, rows by SQL.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import rfc8785
from msgspec import msgpack
from nacl.signing import SigningKey

SALT = bytes(16)
ZEROS = "0" * 26


def sign(key: bytes, payload: bytes) -> bytes:
    """Return what DSSE asks for: Ed25519 over type and payload with their lengths."""
    return SigningKey(key).sign(b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)).signature


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


class Forger:
    """Appends receipts at the end of a ledger that nobody has open."""

    def __init__(self, path: Path, keys: Path) -> None:
        self.connection = apsw.Connection(str(path))
        self.relay_key = (keys / "relay.key").read_bytes()
        self.root_key = (keys / "root.key").read_bytes()
        self.relay = self.one("SELECT id FROM streams WHERE id LIKE 'relay%' ORDER BY started_at LIMIT 1")

    def one(self, query: str, *values: object) -> Any:  # noqa: ANN401 - any column
        """Return the first column of the first row."""
        row = self.connection.execute(query, values).fetchone()
        return row[0] if row else None

    def public(self, key: bytes) -> str:
        """Return the public half of a key, in hex."""
        return bytes(SigningKey(key).verify_key).hex()

    def statement(self, stream: str, seq: int) -> dict[str, Any]:
        """Return what a receipt says."""
        payload = self.one("SELECT payload FROM receipts WHERE stream = ? AND seq = ?", stream, seq)
        found: dict[str, Any] = json.loads(payload)
        return found

    def append(
        self,
        kind: str,
        stream: str,
        body: dict[str, Any],
        *,
        parts: dict[str, bytes] | None = None,
        key: bytes | None = None,
        cosigner: bytes | None = None,
        previous: str | None = None,
        **envelope: Any,  # noqa: ANN401 - fields of the predicate
    ) -> None:
        """Append a receipt that is right in all that is not said: place, chain, signature, contents."""
        row = self.connection.execute("SELECT seq, head, epoch, root FROM streams WHERE id = ?", (stream,)).fetchone()
        last = self.one("SELECT last FROM handoffs WHERE id = ?", body.get("handoff", stream))
        seq, head, epoch, root = row or (0, last or self.one("SELECT genesis FROM ledger"), 0, stream)
        contents = parts or {}
        body = {name: value for name, value in body.items() if value not in (None, [])}  # as the schema leaves out
        predicate = {
            "kind": kind,
            "id": f"receipt_{ZEROS}",
            "seq": seq + 1,
            "epoch": epoch,
            "at": 1_800_000_000_000_000,
            "mode": "enforced",
            "recorder": self.relay,
            "root": root,
            "body": body,
            "content": {part: digest(SALT + data) for part, data in contents.items()},
            **envelope,
        }
        if not predicate["content"]:
            del predicate["content"]
        if predicate["root"] is None:
            del predicate["root"]
        payload = rfc8785.dumps(
            {
                "_type": "https://in-toto.io/Statement/v1",
                "predicateType": "urn:batonpass:receipt:v0",
                "subject": [{"name": stream, "digest": {"sha256": previous or head}}],
                "predicate": predicate,
            }
        )
        packed = msgpack.encode({part: (SALT, data) for part, data in contents.items()}) if contents else None
        cosignature = None if cosigner is None else sign(cosigner, payload)
        signed = (payload, sign(key or self.relay_key, payload), cosignature, packed)
        self.connection.execute(
            "INSERT INTO receipts SELECT max(position) + 1, ?, ?, ?, ?, ?, ? FROM receipts",
            (stream, predicate["seq"], *signed),
        )

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
