"""The directory beside a ledger: locks, keys, large bodies. Its owner's alone, and invisible to git."""

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
    """Return the directory for what lies beside a ledger's file."""
    return path.parent if path.parent.name == HOME_NAME else path.with_name(f"{path.name}{HOME_NAME}")


def find_intruders(home: Path) -> str | None:
    """Return in words who besides us can put something else in the place of a ledger and its keys; None if nobody.

    Key files are refused for what they are. This is about the directory: whoever can write there cannot read a key,
    and can take it away, or put another ledger there.
    """
    try:
        status = home.stat()
    except OSError:
        return None  # nothing is there yet, or it cannot be seen: whoever opens it will be told
    if status.st_uid not in {0, os.geteuid()}:
        return f"{home} belongs to user {status.st_uid}, who can replace what is in it"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"{home} can be written by others, who can replace what is in it; run `chmod 700 {home}`"
    return None


def prepare_home(home: Path) -> None:
    """Make a home directory that only its owner can enter and that git does not see."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
    except OSError as error:
        if error.errno in NO_SPACE:
            raise StoreFullError(f"there is no room left to make {home}; free some disk") from None
        raise StoreReadOnlyError(f"cannot make {home}: {error.strerror}; choose a place that can be written") from None
