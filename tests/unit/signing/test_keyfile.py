"""A secret in a file: its owner's alone, durable, never replaced by accident."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.errors import KeyMissingError, KeyRefusedError, StoreFullError, StoreReadOnlyError
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyfile import read_key, replace_key, write_key

SIGNER = Ed25519Signer(b"k" * 32)
OTHER = Ed25519Signer(b"o" * 32)
GOOD = f"batonpass-ed25519-v1 label {SIGNER.seed.hex()}\n"


@pytest.fixture
def loose_umask() -> Iterator[None]:
    """Let every file be made as open as its maker asks for."""
    before = os.umask(0)
    yield
    os.umask(before)


def a_key_file(directory: Path, text: str | bytes = GOOD, *, mode: int = 0o600) -> Path:
    path = directory / "relay.key"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("loose_umask")
def test_a_key_is_its_owners_alone(tmp_path: Path) -> None:
    """File and directory are private, whatever the umask says, and nothing else is left lying there."""
    path = tmp_path / "home" / "relay.key"

    assert write_key(path, "label", SIGNER)
    assert (0o600, 0o700) == (mode_of(path), mode_of(path.parent))
    assert [path] == list(path.parent.iterdir())


def test_a_key_comes_back_with_its_label(tmp_path: Path) -> None:
    """What is written is read."""
    write_key(tmp_path / "relay.key", "label", SIGNER)
    label, signer = read_key(tmp_path / "relay.key")

    assert ("label", SIGNER.seed) == (label, signer.seed)


def test_a_key_that_is_there_is_kept(tmp_path: Path) -> None:
    """Writing over a key writes nothing, says so, and leaves nothing behind."""
    path = tmp_path / "relay.key"
    write_key(path, "label", SIGNER)

    assert not write_key(path, "other", OTHER)
    assert ("label", SIGNER.seed) == (read_key(path)[0], read_key(path)[1].seed)
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.usefixtures("loose_umask")
def test_a_key_is_replaced_on_purpose(tmp_path: Path) -> None:
    """Replacing puts the other key there, as private as the first, and nothing beside it."""
    path = tmp_path / "relay.key"
    write_key(path, "label", SIGNER)
    replace_key(path, "other", OTHER)

    assert ("other", OTHER.seed) == (read_key(path)[0], read_key(path)[1].seed)
    assert 0o600 == mode_of(path)
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("bit", [0o040, 0o020, 0o010, 0o004, 0o002, 0o001], ids="mode {:04o}".format)
def test_a_key_that_others_can_touch_is_refused(tmp_path: Path, bit: int) -> None:
    """Any right for group or others makes a key unusable; the error says what to run."""
    path = a_key_file(tmp_path, mode=0o600 | bit)

    with pytest.raises(KeyRefusedError, match=f"chmod 600 {path}"):
        read_key(path)


def test_a_key_may_be_read_only(tmp_path: Path) -> None:
    """A key that even its owner cannot write is good."""
    assert SIGNER.seed == read_key(a_key_file(tmp_path, mode=0o400))[1].seed


def test_a_missing_key_is_missing(tmp_path: Path) -> None:
    """No file is no key, and the error names the place."""
    with pytest.raises(KeyMissingError, match=f"{tmp_path}/relay.key$"):
        read_key(tmp_path / "relay.key")


def test_a_directory_is_no_key(tmp_path: Path) -> None:
    """Something else in a key's place is said to be unreadable."""
    (tmp_path / "relay.key").mkdir(mode=0o700)

    with pytest.raises(KeyMissingError, match="directory"):
        read_key(tmp_path / "relay.key")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param("batonpass-ed25519-v1 label\n", id="no seed"),
        pytest.param(f"{GOOD} more", id="a word too many"),
        pytest.param(GOOD.replace("v1", "v2"), id="another format"),
        pytest.param(GOOD.replace("6b", "xy"), id="a seed that is not hexadecimal"),
        pytest.param(GOOD[:-3], id="a seed that was cut"),
        pytest.param(f"batonpass-ed25519-v1 label {'6b' * 31}\n", id="a seed of 31 bytes"),
        pytest.param("batonpass-ed25519-v1 lábel 00\n", id="letters outside ASCII"),
        pytest.param(os.urandom(97) + b"\xff", id="noise"),
    ],
)
def test_what_is_not_a_key_file_is_refused(tmp_path: Path, text: str | bytes) -> None:
    """A file that is damaged or something else is refused, without showing what is in it."""
    with pytest.raises(KeyRefusedError) as refused:
        read_key(a_key_file(tmp_path, text))

    assert SIGNER.seed.hex()[:20] not in str(refused.value)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Where no file can be made, one sentence says where and why."""
    (tmp_path / "home").write_text("a file in the directory's place")

    with pytest.raises(StoreReadOnlyError, match=f"{tmp_path}/home/sub/relay.key: Not a directory"):
        write_key(tmp_path / "home" / "sub" / "relay.key", "label", SIGNER)


def test_a_failed_write_leaves_no_secret_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk fails while a key is written, neither the key nor a part of it stays."""

    def fail(descriptor: int) -> None:
        raise OSError(28, f"No space left on device for {descriptor}")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreFullError):
        write_key(tmp_path / "relay.key", "label", SIGNER)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666, 0o777, 0o610])
def test_a_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever can read a key can sign with it, and whoever can write it decides which key it is."""
    path = tmp_path / "relay.key"
    write_key(path, "root", Ed25519Signer.generate())
    path.chmod(mode)

    with pytest.raises(KeyRefusedError, match=f"chmod 600 {path}"):
        read_key(path)


def test_a_key_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who may write to the directory can put a key of their own there, readable by themselves alone."""
    path = tmp_path / "relay.key"
    write_key(path, "root", Ed25519Signer.generate())
    os.chown(path, 12345, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with pytest.raises(KeyRefusedError, match="belongs to user"):
        read_key(path)


def test_a_key_behind_a_link_is_judged_by_the_file_itself(tmp_path: Path) -> None:
    """A link has no permissions of its own that would mean anything."""
    path, link = tmp_path / "open.key", tmp_path / "relay.key"
    write_key(path, "root", Ed25519Signer.generate())
    path.chmod(0o644)
    link.symlink_to(path)

    with pytest.raises(KeyRefusedError, match="chmod 600"):
        read_key(link)
