"""Whose keys prove what they decided, from the command line; the terminal itself is tried in the integration tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from nacl.pwhash import argon2id

from batonpass.cli import approver as noun
from batonpass.relay import Relay
from batonpass.signing import approver_key as signing
from batonpass.signing.ed25519 import Ed25519Signer
from tests.unit.cli.desk import Desk

GOOD = "correct horse"
CHEAP = signing.Cost(passes=argon2id.OPSLIMIT_MIN, memory=argon2id.MEMLIMIT_MIN)


@pytest.fixture(autouse=True)
def typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return what a person will type, one passphrase after the other; keys are cheap to open."""
    answers: list[str] = []
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(noun, "is_person", lambda: True)
    monkeypatch.setattr(signing, "MODERATE", CHEAP)
    monkeypatch.setattr("getpass.getpass", lambda _: answers.pop(0))
    return answers


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


def test_nobody_is_enrolled_at_first(desk: Desk) -> None:
    """The list says so, and what to do."""
    done = desk.run("approver", "list")

    assert (0, "", True) == (done.exit_code, done.stdout, "batonpass approver add NAME" in done.stderr)


def test_a_key_is_added_listed_and_revoked(desk: Desk, typed: list[str], tmp_path: Path) -> None:
    """A bare name is a user's; a revoked key is listed as such, and another can be added."""
    typed += [GOOD] * 4
    added = desk.run("approver", "add", "ana")
    listed = desk.words("approver", "list").splitlines()[1].split()
    revoked = desk.run("approver", "revoke", "user:ana", "--reason", "lost")
    again = desk.run("approver", "add", "user:ana")

    assert [0, 0, 0] == [done.exit_code for done in (added, revoked, again)]
    assert ["user:ana", "active", "← here"] == [*listed[:2], " ".join(listed[3:])]
    assert ["active", "revoked"] == sorted(each["status"] for each in desk.answer("approver", "list"))
    assert 2 == len(list((tmp_path / "config/batonpass/approvers").iterdir()))
    assert ["approver", "user:ana"] == desk.words("key", "list").splitlines()[3].split()[:4:3]


def test_a_second_key_is_refused_before_anybody_types(desk: Desk, typed: list[str]) -> None:
    """The sentence says how to revoke the first."""
    typed += [GOOD] * 2
    desk.run("approver", "add", "ana")
    again = desk.run("approver", "add", "ana")

    assert (1, True) == (again.exit_code, "batonpass approver revoke user:ana" in again.stderr)


def test_a_key_of_this_machine_is_enrolled_in_another_ledger(desk: Desk, typed: list[str], tmp_path: Path) -> None:
    """One passphrase for one person: it is asked for once, and no second key is made."""
    typed += [GOOD] * 3
    desk.run("approver", "add", "ana")
    (tmp_path / "other").mkdir()
    other = Desk(tmp_path / "other")
    with other.relay() as relay:
        relay.start("Other", by="user:ana").close()
    done = other.run("approver", "add", "ana")

    assert (0, []) == (done.exit_code, typed)
    assert desk.answer("approver", "list")[0]["id"] == other.answer("approver", "list")[0]["id"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["add", "agent:editor"], 2, id="an agent"),
        pytest.param(["add", "two words"], 2, id="no name"),
        pytest.param(["enroll", "ana", "ab"], 2, id="no public key"),
        pytest.param(["enroll", "ana", "00" * 32], 1, id="a key of small order"),
        pytest.param(["revoke", "ana", "--reason", "lost"], 1, id="nothing to revoke"),
        pytest.param(["revoke", "ana"], 2, id="no reason"),
    ],
)
def test_what_cannot_be_is_refused(desk: Desk, arguments: list[str], code: int) -> None:
    """With the exit code of what is wrong, and nothing enrolled."""
    assert (code, []) == (desk.run("approver", *arguments).exit_code, desk.answer("approver", "list"))


def test_a_key_from_elsewhere_is_enrolled_by_its_public_half(desk: Desk) -> None:
    """Whoever has the root key does it; the key does not lie here, and the list does not say that it does."""
    signer = Ed25519Signer.generate()
    done = desk.run("approver", "enroll", "ana", signer.public_key)
    (listed,) = desk.answer("approver", "list")

    assert (0, signer.key, False) == (done.exit_code, listed["id"], listed["here"])
