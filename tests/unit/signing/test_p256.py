"""ECDSA over P-256: what OpenSSL signs holds, and nothing that is only nearly so does."""

import random

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from batonpass.signing.p256 import ORDER, PRIME, is_point, is_signed, read_der

MESSAGE = b"what was shown"


def a_signed(message: bytes = MESSAGE) -> tuple[bytes, int, int, ec.EllipticCurvePrivateKey]:
    """Return a public key, and r and s of its signature."""
    key = ec.generate_private_key(ec.SECP256R1())
    point = key.public_key().public_numbers()
    r, s = decode_dss_signature(key.sign(message, ec.ECDSA(SHA256())))
    return point.x.to_bytes(32, "big") + point.y.to_bytes(32, "big"), r, s, key


def joined(r: int, s: int) -> bytes:
    """Return a signature as it is recorded."""
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def test_it_agrees_with_openssl() -> None:
    """Over random keys and messages, with one bit of any part flipped or none."""
    chance = random.Random(7)
    wrong = []
    for _ in range(25):
        message = chance.randbytes(chance.randrange(200))
        public, r, s, key = a_signed(message)
        part, bit = chance.randrange(3), 1 << chance.randrange(256)
        r2, s2 = (r ^ bit, s) if part == 0 else (r, s ^ bit) if part == 1 else (r, s)
        other = message + b"x" if part == 2 else message
        try:
            key.public_key().verify(encode_dss_signature(r2, s2), other, ec.ECDSA(SHA256()))
            expected = True
        except InvalidSignature:
            expected = False
        found = is_signed(public, message, joined(r, s)), is_signed(public, other, joined(r2, s2))
        wrong += [] if found == (True, expected) else [(message, part, bit)]

    assert [] == wrong


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param((0, 0), id="zeros, which fit everything if nobody looks"),
        pytest.param((0, None), id="no r"),
        pytest.param((None, 0), id="no s"),
        pytest.param((ORDER, None), id="r is the order"),
        pytest.param((None, ORDER), id="s is the order"),
        pytest.param((1, 1), id="ones"),
    ],
)
def test_numbers_out_of_range_sign_nothing(forged: tuple[int | None, int | None]) -> None:
    """FIPS 186-5 asks for both to be from one to the order."""
    public, r, s, _ = a_signed()
    signature = joined(r if forged[0] is None else forged[0], s if forged[1] is None else forged[1])

    assert not is_signed(public, MESSAGE, signature)
    assert not is_signed(public, MESSAGE, joined(s, r))


def test_only_points_of_the_curve_are_keys() -> None:
    """Neither the origin, nor a coordinate beyond the prime, nor a neighbour, nor something shorter."""
    public, r, s, _ = a_signed()
    x, y = public[:32], public[32:]
    others = [
        bytes(64),
        (int.from_bytes(x, "big") ^ 1).to_bytes(32, "big") + y,
        PRIME.to_bytes(32, "big") + y,
        x + PRIME.to_bytes(32, "big"),
        public[:-1],
        b"\x04" + public,
    ]

    assert is_point(public)
    assert [(False, False)] * len(others) == [(is_point(one), is_signed(one, MESSAGE, joined(r, s))) for one in others]


def test_the_negative_of_a_key_and_a_key_that_is_the_base_point_are_told_apart() -> None:
    """The sums in which a point meets itself or its opposite come out right."""
    for scalar in (1, ORDER - 1, 2):
        key = ec.derive_private_key(scalar, ec.SECP256R1())
        point = key.public_key().public_numbers()
        public = point.x.to_bytes(32, "big") + point.y.to_bytes(32, "big")
        signature = read_der(key.sign(MESSAGE, ec.ECDSA(SHA256())))

        assert is_signed(public, MESSAGE, signature)
        assert not is_signed(public, MESSAGE + b"x", signature)


def test_der_is_read_strictly() -> None:
    """What an authenticator makes is read; anything beside it, before it or cut off is not."""
    _, r, s, key = a_signed()
    made = key.sign(MESSAGE, ec.ECDSA(SHA256()))
    wrong = [
        b"",
        b"\x30",
        made[:-1],
        made + b"\x00",
        b"\x31" + made[1:],
        encode_dss_signature(ORDER, s),
        encode_dss_signature(2**300, s),
        b"\x30\x03\x02\x01\x05",
        b"\x30\x09" + b"\x02\x01\x05" * 3,
        b"\x30\x06\x02\x01\x85\x02\x01\x05",
        b"\x30\x05\x02\x00\x02\x01\x05",
        b"\x30\x04\x02\x02\x01\x02",
    ]
    read = []
    for one in wrong:
        try:
            read.append(read_der(one))
        except ValueError:
            continue

    assert joined(r, s) == read_der(encode_dss_signature(r, s))
    assert [] == read
