"""The directory beside a ledger: locks, keys, large bodies. Its owner's alone, and invisible to git."""

import errno
from pathlib import Path
from typing import Final

from batonpass.errors import StoreFullError, StoreReadOnlyError

HOME_NAME: Final = ".batonpass"
NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def home_of(path: Path) -> Path:
    """Return the directory for what lies beside a ledger's file."""
    return path.parent if path.parent.name == HOME_NAME else path.with_name(f"{path.name}{HOME_NAME}")


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
