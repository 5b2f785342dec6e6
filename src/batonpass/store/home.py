"""The home directory beside a ledger, for locks, keys and large bodies. It is its owner's alone, and git ignores it."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from batonpass.errors import StoreFullError, StoreReadOnlyError

HOME_NAME: Final = ".batonpass"
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def home_of(path: Path) -> Path:
    """Return the home directory of a ledger file."""
    return path.parent if path.parent.name == HOME_NAME else path.with_name(f"{path.name}{HOME_NAME}")


def find_intruders(home: Path) -> str | None:
    """Return a sentence about who else can replace the files in a home directory; None if nobody can.

    This is about the directory alone: the permissions of key files are checked where keys are read. A user who can
    write in the directory cannot read a key, but can remove it, or put another ledger in its place.
    """
    try:
        status = home.stat()
    except OSError:
        return None  # it does not exist yet, or cannot be seen: opening it will report that
    if status.st_uid not in {0, os.geteuid()}:
        return f"{home} belongs to user {status.st_uid}, who can replace what is in it"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"{home} can be written by others, who can replace what is in it; run `chmod 700 {home}`"
    return None


def prepare_home(home: Path) -> None:
    """Create a home directory that only its owner can enter and that git ignores, unless it exists.

    Raises `StoreFullError` or `StoreReadOnlyError`.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
    except OSError as error:
        if error.errno in NO_SPACE:
            raise StoreFullError(f"there is no room left to make {home}; free some disk") from None
        raise StoreReadOnlyError(f"cannot make {home}: {error.strerror}; choose a place that can be written") from None
