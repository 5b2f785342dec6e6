"""A hundred thousand broken documents and calls: whatever comes in, only our own errors come out."""

import random
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest
from msgspec.structs import replace

from batonpass.errors import BatonpassError
from batonpass.guard.grants.authority import authorise
from batonpass.model.grants.call import Call
from batonpass.model.grants.resource import read_resource
from batonpass.model.grants.scope_text import read_limits, read_permit, read_scope
from batonpass.policy.document import parse_document
from batonpass.policy.grant_tables import grants_of
from batonpass.wire.call_digest import digest_call
from batonpass.wire.grant_statements import decode_statement, kind_of
from batonpass.wire.token import decode_chain, decode_proof, decode_revocations, split_token
from tests.unit.grants.world import World

Act: TypeAlias = Callable[[], object]

ROUNDS: Final = 100_000

LINE: Final = (
    'write:src/** where amount from 0.5 to 100, kind in ["a", 2, null, true], mail matches "*@x", path under src, '
    'who starts with "\\u00e9"; at most 20 calls, 5.5 spend; until 2026-12-01T00:00:00Z'
)
TOML: Final = (
    '[grant.editor]\nmay = ["write:src/**"]\nmay_delegate = []\nlimits = "at most 5 calls"\n'
    "until = 2026-12-01T00:00:00Z\nmax_depth = 3\n"
)
PIECES: Final = (
    "", "*", "**", "/", "..", ":", ";", ",", '"', "\\", "[", "]", " ", "\0", "\n", "\u202e", "\ud800", "é", "e\u0301",
    "where", "until", "at most", "null", "-1", "1e999", "9" * 40, "{}", "[[", '{"a":', "%2e", "~", "\uffff", "a" * 300,
)  # fmt: skip


def mutate(chosen: random.Random, text: str) -> str:
    """Return a text with a few pieces cut, doubled, exchanged or put in."""
    for _ in range(chosen.randint(1, 3)):
        begin = chosen.randrange(len(text) + 1)
        end = min(len(text), begin + chosen.randrange(8))
        text = text[:begin] + chosen.choice((chosen.choice(PIECES), text[begin:end] * 2)) + text[end:]
    return text


def mutate_bytes(chosen: random.Random, data: bytes) -> bytes:
    """Return bytes of which a few are others, or one text is in another place."""
    if chosen.random() < 0.5:
        changed = bytearray(data)
        for _ in range(chosen.randint(1, 4)):
            changed[chosen.randrange(len(changed))] = chosen.randrange(256)
        return bytes(changed)
    return mutate(chosen, data.decode()).encode("utf-8", "surrogatepass")


def any_value(chosen: random.Random, depth: int = 0) -> object:
    """Return any value that a caller in Python could pass as an argument."""
    kinds: tuple[Act, ...] = (
        lambda: chosen.choice(PIECES),
        lambda: chosen.choice((0, -1, 1 << 60, 1 << 9000, 0.1, float("nan"), float("inf"), True, None, b"x", object())),
        lambda: [any_value(chosen, depth + 1) for _ in range(chosen.randrange(3))] if depth < 4 else (),
        lambda: {chosen.choice(PIECES): any_value(chosen, depth + 1)} if depth < 4 else {1: 2},
    )
    return chosen.choice(kinds)()


@pytest.mark.slow
def test_a_hundred_thousand_broken_inputs() -> None:
    """Lines, tables, statements, tokens, lists and calls, from one seed: taken, or refused with an error of ours."""
    chosen, world = random.Random(20261118), World()
    chain = world.chain()
    token, listed = world.token(chain), world.revocations()
    chain_text, proof_text = split_token(token)
    payloads = [chain.enrolments[0].payload, *(part.payload for part in chain.terms)]
    payloads += [chain.certificate.payload, decode_proof(proof_text).payload, decode_revocations(listed)[1].payload]
    terms = [replace(part.said, may=read_scope([LINE])) for part in chain.terms]
    now = world.clock.now()

    def statement() -> None:
        data = mutate_bytes(chosen, chosen.choice(payloads))
        decode_statement(data, kind_of(data))

    def call() -> None:
        place = mutate(chosen, "src/a.py")
        arguments = {name: any_value(chosen) for name in ("path", "amount", "kind", "mail", "who")}
        made = Call("tool", chosen.choice(("write", "read", "")), place, arguments)
        authorise(terms, made, now)
        digest_call(made)

    acts: tuple[Act, ...] = (
        lambda: read_permit(mutate(chosen, LINE)),
        lambda: read_limits(mutate(chosen, "at most 20 calls, 5.5 spend")),
        lambda: grants_of(parse_document(mutate(chosen, TOML).encode("utf-8", "surrogatepass"))),
        lambda: read_resource("resource", mutate(chosen, "src/a/b.py")),
        lambda: decode_chain(mutate(chosen, chain_text)),
        lambda: decode_proof(urlsafe_b64encode(chosen.randbytes(chosen.randrange(200))).rstrip(b"=").decode()),
        lambda: split_token(mutate(chosen, token)),
        lambda: decode_revocations(mutate(chosen, listed)),
        statement,
        call,
    )
    refused = 0
    for number in range(ROUNDS):
        try:
            acts[number % len(acts)]()
        except BatonpassError:
            refused += 1

    assert ROUNDS // 2 < refused < ROUNDS
