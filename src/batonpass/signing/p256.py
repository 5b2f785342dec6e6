"""ECDSA over P-256 with SHA-256, checking only: the signatures of most passkeys.

Nothing here is secret. It has a public key, a message and a signature, so how long it takes tells nobody anything, and
it never makes a signature. ADR 106 says why it is here and not in a library.
"""

from hashlib import sha256
from typing import Final, TypeAlias

# SEC 2, version 2, section 2.4.2: secp256r1. The curve is y² = x³ - 3x + B.
PRIME: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1
ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_B: Final = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
_X: Final = 0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296
_Y: Final = 0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5

PUBLIC_BYTES: Final = 64  # x and y
SIGNATURE_BYTES: Final = 64  # r and s
_HALF: Final = 32
_HEAD: Final = 2
_SEQUENCE: Final = 0x30
_INTEGER: Final = 0x02

_Point: TypeAlias = tuple[int, int, int]  # Jacobian: x = X/Z², y = Y/Z³; Z is 0 at infinity
_INFINITY: Final[_Point] = (1, 1, 0)
_BASE: Final[_Point] = (_X, _Y, 1)


def is_point(public: bytes) -> bool:
    """Return whether these bytes are a point of the curve. P-256 has no points of small order besides infinity."""
    if len(public) != PUBLIC_BYTES:
        return False
    x, y = int.from_bytes(public[:_HALF]), int.from_bytes(public[_HALF:])
    return x < PRIME and y < PRIME and (y * y - (x * x * x - 3 * x + _B)) % PRIME == 0


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a key signed exactly this message. FIPS 186-5, section 6.4.2."""
    if len(signature) != SIGNATURE_BYTES or not is_point(public):
        return False
    r, s = int.from_bytes(signature[:_HALF]), int.from_bytes(signature[_HALF:])
    # Step 1. Without it a signature of zeros would fit everything.
    if not (0 < r < ORDER and 0 < s < ORDER):
        return False
    e = int.from_bytes(sha256(message).digest())
    inverse = pow(s, -1, ORDER)
    key = (int.from_bytes(public[:_HALF]), int.from_bytes(public[_HALF:]), 1)
    x, _, z = _sum_of_products(e * inverse % ORDER, r * inverse % ORDER, key)
    if z == 0:
        return False
    return (x * pow(z, -2, PRIME)) % PRIME % ORDER == r


def read_der(signature: bytes) -> bytes:
    """Return r and s of a signature in DER, which authenticators make, as 64 bytes. Raises `ValueError`."""
    numbers: list[int] = []
    # Both lengths are below 128, so each is one byte: a sequence of at most two integers of 33 bytes.
    if len(signature) < _HEAD or signature[0] != _SEQUENCE or signature[1] != len(signature) - 2:
        raise ValueError("no sequence in DER")
    rest = signature[2:]
    while rest:
        size = rest[1] if len(rest) > 1 else 0
        body = rest[2 : 2 + size]
        if rest[0] != _INTEGER or not 0 < size == len(body) <= _HALF + 1 or body[0] & 0x80:
            raise ValueError("no positive integer in DER")
        numbers.append(int.from_bytes(body))
        rest = rest[2 + size :]
    r, s = numbers  # raises if there are more, or fewer
    if max(r, s) >= ORDER:
        raise ValueError("a number is too large")
    return r.to_bytes(_HALF) + s.to_bytes(_HALF)


def _sum_of_products(u: int, v: int, key: _Point) -> _Point:
    """Return u times the base point plus v times the key, bit by bit for both at once."""
    steps = {1: _BASE, 2: key, 3: _added(_BASE, key)}
    result = _INFINITY
    for bit in range(max(u.bit_length(), v.bit_length()) - 1, -1, -1):
        result = _doubled(result)
        if chosen := (u >> bit & 1) | (v >> bit & 1) << 1:
            result = _added(result, steps[chosen])
    return result


def _doubled(point: _Point) -> _Point:
    x, y, z = point
    if z == 0 or y == 0:
        return _INFINITY
    squared = y * y % PRIME
    s = 4 * x * squared % PRIME
    zz = z * z % PRIME
    m = 3 * (x - zz) * (x + zz) % PRIME  # the curve's -3 makes it a product
    x3 = (m * m - 2 * s) % PRIME
    return x3, (m * (s - x3) - 8 * squared * squared) % PRIME, 2 * y * z % PRIME


def _added(one: _Point, other: _Point) -> _Point:
    if one[2] == 0:
        return other
    if other[2] == 0:
        return one
    (x1, y1, z1), (x2, y2, z2) = one, other
    zz1, zz2 = z1 * z1 % PRIME, z2 * z2 % PRIME
    u1, u2 = x1 * zz2 % PRIME, x2 * zz1 % PRIME
    s1, s2 = y1 * zz2 * z2 % PRIME, y2 * zz1 * z1 % PRIME
    if u1 == u2:
        return _doubled(one) if s1 == s2 else _INFINITY
    h, r = (u2 - u1) % PRIME, (s2 - s1) % PRIME
    hh = h * h % PRIME
    hhh, v = hh * h % PRIME, u1 * hh % PRIME
    x3 = (r * r - hhh - 2 * v) % PRIME
    return x3, (r * (v - x3) - s1 * hhh) % PRIME, z1 * z2 * h % PRIME
