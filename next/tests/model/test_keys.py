"""Ed25519 keys, and the keys of runs that follow from a relay's."""

from hashlib import sha256
from hmac import new as hmac

import pytest

from batonpass.signing.keys import KeyPair, is_signed

SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
SIGNATURE = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe2465514143"
    "8e7a100b"
)
RUN = "run_" + "0" * 26


def test_signatures_are_those_of_rfc_8032() -> None:
    """The first test vector of the RFC: a seed, its public half, and the signature of nothing."""
    key = KeyPair(SEED)

    assert (PUBLIC, SIGNATURE) == (key.public, key.sign(b""))
    assert is_signed(b"", SIGNATURE, PUBLIC)


@pytest.mark.parametrize(
    ("message", "signature", "public"),
    [
        pytest.param(b"x", SIGNATURE, PUBLIC, id="another message"),
        pytest.param(b"", bytes(64), PUBLIC, id="another signature"),
        pytest.param(b"", SIGNATURE[:-1], PUBLIC, id="a byte too few"),
        pytest.param(b"", SIGNATURE + b"\0", PUBLIC, id="a byte too many"),
        pytest.param(b"", b"", PUBLIC, id="no signature"),
        pytest.param(b"", SIGNATURE, "00" * 32, id="another key"),
        pytest.param(b"", SIGNATURE, PUBLIC[:-2], id="a key that is too short"),
        pytest.param(b"", SIGNATURE, "no hex", id="no key"),
        pytest.param(b"", b"\x01" + bytes(63), "01" + "00" * 31, id="a key of small order, which would sign anything"),
    ],
)
def test_anything_else_is_not_signed(message: bytes, signature: bytes, public: str) -> None:
    """A signature is of one message and one key, and has one length."""
    assert not is_signed(message, signature, public)


def test_a_message_is_not_cut_into_a_longer_signature() -> None:
    """What stands before a message cannot be taken for the end of its signature."""
    key = KeyPair(SEED)

    assert not is_signed(b"message", key.sign(b"a message") + b"a ", key.public)


@pytest.mark.parametrize(("epoch", "other"), [(0, 1), (1, 11)])
def test_a_run_key_is_derived_as_the_specification_says(epoch: int, other: int) -> None:
    """HKDF-SHA-256 of the relay's secret, the run and the epoch: nothing is stored, and each epoch has another."""
    extracted = hmac(b"batonpass run key v0", SEED, sha256).digest()
    seed = hmac(extracted, RUN.encode() + b"\0" + str(epoch).encode() + b"\x01", sha256).digest()
    relay = KeyPair(SEED)

    assert KeyPair(seed).public == relay.run_key(RUN, epoch).public == KeyPair(SEED).run_key(RUN, epoch).public
    assert 4 == len(
        {
            relay.public,
            relay.run_key(RUN, epoch).public,
            relay.run_key(RUN, other).public,
            KeyPair(seed).run_key(RUN, epoch).public,
        }
    )
