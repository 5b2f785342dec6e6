"""Ids: TypeIDs of a UUIDv7 of time and chance, or of a UUIDv8 of a digest."""

from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError, convert

from batonpass.model.ids import AccountId, HandoffId, RunId, derived_id, new_id, short

LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
TIMES = st.integers(0, 2**53 - 1)


def uuid_of(identity: str) -> UUID:
    """Read a TypeID as its specification says: 26 letters of five bits, the first of three."""
    value = 0
    for letter in identity.partition("_")[2]:
        value = value << 5 | LETTERS.index(letter)
    return UUID(int=value)


@given(TIMES, st.binary(min_size=10, max_size=10))
def test_a_new_id_is_a_uuid_v7(at: int, entropy: bytes) -> None:
    """Its first 48 bits are the milliseconds, and version and variant are where RFC 9562 has them."""
    identity = new_id("run", at, entropy)
    uuid = uuid_of(identity)

    assert (at // 1000, 7, "specified in RFC 4122") == (uuid.int >> 80, uuid.version, uuid.variant)
    assert identity == convert(identity, RunId)


@given(st.binary(min_size=16, max_size=32))
def test_a_derived_id_is_a_uuid_v8_of_a_digest(digest: bytes) -> None:
    """It holds the first 122 bits of the digest around version and variant."""
    uuid = uuid_of(derived_id("handoff", digest))
    bits = uuid.int >> 80 << 74 | (uuid.int >> 64 & 0xFFF) << 62 | uuid.int & (1 << 62) - 1

    assert (8, "specified in RFC 4122") == (uuid.version, uuid.variant)
    assert int.from_bytes(digest[:16], "big") >> 6 == bits


@given(st.lists(st.tuples(TIMES, st.binary(min_size=10, max_size=10)), min_size=2, max_size=5))
def test_text_sorts_as_uuids_do(drawn: list[tuple[int, bytes]]) -> None:
    """Lists of ids in the order of their text are lists in the order of their time."""
    ids = [new_id("run", at, entropy) for at, entropy in drawn]

    assert sorted(ids, key=uuid_of) == sorted(ids)


def test_each_random_bit_counts() -> None:
    """Ten random bytes make 74 random bits: what is drawn twice differs in the id."""
    drawn = {new_id("run", 0, sha256(bytes([number])).digest()[:10]) for number in range(256)}

    assert 256 == len(drawn)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("run_" + "0" * 25, RunId, id="a letter too few"),
        pytest.param("run_" + "0" * 27, RunId, id="a letter too many"),
        pytest.param("run_8" + "0" * 25, RunId, id="more than 128 bits"),
        pytest.param("run_" + "u" + "0" * 25, RunId, id="a letter that looks like another"),
        pytest.param("run_" + "0" * 26 + "\n", RunId, id="a newline at the end"),
        pytest.param(" run_" + "0" * 26, RunId, id="a space before it"),
        pytest.param("handoff_" + "0" * 26, RunId, id="another kind of id"),
        pytest.param("RUN_" + "0" * 26, RunId, id="capitals"),
        pytest.param("run_" + "0" * 26, HandoffId, id="a run for a handoff"),
        pytest.param("relay_" + "0" * 26, AccountId, id="a relay for an account"),
    ],
)
def test_what_is_no_id_is_refused(text: str, kind: type) -> None:
    """An id has one spelling."""
    with pytest.raises(ValidationError):
        convert(text, kind)


def test_people_name_a_thing_by_its_last_letters() -> None:
    """The last four letters are random bits, so they differ most."""
    assert "wxyz" == short("run_0123456789abcdefghjkmnwxyz")
