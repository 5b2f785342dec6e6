"""Proof files: one receipt is under one seal, offline; and the specification's example, number by number."""

from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from batonpass.errors import InvalidValueError, SealError
from batonpass.ledger.merkle import Frontier, consistency_proof, inclusion_proof, leaf_hash
from batonpass.ledger.note import Checkpoint, key_hash, sign_checkpoint, to_trailer, verifier_key
from batonpass.ledger.seal_proof import HEADER, SealProof, format_proof, parse_proof, verify_proof

SPECIFICATION = Path(__file__).parents[3] / "docs" / "spec" / "seal.md"

KEY = SigningKey(bytes(range(1, 33)))
PUBLIC_KEY = bytes(KEY.verify_key)
ORIGIN = "batonpass/ledger_01jd2m8q4xe9wb7k3s5t6v0y1z"


def a_digest(position: int) -> bytes:
    """Return the digest of the example's receipt at this position."""
    return sha256(b"receipt %d" % position).digest()


def some_leaves(size: int) -> list[bytes]:
    """Return the leaf hashes of the example's receipts."""
    return [leaf_hash(a_digest(position)) for position in range(1, size + 1)]


def a_checkpoint(size: int) -> Checkpoint:
    """Return the head of the example's tree at this size."""
    frontier = Frontier.empty()
    for leaf in some_leaves(size):
        frontier.append(leaf)
    return Checkpoint(ORIGIN, size, frontier.root())


def a_seal(size: int) -> str:
    """Return the example's seal at this size."""
    return sign_checkpoint(a_checkpoint(size), lambda message: KEY.sign(message).signature, ORIGIN, PUBLIC_KEY)


def a_proof(index: int, size: int) -> SealProof:
    """Return the proof of one receipt of the example."""
    return SealProof(index, tuple(inclusion_proof(some_leaves(size), index)), a_seal(size))


SEAL = a_seal(1)


@given(st.data())
def test_proof_is_read_back_and_holds(data: st.DataObject) -> None:
    """A proof that was written to a file leads from its receipt to its seal."""
    size = data.draw(st.integers(min_value=1, max_value=20))
    index = data.draw(st.integers(min_value=0, max_value=size - 1))
    proof = SealProof(index, tuple(inclusion_proof(some_leaves(size), index)), a_seal(size), data.draw(st.binary()))

    again = parse_proof(format_proof(proof))

    assert (proof, a_checkpoint(size)) == (again, verify_proof(again, a_digest(index + 1)).checkpoint)


def test_proof_of_another_receipt_fails() -> None:
    """A proof says nothing for any receipt but its own."""
    with pytest.raises(SealError):
        verify_proof(a_proof(1, 5), a_digest(3))


def test_proof_under_another_seal_fails() -> None:
    """A proof made for one tree does not hold for another tree of the same size."""
    proof = a_proof(0, 2)
    other = sign_checkpoint(
        Checkpoint(ORIGIN, 2, bytes(32)), lambda message: KEY.sign(message).signature, ORIGIN, PUBLIC_KEY
    )

    with pytest.raises(SealError):
        verify_proof(SealProof(proof.index, proof.hashes, other), a_digest(1))


def test_proof_for_a_place_behind_the_seal_is_refused() -> None:
    """A receipt that came after the seal cannot be proven by it."""
    with pytest.raises(InvalidValueError, match=r"^index: "):
        verify_proof(SealProof(1, (), SEAL), a_digest(2))


