"""Tokens: small enough for a header, with one spelling, and with nothing in them that unpacks to too much."""

import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given, strategies

from batonpass.errors import GrantMalformedError, GrantTooLargeError
from batonpass.model.grants.grant import Signed, Statement
from batonpass.wire.token import (
    LONGEST_TOKEN,
    _from_text,
    _to_text,
    decode_chain,
    decode_proof,
    encode_chain,
    encode_proof,
    join_token,
    split_token,
)
from tests.unit.grants.world import World, may

WORLD = World()
CHAIN = WORLD.chain()
TOKEN = WORLD.token(CHAIN)


def packed(data: bytes) -> str:
    """Return bytes as the text of a chain."""
    squeezed = zlib.compress(data)
    return urlsafe_b64encode(sha256(squeezed).digest()[:16] + squeezed).rstrip(b"=").decode()


def frame(part: Signed[Statement]) -> bytes:
    """Return a part as it stands in a chain, or alone in a proof."""
    return len(part.payload).to_bytes(4) + part.payload + part.signature


def test_a_token_comes_back_as_it_was() -> None:
    """Chain and proof are found again, byte for byte."""
    chain, proof = split_token(TOKEN)

    assert CHAIN == decode_chain(chain)
    assert (chain, proof) == (encode_chain(decode_chain(chain)), encode_proof(decode_proof(proof)))
    assert TOKEN == join_token(chain, proof)


def test_five_hops_fit_into_a_header() -> None:
    """With room for scopes that say more than these."""
    assert LONGEST_TOKEN / 2 > len(WORLD.token(WORLD.chain(*[may("write:src/**", "read:**")] * 5)))


ENROLMENT, TERMS, CERTIFICATE = (frame(part) for part in (CHAIN.enrolments[0], CHAIN.terms[0], CHAIN.certificate))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([TERMS, CERTIFICATE], id="nobody enrolled"),
        pytest.param([ENROLMENT, CERTIFICATE], id="no terms"),
        pytest.param([TERMS, ENROLMENT, CERTIFICATE], id="terms before the enrolment"),
        pytest.param([ENROLMENT, TERMS, CERTIFICATE, CERTIFICATE], id="two certificates"),
        pytest.param([ENROLMENT, TERMS], id="no certificate"),
    ],
)
def test_a_chain_has_its_parts_in_order(parts: list[bytes]) -> None:
    """Enrolments, then terms, then one certificate."""
    with pytest.raises(GrantMalformedError, match="enrolments, then terms, then one certificate"):
        decode_chain(packed(b"".join(parts)))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(packed(b""), id="nothing packed"),
        pytest.param(packed(b"\0\0\0\1"), id="cut within a part"),
        pytest.param(packed(b"\xff\xff\xff\xff" + b"x" * 99), id="a length beyond everything"),
        pytest.param(packed((b"\0\0\0\0" + b"x" * 64) * 81), id="more parts than anybody sends"),
        pytest.param(packed(b"\0\0\0\0" + b"x" * 64), id="an empty part"),
        pytest.param(
            urlsafe_b64encode(sha256(b"no").digest()[:16] + b"no").decode().rstrip("="), id="not packed at all"
        ),
        pytest.param(split_token(TOKEN)[0] + "=", id="padding"),
        pytest.param(split_token(TOKEN)[0][:-2], id="cut short"),
        pytest.param(f" {split_token(TOKEN)[0]}", id="a space in front"),
        pytest.param(split_token(TOKEN)[0].replace("-", "+").replace("_", "/"), id="the other alphabet"),
    ],
)
def test_what_is_no_chain(text: str) -> None:
    """Whatever does not unpack into parts is refused before anything of it is believed."""
    with pytest.raises(GrantMalformedError):
        decode_chain(text)


def test_something_behind_the_packing_is_refused() -> None:
    """Bytes that unpacking passes over are not part of any chain."""
    squeezed = zlib.compress(b"x" * 100) + b"more"

    with pytest.raises(GrantMalformedError, match="too early or too late"):
        decode_chain(urlsafe_b64encode(sha256(squeezed).digest()[:16] + squeezed).rstrip(b"=").decode())


def test_a_bomb_is_not_unpacked() -> None:
    """A few hundred characters that would unpack to megabytes are refused at the bound."""
    with pytest.raises(GrantTooLargeError, match="more than 65,536 bytes"):
        decode_chain(packed(b"\0" * 5_000_000))


def test_what_is_too_long_is_neither_sent_nor_read() -> None:
    """Both sides have the same bound."""
    wide = WORLD.chain(may(*(f"write:{sha256(bytes([number])).hexdigest()}/**" for number in range(200))))

    with pytest.raises(GrantTooLargeError, match="shorten its chain or its scopes"):
        encode_chain(wide)
    with pytest.raises(GrantTooLargeError):
        split_token("A" * (LONGEST_TOKEN + 1))


def test_one_proof_for_each_call() -> None:
    """Two proofs behind each other are none."""
    proof = decode_proof(split_token(TOKEN)[1])

    with pytest.raises(GrantMalformedError, match="more than one proof"):
        decode_proof(urlsafe_b64encode(frame(proof) * 2).rstrip(b"=").decode())


SPELLED_OTHERWISE = {
    "padded": lambda text: text + "=" * (-len(text) % 4 or 4),
    "padded too much": lambda text: text + "====",
    "a newline behind it": lambda text: text + "\n",
    "a space before it": lambda text: " " + text,
    "broken into lines": lambda text: text[:64] + "\r\n" + text[64:],
    "the other alphabet": lambda text: (
        text.replace("-", "+").replace("_", "/") if set("-_") & set(text) else text + "+"
    ),
    "more behind it": lambda text: text + "AAAA",
    "a comment behind it": lambda text: text + "!",
    "another last character": lambda text: text[:-1] + chr(ord(text[-1]) ^ 1),
}


@pytest.mark.parametrize("respell", SPELLED_OTHERWISE.values(), ids=SPELLED_OTHERWISE)
def test_a_token_has_one_spelling(respell: Callable[[str], str]) -> None:
    """The same bytes in another text are refused: whoever remembers tokens by their text must not meet two."""
    chain, proof = split_token(TOKEN)

    for read, text in ((decode_chain, chain), (decode_proof, proof)):
        assert text != respell(text)
        with pytest.raises(GrantMalformedError):
            read(respell(text))


@given(strategies.text(alphabet="ABQgw_-+/= \n.", max_size=12))
def test_whatever_is_read_is_written_the_same(text: str) -> None:
    """A text that is taken is the one that would be written for its bytes."""
    with suppress(GrantMalformedError):
        assert text == _to_text(_from_text(text))
