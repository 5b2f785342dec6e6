"""Where tests keep their files: in memory, where there is room for them."""

import os
from contextlib import suppress
from shutil import disk_usage
from typing import Final

_MEMORY: Final = "/dev/shm"  # noqa: S108 - whoever uses it makes a directory of its own there
_ROOM_BYTES: Final = 4 << 30


def roomy_memory() -> str | None:
    """Return a directory in memory; None if it is not there, is small, or takes no programs, which tests write too.

    Everything that is recorded is flushed to the disk, thousands of times in these tests, and they would wait for it.
    They end processes in every way, but never the machine: what a process has flushed is there in memory as well.
    """
    with suppress(OSError):
        runs_programs = not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
        return _MEMORY if runs_programs and disk_usage(_MEMORY).free > _ROOM_BYTES else None
    return None


def use_memory() -> None:
    """Let pytest and whatever the tests start put temporary files there, unless somebody has said where."""
    memory = roomy_memory()
    if memory is not None and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = memory
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)
