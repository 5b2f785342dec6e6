"""Content: words that a receipt commits to without repeating them."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError
from batonpass.model.ledger.content import SALT_BYTES, content_digest, new_content
from tests.unit.model.examples import AT

HOSTILE = {
    "control characters": "\0\x01\x1b[2J\x7f\x9b",
    "a right-to-left override": "total\u202egnp.exe",
    "a line separator": "one\u2028two",
    "an emoji of four code points": "👩\u200d🚀\ufe0f",
    "not normalised": "e\u0301 and é",
    "a noncharacter": "\ufffe\U0010ffff",
    "a byte order mark": "\ufeffwords",
    "JSON in JSON": '{"a":"\\u0000"}',
    "carriage returns": "a\r\nb\rc\n",
    "nothing": "",
}


@given(st.binary(max_size=200))
def test_the_digest_covers_salt_and_body(body: bytes) -> None:
    """A content's reference says the sha256 of salt and body, and the size of the body alone."""
    content = new_content("task", body, AT)

    assert sha256(content.salt + body).hexdigest() == content.ref.digest == content_digest(content.salt, body)
    assert (len(body), body) == (content.ref.size, content.body)


def test_the_same_words_twice_have_nothing_in_common() -> None:
    """Salt, digest and id differ each time: whoever holds only receipts cannot confirm a guess."""
    first, second = (new_content("task", "yes", AT) for _ in range(2))

    assert SALT_BYTES == len(first.salt) == len(second.salt)
    assert 2 == len({first.salt, second.salt})
    assert 2 == len({first.ref.digest, second.ref.digest})
    assert 2 == len({first.ref.id, second.ref.id})


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_kept_byte_for_byte(text: str) -> None:
    """Nothing is normalised, stripped or escaped: the exact words, as UTF-8."""
    assert text == new_content("task", text, AT).body.decode()


@given(st.text(max_size=50), st.sampled_from(["\ud800", "\udfff", "\udc80"]), st.text(max_size=50))
def test_a_lone_surrogate_is_named(before: str, surrogate: str, after: str) -> None:
    """Text that is not Unicode is refused, with the content's name and the character at which it breaks."""
    with pytest.raises(InvalidValueError, match=f"at character {len(before)}$") as refused:
        new_content("task", before + surrogate + after, AT)

    assert "task" == refused.value.field


def test_bytes_are_kept_with_their_media_type() -> None:
    """A body need not be text."""
    content = new_content("result", b"\xff\x00", AT, media_type="application/octet-stream")

    assert (b"\xff\x00", "application/octet-stream") == (content.body, content.ref.media_type)


@pytest.mark.parametrize(
    ("name", "media_type", "field"),
    [
        pytest.param("The task", "text/plain", "content.name", id="a name with a space"),
        pytest.param("task", "text/plain; charset=x", "content.media_type", id="a media type with parameters"),
        pytest.param("task", "Text/HTML", "content.media_type", id="a media type in upper case"),
    ],
)
def test_what_a_person_wrote_cannot_pose_as_a_name(name: str, media_type: str, field: str) -> None:
    """Name and media type stand in signed bytes, so they are codes."""
    with pytest.raises(InvalidValueError) as refused:
        new_content(name, "words", AT, media_type=media_type)

    assert field == refused.value.field
