"""Seals as signed notes: what C2SP asks for, one spelling only, and nothing that a single character can change."""

import base64
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.exceptions import BadSignatureError, CryptoError
from nacl.signing import SigningKey, VerifyKey

from batonpass.errors import InvalidValueError
from batonpass.ledger.note import (
    MAX_SIGNATURES,
    MAX_SIZE,
    Checkpoint,
    NoteSignature,
    from_trailer,
    key_hash,
    parse_note,
    sign_checkpoint,
    to_trailer,
    verifier_key,
)

KEY = SigningKey(bytes(range(1, 33)))
PUBLIC_KEY = bytes(KEY.verify_key)
ORIGIN = "batonpass/ledger_01jd2m8q4xe9wb7k3s5t6v0y1z"
CHECKPOINT = Checkpoint(ORIGIN, 1042, bytes(range(32)))

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"], exclude_characters="+"), min_size=1
)
CHECKPOINTS = st.builds(
    Checkpoint, NAMES, st.integers(min_value=0, max_value=MAX_SIZE), st.binary(min_size=32, max_size=32)
)


def sign(message: bytes) -> bytes:
    """Return the detached signature of the test key."""
    return KEY.sign(message).signature


def a_note(checkpoint: Checkpoint = CHECKPOINT) -> str:
    """Return a checkpoint as the test key seals it."""
    return sign_checkpoint(checkpoint, sign, checkpoint.origin, PUBLIC_KEY)


def open_note(text: str) -> Checkpoint:
    """Return the checkpoint if the known key has signed it, as a verifier would."""
    note = parse_note(text)
    lines = list(note.find_signatures(ORIGIN, PUBLIC_KEY))
    if not lines:
        raise BadSignatureError
    for line in lines:
        VerifyKey(PUBLIC_KEY).verify(note.signed_bytes, line.signature)
    return note.checkpoint


def corruptions(text: str) -> Iterator[str]:
    """Yield the texts that differ from this one by one character: dropped, put in, or another one."""
    for at, char in enumerate(text):
        yield text[:at] + text[at + 1 :]
        for other in (*"aA0 9+/=\n\r\t\0\x7f\x85\u2028\N{EM DASH}\ud800", chr(ord(char) ^ 1), char.swapcase()):
            yield text[:at] + other + text[at:]
            if other != char:
                yield text[:at] + other + text[at + 1 :]


def test_key_hash_is_the_one_of_c2sp() -> None:
    """The example key of c2sp.org/signed-note gets the hash that stands there."""
    public_key = base64.b64decode("AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")[1:]

    expected = "530d903a"
    assert expected == key_hash("example.com/foo", public_key).hex()


def test_verifier_key_is_the_one_of_c2sp() -> None:
    """The example key of c2sp.org/signed-note is spelled as it stands there."""
    expected = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"

    assert expected == verifier_key("example.com/foo", base64.b64decode(expected.rpartition("+")[2])[1:])


def test_body_is_three_lines() -> None:
    """What is signed is origin, size and root, each on its line."""
    expected = f"{ORIGIN}\n1042\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"

    assert expected == CHECKPOINT.body()


def test_note_is_body_blank_line_signature() -> None:
    """The note is the body, an empty line, and a line with name, key hash and signature."""
    body = CHECKPOINT.body()
    signature = base64.b64encode(key_hash(ORIGIN, PUBLIC_KEY) + sign(body.encode())).decode()

    assert f"{body}\n\N{EM DASH} {ORIGIN} {signature}\n" == a_note()


@given(CHECKPOINTS)
def test_note_is_read_back(checkpoint: Checkpoint) -> None:
    """Whatever checkpoint can be made can be signed, read, and checked over the bytes that were signed."""
    body = checkpoint.body().encode()

    note = parse_note(a_note(checkpoint))

    line = NoteSignature(checkpoint.origin, key_hash(checkpoint.origin, PUBLIC_KEY), sign(body))
    assert (checkpoint, (line,), body) == (note.checkpoint, note.signatures, note.signed_bytes)


@given(CHECKPOINTS)
def test_trailer_gives_back_the_exact_note(checkpoint: Checkpoint) -> None:
    """One line in a commit message is enough to rebuild the note, byte for byte."""
    text = a_note(checkpoint)

    trailer = to_trailer(text)

    assert (text, 3) == (from_trailer(trailer), trailer.count(" "))


def test_signed_note_opens() -> None:
    """The key that signed a note opens it."""
    checkpoint = Checkpoint(ORIGIN, 7, bytes(32))

    assert checkpoint == open_note(a_note(checkpoint))


def test_no_corrupted_note_opens() -> None:
    """Any character changed, dropped or put in makes a note that does not parse or whose signature fails."""
    for text in corruptions(a_note()):
        with pytest.raises((InvalidValueError, CryptoError)):
            open_note(text)


@given(st.text())
def test_text_that_is_no_note_is_refused(text: str) -> None:
    """Whatever comes from outside, the parsers refuse it and never break on it."""
    with pytest.raises(InvalidValueError):
        parse_note(text)
    with pytest.raises(InvalidValueError):
        from_trailer(text)


