"""Secret keys in files: one key in each, which only its owner can read."""

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
    """Write a key if the file does not exist yet; return whether it was written.

    It is durable, and only its owner can read it. Raises `StoreFullError` and `StoreReadOnlyError`.
    """
    with _private_file(path, _line(label, signer)) as waiting:
        try:
            # `link` fails if the file exists, and `rename` would replace it. If two processes make a key at once, one
            # wins.
            os.link(waiting, path)
        except FileExistsError:
            return False
    return True


def replace_key(path: Path, label: str, signer: Ed25519Signer) -> None:
    """Write a key durably, in place of any key in that file."""
    write_private(path, _line(label, signer))


def write_private(path: Path, line: str) -> None:
    """Write a secret durably, in place of any in that file. Only its owner can read it."""
    with _private_file(path, line) as waiting:
        waiting.rename(path)


def _line(label: str, signer: Ed25519Signer) -> str:
    return f"{_FORMAT} {label} {signer.seed.hex()}\n"


@contextmanager
def _private_file(path: Path, line: str) -> Iterator[Path]:
    """Write a secret to a temporary file beside its path, for the caller to move. No temporary file is left."""
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
    """Return a key and its label. Raises `KeyMissingError`.

    Raises `KeyRefusedError` if the file is not a key file of a known format, and as `read_private` does.
    """
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
    """Return the line of a secret file.

    Raises `KeyMissingError`. Raises `KeyRefusedError` if the file belongs to somebody else, if others can read or write
    it, or if it is not text.
    """
    try:
        # The open file is checked, not its path: somebody could exchange the file between the check and the read.
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
    # Root can read and replace every file anyway. Any other owner knows the key, or may have put their own in its
    # place.
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
