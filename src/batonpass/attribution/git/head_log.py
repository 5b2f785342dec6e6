"""What was checked out when: git's own log of a work tree's head, read without starting git.

Whoever follows a file through branches has to know which of them was there when somebody worked. The log is kept for a
few months, and a clone begins a new one.
"""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.arrived_commits import git_directory

_MOST_BYTES: Final = 512 * 1024  # of the end
_ENTRY: Final = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> (\d+) [+-]\d{4}\t(.*)")
_BACK: Final = ("checkout:", "reset:", "switch:")  # what was there before comes back; all others make something new


class Move(Struct, frozen=True):
    """From some time on, a work tree had another commit."""

    at: datetime
    commit: str
    is_back: bool  # to a commit that was there


def read_moves(root: Path, *, since: datetime | None) -> list[Move]:
    """Return how the head of a work tree moved, the earliest first; nothing if there is no log."""
    directory = git_directory(root)
    return [] if directory is None else list(_moves(directory / "logs" / "HEAD", since))


def _moves(log: Path, since: datetime | None) -> Iterator[Move]:
    try:
        with log.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _MOST_BYTES, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return
    for line in text.split("\n"):
        found = _ENTRY.fullmatch(line)
        if found is None or found[1] == found[2]:
            continue
        try:
            at = datetime.fromtimestamp(int(found[3]), UTC)
        except (ValueError, OverflowError, OSError):
            continue
        if since is None or at >= since:
            yield Move(at, found[2], is_back=found[4].startswith(_BACK))
