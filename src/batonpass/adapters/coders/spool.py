"""The spool: events that reached no recorder, each in a file written by the hook command."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders.client import SPOOL
from batonpass.adapters.tool_kinds import Coder, as_coder

_AT_ONCE: Final = 1000  # the rest waits: after a week without a ledger, old events must not delay new ones


def find_spooled(home: Path) -> Iterator[Path]:
    """Yield the waiting events in a ledger's home, earliest first; a file that is being written begins with a dot."""
    try:
        found = sorted(path for path in (home / SPOOL).iterdir() if not path.name.startswith("."))
    except OSError:
        return
    yield from found


def drain(home: Path, note: Callable[[Mapping[str, Any] | None, str, Coder], None]) -> int:
    """Note each waiting event as a gap, then remove it; return their number.

    Raises the errors of `note`, and leaves that event in place. An event that was noted but not removed is noted again:
    twice is better than never.
    """
    count = 0
    for path in find_spooled(home):
        if count == _AT_ONCE:
            break
        why, _, body = path.read_bytes().partition(b"\n")
        note(read_object(body), why.decode("utf-8", "replace"), as_coder(path.suffix.removeprefix(".")))
        path.unlink(missing_ok=True)
        count += 1
    return count


def read_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in some bytes; None if they are not one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
