"""What stands beside a receipt: salted, packed, digested."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from batonpass.errors import InvalidValueError, VerificationError
from batonpass.wire.contents import LARGEST_CONTENTS, pack, unpack


def zeros(size: int) -> bytes:
    return bytes(size)


@given(st.dictionaries(st.text(max_size=8), st.binary(max_size=64), max_size=5))
def test_contents_come_back_as_they_were_packed(contents: dict[str, bytes]) -> None:
    """What is packed is unpacked by the digests that its receipt has."""
    digests, packed = pack(contents, zeros)

    assert contents == unpack(packed, digests)


@pytest.mark.parity("content-digests-are-salted")
def test_equal_words_have_other_digests_each_time() -> None:
    """A digest covers a random salt, and the parts of one receipt do not share theirs: short words cannot be tried."""
    first, _ = pack({"reason": b"no", "error": b"no"}, lambda size: bytes(range(size)))
    second, _ = pack({"reason": b"no"}, lambda size: bytes(reversed(range(size))))

    assert 3 == len({first["reason"], first["error"], second["reason"]})
    assert sha256(bytes(range(16)) + b"no").hexdigest() == first["reason"]


def test_without_contents_nothing_is_stored() -> None:
    """A receipt without words has no value beside it, and not an empty one."""
    assert ({}, None) == pack({}, zeros)


def test_what_is_too_large_for_a_row_is_refused() -> None:
    """More than a row may hold is refused, and the sentence says what to do."""
    with pytest.raises(InvalidValueError, match="attach it as a file"):
        pack({"result": bytes(LARGEST_CONTENTS)}, zeros)


def test_an_erased_part_is_none() -> None:
    """The words of a part can go, and those beside them still fit their digests."""
    digests, packed = pack({"a": b"1", "b": b"2"}, zeros)
    kept = msgpack.decode(packed or b"", type=dict[str, tuple[bytes, bytes] | None])

    assert {"a": None, "b": b"2"} == unpack(msgpack.encode(kept | {"a": None}), digests)


DIGESTS, PACKED = pack({"a": b"1"}, zeros)
assert PACKED is not None
OTHER = pack({"a": b"2"}, zeros)[1]


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        pytest.param(OTHER, DIGESTS, id="other words"),
        pytest.param(msgpack.encode({"a": (b"x" * 16, b"1")}), DIGESTS, id="another salt"),
        pytest.param(msgpack.encode({"a": (bytes(15), b"\x001")}), DIGESTS, id="a salt that is cut elsewhere"),
        pytest.param(msgpack.encode({"b": (bytes(16), b"1")}), DIGESTS, id="another name"),
        pytest.param(pack({"a": b"1", "b": b"2"}, zeros)[1], DIGESTS, id="a part too many"),
        pytest.param(None, DIGESTS, id="none at all"),
        pytest.param(b"", {}, id="an empty value where there are no contents"),
        pytest.param(msgpack.encode({}), {}, id="an empty map where there are no contents"),
        pytest.param(PACKED + b"\x00", DIGESTS, id="a byte too many"),
        pytest.param(PACKED[:-1], DIGESTS, id="a byte too few"),
        pytest.param(PACKED.replace(b"\xc4\x01", b"\xc5\x00\x01"), DIGESTS, id="a length that is spelled longer"),
        pytest.param(b"\x82" + PACKED[1:] * 2, DIGESTS, id="a part twice"),
        pytest.param(PACKED.replace(b"\xa1a", b"\xa1\xff"), DIGESTS, id="a name that is no text"),
        pytest.param(b"\x91" * 100_000, DIGESTS, id="depth"),
    ],
)
def test_other_contents_are_refused(packed: bytes | None, expected: dict[str, str]) -> None:
    """Contents have one spelling, and it is the one that the receipt committed to."""
    with pytest.raises(VerificationError) as refusal:
        unpack(packed, expected)

    assert "verify.content" == refusal.value.code
