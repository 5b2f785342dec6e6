"""One encoding for everything that is signed or digested."""

from hashlib import sha256
from hmac import new as hmac

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from batonpass.wire.canonical import digest, encode, genesis, keyed_digest

ASCII = st.text(st.characters(max_codepoint=127), max_size=8)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ASCII, inner, max_size=4), max_leaves=30
)


@pytest.mark.parity("canonical-bytes-equal-rfc8785")
@given(DOCUMENTS)
def test_bytes_are_those_of_rfc_8785(document: object) -> None:
    """Whatever a closed schema can hold is encoded as RFC 8785 says."""
    assert rfc8785.dumps(document) == encode(document)  # type: ignore[arg-type]


def test_digests_are_sha256_in_hex() -> None:
    """A plain digest is sha256, a keyed one HMAC-SHA-256: any program can make them again."""
    assert sha256(b"words").hexdigest() == digest(b"words")
    assert hmac(b"key", b"words", "sha256").hexdigest() == keyed_digest(b"key", b"words")


@pytest.mark.parity("genesis-binds-the-root-key")
def test_genesis_is_a_digest_of_the_label_and_the_root_key() -> None:
    """What the first receipts hang from follows from the root key, so another ledger's do not fit."""
    assert sha256(b"batonpass ledger v0" + bytes.fromhex("ab" * 32)).hexdigest() == genesis("ab" * 32)
    assert genesis("ab" * 32) != genesis("cd" * 32)
