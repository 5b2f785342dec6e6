"""Writes the vectors of grants: run it only while their types say v0, and look at what changed.

    PYTHONPATH=src:. python tests/vectors/make_grant_vectors.py

From 1.0 on, vectors are never written again.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from batonpass.grants.issuer import sign
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Chain, Grant, Proof, Signed, Statement
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.permit import spell_time
from batonpass.model.grants.scope_text import read_scope
from batonpass.wire.call_digest import digest_call
from batonpass.wire.grant_statements import PAYLOAD_TYPE
from batonpass.wire.token import decode_revocations, encode_chain, encode_proof, join_token
from tests.unit.grants.world import AUDIENCE, RELAY, ROOT, RUN, THIEF, WRITE, World, a_run, with_last

PLACE = Path(__file__).parent / "grants" / "v0"
SIGNERS = {signer.key: signer for signer in (ROOT, RELAY, RUN, THIEF)}


class Makes:
    """One chain of three hops at noon, and tokens that are right or wrong about it."""

    def __init__(self) -> None:
        self.world = World()
        self.now = self.world.clock.now()
        lead = Grant(
            may=read_scope(["read:**", "write:src/**"]),
            may_delegate=read_scope(["read:**", "write:src/**"]),
            limits=Limits(calls=50, spend="12.5"),
            until=self.now + timedelta(hours=1),
            max_depth=3,
        )
        editor = Grant(
            may=read_scope(['write:src/** where path under src, text matches "*x*"; at most 20 calls']),
            may_delegate=read_scope(["write:src/**"]),
        )
        last = Grant(may=read_scope(["write:src/* where path under src"]))
        self.chain = self.world.chain(lead, editor, last)

    def proof(self, call: Call = WRITE, *, audience: str = AUDIENCE, at: datetime | None = None) -> Signed[Proof]:
        """Return a proof whose nonce is always the same."""
        said = Proof(
            certificate=self.chain.certificate.digest,
            call=digest_call(call),
            tool=call.tool,
            audience=audience,
            nonce="0123456789abcdefABCDEF",
            at=at or self.now,
        )
        return sign(said, RUN)

    def statements(self) -> Iterator[tuple[str, Signed[Statement], str]]:
        """Yield one of each kind, with the key that signs it."""
        listed = decode_revocations(self.world.revocations(7, runs=frozenset({a_run(9)})))[1]
        yield "enrolment", self.chain.enrolments[0], ROOT.public_key
        yield "terms", self.chain.terms[1], RELAY.public_key
        yield "certificate", self.chain.certificate, RELAY.public_key
        yield "proof", self.proof(), RUN.public_key
        yield "revocations", listed, ROOT.public_key

    def tokens(self) -> Iterator[dict[str, Any]]:
        """Yield tokens, each with the code that refuses it; none for the one that is right."""
        chain, other = self.chain, replace(WRITE, arguments={})
        outside = Call("write_file", "write", "docs/a", {"path": "docs/a"})
        ended = with_last(self.world, chain, until=self.now)
        forged = replace(chain.certificate, signature=THIEF.sign(chain.certificate.payload))
        stranger = replace(chain, enrolments=(self.world.enrol(RELAY, root=THIEF),))
        later = self.now + timedelta(minutes=2)
        yield self._token("permitted", None)
        yield self._token("another-call", "grant.context", proof=self.proof(other))
        yield self._token("another-audience", "grant.context", proof=self.proof(audience="https://other.example"))
        yield self._token("not-granted", "grant.denied", call=outside, proof=self.proof(outside))
        yield self._token("old-proof", "grant.expired", at=later)
        yield self._token("ended", "grant.expired", chain=ended)
        yield self._token("no-key", "grant.possession", proof=sign(self.proof().said, THIEF))
        yield self._token("hop-left-out", "grant.chain", chain=replace(chain, terms=(chain.terms[0], chain.terms[2])))
        yield self._token("forged", "grant.integrity", chain=replace(chain, certificate=forged))
        yield self._token("another-root", "grant.root", chain=stranger)

    def _token(
        self,
        name: str,
        code: str | None,
        *,
        chain: Chain | None = None,
        proof: Signed[Proof] | None = None,
        call: Call = WRITE,
        at: datetime | None = None,
    ) -> dict[str, Any]:
        return {
            "name": name,
            "refused": code,
            "root_key": ROOT.public_key,
            "audience": AUDIENCE,
            "at": spell_time(at or self.now),
            "call": {
                "tool": call.tool,
                "action": call.action,
                "resource": call.resource,
                "arguments": dict(call.arguments),
            },
            "call_digest": digest_call(call),
            "token": join_token(encode_chain(chain or self.chain), encode_proof(proof or self.proof())),
        }


def statement_vector(part: Signed[Statement], public_key: str) -> dict[str, Any]:
    """Return everything that a verifier in another language needs to try itself on one statement."""
    key = next(signer.key for signer in SIGNERS.values() if signer.public_key == public_key)
    return {
        "payload": part.payload.decode(),
        "digest": part.digest,
        "public_key": public_key,
        "envelope": {
            "payload": b64encode(part.payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": key, "sig": b64encode(part.signature).decode()}],
        },
    }


def main() -> None:
    """Write one file for each kind of statement, and one with tokens."""
    PLACE.mkdir(exist_ok=True, parents=True)
    makes = Makes()
    files: dict[str, Any] = {name: statement_vector(part, key) for name, part, key in makes.statements()}
    files["tokens"] = list(makes.tokens())
    for name, content in files.items():
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
        (PLACE / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
