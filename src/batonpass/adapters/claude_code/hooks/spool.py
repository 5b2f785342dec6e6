"""The spool: events that reached no recorder, a file each, as the hook command left them."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.claude_code.hooks.client import SPOOL

_AT_ONCE: Final = (
    1000  # the rest waits for the next time: a ledger that was away for a week must not hold up what is new
)


def find_spooled(home: Path) -> Iterator[Path]:
    """Yield the events that wait in a ledger's home, the earliest first; one that is being written has a dot."""
    try:
        found = sorted(path for path in (home / SPOOL).iterdir() if not path.name.startswith("."))
    except OSError:
        return
    yield from found


def drain(home: Path, note: Callable[[Mapping[str, Any] | None, str], None]) -> int:
    """Note each event that waits as a gap, then take it away; return how many there were.

    Raises whatever `note` raises, and then leaves that event where it is. One that was noted and could not be taken
    away is noted again the next time: twice is better than never.
    """
    count = 0
    for path in find_spooled(home):
        if count == _AT_ONCE:
            break
        why, _, body = path.read_bytes().partition(b"\n")
        note(read_object(body), why.decode("utf-8", "replace"))
        path.unlink(missing_ok=True)
        count += 1
    return count


def read_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object that some bytes are; None if they are none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