ROOT = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
LINE = "\N{EM DASH} o AAAAAAE="


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param("", "note", id="nothing"),
        pytest.param(f"o\n1\n{ROOT}\n", "note", id="no signature"),
        pytest.param(f"o\n1\n{ROOT}\n\n", "note", id="an empty line and no signature"),
        pytest.param(f"o\n1\n{ROOT}\n\n{LINE}", "note", id="no newline at the end"),
        pytest.param(f"o\n1\n{ROOT}\n{LINE}\n", "note", id="no empty line"),
        pytest.param(f"o\n1\n{ROOT}\nmore\n\n{LINE}\n", "note", id="an extension line"),
        pytest.param(f"o\n1\n\n{LINE}\n", "note", id="a line too few"),
        pytest.param(f"\no\n1\n{ROOT}\n\n{LINE}\n", "note", id="an empty line before"),
        pytest.param(f"o\n1\n{ROOT}\n\n\n{LINE}\n", "signature", id="two empty lines"),
        pytest.param(f"o\n1\n{ROOT}\n\n{LINE}\n\n", "signature", id="an empty line behind"),
        pytest.param(f"\n1\n{ROOT}\n\n{LINE}\n", "origin", id="an empty origin"),
        pytest.param(f"o\r\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a carriage return in the origin"),
        pytest.param(f"o\0\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a zero byte in the origin"),
        pytest.param(f"o\x1b[2J\n1\n{ROOT}\n\n{LINE}\n", "origin", id="an escape sequence in the origin"),
        pytest.param(f"o\x9b2J\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a C1 control in the origin"),
        pytest.param(f"o\x7f\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a delete in the origin"),
        pytest.param(f"o\ud800\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a lone surrogate in the origin"),
        pytest.param(f"o o\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a space in the origin"),
        pytest.param(f"o\u2028o\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a line separator in the origin"),
        pytest.param(f"o+o\n1\n{ROOT}\n\n{LINE}\n", "origin", id="a plus in the origin"),
        pytest.param(f"o\n\n{ROOT}\n\n{LINE}\n", "size", id="an empty size"),
        pytest.param(f"o\n01\n{ROOT}\n\n{LINE}\n", "size", id="a leading zero"),
        pytest.param(f"o\n00\n{ROOT}\n\n{LINE}\n", "size", id="two zeros"),
        pytest.param(f"o\n-1\n{ROOT}\n\n{LINE}\n", "size", id="a negative size"),
        pytest.param(f"o\n+1\n{ROOT}\n\n{LINE}\n", "size", id="a plus before the size"),
        pytest.param(f"o\n1_0\n{ROOT}\n\n{LINE}\n", "size", id="an underscore in the size"),
        pytest.param(f"o\n 1\n{ROOT}\n\n{LINE}\n", "size", id="a space before the size"),
        pytest.param(f"o\n1\r\n{ROOT}\n\n{LINE}\n", "size", id="a carriage return behind the size"),
        pytest.param(f"o\n\u0661\n{ROOT}\n\n{LINE}\n", "size", id="a digit that is not ASCII"),
        pytest.param(f"o\n{2**63}\n{ROOT}\n\n{LINE}\n", "size", id="a size beyond 63 bits"),
        pytest.param(f"o\n{'9' * 5000}\n{ROOT}\n\n{LINE}\n", "size", id="a size of five thousand digits"),
        pytest.param(f"o\n1\n{ROOT[:-2]}9=\n\n{LINE}\n", "root", id="base64 with unused bits set"),
        pytest.param(f"o\n1\n{ROOT[:-1]}\n\n{LINE}\n", "root", id="base64 without its padding"),
        pytest.param(f"o\n1\n{ROOT}=\n\n{LINE}\n", "root", id="base64 with more padding"),
        pytest.param(f"o\n1\n {ROOT}\n\n{LINE}\n", "root", id="a space in base64"),
        pytest.param(f"o\n1\n{ROOT}\r\n\n{LINE}\n", "root", id="a carriage return in base64"),
        pytest.param(f"o\n1\n-_ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\n{LINE}\n", "root", id="base64 for URLs"),
        pytest.param(f"o\n1\nAAEC\n\n{LINE}\n", "root", id="a root of three bytes"),
        pytest.param(f"o\n1\n{ROOT}\n\n- o AAAAAAE=\n", "signature", id="a hyphen for the dash"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH}o AAAAAAE=\n", "signature", id="no space after the dash"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH} AAAAAAE=\n", "signature", id="no name"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH}  AAAAAAE=\n", "signature name", id="an empty name"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH} o+p AAAAAAE=\n", "signature name", id="a plus in the name"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH} o\t AAAAAAE=\n", "signature name", id="a tab in the name"),
        pytest.param(
            f"o\n1\n{ROOT}\n\n\N{EM DASH} o\xa0p AAAAAAE=\n", "signature name", id="a no-break space in the name"
        ),
        pytest.param(f"o\n1\n{ROOT}\n\n{LINE} more\n", "signature", id="a word behind the signature"),
        pytest.param(f"o\n1\n{ROOT}\n\n{LINE}\r\n", "signature", id="a carriage return behind the signature"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH} o AAAAAAF=\n", "signature", id="a signature with unused bits set"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH} o AAAAAA==\n", "signature", id="a key hash and no signature"),
        pytest.param(f"o\n1\n{ROOT}\n\n\N{EM DASH} o AAAA\n", "signature", id="not even a key hash"),
    ],
)
def test_malformed_note_is_refused(text: str, field: str) -> None:
    """A note has one spelling; any other is refused, with the part that is wrong."""
    with pytest.raises(InvalidValueError) as caught:
        parse_note(text)

    assert field == caught.value.field


