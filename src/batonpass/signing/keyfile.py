"""One secret key in one file that only its owner can read."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from batonpass.errors import KeyMissingError, KeyRefusedError, StoreFullError, StoreReadOnlyError
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.home import NO_SPACE

_FORMAT = "batonpass-ed25519-v1"
_PRIVATE = 0o600
_LONGEST = 64 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_key(path: Path, label: str, signer: Ed25519Signer) -> bool:
    """Write a key if there is none, durably and readable by its owner alone; return whether it was written."""
    with _private_file(path, _line(label, signer)) as waiting:
        try:
            # A link fails where a rename would replace: of two processes that make a key at once, one wins.
            os.link(waiting, path)
        except FileExistsError:
            return False
    return True


def replace_key(path: Path, label: str, signer: Ed25519Signer) -> None:
    """Put a key in the place of any that is there, durably."""
    write_private(path, _line(label, signer))


def write_private(path: Path, line: str) -> None:
    """Put a secret in the place of any that is there, durably and readable by its owner alone."""
    with _private_file(path, line) as waiting:
        waiting.rename(path)


def _line(label: str, signer: Ed25519Signer) -> str:
    return f"{_FORMAT} {label} {signer.seed.hex()}\n"


@contextmanager
def _private_file(path: Path, line: str) -> Iterator[Path]:
    """Write a key beside its place, for the caller to put there; whatever happens, nothing is left beside it."""
    waiting = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            yield waiting
        finally:
            waiting.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except OSError as error:
        if error.errno in NO_SPACE:
            raise StoreFullError(f"there is no room left for a key at {path}; free some disk") from None
        raise StoreReadOnlyError(
            f"cannot keep a key at {path}: {error.strerror}; make its directory writable"
        ) from None


def read_key(path: Path) -> tuple[str, Ed25519Signer]:
    """Return a key and its label. Raises `KeyMissingError`, or `KeyRefusedError` if others can read it."""
    line = read_private(path)
    try:
        kind, label, seed = line.split()
        secret = bytes.fromhex(seed)
    except ValueError:
        raise KeyRefusedError(f"{path} is not a Batonpass key file") from None
    if kind != _FORMAT:
        raise KeyRefusedError(f"{path} is not a key file of a format that this program knows")
    return label, Ed25519Signer(secret)


def read_private(path: Path) -> str:
    """Return a secret's line.

    Raises `KeyMissingError`, or `KeyRefusedError` if it is somebody else's, if others can read or write it, or if it
    is no text.
    """
    try:
        # Asked of the file that is open, not of its name: between two looks somebody could put another one there.
        with path.open("rb") as file:
            _require_private(path, os.fstat(file.fileno()))
            return file.read(_LONGEST).decode("ascii")
    except FileNotFoundError:
        raise KeyMissingError(f"there is no key at {path}") from None
    except OSError as error:
        raise KeyMissingError(f"cannot read the key at {path}: {error.strerror}") from None
    except ValueError:
        raise KeyRefusedError(f"{path} is not a Batonpass key file") from None


def _require_private(path: Path, status: os.stat_result) -> None:
    # Root could read and replace it anyway. Anybody else who owns it knows the key, or has put their own in its place.
    if status.st_uid not in {0, os.geteuid()}:
        raise KeyRefusedError(
            f"{path} belongs to user {status.st_uid} and we are {os.geteuid()}: whoever owns a key can sign with it; "
            f"run as that user, or `chown {os.geteuid()} {path}` if you know where it is from"
        )
    if status.st_mode & _OTHERS:
        raise KeyRefusedError(
            f"{path} can be read by others, or written; run `chmod 600 {path}`, and make a new key if anybody may have "
            "read it"
        )


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
