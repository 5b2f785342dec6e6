"""The key of somebody who approves, at rest: only the passphrase opens it, and nobody is fooled by its file."""

import stat
from pathlib import Path

import pytest
from nacl.pwhash import argon2id

from batonpass.errors import InvalidValueError, KeyMissingError, KeyRefusedError
from batonpass.model.base.ids import KeyId, PrincipalId
from batonpass.signing.approver_key import (
    ApproverFile,
    Cost,
    find_approver,
    find_approvers,
    make_approver,
    path_of,
    read_approver,
)

ANA = PrincipalId("user:ana")
BEN = PrincipalId("user:ben")
PASSPHRASE = "correct horse"
CHEAP = Cost(passes=argon2id.OPSLIMIT_MIN, memory=argon2id.MEMLIMIT_MIN)


@pytest.fixture
def made(tmp_path: Path) -> ApproverFile:
    """Return a key that was just made, and is cheap to open."""
    return make_approver(tmp_path / "approvers", ANA, PASSPHRASE, cost=CHEAP)


def words(file: ApproverFile) -> list[str]:
    """Return what stands in a file."""
    return file.path.read_text(encoding="ascii").split()


def test_a_key_is_opened_by_its_passphrase(made: ApproverFile) -> None:
    """What comes out signs under the public half that the file names; the file is its owner's alone."""
    approver = read_approver(made.path).unlock(PASSPHRASE)

    assert (ANA, made.public_key, made.key) == (approver.principal, approver.signer.public_key, approver.signer.key)
    assert (0o600, 0o700) == tuple(stat.S_IMODE(path.stat().st_mode) for path in (made.path, made.path.parent))


@pytest.mark.parametrize("typed", ["", "Correct horse", f"{PASSPHRASE} ", "\udcff" * 8, "x" * 10_000])
def test_any_other_passphrase_opens_nothing(made: ApproverFile, typed: str) -> None:
    """Whatever is typed, the answer is a sentence."""
    with pytest.raises(KeyRefusedError, match="does not open"):
        made.unlock(typed)


def test_a_passphrase_has_a_least_length(tmp_path: Path) -> None:
    """A short one makes no file."""
    with pytest.raises(KeyRefusedError, match="at least 8 characters"):
        make_approver(tmp_path, ANA, "1234567", cost=CHEAP)

    assert [] == list(tmp_path.iterdir())


def test_the_secret_is_not_in_the_file(made: ApproverFile) -> None:
    """Neither the passphrase nor the seed can be read there, nor in what is printed of it."""
    seed = made.unlock(PASSPHRASE).signer.seed.hex()  # type: ignore[attr-defined]

    assert (False, False) == (seed in made.path.read_text(), PASSPHRASE in made.path.read_text())
    assert made.sealed.hex() not in repr(made)


def test_guessing_costs_what_the_header_says(tmp_path: Path) -> None:
    """By default as much as libsodium calls moderate; each file has a salt of its own."""
    one, two = (make_approver(tmp_path, ANA, PASSPHRASE, cost=CHEAP) for _ in range(2))

    assert (argon2id.OPSLIMIT_MODERATE, argon2id.MEMLIMIT_MODERATE) == (Cost().passes, Cost().memory)
    assert ["batonpass-approver-v1", ANA, one.public_key, "argon2id", "1", "8192"] == words(one)[:6]
    assert one.salt != two.salt


@pytest.mark.parametrize(
    ("place", "word"),
    [
        pytest.param(0, "batonpass-approver-v2", id="a later format"),
        pytest.param(1, "ana", id="no principal"),
        pytest.param(2, "ab", id="no public key"),
        pytest.param(3, "scrypt", id="another derivation"),
        pytest.param(4, "many", id="no number"),
        pytest.param(4, "0", id="no passes"),
        pytest.param(5, str(2**40), id="more memory than anybody has"),
        pytest.param(6, "xyz", id="no salt"),
        pytest.param(7, "xyz", id="nothing sealed"),
    ],
)
def test_a_header_that_is_wrong_is_refused(made: ApproverFile, place: int, word: str) -> None:
    """Before anything is derived: a file that somebody prepared must not take all memory."""
    edited = words(made)
    edited[place] = word
    made.path.write_text(" ".join(edited), encoding="ascii")

    with pytest.raises(KeyRefusedError):
        read_approver(made.path)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        pytest.param(6, lambda word: word[:-2], id="a shorter salt"),
        pytest.param(7, lambda word: word[:-2], id="a shorter secret"),
        pytest.param(7, lambda word: f"{int(word[0], 16) ^ 1:x}{word[1:]}", id="a flipped bit"),
        pytest.param(4, lambda _: "2", id="other passes"),
    ],
)
def test_a_file_that_was_changed_opens_nothing(made: ApproverFile, place: int, change: object) -> None:
    """The right passphrase does not open it any more."""
    edited = words(made)
    edited[place] = change(edited[place])  # type: ignore[operator]
    made.path.write_text(" ".join(edited), encoding="ascii")

    with pytest.raises(KeyRefusedError):
        read_approver(made.path).unlock(PASSPHRASE)


def test_a_file_that_names_another_key_is_found_out(made: ApproverFile, tmp_path: Path) -> None:
    """The secret decides which key it is, and the header does not."""
    other = make_approver(tmp_path / "others", ANA, PASSPHRASE, cost=CHEAP)
    edited = words(made)
    edited[2] = other.public_key
    made.path.write_text(" ".join(edited), encoding="ascii")

    with pytest.raises(KeyRefusedError, match="another key than it says"):
        read_approver(made.path).unlock(PASSPHRASE)


def test_a_key_is_found_by_its_id_or_its_person(tmp_path: Path) -> None:
    """Files of others, and files that are none, are passed over."""
    mine = make_approver(tmp_path, ANA, PASSPHRASE, cost=CHEAP)
    theirs = make_approver(tmp_path, BEN, PASSPHRASE, cost=CHEAP)
    (tmp_path / "note.key").write_text("no key", encoding="ascii")
    (tmp_path / "note.key").chmod(0o600)

    assert ([mine], [theirs]) == (list(find_approvers(tmp_path, ANA)), list(find_approvers(tmp_path, BEN)))
    assert (mine, None) == (find_approver(tmp_path, mine.key), find_approver(tmp_path, KeyId("00" * 32)))
    assert [] == list(find_approvers(tmp_path / "nowhere", ANA))


def test_a_file_that_others_can_read_is_not_used(made: ApproverFile) -> None:
    """A copy may exist, and somebody may be guessing."""
    made.path.chmod(0o640)

    with pytest.raises(KeyRefusedError, match="can be read by others"):
        find_approver(made.path.parent, made.key)
    assert [] == list(find_approvers(made.path.parent, ANA))


def test_a_file_under_the_name_of_another_key_is_not_taken_for_it(made: ApproverFile) -> None:
    """The name only says where to look."""
    wanted = KeyId("ab" * 32)
    made.path.rename(path_of(made.path.parent, wanted))

    assert None is find_approver(made.path.parent, wanted)
    with pytest.raises(KeyMissingError):
        read_approver(made.path)


def test_nobody_makes_a_key_for_what_is_no_principal(tmp_path: Path) -> None:
    """A name alone is none."""
    with pytest.raises(InvalidValueError):
        make_approver(tmp_path, PrincipalId("ana"), PASSPHRASE, cost=CHEAP)
