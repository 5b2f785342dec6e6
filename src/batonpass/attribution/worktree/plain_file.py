"""Opens plain files where agents write too. A pipe under the name is refused at once, and nothing stays open."""

import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Final

_HARMLESS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NotPlainFileError(OSError):
    """There is something under this name that is no plain file, such as a directory or a pipe."""


def open_plain(path: Path | str, *, follows: bool = True, within: int | None = None) -> BufferedReader:
    """Open a plain file to read its bytes. Raises `OSError` for anything else, and without `follows` for a link.

    A pipe without a writer would keep us waiting. `within` is an open directory in which the name is looked up.
    """
    opened = os.open(path, _HARMLESS if follows else _HARMLESS | os.O_NOFOLLOW, dir_fd=within)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        # The system opens a directory like a file. Python would refuse it only later, and leave it open.
        os.close(opened)
        raise NotPlainFileError(f"{path} is not a plain file")
    return os.fdopen(opened, "rb")
