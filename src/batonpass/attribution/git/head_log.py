"""Reads git's log of the head without starting git: which commit was checked out when.

To follow a file through branches, one must know which branch was checked out while somebody worked. Git keeps the log
for a few months, and a clone starts a new one.
"""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.arrived_commits import git_directory

_MOST_BYTES: Final = 512 * 1024  # at the end of the log
_ENTRY: Final = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> (\d+) [+-]\d{4}\t(.*)")
_BACK: Final = ("checkout:", "reset:", "switch:")  # these return to an existing commit; all others create one


class Move(Struct, frozen=True):
    """The head moved to another commit."""

    at: datetime
    commit: str
    is_back: bool  # to an existing commit


def read_moves(root: Path, *, since: datetime | None) -> list[Move]:
    """Return the moves of the head, earliest first; nothing if there is no log."""
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
