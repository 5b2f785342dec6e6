"""Ids: TypeIDs, spelled as the TypeID specification has it, and sorted as their UUIDs are."""

from base64 import b32encode
from random import Random
from uuid import RFC_4122, UUID

import pytest

from batonpass.model.ids import NEW_ID_ENTROPY, derived_id, new_id

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_LAST_MOMENT = (2**48 - 1) * 1000


def uuid_of(identity: str) -> UUID:
    """Return the UUID that an id spells, letter by letter."""
    value = 0
    for letter in identity.rpartition("_")[2]:
        value = value * 32 + _LETTERS.index(letter)
    return UUID(int=value)


@pytest.mark.parametrize(
    ("at", "entropy", "expected"),
    [
        pytest.param(0, bytes(10), "run_0000000000e008000000000000", id="the first moment, all zeros"),
        pytest.param(_LAST_MOMENT, b"\xff" * 10, "run_7zzzzzzzzzfzzvzzzzzzzzzzzz", id="the last moment, all ones"),
        pytest.param(1_700_000_000_123_456, bytes(range(10)), "run_01hf7yat3ve00r40r40m30e209", id="a moment of 2023"),
    ],
)
def test_an_id_has_one_spelling(at: int, entropy: bytes, expected: str) -> None:
    """The same time and the same bytes are the same text, on every machine."""
    assert expected == new_id("run", at, entropy)


def test_new_ids_are_uuids_of_version_7() -> None:
    """An id is a UUIDv7 of its millisecond; 26 letters of base32, as the standard library spells them."""
    random = Random(7)
    for _ in range(500):
        at, entropy = random.randrange(2**48) * 1000, random.randbytes(NEW_ID_ENTROPY)

        identity = new_id("call", at, entropy)

        uuid = uuid_of(identity)
        assert (7, RFC_4122, at // 1000) == (uuid.version, uuid.variant, uuid.int >> 80)
        # Base32 spells from the left: with four bytes in front, the last 26 letters are those from the right.
        to_letters = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", _LETTERS)
        assert "call_" + b32encode(bytes(4) + uuid.bytes).decode()[6:].translate(to_letters) == identity


def test_ids_sort_as_they_were_made() -> None:
    """Text order is the order of time."""
    random = Random(8)
    times = sorted(random.sample(range(2**40), 200))

    ids = [new_id("run", at * 1000, random.randbytes(NEW_ID_ENTROPY)) for at in times]

    assert sorted(ids) == ids


def test_derived_ids_keep_122_bits_of_their_digest() -> None:
    """Two digests that differ in the first 122 bits give two ids of version 8; what follows changes nothing."""
    digest = Random(9).randbytes(32)
    flipped = [
        bytes(byte ^ (1 << bit if at == place else 0) for at, byte in enumerate(digest))
        for place in range(16)
        for bit in range(8)
    ]

    ids = {derived_id("handoff", each) for each in flipped}

    assert {(8, RFC_4122)} == {(uuid_of(each).version, uuid_of(each).variant) for each in ids}
    assert 122 + 1 == len(ids)  # the last six bits are not in it: all six give the id of the digest itself
    assert derived_id("handoff", digest) in ids
