"""Whose word counts: keys on the default branch as it was fetched, and the reader's own."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from batonpass.model.base.ids import PublicKey
from batonpass.notes.call_proof import write_key_proof
from batonpass.notes.note_store import NoteRepository
from batonpass.notes.trusted_keys import (
    KEYS_FILE,
    EnrolledKeys,
    default_branch,
    find_trusted,
    judge_key,
    parse_keys,
    read_enrolment,
)
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.factory import MEMORY, open_store
from batonpass.testing.builders import Scribe, a_scribe
from tests.attribution.repository import ENVIRONMENT, git

AT = datetime(2026, 6, 1, tzinfo=UTC)
KEY = Ed25519Signer.generate().public_key


def a_file(more: str = "", *, key: PublicKey = KEY, table: str = "relay") -> bytes:
    return f'[[{table}]]\nowner = "user:ana"\nkey = "{key}"\n{more}\n'.encode()


@pytest.fixture
def scribe() -> Scribe:
    return a_scribe(open_store(MEMORY))


def enrolment(scribe: Scribe, *roots: PublicKey) -> EnrolledKeys:
    """Return what these roots are found to have enrolled in a ledger."""
    with scribe.store.view() as view:
        return read_enrolment(write_key_proof(view), roots)


def test_a_key_counts_for_its_owner() -> None:
    """A key that the file names speaks for the owner that it names."""
    trusted = parse_keys(a_file(), "here")

    assert ("user:ana", True) == (
        judge_key(trusted, KEY, AT, EnrolledKeys()).owner,
        judge_key(trusted, KEY, AT, EnrolledKeys()).counts,
    )
    assert not judge_key(trusted, Ed25519Signer.generate().public_key, AT, EnrolledKeys()).counts


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ("since = 2026-05-01", True),
        ("since = 2026-07-01", False),
        ("until = 2026-07-01T00:00:00Z", True),
        ("until = 2026-05-01T00:00:00", False),
        ('revoked = "stolen"', False),
    ],
)
def test_a_key_counts_for_its_time(more: str, *, counts: bool) -> None:
    """Validity is that of the time which the record names; a revoked key is never believed about the time."""
    verdict = judge_key(parse_keys(a_file(more), "here"), KEY, AT, EnrolledKeys())

    assert counts == verdict.counts
    assert counts == (verdict.problem is None)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"relay = 1",
        b"[relay]\nkey = 'x'",
        b"[[relay]]\nkey = 1",
        b"[[relay]]\nowner = 'ana'",
        b"[[boss]]",
        a_file("until = 3"),
        a_file("revoked = true"),
        a_file("colour = 'red'"),
        a_file(key=PublicKey("00" * 32)),
        a_file(key=PublicKey("zz")),
        b"#" * (1024 * 1024 + 1),
    ],
    ids=[
        *("not UTF-8", "a number", "one table", "a key that is a number", "no key", "another table"),
        *("a time that is none", "no reason", "another field", "a weak key", "no key at all", "too long"),
    ],
)
def test_a_file_with_a_mistake_names_nobody(data: bytes) -> None:
    """Half of a list may lack the revocations, so none of it counts, and the answer says so."""
    found = parse_keys(a_file() + data if data[:1] == b"[" else data, "here")

    assert ((), 1) == (found.relays, len(found.problems))


def test_a_root_key_speaks_for_the_relays_that_it_enrolled(scribe: Scribe) -> None:
    """Whoever pins the root of a ledger believes its relays, also after a rotation, and others' relays not."""
    relay, root = scribe.identity.signer.public_key, scribe.root.public_key
    trusted = parse_keys(a_file(key=root), "here")
    other = a_scribe(open_store(MEMORY))

    assert "user:ana" == judge_key(trusted, relay, AT, enrolment(scribe, root)).owner
    assert not judge_key(trusted, relay, AT, EnrolledKeys()).counts
    assert not judge_key(trusted, other.identity.signer.public_key, AT, enrolment(other, root)).counts


def test_a_relay_that_its_ledger_revoked_does_not_count(scribe: Scribe) -> None:
    """A revocation by the root counts wherever it is read."""
    relay, root = scribe.identity.signer.public_key, scribe.root.public_key
    scribe.enrolment.revoke(scribe.identity.id, relay, reason="stolen", root=scribe.root)

    verdict = judge_key(parse_keys(a_file(key=root), "here"), relay, AT, enrolment(scribe, root))

    assert (False, True) == (verdict.counts, "revoked" in (verdict.problem or ""))


def test_an_enrolment_that_somebody_made_up_is_none(scribe: Scribe) -> None:
    """A line with another signature, or that is no receipt, enrols nobody."""
    with scribe.store.view() as view:
        lines = write_key_proof(view)
    forged = [line.replace('"sig":"', '"sig":"A') for line in lines] + [
        "",
        "{",
        '{"dsse":1}',
        '{"dsse":{}}',
        '{"dsse":' + "[" * 9999,
    ]

    assert {} == read_enrolment(forged, [scribe.root.public_key]).enrolled


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone whose remote has a key on its default branch."""
    root = tmp_path / "one"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / KEYS_FILE).write_bytes(a_file())
    commit(root, "keys")
    git(tmp_path, "clone", "--quiet", str(root), str(tmp_path / "clone"))
    return tmp_path / "clone"


def commit(root: Path, message: str) -> None:
    git(root, "add", "--all")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", f"--message={message}")


def keys(root: Path, home: Path | None = None) -> list[str]:
    environment = {**ENVIRONMENT, **({} if home is None else {"XDG_CONFIG_HOME": str(home)})}
    return [str(one.key) for one in find_trusted(NoteRepository(root, environment)).relays]


def test_keys_come_from_the_default_branch_as_fetched(clone: Path) -> None:
    """A key in the work tree, in a commit here or on another branch counts for nothing."""
    stranger = Ed25519Signer.generate().public_key
    (clone / KEYS_FILE).write_bytes(a_file(key=stranger))
    before = keys(clone)
    commit(clone, "let me in")

    assert [[KEY], [KEY]] == [before, keys(clone)]


def test_keys_of_another_remote_do_not_count(clone: Path, tmp_path: Path) -> None:
    """With several remotes only origin is meant: the other may be anybody's fork."""
    git(clone, "remote", "rename", "origin", "upstream")
    assert [KEY] == keys(clone)
    git(clone, "remote", "add", "eve", str(tmp_path / "one"))
    git(clone, "fetch", "--quiet", "eve")

    assert [] == keys(clone)
    assert default_branch(NoteRepository(tmp_path / "nowhere", ENVIRONMENT)) is None


def test_the_readers_own_file_counts(clone: Path, tmp_path: Path) -> None:
    """Somebody may trust keys that the project does not name."""
    own = Ed25519Signer.generate().public_key
    (tmp_path / "home" / "batonpass").mkdir(parents=True)
    (tmp_path / "home" / "batonpass" / "keys.toml").write_bytes(a_file(key=own))

    assert {KEY, own} == set(keys(clone, tmp_path / "home"))
