"""Files that keep a secret: one maker, whole, for one owner."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from batonpass.errors import StoreError
from batonpass.signing.keyfile import read_or_make_secret, read_secret

MAKE = """
import os, sys
from pathlib import Path
from batonpass.signing.keyfile import read_or_make_secret
sys.stdin.read(1)
print(read_or_make_secret(Path(sys.argv[1]), os.urandom).hex())
"""


@pytest.mark.parity("key-file-is-made-by-link")
def test_of_many_processes_one_makes_the_secret(tmp_path: Path) -> None:
    """Processes that need a key at once all get the same one, whole, and leave nothing else behind."""
    path = tmp_path / "keys" / "relay.key"
    path.parent.mkdir()
    processes = [
        subprocess.Popen([sys.executable, "-c", MAKE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write(b"x")
        process.stdin.flush()

    secrets = {process.communicate()[0].decode().strip() for process in processes}

    assert {path.read_bytes().hex()} == secrets
    assert [path] == list(path.parent.iterdir())


def test_a_secret_is_made_once_for_its_owner(tmp_path: Path) -> None:
    """The file has 32 bytes that only its owner reads, and is never written again."""
    path = tmp_path / "relay.key"

    first = read_or_make_secret(path, os.urandom)

    assert (32, 0o600) == (len(first), stat.S_IMODE(path.stat().st_mode))
    assert first == read_or_make_secret(path, bytes)


def readable_by_others(path: Path) -> None:
    path.write_bytes(bytes(32))
    path.chmod(0o640)


def a_link(path: Path) -> None:
    path.with_name("real").write_bytes(bytes(32))
    path.with_name("real").chmod(0o600)
    path.symlink_to(path.with_name("real"))


def cut(path: Path) -> None:
    path.write_bytes(bytes(31))
    path.chmod(0o600)


def too_long(path: Path) -> None:
    path.write_bytes(bytes(33))
    path.chmod(0o600)


@pytest.mark.parametrize("make", [readable_by_others, a_link, cut, too_long, Path.mkdir])
def test_a_file_that_is_not_fit_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Others may have read it, it may be another file, or it is no whole key: it is neither used nor replaced."""
    path = tmp_path / "relay.key"
    make(path)
    before = path.lstat()

    with pytest.raises(StoreError) as refusal:
        read_or_make_secret(path, os.urandom)

    assert "store.key" == refusal.value.code
    assert before.st_ino == path.lstat().st_ino


def test_a_secret_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    """Reading alone makes nothing."""
    with pytest.raises(FileNotFoundError):
        read_secret(tmp_path / "relay.key")

    assert not (tmp_path / "relay.key").exists()