@pytest.mark.parametrize(
    ("proof", "field"),
    [
        pytest.param(SealProof(-1, (), SEAL), "index", id="a negative index"),
        pytest.param(SealProof(0, (b"short",), SEAL), "hash", id="a hash that was cut"),
        pytest.param(SealProof(0, (b"",), SEAL), "note", id="an empty hash"),
        pytest.param(SealProof(0, (), SEAL.rstrip()), "note", id="a seal without its newline"),
    ],
)
def test_proof_that_nobody_could_read_is_not_written(proof: SealProof, field: str) -> None:
    """Whatever is written can be read back."""
    with pytest.raises(InvalidValueError) as caught:
        format_proof(proof)

    assert field == caught.value.field


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param("", "proof", id="nothing"),
        pytest.param(f"c2sp.org/tlog-proof@v2\nindex 0\n\n{SEAL}", "proof", id="another version"),
        pytest.param(f"{HEADER}\r\nindex 0\n\n{SEAL}", "proof", id="a carriage return"),
        pytest.param(f"{HEADER}\nindex 0\n", "proof", id="no seal"),
        pytest.param(f"{HEADER}\nindex 0\n\n\n{SEAL}", "note", id="two empty lines"),
        pytest.param(f"{HEADER}\nindex 0\n\n{SEAL}\n", "signature", id="an empty line behind"),
        pytest.param(f"{HEADER}\n\n{SEAL}", "index", id="no index"),
        pytest.param(f"{HEADER}\nindex 00\n\n{SEAL}", "index", id="a leading zero"),
        pytest.param(f"{HEADER}\nindex  0\n\n{SEAL}", "index", id="two spaces"),
        pytest.param(f"{HEADER}\nindex 0\nindex 0\n\n{SEAL}", "hash", id="two indices"),
        pytest.param(f"{HEADER}\nindex 0\nextra AA==\n\n{SEAL}", "hash", id="extra data behind the index"),
        pytest.param(f"{HEADER}\nextra AA==\nextra AA==\nindex 0\n\n{SEAL}", "index", id="extra data twice"),
        pytest.param(f"{HEADER}\nextra AA==\n\n{SEAL}", "index", id="extra data and no index"),
        pytest.param(f"{HEADER}\nextra \nindex 0\n\n{SEAL}", "extra", id="an extra line with nothing in it"),
        pytest.param(f"{HEADER}\nextra AB==\nindex 0\n\n{SEAL}", "extra", id="extra data with unused bits set"),
        pytest.param(f"{HEADER}\nindex 0\nAAAA\n\n{SEAL}", "hash", id="a hash of three bytes"),
    ],
)
def test_malformed_proof_is_refused(text: str, field: str) -> None:
    """A proof file has one spelling; any other is refused, with the part that is wrong."""
    with pytest.raises(InvalidValueError) as caught:
        parse_proof(text)

    assert field == caught.value.field


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(f"public key    {PUBLIC_KEY.hex()}\n", id="the public key"),
        pytest.param(f"key hash      {key_hash(ORIGIN, PUBLIC_KEY).hex()}\n", id="the key hash"),
        pytest.param(f"verifier key  {verifier_key(ORIGIN, PUBLIC_KEY)}\n", id="the verifier key"),
        *(
            pytest.param(
                f"| {position} | {position - 1} | `{a_digest(position).hex()}` "
                f"| `{leaf_hash(a_digest(position)).hex()}` |\n",
                id=f"the leaf at position {position}",
            )
            for position in range(1, 6)
        ),
        pytest.param(f"root at size 3   {a_checkpoint(3).root.hex()} ", id="the root at size 3"),
        pytest.param(f"root at size 5   {a_checkpoint(5).root.hex()} ", id="the root at size 5"),
        pytest.param(f"```\n{a_seal(3)}```\n", id="the seal"),
        pytest.param(f"```\nBatonpass-Seal: {to_trailer(a_seal(3))}\n```\n", id="the trailer"),
        pytest.param(f"```\n{format_proof(a_proof(1, 5))}```\n", id="the proof of inclusion"),
        pytest.param(
            "```\n" + "".join(f"{value.hex()}\n" for value in consistency_proof(some_leaves(5), 3)) + "```\n",
            id="the proof of extension",
        ),
    ],
)
def test_specification_shows_what_the_code_makes(example: str) -> None:
    """Every number in the specification's example is the one that comes out here."""
    assert example in SPECIFICATION.read_text(encoding="utf-8")
