"""Signatures as RFC 8032 has them, and no key with which anybody could sign."""

from hashlib import sha256

import nacl.bindings
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import KeyRefusedError
from batonpass.model.base.ids import PublicKey
from batonpass.signing.ed25519 import Ed25519Signer, is_signed, require_strong

# RFC 8032, section 7.1: secret, public, message, signature.
RFC_8032 = [
    pytest.param(
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
        id="test 1, an empty message",
    ),
    pytest.param(
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
        id="test 2, one byte",
    ),
    pytest.param(
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
        id="test 3, two bytes",
    ),
    pytest.param(
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd"
        "454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030"
        "3dca179c138ac17ad9bef1177331a704",
        id="test SHA(abc), a digest",
    ),
]

# The eight points whose order divides 8, and every other spelling of them that 32 bytes allow.
SMALL_ORDER = {
    "order 1": "0100000000000000000000000000000000000000000000000000000000000000",
    "order 2": "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "order 4": "0000000000000000000000000000000000000000000000000000000000000000",
    "order 4, negative": "0000000000000000000000000000000000000000000000000000000000000080",
    "order 8, first": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "order 8, first, negative": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "order 8, second": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "order 8, second, negative": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
}
NOT_CANONICAL = {
    "order 1 with a sign": "0100000000000000000000000000000000000000000000000000000000000080",
    "order 1 plus the prime": "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "order 1 plus the prime with a sign": "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "order 2 with a sign": "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "order 4 plus the prime": "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "order 4 plus the prime with a sign": "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
}
NOT_ON_THE_CURVE = {
    "y = 2": "02" + "00" * 31,
    "y = p + 2, not canonical and not a point": "ef" + "ff" * 30 + "7f",
}
ORDER = 2**252 + 27742317777372353535851937790883648493

SIGNER = Ed25519Signer(b"s" * 32)


def mixed(small: str) -> str:
    """Return a good key with a point of small order added: on the curve, but outside the main subgroup."""
    return nacl.bindings.crypto_core_ed25519_add(bytes.fromhex(SIGNER.public_key), bytes.fromhex(small)).hex()


@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032)
def test_signatures_are_those_of_the_standard(secret: str, public: str, message: str, signature: str) -> None:
    """Keys and signatures are the published ones, and are found good."""
    signer = Ed25519Signer(bytes.fromhex(secret))
    data = bytes.fromhex(message)

    assert (public, signature) == (signer.public_key, signer.sign(data).hex())
    assert is_signed(bytes.fromhex(public), data, bytes.fromhex(signature))


@given(st.binary(max_size=100), st.integers(min_value=0, max_value=511))
def test_a_flipped_bit_of_a_signature_is_found(message: bytes, bit: int) -> None:
    """Change any bit of a signature and it is nobody's."""
    signature = bytearray(SIGNER.sign(message))
    signature[bit // 8] ^= 1 << bit % 8

    assert not is_signed(bytes.fromhex(SIGNER.public_key), message, bytes(signature))


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_a_signature_is_good_for_one_message(signed: bytes, other: bytes) -> None:
    """A signature is over what was signed and nothing else."""
    signature = SIGNER.sign(signed)

    assert (signed == other) == is_signed(bytes.fromhex(SIGNER.public_key), other, signature)


@pytest.mark.parametrize("length", [0, 1, 63, 65, 128], ids="{} bytes".format)
def test_a_signature_has_64_bytes(length: int) -> None:
    """Another length is no signature, and moves no byte into the message."""
    long = SIGNER.sign(b"message") + b"message" * 20

    assert not is_signed(bytes.fromhex(SIGNER.public_key), b"", long[:length])
    assert not is_signed(bytes.fromhex(SIGNER.public_key), b"message", long[:length])


@pytest.mark.parametrize("length", [0, 31, 33], ids="{} bytes".format)
def test_a_key_of_another_length_has_signed_nothing(length: int) -> None:
    """A malformed key is a reason to say no, not to fail."""
    assert not is_signed(bytes(length), b"message", SIGNER.sign(b"message"))


def test_a_signature_has_one_form() -> None:
    """Adding the group's order to the scalar gives other bytes for the same equation; they are refused."""
    signature = SIGNER.sign(b"message")
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    other = signature[:32] + scalar.to_bytes(32, "little")

    assert not is_signed(bytes.fromhex(SIGNER.public_key), b"message", other)


@pytest.mark.parametrize(
    "public_key",
    [
        *(pytest.param(key, id=f"small order: {name}") for name, key in SMALL_ORDER.items()),
        *(pytest.param(key, id=f"not canonical: {name}") for name, key in NOT_CANONICAL.items()),
        *(pytest.param(key, id=f"not a point: {name}") for name, key in NOT_ON_THE_CURVE.items()),
        *(pytest.param(mixed(key), id=f"mixed with {name}") for name, key in SMALL_ORDER.items() if name != "order 1"),
        pytest.param("ab", id="one byte"),
        pytest.param("ab" * 33, id="33 bytes"),
        pytest.param("", id="nothing"),
        pytest.param("xy" * 32, id="not hexadecimal"),
    ],
)
def test_a_weak_key_is_refused(public_key: str) -> None:
    """No point of small order, no second spelling, nothing outside the main subgroup, nothing malformed."""
    with pytest.raises(KeyRefusedError):
        require_strong(PublicKey(public_key))


@pytest.mark.parametrize("public_key", SMALL_ORDER.values(), ids=SMALL_ORDER.keys())
def test_nothing_is_signed_by_a_point_of_small_order(public_key: str) -> None:
    """The signature that anybody can make for such a key is not taken."""
    forged = bytes.fromhex(SMALL_ORDER["order 1"]) + bytes(32)

    assert not is_signed(bytes.fromhex(public_key), b"anything", forged)


@given(st.binary(min_size=32, max_size=32))
def test_every_key_that_we_make_is_strong(seed: bytes) -> None:
    """A generated key passes its own check, and its id is the digest of its public half."""
    signer = Ed25519Signer(seed)

    assert signer.public_key == require_strong(signer.public_key)
    assert sha256(bytes.fromhex(signer.public_key)).hexdigest() == signer.key
    assert seed == signer.seed


@pytest.mark.parametrize("length", [0, 31, 33, 64], ids="{} bytes".format)
def test_a_seed_has_32_bytes(length: int) -> None:
    """Another length is refused, and the error does not show the secret."""
    with pytest.raises(KeyRefusedError, match=f"this one has {length}$"):
        Ed25519Signer(b"s" * length)


def test_two_generated_keys_differ() -> None:
    """Each key is new."""
    assert Ed25519Signer.generate().key != Ed25519Signer.generate().key


def test_a_key_does_not_show_its_secret() -> None:
    """What is printed of a signer is the beginning of its public id."""
    assert f"Ed25519Signer({SIGNER.key[:16]})" == repr(SIGNER)
    assert SIGNER.seed.hex() not in repr(SIGNER)
