"""What a tree's secret makes of something is the same in every process and every version."""

import hmac

from hypothesis import given
from hypothesis import strategies as st

from batonpass.clock import SystemClock
from batonpass.handoff.secrets import TreeSecrets
from batonpass.model.ids import RunId
from batonpass.store.memory import MemoryStore

ROOT = RunId("run_1")


@given(st.binary(min_size=1, max_size=200), st.lists(st.binary(max_size=80), max_size=4))
def test_a_digest_is_the_keyed_one_of_the_standard_library(secret: bytes, parts: list[bytes]) -> None:
    """Whatever the key's length: calls that were recorded before are recognised by it."""
    secrets = TreeSecrets(MemoryStore(), SystemClock())
    secrets.keep(ROOT, secret)
    message = b"".join(len(part).to_bytes(8) + part for part in parts)

    for _ in range(2):
        assert hmac.digest(secret, message, "sha256").hex() == secrets.digest(ROOT, *parts)
