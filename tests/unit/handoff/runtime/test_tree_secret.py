"""A tree's secret: equal things are comparable in signed bytes, and nobody else can guess them."""

import hmac

from hypothesis import given
from hypothesis import strategies as st

from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.runtime.tree_secret import SECRET, TreeSecrets, _Keyed
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay, desk_of, recording_of
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, Places, receipts


def test_two_processes_compute_the_same_digest(places: Places) -> None:
    """A process that did not start a tree reads its secret from the root's first receipt."""
    first, second = places.relay(), places.relay()
    root = first.start("begin", by=ANA).id

    assert desk_of(first).secrets.digest(root, b"a", b"b") == desk_of(second).secrets.digest(root, b"a", b"b")


def test_every_tree_has_a_secret_of_its_own(relay: Relay) -> None:
    """The same words in two trees have different digests."""
    one, other = relay.start("begin", by=ANA).id, relay.start("begin", by=ANA).id

    assert desk_of(relay).secrets.digest(one, b"guess") != desk_of(relay).secrets.digest(other, b"guess")


def test_parts_cannot_be_shifted(lead: LiveRun, relay: Relay) -> None:
    """Where one part ends and the next begins is part of what is digested."""
    digest = desk_of(relay).secrets.digest

    assert 4 == len(
        {digest(lead.id, b"ab", b"c"), digest(lead.id, b"a", b"bc"), digest(lead.id, b"abc"), digest(lead.id)}
    )


def test_an_erased_secret_confirms_no_guess(places: Places) -> None:
    """Once the secret is erased, a new process computes digests that match nothing that was signed."""
    first = places.relay()
    root = first.start("begin", by=ANA).id
    before = desk_of(first).secrets.digest(root, b"guess")
    first.admin.erase([receipts(first, "run.started")[0].content[SECRET].id], by=ANA, reason="forget it")

    assert before != desk_of(places.relay()).secrets.digest(root, b"guess")


def test_only_so_many_secrets_are_kept_in_memory(relay: Relay) -> None:
    """The oldest secrets are forgotten first, and read again when they are needed."""
    secrets = TreeSecrets(relay.store, FrozenClock())
    for number in range(5000):
        secrets.keep(RunId(f"run_{number}"), b"secret")

    assert 4096 == len(secrets._known)
    assert RunId("run_0") not in secrets._known


def test_a_run_that_never_had_a_secret_is_no_obstacle(relay: Relay) -> None:
    """A run that was recorded without a secret gets one that lasts as long as the process."""
    run = recording_of(relay).start("begin", agent="lead", by=ANA).run.id

    assert desk_of(relay).secrets.digest(run, b"a") == desk_of(relay).secrets.digest(run, b"a")


@given(st.binary(max_size=130), st.lists(st.binary(max_size=200), max_size=3))
def test_digests_are_those_of_hmac(key: bytes, parts: list[bytes]) -> None:
    """Whoever has the key and the parts gets the same digest from any other implementation of HMAC."""
    message = b"".join(len(part).to_bytes(8) + part for part in parts)

    assert hmac.digest(key, message, "sha256").hex() == _Keyed(key).digest(tuple(parts))
