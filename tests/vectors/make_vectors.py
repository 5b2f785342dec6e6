"""Writes the vectors of the present version: run it only while the predicate says v0, and look at what changed.

    PYTHONPATH=src:. python tests/vectors/make_vectors.py

From 1.0 on, vectors are never written again.
"""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from batonpass.model.bodies.body import Kind
from batonpass.wire.receipt_codec import encode_envelope
from batonpass.wire.versions import PREDICATE_TYPE
from tests.unit.model.examples import WORDS
from tests.unit.wire.signed import RELAY, cosigner_of, receipt_of, sign

PLACE = Path(__file__).parent / PREDICATE_TYPE.rpartition(":")[2]


def vector_of(kind: Kind) -> dict[str, Any]:
    """Return everything that a verifier in another language needs to try itself on one receipt."""
    signed = sign(receipt_of(kind))
    signers = [signer for signer in (RELAY, cosigner_of(kind)) if signer is not None]
    return {
        "predicate": PREDICATE_TYPE,
        "kind": kind,
        "payload": signed.payload.decode(),
        "digest": signed.digest,
        "keys": {signer.key: signer.public_key for signer in signers},
        "envelope": encode_envelope(signed, signed.receipt),
        "contents": {
            WORDS.name: {"salt": b64encode(WORDS.salt).decode(), "body": b64encode(WORDS.body).decode()},
        },
    }


def main() -> None:
    """Write one file for each kind of receipt."""
    PLACE.mkdir(exist_ok=True)
    for kind in Kind:
        text = json.dumps(vector_of(kind), indent=2, sort_keys=True, ensure_ascii=False)
        (PLACE / f"{kind}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