def test_signatures_of_others_are_kept_and_not_confused() -> None:
    """Witnesses may sign under ours with their own algorithms; a name or a key hash alone does not make a key."""
    witness = "\N{EM DASH} witness.example AAAAAAE=\n"
    same_name = f"\N{EM DASH} {ORIGIN} AAAAAAE=\n"
    same_hash = f"\N{EM DASH} other {base64.b64encode(key_hash(ORIGIN, PUBLIC_KEY) + b'?').decode()}\n"

    note = parse_note(a_note() + witness + same_name + same_hash)

    found = list(note.find_signatures(ORIGIN, PUBLIC_KEY))
    assert (4, [note.signatures[0]]) == (len(note.signatures), found)


def test_number_of_signatures_is_limited() -> None:
    """The sender does not choose how many signatures we must look at."""
    body = f"o\n1\n{ROOT}\n\n"

    parse_note(body + f"{LINE}\n" * MAX_SIGNATURES)
    with pytest.raises(InvalidValueError, match=r"^signatures: "):
        parse_note(body + f"{LINE}\n" * (MAX_SIGNATURES + 1))


@pytest.mark.parametrize(
    ("origin", "size", "root", "field"),
    [
        pytest.param("evil\n999", 1, bytes(32), "origin", id="an origin that would forge the size"),
        pytest.param("", 1, bytes(32), "origin", id="no origin"),
        pytest.param("o", -1, bytes(32), "size", id="a negative size"),
        pytest.param("o", 2**63, bytes(32), "size", id="a size beyond 63 bits"),
        pytest.param("o", 1, bytes(31), "root", id="a root that was cut"),
    ],
)
def test_impossible_checkpoint_is_refused(origin: str, size: int, root: bytes, field: str) -> None:
    """A checkpoint that would be read back as another one cannot be made."""
    with pytest.raises(InvalidValueError) as caught:
        Checkpoint(origin, size, root)

    assert field == caught.value.field


@pytest.mark.parametrize(
    ("name", "public_key", "signature", "field"),
    [
        pytest.param("a b", PUBLIC_KEY, bytes(64), "name", id="a space in the name"),
        pytest.param("a", PUBLIC_KEY[1:], bytes(64), "public key", id="a public key that was cut"),
        pytest.param("a", PUBLIC_KEY, bytes(63), "signature", id="a signature that was cut"),
    ],
)
def test_impossible_signature_is_refused(name: str, public_key: bytes, signature: bytes, field: str) -> None:
    """A note that nobody could verify is not written."""
    with pytest.raises(InvalidValueError) as caught:
        sign_checkpoint(CHECKPOINT, lambda _: signature, name, public_key)

    assert field == caught.value.field


@pytest.mark.parametrize(
    "signatures",
    [
        pytest.param(f"{LINE}\n{LINE}\n", id="two signatures"),
        pytest.param("\N{EM DASH} other AAAAAAE=\n", id="another name than the origin"),
    ],
)
def test_note_that_a_trailer_cannot_hold_is_refused(signatures: str) -> None:
    """A trailer names the origin once, so it holds one signature by that name."""
    with pytest.raises(InvalidValueError, match=r"^signatures: "):
        to_trailer(f"o\n1\n{ROOT}\n\n{signatures}")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        pytest.param("", "trailer", id="nothing"),
        pytest.param(f"o 1 {ROOT}", "trailer", id="a part too few"),
        pytest.param(f"o 1 {ROOT} AAAAAAE= more", "trailer", id="a part too many"),
        pytest.param(f"o  1 {ROOT} AAAAAAE=", "trailer", id="two spaces"),
        pytest.param(f" o 1 {ROOT} AAAAAAE=", "trailer", id="a space before"),
        pytest.param(f"o 1 {ROOT} AAAAAAE=\n", "signature", id="a newline behind"),
        pytest.param(f"o 01 {ROOT} AAAAAAE=", "size", id="a leading zero"),
        pytest.param(f"o\n1 2 {ROOT} AAAAAAE=", "note", id="a line smuggled in"),
    ],
)
def test_malformed_trailer_is_refused(line: str, field: str) -> None:
    """A trailer has one spelling as well."""
    with pytest.raises(InvalidValueError) as caught:
        from_trailer(line)

    assert field == caught.value.field
