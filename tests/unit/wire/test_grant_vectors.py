"""The vectors of grants, from their files alone: what was issued once is judged the same for as long as we exist."""

import json
from base64 import b64decode
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import nacl.signing
import pytest

from batonpass.errors import GrantError
from batonpass.grants.verifier import Verifier
from batonpass.model.grants.call import Call
from batonpass.testing import FrozenClock
from batonpass.wire.call_digest import digest_call
from batonpass.wire.grant_statements import decode_statement, encode_statement, kind_of

VECTORS = Path(__file__).parents[2] / "vectors" / "grants"
STATEMENTS = sorted(path for path in VECTORS.glob("v*/*.json") if path.stem != "tokens")
TOKENS = [token for path in sorted(VECTORS.glob("v*/tokens.json")) for token in json.loads(path.read_text("utf-8"))]

every_statement = pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: f"{path.stem} in {path.parent.name}")
every_token = pytest.mark.parametrize("token", TOKENS, ids=lambda token: token["name"])


def read(path: Path) -> dict[str, Any]:
    """Return a vector."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def test_every_kind_has_its_vector() -> None:
    """There is a file for each kind of statement, and tokens for most codes."""
    assert ["certificate", "enrolment", "proof", "revocations", "terms"] == [path.stem for path in STATEMENTS]
    assert {None, "grant.denied", "grant.integrity"} <= {token["refused"] for token in TOKENS}


@every_statement
def test_a_statement_is_signed_as_its_file_says(path: Path) -> None:
    """Type, digest and signature are those of the payload, by DSSE and sha256 alone."""
    vector = read(path)
    payload, kind = vector["payload"].encode(), vector["envelope"]["payloadType"].encode()
    message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    (signature,) = vector["envelope"]["signatures"]
    public = bytes.fromhex(vector["public_key"])

    assert f"urn:batonpass:{path.stem}:{path.parent.name}" == json.loads(payload)["_type"]
    assert payload == b64decode(vector["envelope"]["payload"])
    assert (vector["digest"], signature["keyid"]) == (sha256(payload).hexdigest(), sha256(public).hexdigest())
    assert message == nacl.signing.VerifyKey(public).verify(message, b64decode(signature["sig"]))


@every_statement
def test_a_statement_is_read_and_written_again_the_same(path: Path) -> None:
    """Today it is read, and would be written as the same bytes."""
    payload = read(path)["payload"].encode()

    assert payload == encode_statement(decode_statement(payload, kind_of(payload)))


def outcome(token: dict[str, Any]) -> str | None:
    """Return the code with which a token is refused; None if its call is permitted."""
    verifier = Verifier(
        token["root_key"],
        audience=token["audience"],
        revocations=False,
        clock=FrozenClock(datetime.fromisoformat(token["at"])),
    )
    try:
        verifier.verify_call(token["token"], Call(**token["call"]))
    except GrantError as error:
        return error.code
    return None


@every_token
def test_a_token_is_judged_as_its_file_says(token: dict[str, Any]) -> None:
    """Permitted, or refused with this code; and the digest of its call is the one that is written there."""
    assert token["refused"] == outcome(token)
    assert token["call_digest"] == digest_call(Call(**token["call"]))
