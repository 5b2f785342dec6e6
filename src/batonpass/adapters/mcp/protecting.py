"""What no call may name: the place where the ledger and its keys are."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

_FILE: Final = "file://"
_LONGEST: Final = 4096  # no system takes a longer path
_MOST: Final = 10_000


def find_protected(arguments: Mapping[str, Any], home: Path) -> str | None:
    """Return the first argument that is a path to the ledger's home or into it, by whatever spelling or link.

    It is a net, not a wall: what a server makes of a text is not known here.
    """
    place = home.resolve()
    for number, text in enumerate(_texts(arguments)):
        if number == _MOST:
            break
        path = unquote(text.removeprefix(_FILE)) if text.startswith(_FILE) else text
        try:
            found = Path(path).expanduser().resolve()
        except (OSError, RuntimeError, ValueError):
            continue  # it is no path, or nobody's
        if found.is_relative_to(place):
            return text
    return None


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if 0 < len(each) <= _LONGEST and "\n" not in each:
                yield each
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
