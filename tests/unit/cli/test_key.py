"""`batonpass key`: which relays may record."""

import re
from pathlib import Path

import pytest

from batonpass.ledger.note import SealKey
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from tests.unit.cli.desk import Desk


def another_relay(desk: Desk, home: Path) -> Relay:
    """Return a relay with keys of its own on the same ledger."""
    return Relay(open_store(f"sqlite:///{desk.ledger}"), home=home)


def test_keys_are_listed_with_who_we_are(desk: Desk) -> None:
    """The root key comes first; this relay's key is marked, and printed whole for whoever enrols it."""
    header, root, relay, _, own, public, seal = desk.words("key", "list").splitlines()

    assert ["role", "status", "key", "relay"] == header.split()
    assert re.fullmatch(r"root   active  \w{16}  the ledger's", root)
    assert re.fullmatch(r"relay  active  \w{16}  (relay_\w{26})  ← here", relay)
    assert ("this relay", 64) == (own[:10], len(public.split()[-1]))
    assert public.split()[-1] == SealKey.parse(seal.split()[-1]).public_key.hex()


def test_programs_get_whole_keys(desk: Desk) -> None:
    """JSON has every key, and whether this relay may record."""
    answer = desk.answer("key", "list")

    assert (["root", "relay"], True) == ([key["role"] for key in answer["keys"]], answer["here"]["enrolled"])


def test_a_relay_that_is_not_enrolled_is_told_how(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another relay sees the command to run where the root key is; once that ran, it is enrolled."""
    monkeypatch.setenv("BATONPASS_HOME", str(tmp_path / "other"))
    stranger = desk.run("key", "list")
    command = stranger.stderr.splitlines()[-1].split()
    monkeypatch.delenv("BATONPASS_HOME")
    enrolled = desk.run(*command[1:])
    monkeypatch.setenv("BATONPASS_HOME", str(tmp_path / "other"))

    assert (["batonpass", "key", "enroll"], 0) == (command[:3], enrolled.exit_code)
    assert (True, 3) == (desk.answer("key", "list")["here"]["enrolled"], len(desk.answer("key", "list")["keys"]))


@pytest.mark.parametrize(
    ("relay", "key"),
    [
        pytest.param("nobody", "ab" * 32, id="no relay id"),
        pytest.param("relay_01m7ggp9d5esn9rcpxbg36fkjp", "ab", id="no key"),
    ],
)
def test_what_cannot_be_enrolled_is_wrong_usage(desk: Desk, relay: str, key: str) -> None:
    """Arguments that cannot be right are refused before anything is opened."""
    assert 2 == desk.run("key", "enroll", relay, key).exit_code


def test_a_weak_key_is_a_no(desk: Desk) -> None:
    """A key of small order is refused by the ledger, not by usage."""
    done = desk.run("key", "enroll", "relay_01m7ggp9d5esn9rcpxbg36fkjp", "00" * 32)

    assert (1, True) == (done.exit_code, "[key.refused]" in done.stderr)


def test_a_key_is_rotated(desk: Desk) -> None:
    """After a rotation the old key is retired, the new one is ours, and the ledger is whole."""
    done = desk.run("key", "rotate")
    answer = desk.answer("key", "list")

    assert ({"active", "retired"}, True, 0) == (
        {key["status"] for key in answer["keys"]},
        answer["here"]["enrolled"],
        desk.run("ledger", "verify").exit_code,
    )
    assert re.fullmatch(r"this relay signs with key \w{16} from now on\n", done.stderr)


def test_a_key_is_revoked_by_the_end_of_its_relay(desk: Desk, tmp_path: Path) -> None:
    """Whoever knows a few characters of a relay can stop it."""
    with another_relay(desk, tmp_path / "other") as other:
        relay, public_key = other.admin.identity()
    desk.run("key", "enroll", relay, public_key)
    done = desk.run("key", "revoke", relay[-8:], "--reason", "stolen")
    statuses = {key["relay"]: key["status"] for key in desk.answer("key", "list")["keys"]}

    assert (0, "revoked") == (done.exit_code, statuses[relay])
    assert "own key" not in done.stderr


def test_revoking_our_own_key_is_said(desk: Desk) -> None:
    """Nobody locks themselves out without being told, and the key is then shown as not enrolled."""
    own = desk.answer("key", "list")["here"]["relay"]
    done = desk.run("key", "revoke", own[-8:], "--reason", "gone")
    listed = desk.run("key", "list")

    assert ("the relay's own key" in done.stderr, False) == (True, desk.answer("key", "list")["here"]["enrolled"])
    assert "this key is not enrolled here" in listed.stderr


def test_the_root_key_is_not_revoked(desk: Desk) -> None:
    """Only a relay's key can be revoked."""
    root = desk.answer("key", "list")["keys"][0]["id"]

    assert 1 == desk.run("key", "revoke", root[:8], "--reason", "no").exit_code


def test_a_key_file_that_others_can_read_is_not_used(desk: Desk) -> None:
    """The list is printed all the same, without this relay."""
    (desk.ledger.parent / "relay.key").chmod(0o644)
    done = desk.run("key", "list")

    assert (0, 3) == (done.exit_code, len(done.stdout.splitlines()))
    assert desk.answer("key", "list")["here"] is None
