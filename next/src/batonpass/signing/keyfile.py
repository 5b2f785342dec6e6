"""Files that keep a secret: made whole or not at all, by one of the processes that need it, for their owner only."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from batonpass.errors import StoreError
from batonpass.signing.keys import SEED_BYTES


def read_or_make_secret(path: Path, entropy: Callable[[int], bytes]) -> bytes:
    """Return the secret in a file, made if there is none. Raises `StoreError` if the file is not fit to keep it."""
    with suppress(FileNotFoundError):
        return read_secret(path)
    # Written whole, then linked: of two processes that open a new ledger one makes the key, and the other never reads
    # half of it.
    draft = path.with_name(f".{path.name}.{os.getpid()}.{entropy(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, entropy(SEED_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
    return read_secret(path)


def read_secret(path: Path) -> bytes:
    """Return the secret in a file. Raises `FileNotFoundError`, and `StoreError` if others may read it or it is cut."""
    # The open file is judged, not its name: between the two another file could come to stand there.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be read as a key: {error}", code="store.key") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077 or status.st_uid != os.getuid():
            detail = f"{path} is not a file that only you can read: `chmod 600` it, if you trust what is in it"
            raise StoreError(detail, code="store.key")
        secret = os.read(descriptor, SEED_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(secret) != SEED_BYTES:
        raise StoreError(f"{path} holds {len(secret)} bytes, and a key has {SEED_BYTES}", code="store.key")
    return secret
